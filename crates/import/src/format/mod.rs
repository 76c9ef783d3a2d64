//! The formats of files, and detecting them.
//!
//! What belongs here: detecting the format of a line, and finding its fields; one module
//! per format. What does not: validating the fields ([`crate::event`]).

mod amplitude;
mod jsonl;
mod mixpanel;
mod posthog;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use weir_json as json;

use crate::defect::{Defect, DefectKind};
use crate::event::Draft;
use crate::object::LineObject;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Events as capture takes them
    Jsonl,
    /// PostHog's export of events
    Posthog,
    /// Mixpanel's raw export
    Mixpanel,
    /// Amplitude's raw export
    Amplitude,
}

impl Format {
    const ALL: [Self; 4] = [Self::Jsonl, Self::Posthog, Self::Mixpanel, Self::Amplitude];

    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Posthog => "posthog",
            Self::Mixpanel => "mixpanel",
            Self::Amplitude => "amplitude",
        }
    }

    /// The format of most of these lines; JSON Lines if none matches.
    pub(crate) fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut votes = [0_usize; Self::ALL.len()];
        for line in lines {
            let found =
                std::str::from_utf8(line).ok().and_then(|line| LineObject::parse(line).ok());
            let found_format = found.as_ref().and_then(Self::of_line);
            for (vote, format) in votes.iter_mut().zip(Self::ALL) {
                *vote += usize::from(found_format == Some(format));
            }
        }
        let ranked = Self::ALL.into_iter().zip(votes).rev().max_by_key(|(_, votes)| *votes);
        ranked.filter(|(_, votes)| *votes > 0).map_or(Self::Jsonl, |(format, _)| format)
    }

    fn of_line(line: &LineObject<'_>) -> Option<Self> {
        const OF_EXPORTS: [&str; 10] = [
            "elements_chain",
            "person_id",
            "person_properties",
            "created_at",
            "_inserted_at",
            "inserted_at",
            "team_id",
            "site_url",
            "set",
            "set_once",
        ];
        if line.has("event_type") && !line.has("event") {
            return Some(Self::Amplitude);
        }
        if !line.has("event") {
            return None;
        }
        let properties = line.get("properties").unwrap_or_default();
        let inside = LineObject::parse(properties).unwrap_or_default();
        if inside.has("time") && !line.has("timestamp") && !line.has("distinct_id") {
            return Some(Self::Mixpanel);
        }
        let is_row = properties.starts_with('"') || OF_EXPORTS.iter().any(|name| line.has(name));
        Some(if line.has("uuid") && is_row { Self::Posthog } else { Self::Jsonl })
    }

    /// Reads the fields of a line.
    pub(crate) fn draft(self, line: &str) -> Result<Draft<'_>, Defect> {
        let line = LineObject::parse(line).map_err(|error| not_an_object(line, &error))?;
        Ok(match self {
            Self::Jsonl => jsonl::draft(line),
            Self::Posthog => posthog::draft(line),
            Self::Mixpanel => mixpanel::draft(line),
            Self::Amplitude => amplitude::draft(line),
        })
    }
}

fn not_an_object(line: &str, error: &serde_json::Error) -> Defect {
    match serde_json::from_str::<serde::de::IgnoredAny>(line) {
        Ok(_) if !line.trim_start().starts_with('{') => DefectKind::NotAnObject.into(),
        _ => Defect::with(
            DefectKind::NotJson,
            error.to_string().replace("at line 1 column", "at column"),
        ),
    }
}

/// An object, or the JSON text of one. An empty list is an object without members, as PHP
/// writes it.
fn object(json: Cow<'_, str>) -> Result<LineObject<'_>, DefectKind> {
    let inner = json::string(&json).map(Cow::into_owned);
    let json = inner.map_or(json, Cow::Owned);
    if json::is_empty_list(&json) {
        return Ok(LineObject::default());
    }
    let parsed = match json {
        Cow::Borrowed(json) => LineObject::parse(json),
        Cow::Owned(json) => LineObject::parse(&json).map(LineObject::into_owned),
    };
    parsed.map_err(|_| DefectKind::InvalidProperties)
}

/// Adds person properties that an event sets: an object, or the JSON text of one. An empty
/// text and the text `null`, as some exports write a missing value, add nothing.
fn add_person_update<'a>(
    to: &mut LineObject<'a>,
    defects: &mut Vec<Defect>,
    name: &'static str,
    value: Option<Cow<'a, str>>,
) {
    let Some(value) = value.filter(|value| !is_blank(value)) else { return };
    match object(value) {
        Ok(update) if update.is_empty() => {}
        Ok(update) => to.add(name, update.to_json()),
        Err(_) => {
            defects.push(Defect::with(DefectKind::InvalidPersonUpdate, format_args!("`{name}`")));
        }
    }
}

/// Whether JSON text is a text without content, or the text `null`.
fn is_blank(json: &str) -> bool {
    json::string(json).is_some_and(|text| matches!(text.trim(), "" | "null"))
}

/// The name in Weir as JSON text, if there is another one.
fn renamed<'a>(name: Cow<'a, str>, names: &[(&str, &str)]) -> Cow<'a, str> {
    let known = json::string(&name).and_then(|name| names.iter().find(|(from, _)| *from == name));
    match known {
        Some((_, to)) => Cow::Owned(json::quoted(to)),
        None => name,
    }
}

#[cfg(test)]
mod tests;
