//! What an event changes in the properties of its person (ING-44, ING-45).
//!
//! What belongs here: `$set`, `$set_once`, `$unset`, the properties that are copied from
//! events to persons, and which changes are worth a write. What does not: which person is
//! changed (`people`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use weir_json::{self as json, Cursor, Limits};

use super::properties::{Lookup, Properties, member_size, members};
use super::special_properties::SpecialProperties;
use crate::location::Located;

/// Upper bound of bytes in a person's properties. A change beyond it is refused (ING-47).
pub(super) const LIMIT: usize = 524_288;

/// Properties that are copied from events to their persons. The second name is the one
/// under which the first value is kept. Sorted by length, then by name, so that most of
/// the comparisons are of lengths.
const COPIED_TO_PERSON: [(&str, &str); 44] = [
    ("$os", "$initial_os"),
    ("_kx", "$initial__kx"),
    ("epik", "$initial_epik"),
    ("dclid", "$initial_dclid"),
    ("gclid", "$initial_gclid"),
    ("qclid", "$initial_qclid"),
    ("sccid", "$initial_sccid"),
    ("fbclid", "$initial_fbclid"),
    ("gbraid", "$initial_gbraid"),
    ("gclsrc", "$initial_gclsrc"),
    ("igshid", "$initial_igshid"),
    ("irclid", "$initial_irclid"),
    ("mc_cid", "$initial_mc_cid"),
    ("ttclid", "$initial_ttclid"),
    ("twclid", "$initial_twclid"),
    ("wbraid", "$initial_wbraid"),
    ("msclkid", "$initial_msclkid"),
    ("rdt_cid", "$initial_rdt_cid"),
    ("$browser", "$initial_browser"),
    ("$os_name", "$initial_os"),
    ("utm_name", "$initial_utm_name"),
    ("utm_term", "$initial_utm_term"),
    ("$app_name", "$initial_app_name"),
    ("$pathname", "$initial_pathname"),
    ("$referrer", "$initial_referrer"),
    ("li_fat_id", "$initial_li_fat_id"),
    ("$app_build", "$initial_app_build"),
    ("gad_source", "$initial_gad_source"),
    ("utm_medium", "$initial_utm_medium"),
    ("utm_source", "$initial_utm_source"),
    ("$os_version", "$initial_os_version"),
    ("utm_content", "$initial_utm_content"),
    ("$app_version", "$initial_app_version"),
    ("$current_url", "$initial_current_url"),
    ("$device_type", "$initial_device_type"),
    ("utm_campaign", "$initial_utm_campaign"),
    ("$screen_width", "$initial_screen_width"),
    ("$app_namespace", "$initial_app_namespace"),
    ("$screen_height", "$initial_screen_height"),
    ("$raw_user_agent", "$initial_raw_user_agent"),
    ("$viewport_width", "$initial_viewport_width"),
    ("$browser_version", "$initial_browser_version"),
    ("$viewport_height", "$initial_viewport_height"),
    ("$referring_domain", "$initial_referring_domain"),
];

/// Properties that change with nearly every event of a person. On an ordinary event,
/// changes of only these are not worth a write.
const VOLATILE_PROPERTIES: [&str; 24] = [
    "$browser",
    "$browser_version",
    "$current_url",
    "$geoip_accuracy_radius",
    "$geoip_city_confidence",
    "$geoip_city_name",
    "$geoip_latitude",
    "$geoip_longitude",
    "$geoip_postal_code",
    "$geoip_subdivision_1_code",
    "$geoip_subdivision_1_name",
    "$geoip_subdivision_2_code",
    "$geoip_subdivision_2_name",
    "$geoip_time_zone",
    "$os",
    "$os_name",
    "$os_version",
    "$pathname",
    "$referrer",
    "$referring_domain",
    "$screen_height",
    "$screen_width",
    "$viewport_height",
    "$viewport_width",
];

/// Events whose properties never change the person.
const SILENT: [&str; 2] = ["$exception", "$$heatmap"];

/// Events about the person. All of their changes are written.
const WRITTEN_WHOLE: [&str; 4] = ["$identify", "$create_alias", "$merge_dangerously", "$set"];

/// The index of a property in `COPIED_TO_PERSON`.
pub(super) fn copied_index(name: &str) -> Option<usize> {
    COPIED_TO_PERSON.binary_search_by(|(listed, _)| by_length(listed).cmp(&by_length(name))).ok()
}

fn by_length(name: &str) -> (usize, &str) {
    (name.len(), name)
}

/// The changes that an event asks for.
#[derive(Debug, Default)]
pub(super) struct Updates<'a> {
    set: BTreeMap<Cow<'a, str>, &'a str>,
    set_once: BTreeMap<Cow<'a, str>, &'a str>,
    unset: BTreeSet<Cow<'a, str>>,
    /// Whether changes of passing properties alone are not worth a write.
    is_ordinary: bool,
    is_silent: bool,
}

/// The result of applying the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// Nothing changed, or nothing that is worth a write.
    Nothing,
    /// The properties changed.
    Changed,
    /// The properties would be too large. Nothing changed.
    TooLarge,
}

impl<'a> Updates<'a> {
    /// The changes that an event of this name asks for, sent from this location.
    pub(super) fn of(event: &str, special: &SpecialProperties<'a>, located: &'a [Located]) -> Self {
        if SILENT.contains(&event) {
            return Self { is_silent: true, ..Self::default() };
        }
        let mut updates = Self {
            is_ordinary: !WRITTEN_WHOLE.contains(&event),
            is_silent: false,
            set: BTreeMap::new(),
            set_once: members(special.set_once),
            unset: names(special.unset),
        };
        // The `$set` of a `$groupidentify` is about the group, not about the person that
        // sent it.
        if event != "$groupidentify" {
            updates.set = members(special.set);
        }
        updates.copy_to_person(special);
        for Located { name, initial, value } in located {
            updates.set.entry(Cow::Borrowed(name)).or_insert(value);
            updates.set_once.entry(Cow::Borrowed(initial)).or_insert(value);
        }
        updates
    }

    fn copy_to_person(&mut self, special: &SpecialProperties<'a>) {
        let has_os = special.copied.iter().any(|(index, _)| name_at(*index) == "$os");
        for (index, value) in &special.copied {
            let Some((name, initial)) = COPIED_TO_PERSON.get(*index) else { continue };
            let name = match *name {
                "$os" | "$os_version" | "$os_name" if special.is_server => continue,
                "$os_name" if has_os => continue,
                "$os_name" => "$os",
                name => name,
            };
            self.set.entry(Cow::Borrowed(name)).or_insert(value);
            if *value != "null" {
                self.set_once.entry(Cow::Borrowed(initial)).or_insert(value);
            }
        }
    }

    /// Whether the event never changes a person.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Whether the event asks for no changes.
    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.set_once.is_empty() && self.unset.is_empty()
    }

    /// The names that get values.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &'a str)> {
        let both = self.set.iter().chain(&self.set_once);
        both.map(|(name, value)| (name.as_ref(), *value))
    }

    /// Applies `$set_once`, then `$set`, then `$unset`.
    pub(super) fn apply(&self, properties: &mut Properties) -> Applied {
        if !self.is_worth_a_write(properties) {
            return Applied::Nothing;
        }
        if self.size_after(properties) > LIMIT {
            return Applied::TooLarge;
        }
        self.write(properties);
        Applied::Changed
    }

    /// Whether the changes are worth a write of the person.
    pub(super) fn is_worth_a_write(&self, properties: &impl Lookup) -> bool {
        let counts =
            |name: &str| !self.is_ordinary || VOLATILE_PROPERTIES.binary_search(&name).is_err();
        self.set_once.iter().any(|(name, value)| is_missing(properties, name, value))
            || self.set.iter().any(|(name, value)| match properties.get(name) {
                None => true,
                Some(present) => present != *value && counts(name),
            })
            || self.unset.iter().any(|name| properties.get(name).is_some())
    }

    fn write(&self, properties: &mut Properties) {
        for (name, value) in &self.set_once {
            if is_missing(properties, name, value) {
                properties.insert(name, value);
            }
        }
        for (name, value) in &self.set {
            properties.insert(name, value);
        }
        for name in &self.unset {
            properties.remove(name);
        }
    }

    /// The size of the properties after the changes. Reads the changed properties only:
    /// there may be thousands of others.
    fn size_after(&self, properties: &Properties) -> usize {
        let (mut added, mut replaced) = (0, 0);
        let once = self.set_once.iter().filter(|(name, value)| {
            !self.set.contains_key(*name) && is_missing(properties, name, value)
        });
        for (name, value) in once.chain(&self.set) {
            if !self.unset.contains(name) {
                added += member_size(name, value);
                replaced += properties.size_of(name);
            }
        }
        let removed: usize = self.unset.iter().map(|name| properties.size_of(name)).sum();
        properties.size() + added - replaced - removed
    }
}

/// Whether `$set_once` sets the property. A stored `null` counts as missing if the new
/// value is not `null`.
fn is_missing(properties: &impl Lookup, name: &str, value: &str) -> bool {
    properties.get(name).is_none_or(|present| present == "null" && value != "null")
}

fn name_at(index: usize) -> &'static str {
    COPIED_TO_PERSON.get(index).map_or("", |(name, _)| name)
}

/// The names in `$unset`, which are a list or the keys of an object.
fn names(raw: Option<&str>) -> BTreeSet<Cow<'_, str>> {
    let Some(raw) = raw else { return BTreeSet::new() };
    if !raw.starts_with('[') {
        return members(Some(raw)).into_keys().collect();
    }
    let mut names = BTreeSet::new();
    let walked = Cursor::new(raw, Limits::NONE).list(|cursor| {
        names.extend(json::string_lossy(cursor.value()?));
        Ok(())
    });
    debug_assert!(walked.is_ok(), "a list that is none");
    names
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::*;

    fn apply(event: &str, before: &str, properties: &str) -> (String, Applied) {
        let mut person = Properties::read(before);
        let special = SpecialProperties::read(properties, &RandomState::new());
        let applied = Updates::of(event, &special, &[]).apply(&mut person);
        (person.write(), applied)
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(COPIED_TO_PERSON.is_sorted_by_key(|(name, _)| by_length(name)));
        assert!(VOLATILE_PROPERTIES.is_sorted());
    }

    #[test]
    fn properties_change_in_order() {
        let cases = [
            ("{}", r#"{"$set":{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"$set_once":{"a":2,"b":3}}"#, r#"{"a":1,"b":3}"#),
            (r#"{"a":null}"#, r#"{"$set_once":{"a":2}}"#, r#"{"a":2}"#),
            (r#"{"a":null}"#, r#"{"$set_once":{"a":null}}"#, r#"{"a":null}"#),
            ("{}", r#"{"$set_once":{"a":1},"$set":{"a":2},"$unset":["b"]}"#, r#"{"a":2}"#),
            (r#"{"a":1,"b":2}"#, r#"{"$unset":["a"]}"#, r#"{"b":2}"#),
            (r#"{"a":1,"b":2}"#, r#"{"$unset":{"b":""}}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"$set":{"a":2},"$unset":["a"]}"#, "{}"),
            (r#"{"a":1}"#, r#"{"$set":"text","$unset":7}"#, r#"{"a":1}"#),
            (
                "{}",
                r#"{"$set":{"n":12345678901234567890.123}}"#,
                r#"{"n":12345678901234567890.123}"#,
            ),
        ];
        for (before, event, after) in cases {
            assert_eq!(apply("$set", before, event).0, after, "{before} {event}");
        }
    }

    #[test]
    fn properties_are_copied_from_events_to_persons() {
        let both = r#"{"$browser":"Firefox","$initial_browser":"Firefox"}"#;
        let cases = [
            (r#"{"$browser":"Firefox"}"#, both),
            (
                r#"{"$browser":"Firefox","$set":{"$browser":"x"}}"#,
                r#"{"$browser":"x","$initial_browser":"Firefox"}"#,
            ),
            (r#"{"utm_source":"news"}"#, r#"{"$initial_utm_source":"news","utm_source":"news"}"#),
            (r#"{"$referrer":null}"#, r#"{"$referrer":null}"#),
            (r#"{"$os_name":"Linux"}"#, r#"{"$initial_os":"Linux","$os":"Linux"}"#),
            (r#"{"$os_name":"Linux","$os":"BSD"}"#, r#"{"$initial_os":"BSD","$os":"BSD"}"#),
            (r#"{"$os":"Linux","$os_version":"6","$is_server":true}"#, "{}"),
            (r#"{"plan":"pro"}"#, "{}"),
        ];
        for (event, after) in cases {
            assert_eq!(apply("$pageview", "{}", event).0, after, "{event}");
        }
    }

    #[test]
    fn changes_of_volatile_properties_alone_are_not_written() {
        let before = r#"{"$browser":"a","$current_url":"u","$initial_browser":"a","$initial_current_url":"u","utm_source":"s","$initial_utm_source":"s"}"#;
        let cases = [
            ("click", r#"{"$current_url":"v"}"#, Applied::Nothing),
            ("click", r#"{"$current_url":"v","$set":{"plan":1}}"#, Applied::Changed),
            ("click", r#"{"$current_url":"v","utm_source":"t"}"#, Applied::Changed),
            ("click", r#"{"$current_url":"v","$os":"new"}"#, Applied::Changed),
            ("click", r#"{"$unset":["$browser"]}"#, Applied::Changed),
            ("$set", r#"{"$current_url":"v"}"#, Applied::Changed),
            ("$identify", r#"{"$current_url":"u"}"#, Applied::Nothing),
            ("$exception", r#"{"$set":{"plan":1},"$os":"new"}"#, Applied::Nothing),
            ("$groupidentify", r#"{"$set":{"plan":1}}"#, Applied::Nothing),
        ];
        for (event, properties, applied) in cases {
            assert_eq!(apply(event, before, properties).1, applied, "{event} {properties}");
        }
    }

    #[test]
    fn too_large_changes_nothing() {
        let large = format!(r#"{{"$set":{{"big":"{}"}}}}"#, "x".repeat(LIMIT));
        assert_eq!(
            apply("$set", r#"{"a":1}"#, &large),
            (r#"{"a":1}"#.to_owned(), Applied::TooLarge)
        );
        let half = "x".repeat(LIMIT / 2 + 100);
        let before = format!(r#"{{"big":"{half}"}}"#);
        let same_size = format!(r#"{{"$set":{{"big":"{}"}}}}"#, "y".repeat(LIMIT / 2 + 100));
        assert_eq!(apply("$set", &before, &same_size).1, Applied::Changed);

        // A property that is named in several operations counts with its final value.
        let full = format!(r#"{{"a":null,"big":"{}"}}"#, "x".repeat(LIMIT - 40));
        for (event, applied) in [
            (
                r#"{"$set_once":{"a":"0123456789012345678901234567890123456789"}}"#,
                Applied::TooLarge,
            ),
            (
                r#"{"$set_once":{"a":"0123456789012345678901234567890123456789"},"$set":{"a":1}}"#,
                Applied::Changed,
            ),
            (
                r#"{"$set":{"a":"0123456789012345678901234567890123456789"},"$unset":["a"]}"#,
                Applied::Changed,
            ),
            (r#"{"$set":{"b":"012345678901234567890123"},"$unset":["a","a"]}"#, Applied::Changed),
            (r#"{"$set":{"b":"0123456789012345678901234"},"$unset":["a"]}"#, Applied::TooLarge),
        ] {
            assert_eq!(apply("$set", &full, event).1, applied, "{event}");
        }
    }
}
