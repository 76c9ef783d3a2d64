//! Drop reasons, and warnings of events that were stored altered.
//!
//! What belongs here: the closed lists of reasons, each with its code, a description, a
//! remedy, and a heading of the manual. Capture decides; the live list, metric labels,
//! counters per project and pages read these tables. What does not: the decision
//! (`weir-capture`), and counting (`traffic`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::live::Outcome;
use crate::traffic::Refusal;

/// A code that is neither a reason nor a warning of this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCode {
    /// The text that was read.
    pub code: String,
}

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown outcome code `{}`", self.code)
    }
}

impl std::error::Error for UnknownCode {}

macro_rules! outcomes {
    (
        $(#[$about:meta])* $name:ident;
        $($variant:ident = $code:literal, $anchor:literal, $sentence:literal, $fix:literal;)+
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $code, "`: ", $sentence)] $variant),+
        }

        impl $name {
            /// Every value, in display order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable code, in snake case: metric label and wire form.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// One sentence for users: what happened.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }

            /// One sentence for users: what to do about it.
            pub const fn fix(self) -> &'static str {
                match self { $(Self::$variant => $fix),+ }
            }

            /// The anchor of its heading in the manual, without `#`.
            pub const fn anchor(self) -> &'static str {
                match self { $(Self::$variant => $anchor),+ }
            }

            /// The value with this code, if there is one.
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.code() == code)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.code())
            }
        }

        impl FromStr for $name {
            type Err = UnknownCode;

            fn from_str(code: &str) -> Result<Self, UnknownCode> {
                Self::from_code(code).ok_or_else(|| UnknownCode { code: code.to_owned() })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.code())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

outcomes! {
    /// Why an event was not stored although its request was answered with 200.
    DropReason;

    MissingEventName = "missing_event_name", "missing-event-name",
        "The event has no name.",
        "Send a non-empty text as `event`.";
    EventNameNotText = "event_name_not_text", "event-name-not-text",
        "The event name is not a text.",
        "Send `event` as a text, and put numbers and lists into `properties`.";
    MissingDistinctId = "missing_distinct_id", "missing-distinct-id",
        "No distinct_id.",
        "Send a `distinct_id` that is not blank; server libraries need it in every call.";
    InvalidUuid = "invalid_uuid", "invalid-uuid",
        "The `uuid` of the event is not a UUID.",
        "Send a UUID in its text form, or leave `uuid` out to have one made.";
    InvalidProperties = "invalid_properties", "invalid-properties",
        "The `properties` of the event are not an object.",
        "Send `properties` as an object of names and values, or leave them out.";
    EventTooLarge = "event_too_large", "event-too-large",
        "The event is larger than 1 MiB.",
        "Shorten long values; keep files elsewhere and send their address.";
    TooDeep = "too_deep", "too-deep",
        "The event is nested more than 64 levels deep.",
        "Flatten the properties, or send the nested part as one text.";
    TooManyKeys = "too_many_keys", "too-many-keys",
        "The event has more than 10,000 keys.",
        "Send several smaller events, or fold rarely used keys into one text.";
    NotAnEvent = "not_an_event", "not-an-event",
        "Recordings and performance entries are not stored as events.",
        "Nothing is wrong; switch recording off in the library to save traffic.";
    EventNameTooLong = "event_name_too_long", "event-name-too-long",
        "The event name is longer than 200 characters, which the newer protocol does not cut.",
        "Use short fixed names and put what varies into `properties`.";
    DistinctIdTooLarge = "distinct_id_too_large", "distinct-id-too-large",
        "The distinct id is longer than 200 characters, which the newer protocol does not cut.",
        "Use an id of at most 200 characters.";
    InvalidEventTimestamp = "invalid_event_timestamp", "invalid-event-timestamp",
        "The time of the event is missing or cannot be read, and the newer protocol asks for one.",
        "Send `timestamp` as ISO 8601 with a zone, such as 2026-06-01T10:00:00Z.";
    ProfileSwitchedOff = "profile_switched_off", "profile-switched-off",
        "The event is about a person or a group, but it or its project switches persons off.",
        "Leave `$process_person_profile` out of such calls, and check the settings of the project.";
    InvalidGroupSet = "invalid_group_set", "invalid-group-set",
        "The `$group_set` of a `$groupidentify` is not an object.",
        "Send `$group_set` as an object of names and values, or leave it out.";
    GroupKeyTooLong = "group_key_too_long", "group-key-too-long",
        "The `$group_key` of a `$groupidentify` is longer than 400 characters.",
        "Use a short fixed key for every group, such as its number.";
    OverMonthlyLimit = "over_monthly_limit", "over-monthly-limit",
        "The organization had sent all events that it may send in this calendar month.",
        "Send fewer events, or ask the operator of the instance to raise the limit; a new month begins at midnight UTC.";
    OverRateLimit = "over_rate_limit", "over-rate-limit",
        "The organization sent more events in a second than it may.",
        "Find the sender that sends most, or ask the operator of the instance to raise the limit.";
    OverDiskLimit = "over_disk_limit", "over-disk-limit",
        "The stored events of the organization take all disk space that they may take.",
        "Set a retention for its projects, or ask the operator of the instance to raise the limit.";
    DroppedByTransformation = "dropped_by_transformation", "dropped-by-transformation",
        "A transformation of the project dropped the event.",
        "Nothing is wrong if that is its purpose; otherwise open the transformation that is named, and try it with this event.";
    TransformationUnavailable = "transformation_unavailable", "transformation-unavailable",
        "A transformation that must run could not run on the event.",
        "Read the error of the transformation that is named; its setting `on_failure` says that such events are dropped.";
    NotProcessed = "not_processed", "not-processed",
        "Processing the event failed every time, so it was skipped and does not block later events.",
        "This is a defect of Weir: report it with the sample and the message in the log.";
    UnreadableRecord = "unreadable_record", "unreadable-record",
        "Events of the ingest log are damaged, or this version of the program cannot read them.",
        "See what `weir log inspect` says of them; `weir log replay` of a version that can read them stores them.";
    DuplicateUuid = "duplicate_uuid", "duplicate-uuid",
        "An event with the same uuid is already stored.",
        "Nothing is wrong after a retry; otherwise give every event a uuid of its own.";
}

outcomes! {
    /// What was altered or not understood in an event that was stored.
    Warning;

    EventNameCut = "event_name_cut", "event-name-cut",
        "The event name was longer than 200 characters and was cut.",
        "Use short fixed names and put what varies into `properties`.";
    DistinctIdCut = "distinct_id_cut", "distinct-id-cut",
        "The distinct id was longer than 200 characters and was cut.",
        "Use an id of at most 200 characters: ids that share their beginning become one person.";
    InvalidTimestamp = "invalid_timestamp", "invalid-timestamp",
        "The time of the event could not be read, so the time of receipt was used.",
        "Send `timestamp` as ISO 8601 with a zone, such as 2026-06-01T10:00:00Z.";
    FutureTimestamp = "future_timestamp", "future-timestamp",
        "The event was more than 23 hours ahead of our clock, so the time of receipt was used.",
        "Set the clock of the sender, and let its library send `sent_at`.";
    TimestampOutOfRange = "timestamp_out_of_range", "timestamp-out-of-range",
        "The time of the event was outside the years 0 to 9999, so 1970-01-01 was used.",
        "Check how the sender computes `timestamp` or `offset`.";
    TextRepaired = "text_repaired", "text-repaired",
        "Characters that no text can hold (NUL, half of a pair) were replaced by U+FFFD.",
        "Cut texts by character and not by byte or UTF-16 unit before sending them.";
    CookielessModeNotBoolean = "cookieless_mode_not_boolean", "cookieless-mode-not-boolean",
        "`$cookieless_mode` was neither true nor false and has no effect.",
        "Send `$cookieless_mode` as true or false, or leave it out.";
    InvalidOption = "invalid_option", "invalid-option",
        "An option or a session of the newer protocol had the wrong type and was ignored.",
        "Send the switches among the `options` as true or false, and ids as texts.";
    InvalidPersonUpdate = "invalid_person_update", "invalid-person-update",
        "A `$set`, `$set_once` or `$unset` had the wrong type and was ignored.",
        "Send `$set` and `$set_once` as objects, and `$unset` as a list of names.";
    InvalidProfileFlag = "invalid_process_person_profile", "invalid-process-person-profile",
        "`$process_person_profile` was neither true nor false and has no effect.",
        "Send `$process_person_profile` as true or false, or leave it out.";
    MergeIdIllegal = "illegal_merge_id", "illegal-merge-id",
        "Persons were not merged because an id stands for no single person, such as `null` or `anonymous`.",
        "Identify each person by an id that no other person has.";
    MergeRefused = "cannot_merge_already_identified", "cannot-merge-already-identified",
        "Persons were not merged because they had been identified as different people before.",
        "Call reset when a user signs out; to merge identified people use `$merge_dangerously`.";
    TooManyGroupTypes = "too_many_group_types", "too-many-group-types",
        "The project has five group types already, so that another one was ignored.",
        "Use few group types; what distinguishes groups of one type belongs into their properties.";
    InvalidGroups = "invalid_groups", "invalid-groups",
        "`$groups` was not an object, or an entry of it had no usable type or key, and was ignored.",
        "Send `$groups` as an object of group types and keys of at most 400 characters.";
    GroupTooLarge = "group_too_large", "group-too-large",
        "The properties of the group would be larger than 512 KiB, so the group was not changed.",
        "Keep few properties on groups and put the rest into events.";
    TooManyNames = "too_many_names", "too-many-names",
        "The project uses more than 10,000 names, so that a new one is not offered for choosing.",
        "Use fixed names and put what varies into the values of `properties`.";
    DistinctIdSpike = "spike_of_distinct_id", "spike-of-distinct-id",
        "One distinct id sent more than 1,000 events a second for ten seconds; nothing was dropped.",
        "Check whether many senders share one id, such as a constant in a server, or a loop.";
    ProjectSpike = "spike_of_project", "spike-of-project",
        "The project sent ten times as many events as usual; nothing was dropped.",
        "Check the newest events: a release, a loop or a script may send more than intended.";
    MergeWithoutId = "merge_without_id", "merge-without-id",
        "A `$create_alias` or `$merge_dangerously` did not name the other id, so nothing was merged.",
        "Send the other id as `alias` in the properties.";
    GroupWithoutKey = "group_without_key", "group-without-key",
        "A `$groupidentify` has no usable `$group_type` or `$group_key`, so no group was made.",
        "Send both as texts that are not blank and have at most 400 characters.";
    TooManyDistinctIds = "too_many_distinct_ids", "too-many-distinct-ids",
        "The person lists 10,000 distinct ids or 512 KiB of them already; another one leads to it, but is not listed.",
        "Check whether an id that many people share is identified again and again.";
    PersonTooLarge = "person_too_large", "person-too-large",
        "The properties of the person would be larger than 512 KiB, so the person was not changed.",
        "Keep few properties on persons: `$unset` unneeded ones, and put the rest into events.";
    TransformationSkipped = "transformation_skipped", "transformation-skipped",
        "A transformation could not be run on the event, which was stored without it.",
        "Read the error of the transformation; set its `on_failure` to `hold_then_drop` if such events must not be stored.";
}

/// The description of a code of either list, or of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// The outcome of the events: dropped, accepted and altered, or rejected with their
    /// request.
    pub outcome: Outcome,
    /// What happened, as a message for users.
    pub sentence: &'static str,
    /// What to do about it, as a message for users.
    pub fix: &'static str,
}

impl Meaning {
    /// The description of a code; `None` if a newer version of the program wrote it.
    pub fn of(code: &str) -> Option<Self> {
        let dropped = |reason: DropReason| Self {
            outcome: Outcome::Dropped,
            sentence: reason.sentence(),
            fix: reason.fix(),
        };
        let altered = |warning: Warning| Self {
            outcome: Outcome::Accepted,
            sentence: warning.sentence(),
            fix: warning.fix(),
        };
        let rejected = |refusal: Refusal| Self {
            outcome: Outcome::Rejected,
            sentence: refusal.sentence,
            fix: refusal.fix,
        };
        DropReason::from_code(code)
            .map(dropped)
            .or_else(|| Warning::from_code(code).map(altered))
            .or_else(|| Refusal::of(code).map(rejected))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{DropReason, Meaning, Warning};
    use crate::live::Outcome;
    use crate::traffic::Refusal;

    /// Code, anchor, sentence and fix of every value of both lists.
    fn rows() -> Vec<[&'static str; 4]> {
        let reasons = DropReason::ALL.iter();
        let warnings = Warning::ALL.iter();
        reasons
            .map(|r| [r.code(), r.anchor(), r.sentence(), r.fix()])
            .chain(warnings.map(|w| [w.code(), w.anchor(), w.sentence(), w.fix()]))
            .collect()
    }

    #[test]
    fn codes_are_unique_over_both_lists() {
        let codes: HashSet<_> = rows().into_iter().map(|[code, ..]| code).collect();
        assert_eq!(codes.len(), DropReason::ALL.len() + Warning::ALL.len());
        for code in codes {
            assert!(Refusal::of(code).is_none(), "{code} is that of a refusal too");
        }
    }

    #[test]
    fn every_row_is_complete() {
        for [code, anchor, sentence, fix] in rows() {
            let snake = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(!code.is_empty() && code.chars().all(snake), "{code}");
            assert_eq!(anchor, code.replace('_', "-"));
            for text in [sentence, fix] {
                assert!(text.ends_with('.') && text.len() > 10, "{code}: {text}");
            }
        }
    }

    /// The live list and the API link to the guide. The texts are compared too, so that
    /// the guide and the product agree.
    #[test]
    fn the_guide_explains_every_row() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/dropped-events.md");
        let guide = std::fs::read_to_string(path).unwrap();
        for [code, anchor, sentence, fix] in rows() {
            let sections = guide.split("\n#").filter(|section| {
                let heading = section.lines().next().unwrap_or_default();
                anchor_of(heading.trim_start_matches('#')) == anchor
            });
            let [section] = sections.collect::<Vec<_>>()[..] else {
                panic!("the guide has not one heading that makes `#{anchor}`");
            };
            let text = format!("`{code}`: {sentence}\n{fix}\n");
            assert!(section.contains(&text), "below `#{anchor}` the guide does not say: {text}");
        }
    }

    /// The anchor that Markdown renderers make from a heading.
    fn anchor_of(heading: &str) -> String {
        let kept = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == ' ';
        heading.trim().to_lowercase().replace(|c: char| !kept(c), "").replace(' ', "-")
    }

    #[test]
    fn codes_are_the_wire_form() {
        for reason in DropReason::ALL {
            let json = serde_json::to_string(reason).unwrap();
            assert_eq!(json, format!("\"{}\"", reason.code()));
            assert_eq!(serde_json::from_str::<DropReason>(&json).unwrap(), *reason);
            assert_eq!(reason.to_string().parse(), Ok(*reason));
        }
        for warning in Warning::ALL {
            let json = serde_json::to_string(warning).unwrap();
            assert_eq!(json, format!("\"{}\"", warning.code()));
            assert_eq!(serde_json::from_str::<Warning>(&json).unwrap(), *warning);
            assert_eq!(warning.to_string().parse(), Ok(*warning));
        }
    }

    #[test]
    fn a_code_names_the_outcome_of_the_event() {
        let outcome = |code: &str| Meaning::of(code).map(|meaning| meaning.outcome);
        assert_eq!(outcome("missing_event_name"), Some(Outcome::Dropped));
        assert_eq!(outcome("event_name_cut"), Some(Outcome::Accepted));
        assert_eq!(outcome("payload_too_large"), Some(Outcome::Rejected));
        assert_eq!(outcome("of a newer version"), None);
    }

    #[test]
    fn unknown_codes_are_refused() {
        for code in ["", "MISSING_EVENT_NAME", "missing-event-name", "future_timestamp"] {
            assert!(code.parse::<DropReason>().is_err(), "{code}");
        }
        assert!(serde_json::from_str::<Warning>("\"too_deep\"").is_err());
        let refused = "x".parse::<Warning>().unwrap_err();
        assert_eq!(refused.to_string(), "unknown outcome code `x`");
    }
}
