//! Defects of lines of an import.
//!
//! What belongs here: the closed list of kinds, each with its code, its effect on the
//! line, its description and a remedy. What does not: finding them (`event`, `format`),
//! and counting ([`crate::report`]).
//!
//! If capture drops an event for the same fault, the code is the same.

use std::fmt;

/// The effect of a defect on its line, the most severe last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The line is imported.
    Imported,
    /// The line need not be imported and is omitted.
    Omitted,
    /// The line cannot be imported. Nothing is sent unless such lines may be skipped.
    Skipped,
}

impl Effect {
    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Omitted => "omitted",
            Self::Imported => "imported",
        }
    }

    /// The value in JSON, which scripts read.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Omitted => "left_out",
            Self::Imported => "imported",
        }
    }
}

macro_rules! defects {
    ($($variant:ident = $code:literal, $effect:ident, $sentence:literal, $fix:literal;)+) => {
        /// A kind of defect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DefectKind {
            $(#[doc = concat!("`", $code, "`: ", $sentence)] $variant),+
        }

        impl DefectKind {
            /// All kinds, in display order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable code, in snake case.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// The effect on the line.
            pub const fn effect(self) -> Effect {
                match self { $(Self::$variant => Effect::$effect),+ }
            }

            /// One sentence for users: what is wrong.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }

            /// One sentence for users: what to do about it.
            pub const fn fix(self) -> &'static str {
                match self { $(Self::$variant => $fix),+ }
            }
        }
    };
}

defects! {
    DamagedGzip = "damaged_gzip", Skipped,
        "The gzip data ends early or is damaged here; the rest of the file cannot be read.",
        "Download or copy the file again.";
    LineTooLong = "line_too_long", Skipped,
        "The line is longer than 16 MiB.",
        "Write one event per line.";
    NotUtf8 = "not_utf8", Skipped,
        "The line is not UTF-8 text.",
        "Convert the file, such as with `iconv -t UTF-8`.";
    NotJson = "not_json", Skipped,
        "The line is not JSON.",
        "Write one JSON object per line, without a comma after it.";
    NotAnObject = "not_an_object", Skipped,
        "The line is JSON, but not an object.",
        "Turn a list of events into lines with `jq -c '.[]'`.";
    MissingEventName = "missing_event_name", Skipped,
        "The event has no name.",
        "Give it a non-empty text as `event`.";
    EventNameNotText = "event_name_not_text", Skipped,
        "The event name is not a text.",
        "Give the name as a text, and put numbers and lists into `properties`.";
    MissingDistinctId = "missing_distinct_id", Skipped,
        "No distinct_id.",
        "Give it a `distinct_id` that is not blank.";
    InvalidUuid = "invalid_uuid", Skipped,
        "The `uuid` is not a UUID.",
        "Give a UUID in its text form, or leave `uuid` out.";
    InvalidProperties = "invalid_properties", Skipped,
        "The `properties` are not an object.",
        "Give them as an object of names and values.";
    ProfileSwitchedOff = "profile_switched_off", Skipped,
        "The event is about a person or a group, but says that persons are not to be processed.",
        "Leave `$process_person_profile` out of identify, alias, merge and group events.";
    InvalidGroupSet = "invalid_group_set", Skipped,
        "The `$group_set` of a `$groupidentify` is not an object.",
        "Give it as an object of names and values, or leave it out.";
    GroupKeyTooLong = "group_key_too_long", Skipped,
        "The `$group_key` of a `$groupidentify` is longer than 400 characters.",
        "Use a short fixed key for every group, such as its number.";
    MissingTimestamp = "missing_timestamp", Skipped,
        "The event has no time.",
        "Add the time, or pass `--undated-as-now` to take the time of the import.";
    InvalidTimestamp = "invalid_timestamp", Skipped,
        "The time cannot be read.",
        "Write it as ISO 8601 with a zone, such as 2026-06-01T10:00:00Z.";
    FutureTimestamp = "future_timestamp", Skipped,
        "The time is more than 23 hours ahead.",
        "Check unit and zone of the times in the file, and the clock of this machine.";
    EventTooLarge = "event_too_large", Skipped,
        "The event is larger than 1 MiB.",
        "Shorten long values.";
    TooDeep = "too_deep", Skipped,
        "The event is nested more than 64 levels deep.",
        "Flatten the properties, or write the nested part as one text.";
    TooManyKeys = "too_many_keys", Skipped,
        "The event has more than 10,000 keys.",
        "Split the event, or fold rarely used keys into one text.";
    DuplicateUuid = "duplicate_uuid", Omitted,
        "An earlier line is the same event.",
        "Nothing, if the lines are equal; otherwise give every event a uuid of its own.";
    NotAnEvent = "not_an_event", Omitted,
        "Recordings and performance entries are not stored as events.",
        "Nothing.";
    EventNameCut = "event_name_cut", Imported,
        "The event name is longer than 200 characters and is cut.",
        "Use short fixed names and put what varies into `properties`.";
    DistinctIdCut = "distinct_id_cut", Imported,
        "The distinct id is longer than 200 characters and is cut.",
        "Use ids of at most 200 characters: ids that share their beginning become one person.";
    TextRepaired = "text_repaired", Imported,
        "Characters that no text can hold (NUL, half of a pair) are replaced by U+FFFD.",
        "Cut texts by character and not by byte or UTF-16 unit.";
    PlaceholderDistinctId = "placeholder_distinct_id", Imported,
        "The distinct id is a placeholder, such as `null` or `anonymous`: all its events become one person.",
        "Give every person an id of its own.";
    TimeOfImport = "time_of_import", Imported,
        "The event has no time and gets the time of the import.",
        "Add the time.";
    InvalidPersonUpdate = "invalid_person_update", Imported,
        "The update of the person is neither an object nor the JSON text of one, and is omitted.",
        "Give `set`, `set_once`, `$set` and `$set_once` as objects of names and values.";
    IdsNotJoined = "ids_not_joined", Imported,
        "The event is to join two ids of a person, but does not name two ids that can be joined.",
        "If they are one person, send a `$merge_dangerously` with one as `distinct_id` and the other as `alias`.";
}

impl fmt::Display for DefectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

/// A defect of one line, with details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Defect {
    pub(crate) kind: DefectKind,
    pub(crate) detail: Option<String>,
}

impl Defect {
    pub(crate) fn with(kind: DefectKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: Some(detail.to_string()) }
    }
}

impl From<DefectKind> for Defect {
    fn from(kind: DefectKind) -> Self {
        Self { kind, detail: None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{DefectKind, Effect};

    #[test]
    fn every_kind_is_complete() {
        let codes: HashSet<_> = DefectKind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes.len(), DefectKind::ALL.len());
        for kind in DefectKind::ALL {
            let snake = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
            assert!(kind.code().chars().all(snake), "{kind}");
            for text in [kind.sentence(), kind.fix()] {
                assert!(text.ends_with('.'), "{kind}: {text}");
            }
        }
    }

    /// The guide and the product must agree.
    #[test]
    fn the_guide_has_a_row_for_every_kind() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/import.md");
        let guide = std::fs::read_to_string(path).unwrap();
        for kind in DefectKind::ALL {
            let row = format!("| `{}` | {} | {} |\n", kind, kind.effect().word(), kind.sentence());
            assert!(guide.contains(&row), "the guide lacks: {row}");
        }
        assert_eq!((Effect::Omitted.word(), Effect::Omitted.code()), ("omitted", "left_out"));
    }
}
