//! The properties of an event that have a meaning for processing, from one pass over its
//! properties.
//!
//! What belongs here: finding values. What does not: checking them. A value is the JSON
//! text as it was sent.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};

use weir_json::{self as json, Cursor, Limits};
use weir_model::definitions::PropertyKind;

use weir_store::counts::group_index;
use weir_store::groups::TYPES;

use super::updates::copied_index;

/// The properties of an event that have an effect beyond being stored. Of several
/// properties with the same name, the last one counts, as everywhere.
#[derive(Debug, Default)]
pub(super) struct SpecialProperties<'a> {
    pub(super) set: Option<&'a str>,
    pub(super) set_once: Option<&'a str>,
    pub(super) unset: Option<&'a str>,
    /// Properties that are copied to the person: index in `COPIED_TO_PERSON`, and JSON
    /// text.
    pub(super) copied: Vec<(usize, &'a str)>,
    /// `$process_person_profile`, as sent.
    pub(super) profile: Option<&'a str>,
    /// `$is_server: true`: `$os`, `$os_name` and `$os_version` describe a server, so they are
    /// not copied to the person.
    pub(super) is_server: bool,
    ip: Option<&'a str>,
    /// `$geoip_disable: true`: do not look up the location of the address.
    hides_location: bool,
    pub(super) anonymous_id: Option<&'a str>,
    pub(super) alias: Option<&'a str>,
    pub(super) groups: Option<&'a str>,
    /// `$group_0` to `$group_4`, as they were sent.
    pub(super) group_keys: [Option<&'a str>; TYPES],
    pub(super) group_type: Option<&'a str>,
    pub(super) group_key: Option<&'a str>,
    pub(super) group_set: Option<&'a str>,
    /// A hash of the names and kinds of the properties, in their order. Events whose names
    /// are all known are recognized by it.
    pub(super) shape: u64,
}

impl<'a> SpecialProperties<'a> {
    /// Reads the properties from the text of a JSON object.
    pub(super) fn read(properties: &'a str, hashing: &RandomState) -> Self {
        let mut special = Self::default();
        let mut shape = hashing.build_hasher();
        let parsed = Cursor::new(properties, Limits::NONE).object(|key, cursor| {
            let value = cursor.value()?;
            let name = key.text();
            name.hash(&mut shape);
            PropertyKind::of(value).hash(&mut shape);
            match name.as_ref() {
                "$set" => special.set = Some(value),
                "$set_once" => special.set_once = Some(value),
                "$unset" => special.unset = Some(value),
                "$process_person_profile" => special.profile = Some(value),
                "$is_server" => special.is_server = value == "true",
                "$ip" => special.ip = Some(value),
                "$geoip_disable" => special.hides_location = value == "true",
                "$anon_distinct_id" => special.anonymous_id = Some(value),
                "alias" => special.alias = Some(value),
                "$groups" => special.groups = Some(value),
                "$group_type" => special.group_type = Some(value),
                "$group_key" => special.group_key = Some(value),
                "$group_set" => special.group_set = Some(value),
                name => {
                    if let Some(key) =
                        group_index(name).and_then(|index| special.group_keys.get_mut(index))
                    {
                        *key = Some(value);
                    } else if let Some(index) = copied_index(name) {
                        special.copied.retain(|(present, _)| *present != index);
                        special.copied.push((index, value));
                    }
                }
            }
            Ok(())
        });
        // Capture has parsed the text, so it is an object.
        debug_assert!(parsed.is_ok(), "properties that are no object");
        special.shape = shape.finish();
        special
    }

    /// The address to look up, if the event has one.
    pub(super) fn address(&self) -> Option<Cow<'a, str>> {
        if self.hides_location { None } else { json::string_lossy(self.ip?) }
    }

    /// Whether the event has a person. It has one unless it says otherwise.
    pub(super) fn has_profile(&self) -> bool {
        self.profile != Some("false")
    }
}
