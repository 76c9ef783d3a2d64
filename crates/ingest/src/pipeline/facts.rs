//! The properties of an event that processing needs, from one pass over its properties.
//!
//! What belongs here: finding values, not judging them. Values stay the text that was
//! sent.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};

use weir_json::{self as json, Cursor, Limits};
use weir_model::definitions::PropertyKind;

use super::updates::lifted;

/// The properties of an event that have an effect beyond being stored. Of several
/// properties with the same name, the last one counts, as everywhere.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    pub(super) set: Option<&'a str>,
    pub(super) set_once: Option<&'a str>,
    pub(super) unset: Option<&'a str>,
    /// Properties that persons take over from events, by their index in the list of these
    /// properties.
    pub(super) lifted: Vec<(usize, &'a str)>,
    /// `$process_person_profile`, as sent.
    pub(super) profile: Option<&'a str>,
    /// `$is_server: true`: the properties of the system describe a server.
    pub(super) is_server: bool,
    ip: Option<&'a str>,
    /// `$geoip_disable: true`: the address is not the location of the person.
    hides_location: bool,
    pub(super) anonymous_id: Option<&'a str>,
    pub(super) alias: Option<&'a str>,
    pub(super) groups: Option<&'a str>,
    pub(super) group_type: Option<&'a str>,
    pub(super) group_key: Option<&'a str>,
    pub(super) group_set: Option<&'a str>,
    /// A hash that is the same for events with the same names and kinds of properties.
    pub(super) shape: u64,
}

impl<'a> Facts<'a> {
    /// Reads the properties from the text of a JSON object.
    pub(super) fn read(properties: &'a str, hashing: &RandomState) -> Self {
        let mut facts = Self::default();
        let mut shape = hashing.build_hasher();
        let walked = Cursor::new(properties, Limits::NONE).object(|key, cursor| {
            let value = cursor.value()?;
            let name = key.text();
            name.hash(&mut shape);
            PropertyKind::of(value).hash(&mut shape);
            match name.as_ref() {
                "$set" => facts.set = Some(value),
                "$set_once" => facts.set_once = Some(value),
                "$unset" => facts.unset = Some(value),
                "$process_person_profile" => facts.profile = Some(value),
                "$is_server" => facts.is_server = value == "true",
                "$ip" => facts.ip = Some(value),
                "$geoip_disable" => facts.hides_location = value == "true",
                "$anon_distinct_id" => facts.anonymous_id = Some(value),
                "alias" => facts.alias = Some(value),
                "$groups" => facts.groups = Some(value),
                "$group_type" => facts.group_type = Some(value),
                "$group_key" => facts.group_key = Some(value),
                "$group_set" => facts.group_set = Some(value),
                name => {
                    if let Some(place) = lifted(name) {
                        facts.lifted.retain(|(present, _)| *present != place);
                        facts.lifted.push((place, value));
                    }
                }
            }
            Ok(())
        });
        // Capture has parsed the text, so it is an object.
        debug_assert!(walked.is_ok(), "properties that are no object");
        facts.shape = shape.finish();
        facts
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
