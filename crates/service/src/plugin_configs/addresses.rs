//! Settings that decide where a plugin connects to: which addresses may be stored. A
//! change of such a setting does not keep secrets, so that they are not sent to another
//! host.
//!
//! A plugin can use any setting as an address, so every text is checked, and every
//! changed setting counts unless its value cannot be an address. Names of settings only
//! add to that.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use weir_json::{Token, Tokens, string_lossy};
use weir_model::errors::FieldError;
use weir_model::plugin_configs::settings::Settings;
use weir_store::plugin_configs::AttachmentRow;
use weir_store::plugins::PluginRow;

use super::values::Opened;
use crate::exports::HostPolicy;
use crate::plugins::catalogue;

/// Words that mean an address when a part of a setting's name begins or ends with them.
const ADDRESSES: [&str; 13] = [
    "address", "callback", "domain", "dsn", "endpoint", "host", "hook", "origin", "proxy",
    "server", "site", "uri", "url",
];
/// Words for a part of an address after the host.
const PLACES: [&str; 30] = [
    "account",
    "app",
    "bucket",
    "channel",
    "cluster",
    "collection",
    "database",
    "dataset",
    "db",
    "dc",
    "directory",
    "env",
    "id",
    "index",
    "instance",
    "namespace",
    "org",
    "path",
    "port",
    "project",
    "queue",
    "region",
    "shop",
    "stream",
    "table",
    "team",
    "tenant",
    "topic",
    "workspace",
    "zone",
];
/// Characters that structure addresses.
const STRUCTURE: [char; 12] = ['.', '/', '\\', ':', '@', '?', '#', '%', '=', '[', ']', '&'];
/// Characters that end the host of an address within a text.
const ENDS: [char; 14] = ['/', '\\', '?', '#', '"', '\'', '`', '<', '>', '|', '(', ')', '{', '}'];
/// How many characters of a key a fault repeats.
const SHOWN: usize = 64;

/// Whether a plugin can make connections. Steps in Rust cannot.
pub(super) fn connects(plugin: &PluginRow) -> bool {
    catalogue::of_url(plugin.url.as_deref()).is_none_or(weir_catalogue::Entry::connects)
}

/// Refuses addresses, as written, that are never connected to. The addresses of a name
/// are checked with every connection.
pub(super) fn judge(hosts: &dyn HostPolicy, values: &Map<String, Value>) -> Result<(), FieldError> {
    let is_forbidden = |(key, value): &(&String, &Value)| {
        let words = words(key);
        let lists = words.iter().any(|word| is_address(word));
        let is_one = words.last().is_some_and(|word| is_address(word));
        any_text(value, &|text| {
            // Numbers are short spellings of addresses, but mostly just numbers.
            let refused = |part: &str| (is_one || !begins_as_number(part)) && hosts.refuses(part);
            let separates = |c: char| c.is_whitespace() || c == ',';
            let is_list = text.trim().contains(separates);
            let mut parts = text.split(separates).filter(|part| !part.is_empty());
            parts.any(|part| (lists || !is_list || part.contains("://")) && refused(part))
                || authorities(text).any(|authority| hosts.refuses(authority))
        })
    };
    match values.iter().find(is_forbidden) {
        None => Ok(()),
        Some((key, _)) => {
            let detail = "This address is on a network that this server does not connect to. \
                          The operator can allow it with egress_allow.";
            Err(FieldError::new(&format!("config__{key}"), "invalid_input", detail))
        }
    }
}

/// A change of a config's values and files.
pub(super) struct Move<'a> {
    pub(super) settings: &'a Settings<'a>,
    pub(super) before: &'a Opened,
    pub(super) after: &'a Opened,
    pub(super) files_before: &'a [AttachmentRow],
    pub(super) files_after: &'a [AttachmentRow],
}

impl Move<'_> {
    /// A secret that the change keeps. `is_sent` says which secrets were sent with the
    /// change.
    fn kept(&self, is_sent: &impl Fn(&str) -> bool) -> Option<&str> {
        let before = self.before.all();
        let stays = |(key, value): &(&String, &Value)| before.get(*key) == Some(*value);
        let values = self.after.secrets.iter().filter(stays).map(|(key, _)| key);
        let files = self.files_after.iter().filter(|one| one.secret).map(|one| &one.key);
        values.chain(files).find(|key| !is_sent(key)).map(String::as_str)
    }

    /// Refuses a change that can send secrets to another host without entering them
    /// again.
    pub(super) fn keeps_secrets_at_home(
        &self,
        is_sent: &impl Fn(&str) -> bool,
    ) -> Result<(), FieldError> {
        let Some(secret) = self.kept(is_sent) else { return Ok(()) };
        let Some(moved) = self.moved() else { return Ok(()) };
        let moved: String = moved.chars().take(SHOWN).collect();
        let detail = format!(
            "Enter this again: \"{moved}\" has changed, and it may decide where this is sent."
        );
        Err(FieldError::new(&format!("config__{secret}"), "required", detail))
    }

    /// A changed setting that can decide where data is sent.
    fn moved(&self) -> Option<String> {
        let (was, is) = (self.before.all(), self.after.all());
        let leads = |key: &&String| {
            let values = [set(was.get(*key)), set(is.get(*key))];
            values[0] != values[1] && self.may_lead(key, values)
        };
        if let Some(key) = was.keys().chain(is.keys()).find(leads) {
            return Some(key.clone());
        }
        let missing = |these: &[AttachmentRow], there: &[AttachmentRow]| {
            let is_there = |one: &AttachmentRow| there.iter().any(|other| other.uid == one.uid);
            these.iter().find(|one| !one.secret && !is_there(one)).map(|one| one.key.clone())
        };
        let new = missing(self.files_after, self.files_before);
        new.or_else(|| missing(self.files_before, self.files_after))
    }

    fn may_lead(&self, key: &str, values: [Option<&Value>; 2]) -> bool {
        let mut values = values.into_iter().flatten();
        let words = words(key);
        if words.iter().any(|word| is_address(word)) {
            return true;
        }
        // Other secrets change because they are replaced.
        if self.before.secrets.contains_key(key) || self.after.secrets.contains_key(key) {
            return values.any(has_host);
        }
        if words.iter().any(|word| is_place(word)) {
            return true;
        }
        if self.settings.is_choice(key) {
            return values.any(has_host);
        }
        !values.all(|value| match value {
            Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => is_number(text) || is_prose(text),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        })
    }
}

/// The value, if it is set: forms send an empty text for an unset value.
fn set(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null() && value.as_str() != Some(""))
}

/// Whether a text is an ordinary number. Four numbers with dots are an address.
fn is_number(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let parts = text.split('.');
    parts.clone().count() < 4
        && parts.clone().any(|part| !part.is_empty())
        && parts.clone().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a text is a number, a time, a date, a ratio or a sign rather than an
/// address, though `9:30` and `1/2` can be read as one. Four numbers with dots are an
/// address.
fn begins_as_number(text: &str) -> bool {
    let host = text.trim_start_matches(['/', '\\']).split(['/', '\\', ':', '?', '#']).next();
    host.is_some_and(is_number) || !text.contains(char::is_alphanumeric)
}

/// Whether a text has several words and no character of an address: neither a host nor
/// a part of a path has that form.
fn is_prose(text: &str) -> bool {
    let text = text.trim();
    text.contains(|c: char| c.is_whitespace() || c == ',') && !text.contains(STRUCTURE)
}

/// Whether the form of a value shows that it contains a host.
fn has_host(value: &Value) -> bool {
    any_text(value, &|text| {
        let text = text.trim();
        let host = text.split(['/', ':', '?', '#']).next().unwrap_or_default();
        text.contains("://")
            || (host.contains('.')
                && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_')))
    })
}

/// Whether the predicate holds for a text in a value, or in JSON that a text contains:
/// settings of type `json` are such texts. Stored values are limited in depth and
/// length.
fn any_text(value: &Value, is_so: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_so_within(text, is_so),
        Value::Array(list) => list.iter().any(|value| any_text(value, is_so)),
        Value::Object(map) => map.values().any(|value| any_text(value, is_so)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether the predicate holds for a text, or for a text in JSON that it contains. Nested
/// JSON grows with every level, so there are few levels. The JSON is scanned and not
/// parsed: its values can need a hundred times its bytes.
fn is_so_within(text: &str, is_so: &impl Fn(&str) -> bool) -> bool {
    if is_so(text) {
        return true;
    }
    let is_json = text.trim_start().starts_with(['{', '[', '"'])
        && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !is_json {
        return false;
    }
    let mut tokens = Tokens::of(text.as_bytes()).peekable();
    while let Some((token, range)) = tokens.next() {
        let is_name = matches!(tokens.peek(), Some((Token::Mark(b':'), _)));
        if token == Token::String
            && !is_name
            && let Some(inner) = text.get(range).and_then(string_lossy)
            && is_so_within(&inner, is_so)
        {
            return true;
        }
    }
    false
}

/// The hosts, with their ports, of the addresses within a text. They do not overlap.
fn authorities(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || c == ',' || ENDS.contains(&c);
    text.split("://").skip(1).map(move |rest| rest.split(ends).next().unwrap_or_default())
}

/// Whether a word of a key means an address, also in the plural or joined with other
/// words: `hostname`, `baseurl`.
fn is_address(word: &str) -> bool {
    let one = word.strip_suffix('s').unwrap_or(word);
    one == "ip"
        || ADDRESSES.iter().any(|part| {
            one.ends_with(part)
                || word.ends_with(part)
                || (part.len() > 3 && word.starts_with(part))
        })
}

/// Whether a word means a part of an address after the host. Too many words contain the
/// short ones by chance.
fn is_place(word: &str) -> bool {
    let one = word.strip_suffix('s').unwrap_or(word);
    PLACES.iter().any(|part| {
        one == *part
            || word == *part
            || (part.len() > 4 && (one.ends_with(part) || word.starts_with(part)))
    })
}

/// The words of a key such as `baseUrl` or `base_url`.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in key.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests;
