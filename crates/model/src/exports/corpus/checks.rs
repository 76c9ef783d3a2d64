//! Checks for tests and the fuzz targets `settings` and `prefixes` (`fuzz/`): they hold for
//! all settings of destinations and all prefixes, valid or not.

use serde_json::{Map, Value};

use crate::Timestamp;
use crate::errors::FieldError;
use crate::exports::ExportModel;
use crate::exports::config::{changed, changed_secrets, complete, merged, split_secrets};
use crate::exports::destinations::{self, DestinationType, Kind, Need};
use crate::exports::prefix::{Bounds, Template};

/// Maximum characters of the name in a fault: input is repeated only in part.
const ATTR_MAX: usize = 300;
/// Maximum characters of the message of a fault.
const DETAIL_MAX: usize = 300;

/// JSON with an object `sent`, a new config, and an object `then`, a change of it. Both
/// are tried with every type.
pub(super) fn check_settings(text: &str) {
    let Ok(Value::Object(file)) = serde_json::from_str::<Value>(text) else { return };
    let part = |name: &str| match file.get(name) {
        Some(Value::Object(part)) => part.clone(),
        _ => Map::new(),
    };
    let (sent, then) = (part("sent"), part("then"));
    for kind in destinations::ALL {
        match complete(kind, &sent) {
            Ok(config) => {
                check_config(kind, &config);
                check_change(kind, &config, &then);
            }
            Err(fault) => check_fault(&fault),
        }
    }
}

fn check_fault(fault: &FieldError) {
    let attr = fault.attr.as_deref().expect("a fault has a name");
    assert!(attr.starts_with("destination__config__"), "{attr}");
    assert!(attr.chars().count() <= ATTR_MAX, "{attr}");
    assert!(!fault.detail.is_empty() && fault.detail.chars().count() <= DETAIL_MAX, "{fault:?}");
}

/// Checks an accepted config.
fn check_config(kind: &DestinationType, config: &Map<String, Value>) {
    let fields: Vec<_> = kind.all_fields().collect();
    assert_eq!(config.len(), fields.len(), "{}", kind.name);
    for field in &fields {
        let value = config.get(field.name).expect("it has all settings");
        assert!(!value.is_null() || field.need != Need::Required, "{}", field.name);
        match (&field.kind, value.as_str()) {
            // The name is quoted in SQL.
            (Kind::Identifier, Some(name)) => {
                let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(!name.is_empty() && name.len() <= 63 && name.chars().all(fits), "{name}");
            }
            (Kind::Host | Kind::HostPart, Some(host)) => {
                let is_plain = host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%');
                assert!(is_plain && !host.contains(['/', '@', '\\']), "{host}");
            }
            (Kind::Url, Some(url)) => {
                let (scheme, rest) = url.split_once("://").unwrap_or_default();
                assert!(matches!(scheme, "http" | "https"), "{url}");
                let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                assert!(!authority.is_empty() && !authority.contains('@'), "{url}");
                assert!(!url.contains(|c: char| c.is_whitespace() || c.is_control()), "{url}");
            }
            (_, Some(text)) => assert!(!text.contains('\0'), "{}", field.name),
            _ => {}
        }
    }
    // Sending an accepted config again does not change it.
    assert_eq!(complete(kind, config).as_ref(), Ok(config), "{}", kind.name);
    assert_eq!(changed(kind, config, &Map::new()).as_ref(), Ok(config), "{}", kind.name);
    assert_eq!(changed_secrets(kind, config, config), Vec::<String>::new());
    // Visible settings contain no secret, and no value is lost.
    let (shown, secrets) = split_secrets(kind, config.clone());
    assert!(fields.iter().all(|field| !field.is_secret || !shown.contains_key(field.name)));
    assert_eq!(&merged(shown, secrets), config, "{}", kind.name);
}

/// Checks a change of a config.
fn check_change(kind: &DestinationType, before: &Map<String, Value>, sent: &Map<String, Value>) {
    let config = match changed(kind, before, sent) {
        Ok(config) => config,
        Err(fault) => return check_fault(&fault),
    };
    check_config(kind, &config);
    let mut fields = kind.all_fields();
    if fields.any(|field| field.is_address && before.get(field.name) != config.get(field.name)) {
        // A change of the address or the user never keeps an old secret.
        for field in kind.all_fields().filter(|field| field.is_secret) {
            let is_set = config.get(field.name).is_some_and(|value| !value.is_null());
            assert!(!is_set || sent.contains_key(field.name), "{}", field.name);
        }
    }
}

/// Checks a key prefix of files.
pub(super) fn check_prefix(text: &str) {
    let Ok(template) = Template::parse(text) else { return };
    let hour = 3_600_000_000;
    let bounds = [
        (None, 0),
        (Some(1_780_000_000_000_001), 1_780_000_000_000_001 + hour),
        (Some(-hour), 0),
        // The years 1 and 9999.
        (Some(-62_135_596_800_000_000), 253_402_300_799_999_999),
    ];
    let mut seen = Vec::new();
    for (start, end) in bounds {
        for by_time in [false, true] {
            for model in ExportModel::ALL {
                let bounds = Bounds {
                    start: start.map(Timestamp::from_micros),
                    end: Timestamp::from_micros(end),
                    by_time,
                    table: model.text(),
                };
                let Ok(directory) = template.directory(&bounds) else { continue };
                let stem = template.stem(&bounds).expect("its directory is a name");
                let key = format!("{stem}-0.jsonl.gz");
                let is_name = |part: &str| !matches!(part, "" | "." | "..");
                assert!(key.split('/').all(is_name), "{text:?}: {key:?}");
                assert!(!key.contains(char::is_control), "{text:?}: {key:?}");
                assert!(key.starts_with(&directory), "{text:?}: {key:?}");
                // Different runs do not overwrite each other's files.
                seen.push(((start, end, by_time), stem));
            }
        }
    }
    for (at, (run, stem)) in seen.iter().enumerate() {
        for (other_run, other) in &seen[..at] {
            assert!(run == other_run || stem != other, "{text:?}: {stem:?}");
        }
    }
}
