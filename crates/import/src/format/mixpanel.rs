//! Lines of Mixpanel's raw export: `{"event", "properties": {"time", "distinct_id",
//! "$insert_id", …}}`.
//!
//! The exported `distinct_id` is the final one that Mixpanel chose for the person;
//! `$distinct_id_before_identity` is the one that was sent with the event.

use std::borrow::Cow;

use weir_json as json;
use weir_model::persons::is_placeholder;

use crate::defect::{Defect, DefectKind};
use crate::event::{Draft, Identity};
use crate::identity;
use crate::object::LineObject;
use crate::time;

const BEFORE: &str = "$distinct_id_before_identity";

/// Names of built-in events.
const EVENTS: [(&str, &str); 7] = [
    ("$mp_web_page_view", "$pageview"),
    ("$mp_page_leave", "$pageleave"),
    ("$mp_click", "$autocapture"),
    ("$mp_input_change", "$autocapture"),
    ("$mp_submit", "$autocapture"),
    ("$mp_rage_click", "$rageclick"),
    ("$mp_dead_click", "$dead_click"),
];

/// Names of built-in properties. Other properties keep their name.
const PROPERTIES: [(&str, &str); 12] = [
    ("current_domain", "$host"),
    ("current_url_path", "$pathname"),
    ("current_page_title", "title"),
    ("$city", "$geoip_city_name"),
    ("$region", "$geoip_subdivision_1_name"),
    ("mp_country_code", "$geoip_country_code"),
    ("$app_version_string", "$app_version"),
    ("$app_build_number", "$app_build"),
    ("$model", "$device_model"),
    ("$manufacturer", "$device_manufacturer"),
    ("$carrier", "$network_carrier"),
    ("mp_lib", "$lib"),
];

/// Properties about Mixpanel's processing, which are omitted.
const LEFT_OUT: [&str; 5] = [
    "$insert_id",
    "$geo_source",
    "$mp_api_endpoint",
    "$mp_api_timestamp_ms",
    "mp_processing_time_ms",
];

pub(super) fn draft(mut line: LineObject<'_>) -> Draft<'_> {
    let mut draft = Draft::default();
    let name = line.take("event");
    let mut properties = match line.take("properties") {
        None => LineObject::default(),
        Some(json) => super::object(json).unwrap_or_else(|kind| {
            draft.defects.push(Defect::from(kind));
            LineObject::default()
        }),
    };
    draft.time = properties.take("time");
    draft.distinct_id = properties.take("distinct_id");
    draft.known_before_as = properties.text(BEFORE).map(Cow::into_owned);
    // Mixpanel identifies an event by these four. The id as sent, because the final one
    // can be different in the next export.
    draft.identity = properties.get("$insert_id").map_or(Identity::Content, |insert_id| {
        let whose = properties.get(BEFORE).or(draft.distinct_id.as_deref());
        let name = name.as_deref().unwrap_or_default();
        // Exports contain seconds or milliseconds.
        let time = draft.time.as_deref().and_then(time::read);
        let seconds = time.map_or(0, |time| time.micros() / 1_000_000).to_string();
        let parts = ["mixpanel", insert_id, name, whose.unwrap_or_default(), &seconds];
        Identity::Derived(identity::of(&parts))
    });
    draft.name = name.map(|name| super::renamed(name, &EVENTS));
    for name in LEFT_OUT {
        properties.take(name);
    }
    match draft.name.as_deref() {
        Some("\"$identify\"") => identify(&mut draft, &mut properties),
        Some("\"$create_alias\"") => check_pair(&mut draft, &properties, "alias"),
        Some("\"$merge\"") => merge(&mut draft, &mut properties),
        Some("\"$pageview\"" | "\"$pageleave\"") => add_address(&mut properties),
        _ => {}
    }
    for (from, to) in PROPERTIES {
        properties.rename(from, to);
    }
    draft.properties = properties;
    draft
}

/// Converts the event with which Mixpanel merges two ids.
fn identify<'a>(draft: &mut Draft<'a>, properties: &mut LineObject<'a>) {
    if let Some(known) = properties.take("$identified_id") {
        draft.distinct_id = Some(known);
    }
    properties.rename("$anon_id", "$anon_distinct_id");
    check_pair(draft, properties, "$anon_distinct_id");
}

/// Mixpanel merges the two ids of the list independent of earlier data, and so does the
/// resulting event.
fn merge<'a>(draft: &mut Draft<'a>, properties: &mut LineObject<'a>) {
    let ids = properties.get("$distinct_ids").and_then(|list| {
        let ids: Vec<Cow<'_, str>> = serde_json::from_str(list).ok()?;
        <[_; 2]>::try_from(ids).ok()
    });
    let Some([one, other]) = ids.map(|ids| ids.map(|id| json::quoted(&id))) else {
        draft.defects.push(DefectKind::IdsNotJoined.into());
        return;
    };
    let (stays, goes) = match draft.distinct_id.as_deref() {
        Some(id) if id == other => (other, one),
        _ => (one, other),
    };
    draft.name = Some(Cow::Owned(json::quoted("$merge_dangerously")));
    draft.distinct_id = Some(Cow::Owned(stays));
    properties.take("alias");
    properties.add("alias", goes);
    check_pair(draft, properties, "alias");
}

/// Reports a defect if the host does not merge the distinct id with the id in a property.
fn check_pair(draft: &mut Draft<'_>, properties: &LineObject<'_>, name: &str) {
    let ids = [draft.distinct_id.as_deref(), properties.get(name)];
    let [one, other] = ids.map(|id| id.and_then(json::string).filter(|id| !is_unusable(id)));
    if one.is_none() || other.is_none() || one == other {
        draft.defects.push(Defect::with(DefectKind::IdsNotJoined, format_args!("`{name}`")));
    }
}

fn is_unusable(id: &str) -> bool {
    id.trim().is_empty() || is_placeholder(id)
}

/// The URL of the page, from its parts.
fn add_address(properties: &mut LineObject<'_>) {
    let part = |name| properties.text(name).unwrap_or_default();
    let (domain, path) = (part("current_domain"), part("current_url_path"));
    if domain.is_empty() {
        return;
    }
    let protocol = match part("current_url_protocol") {
        protocol if protocol.is_empty() => Cow::Borrowed("https:"),
        protocol => protocol,
    };
    let address = format!("{protocol}//{domain}{path}{}", part("current_url_search"));
    properties.add("$current_url", json::quoted(&address));
}
