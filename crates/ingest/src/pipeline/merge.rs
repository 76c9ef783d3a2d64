//! Which distinct ids an event merges (ING-49).
//!
//! What belongs here: the three events that merge, their direction, and the ids that
//! never merge. What does not: the stored records of the persons (`people`).

use weir_capture::is_cookieless_id;
use weir_json::{self as json, Limits};
use weir_model::persons::is_placeholder;

use super::special_properties::SpecialProperties;

/// Upper bound of characters in an id. A longer id merges nothing.
const LONGEST: usize = 400;

/// Upper bound of characters in the distinct id of an event.
const EVENT_ID: usize = 200;

/// In which case the merge of two persons is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// If the other person was identified before.
    OtherIdentified,
    /// If both persons were identified before.
    BothIdentified,
    /// In no case.
    Never,
}

/// Two distinct ids that an event merges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Merge {
    /// The id whose person survives.
    pub(super) main: String,
    /// The id whose person is merged into it.
    pub(super) other: String,
    /// In which case the merge is refused.
    pub(super) refusal: Refusal,
    /// Whether the other id was cut to the length of the distinct id of an event.
    pub(super) is_cut: bool,
}

/// What an event asks to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MergeRequest {
    /// No ids.
    Nothing,
    /// These two ids.
    Join(Merge),
    /// An id that cannot stand for one person.
    Illegal,
    /// Only one id, without the other.
    Incomplete,
}

/// What an event about `distinct_id` asks for.
pub(super) fn request_of(
    event: &str,
    distinct_id: &str,
    special: &SpecialProperties<'_>,
) -> MergeRequest {
    let (second, refusal) = match event {
        "$identify" => (special.anonymous_id, Refusal::OtherIdentified),
        "$create_alias" => (special.alias, Refusal::BothIdentified),
        "$merge_dangerously" => (special.alias, Refusal::Never),
        _ => return MergeRequest::Nothing,
    };
    let Some(second) = second.filter(|value| *value != "null") else {
        // An `$identify` with one id is only an update of the person.
        return if event == "$identify" { MergeRequest::Nothing } else { MergeRequest::Incomplete };
    };
    let second = match json::string_lossy(second) {
        Some(text) => text.into_owned(),
        None => json::canonical(second, Limits::EVENT).unwrap_or_default(),
    };
    if second == distinct_id {
        return MergeRequest::Nothing;
    }
    if is_illegal(&second) || is_illegal(distinct_id) {
        return MergeRequest::Illegal;
    }
    let is_cut = second.chars().nth(EVENT_ID).is_some();
    let second: String = second.chars().take(EVENT_ID).collect();
    if second == distinct_id {
        return MergeRequest::Nothing;
    }
    let first = distinct_id.to_owned();
    let (main, other) = if event == "$create_alias" { (second, first) } else { (first, second) };
    MergeRequest::Join(Merge { main, other, refusal, is_cut })
}

fn is_illegal(id: &str) -> bool {
    is_placeholder(id)
        || is_cookieless_id(id)
        // Capture replaces NUL by this character.
        || id.contains('\u{fffd}')
        || id.chars().nth(LONGEST).is_some()
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::*;

    fn of(event: &str, properties: &str) -> MergeRequest {
        request_of(event, "user", &SpecialProperties::read(properties, &RandomState::new()))
    }

    fn join(main: &str, other: &str, refusal: Refusal) -> MergeRequest {
        let (main, other) = (main.to_owned(), other.to_owned());
        MergeRequest::Join(Merge { main, other, refusal, is_cut: false })
    }

    #[test]
    fn each_event_joins_in_its_direction() {
        for (event, properties, expected) in [
            (
                "$identify",
                r#"{"$anon_distinct_id":"anon"}"#,
                join("user", "anon", Refusal::OtherIdentified),
            ),
            ("$create_alias", r#"{"alias":"b"}"#, join("b", "user", Refusal::BothIdentified)),
            ("$merge_dangerously", r#"{"alias":"b"}"#, join("user", "b", Refusal::Never)),
            ("$create_alias", r#"{"alias":17.5}"#, join("17.5", "user", Refusal::BothIdentified)),
            ("$identify", "{}", MergeRequest::Nothing),
            ("$create_alias", "{}", MergeRequest::Incomplete),
            ("$merge_dangerously", r#"{"alias":null}"#, MergeRequest::Incomplete),
            ("$identify", r#"{"$anon_distinct_id":null}"#, MergeRequest::Nothing),
            ("$identify", r#"{"$anon_distinct_id":"user"}"#, MergeRequest::Nothing),
            ("click", r#"{"$anon_distinct_id":"anon","alias":"b"}"#, MergeRequest::Nothing),
            ("$identify", r#"{"alias":"b"}"#, MergeRequest::Nothing),
        ] {
            assert_eq!(of(event, properties), expected, "{event} {properties}");
        }
    }

    #[test]
    fn placeholders_join_nothing() {
        let long = "x".repeat(401);
        for id in [
            "",
            "  ",
            "anonymous",
            "Anonymous",
            "'guest'",
            "\\\"undefined\\\"",
            "NULL",
            "null",
            "0",
            "NaN",
            "None",
            "[object Object]",
            "true",
            "distinct_id",
            "$posthog_cookieless",
            "cookieless_7c9e6679-7425-50de-944b-e07fc1f90ae7",
            long.as_str(),
        ] {
            // In upper case, the ids that are compared exactly are ordinary ids.
            let expected = if id == "NULL" {
                join("user", "NULL", Refusal::OtherIdentified)
            } else {
                MergeRequest::Illegal
            };
            let properties = format!(r#"{{"$anon_distinct_id":"{id}"}}"#);
            assert_eq!(of("$identify", &properties), expected, "{id}");
        }
        let special = SpecialProperties::read(r#"{"alias":"b"}"#, &RandomState::new());
        for event in ["$create_alias", "$merge_dangerously"] {
            for id in ["guest", "cookieless_7c9e6679-7425-50de-944b-e07fc1f90ae7"] {
                assert_eq!(request_of(event, id, &special), MergeRequest::Illegal, "{event} {id}");
            }
        }
    }
}
