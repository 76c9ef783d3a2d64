//! Source files of plugins: valid input, and the content of `plugin.json` (PLG-9,
//! PLG-10).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    DESCRIPTION_MAX, FILE_NAME_MAX, FILES_MAX, FRONTEND, MANIFEST, NAME_MAX, SITE, SOURCE_MAX,
    SourceChange, object, schema,
};
use crate::errors::FieldError;
use crate::json::{self, VALUES};
use crate::validate;

/// File names of server code, the preferred one first.
pub const SERVER: [&str; 2] = ["index.js", "index.ts"];
/// Files of an archive that only the tools of its author use.
const TOOLS: [&str; 4] = ["package.json", "package-lock.json", "tsconfig.json", "jsconfig.json"];
/// Longest version range, in characters.
const VERSION_MAX: usize = 100;

/// Whether a key of a body is a file name: fields of the record contain no dot.
pub fn is_file_name(key: &str) -> bool {
    key.contains('.')
}

/// Validates a file name.
///
/// # Errors
/// `max_length` or `null_characters_not_allowed` at the name.
pub fn file_name(name: &str) -> Result<String, FieldError> {
    validate::optional_text(name, name, FILE_NAME_MAX)
}

/// Applies a change to source files.
///
/// # Errors
/// `invalid_input` if there would be too many files or bytes.
pub fn changed(
    files: &BTreeMap<String, String>,
    change: &SourceChange,
) -> Result<BTreeMap<String, String>, FieldError> {
    let mut after = files.clone();
    for (name, text) in change {
        match text {
            Some(text) => after.insert(name.clone(), text.clone()),
            None => after.remove(name),
        };
    }
    let bytes: usize = after.values().map(String::len).sum();
    if bytes > SOURCE_MAX {
        let detail = format!("All source files together may have {SOURCE_MAX} bytes.");
        return Err(FieldError::body("invalid_input", detail));
    }
    if after.len() > FILES_MAX {
        let detail = format!("A plugin may have {FILES_MAX} source files.");
        return Err(FieldError::body("invalid_input", detail));
    }
    Ok(after)
}

/// The content of a `plugin.json`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Manifest {
    /// The plugin's name.
    pub name: Option<String>,
    /// Description for users.
    pub description: Option<String>,
    /// The entry file of its server code.
    pub main: Option<String>,
    /// The settings of the plugin.
    pub config_schema: Option<Map<String, Value>>,
    /// Jobs that can be started manually.
    pub public_jobs: Option<Map<String, Value>>,
}

/// Parses a `plugin.json`.
///
/// # Errors
/// Its fault, as a message for the author.
pub fn manifest(text: &str) -> Result<Manifest, String> {
    let read = json::parse(text, VALUES).map_err(|fault| fault.sentence())?;
    let Value::Object(read) = read else { return Err("Expected an object.".to_owned()) };
    let at = |field: &str, fault: FieldError| format!("{field}: {}", fault.detail);
    let text = |field: &str, most: usize| match read.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let text = validate::optional_text(field, text, most);
            text.map(Some).map_err(|fault| at(field, fault))
        }
        Some(_) => Err(format!("{field}: Not a valid string.")),
    };
    let config_schema = match read.get("config") {
        None | Some(Value::Null) => None,
        Some(config) => {
            Some(schema::read(schema::FIELD, config).map_err(|fault| at("config", fault))?)
        }
    };
    let has_config = config_schema.as_ref().is_some_and(|config| !config.is_empty());
    if has_config && read.get("stateless") == Some(&Value::Bool(true)) {
        return Err("stateless: A plugin that can be configured has state.".to_owned());
    }
    let public_jobs = match read.get("publicJobs") {
        None | Some(Value::Null) => None,
        Some(Value::Object(jobs)) => {
            Some(object("publicJobs", jobs.clone()).map_err(|fault| at("publicJobs", fault))?)
        }
        Some(_) => return Err("publicJobs: Expected an object.".to_owned()),
    };
    // The required version of another service has no meaning here; only its form is
    // checked.
    if text("posthogVersion", VERSION_MAX)?.is_some_and(|range| !range.chars().all(is_of_range)) {
        return Err("posthogVersion: Not a version, or a range of versions.".to_owned());
    }
    Ok(Manifest {
        name: text("name", NAME_MAX)?,
        description: text("description", DESCRIPTION_MAX)?,
        // It may be any value unless an archive is decompressed.
        main: read.get("main").and_then(Value::as_str).map(str::to_owned),
        config_schema,
        public_jobs,
    })
}

/// Characters of versions and version ranges.
fn is_of_range(character: char) -> bool {
    character.is_ascii_alphanumeric() || " .*<>=~^|-+,".contains(character)
}

/// The relevant source files of an archive, by their names in Weir, and its manifest. The
/// server code gets a standard name, independent of its name in the archive (PLG-9).
///
/// # Errors
/// The fault of the archive, as a message for users.
pub fn of_archive(
    mut files: BTreeMap<String, String>,
) -> Result<(BTreeMap<String, String>, Manifest), String> {
    let text = files.get(MANIFEST).ok_or_else(|| format!("The archive has no {MANIFEST}."))?;
    let read = manifest(text).map_err(|fault| format!("{MANIFEST}: {fault}"))?;
    if read.name.as_deref().is_none_or(str::is_empty) {
        return Err(format!("{MANIFEST}: name: This field is required."));
    }
    let main = read.main.as_deref().map(|main| main.trim_start_matches("./"));
    let entry = main.into_iter().chain(SERVER).find(|name| files.contains_key(*name));
    let entry = entry.map(str::to_owned).and_then(|name| {
        let is_plain = [".js", ".mjs", ".cjs"].iter().any(|end| name.ends_with(end));
        Some((if is_plain { SERVER[0] } else { SERVER[1] }, files.remove(&name)?))
    });
    let is_page = files.contains_key(FRONTEND) || files.contains_key(SITE);
    if entry.is_none() && !is_page {
        let [js, ts] = SERVER;
        return Err(format!("The archive has no {js}, {ts}, {FRONTEND} or {SITE}."));
    }
    files.retain(|name, _| counts(name));
    if let Some((name, text)) = entry {
        files.insert(name.to_owned(), text);
    }
    Ok((files, read))
}

/// Whether a file of an archive is relevant in addition to the server code: pages, and
/// their data.
fn counts(name: &str) -> bool {
    let is_data = name.ends_with(".json") && !name.contains('/') && !TOOLS.contains(&name);
    name == FRONTEND || name == SITE || is_data
}

/// Faults of source files, from the name of a file to a message, as far as they can be
/// found without running them.
pub fn faults(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let fault = files.get(MANIFEST).and_then(|text| manifest(text).err());
    fault.map(|fault| (MANIFEST.to_owned(), fault)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Manifest, changed, faults, manifest, of_archive};

    #[test]
    fn manifests() {
        assert_eq!(manifest("{}"), Ok(Manifest::default()));
        let read = manifest(r#"{"name": " Tea ", "config": [{"key": "cups"}], "main": "x"}"#);
        let read = read.unwrap();
        assert_eq!(read.name.as_deref(), Some("Tea"));
        assert_eq!(read.config_schema.unwrap()["cups"]["order"], 0);
        let whole = r#"{
            "name": "Tea", "description": "Counts cups.", "stateless": true, "config": [],
            "publicJobs": {"brew": {}}, "posthogVersion": ">= 1.30.0 || ^2.x", "lib": 7
        }"#;
        let read = manifest(whole).unwrap();
        assert_eq!(read.description.as_deref(), Some("Counts cups."));
        assert!(read.public_jobs.unwrap().contains_key("brew"));
        for bad in [
            "",
            "{",
            "[]",
            r#"{"name": 7}"#,
            r#"{"config": 7}"#,
            r#"{"description": 7}"#,
            r#"{"publicJobs": []}"#,
            r#"{"posthogVersion": 7}"#,
            r#"{"posthogVersion": "1;2"}"#,
            r#"{"stateless": true, "config": [{"key": "cups"}]}"#,
        ] {
            assert!(manifest(bad).is_err(), "{bad}");
        }
        let deep = |depth| format!(r#"{{"main": {}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(manifest(&deep(63)).is_ok());
        assert_eq!(manifest(&deep(64)).unwrap_err(), "More than 64 nested objects and lists.");
        let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(201));
        assert!(manifest(&long).unwrap_err().starts_with("name: "));
    }

    #[test]
    fn of_an_archive_what_counts_is_kept() {
        let archive = |manifest: &str, names: &[&str]| {
            let named = |name: &&str| ((*name).to_owned(), format!("// {name}"));
            let mut files: BTreeMap<String, String> = names.iter().map(named).collect();
            files.insert("plugin.json".to_owned(), manifest.to_owned());
            of_archive(files).map(|(files, _)| {
                files.into_iter().map(|(name, text)| format!("{name}: {text}")).collect::<Vec<_>>()
            })
        };
        let tea = r#"{"name": "Tea"}"#;
        let kept = archive(tea, &["index.ts", "site.ts", "README.md", "package.json", "a/b.json"]);
        let expected =
            ["index.ts: // index.ts", &format!("plugin.json: {tea}"), "site.ts: // site.ts"];
        assert_eq!(kept.unwrap(), expected);
        let main = r#"{"name": "Tea", "main": "./dist/tea.js"}"#;
        let kept = archive(main, &["dist/tea.js", "index.ts", "schema.json"]).unwrap();
        assert_eq!(kept[0], "index.js: // dist/tea.js");
        assert_eq!(kept[2], "schema.json: // schema.json");
        assert_eq!(archive(main, &["index.js"]).unwrap()[0], "index.js: // index.js");
        for (manifest, names, fault) in [
            ("{", ["index.js"], "plugin.json: EOF"),
            ("{}", ["index.js"], "plugin.json: name: This field is required."),
            (tea, ["README.md"], "The archive has no index.js, index.ts, frontend.tsx or site.ts."),
        ] {
            let message = archive(manifest, &names).unwrap_err();
            assert!(message.starts_with(fault), "{message}");
        }
        assert!(of_archive(BTreeMap::new()).is_err());
    }

    #[test]
    fn what_is_not_named_stays() {
        let files = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let before = files(&[("a.js", "1"), ("b.js", "2"), ("plugin.json", "{")]);
        let change = vec![
            ("a.js".to_owned(), Some("3".to_owned())),
            ("b.js".to_owned(), None),
            ("none.js".to_owned(), None),
        ];
        let after = changed(&before, &change).unwrap();
        assert_eq!(after, files(&[("a.js", "3"), ("plugin.json", "{")]));
        assert_eq!(faults(&after).keys().collect::<Vec<_>>(), ["plugin.json"]);
        let long = vec![("a.js".to_owned(), Some("x".repeat(600_000)))];
        assert!(changed(&before, &long).is_err());
        let many = (0..51).map(|n| (format!("{n}.js"), Some(String::new()))).collect();
        assert!(changed(&before, &many).is_err());
    }
}
