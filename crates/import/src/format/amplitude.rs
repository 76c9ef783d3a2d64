//! Lines of Amplitude's raw export: `event_type`, `event_time`, `user_id`, `device_id`,
//! `event_properties`, `user_properties`, `uuid`, `$insert_id` and columns about device
//! and location.
//!
//! An event with a user and a device also states that both are one person.

use std::borrow::Cow;

use uuid::Uuid;
use weir_json as json;

use crate::defect::Defect;
use crate::event::{Draft, Identity};
use crate::identity;
use crate::object::LineObject;

/// Names of built-in events.
const EVENTS: [(&str, &str); 8] = [
    ("[Amplitude] Page Viewed", "$pageview"),
    ("[Amplitude] Screen Viewed", "$screen"),
    ("[Amplitude] Element Clicked", "$autocapture"),
    ("[Amplitude] Element Changed", "$autocapture"),
    ("[Amplitude] Application Installed", "Application Installed"),
    ("[Amplitude] Application Opened", "Application Opened"),
    ("[Amplitude] Application Updated", "Application Updated"),
    ("[Amplitude] Application Backgrounded", "Application Backgrounded"),
];

/// Names of built-in event properties. Other properties keep their name. The first one
/// present is used.
const PROPERTIES: [(&str, &str); 11] = [
    ("[Amplitude] Page Location", "$current_url"),
    ("[Amplitude] Page URL", "$current_url"),
    ("[Amplitude] Page Domain", "$host"),
    ("[Amplitude] Page Path", "$pathname"),
    ("[Amplitude] Page Title", "title"),
    ("[Amplitude] Screen Name", "$screen_name"),
    ("[Amplitude] Viewport Height", "$viewport_height"),
    ("[Amplitude] Viewport Width", "$viewport_width"),
    ("[Amplitude] Element Text", "$el_text"),
    ("referrer", "$referrer"),
    ("referring_domain", "$referring_domain"),
];

/// Columns that become properties. All others describe Amplitude's processing and are
/// omitted.
const COLUMNS: [(&str, &str); 17] = [
    ("device_id", "$device_id"),
    ("device_manufacturer", "$device_manufacturer"),
    ("device_model", "$device_model"),
    ("device_carrier", "$network_carrier"),
    ("version_name", "$app_version"),
    ("language", "$locale"),
    ("ip_address", "$ip"),
    ("city", "$geoip_city_name"),
    ("region", "$geoip_subdivision_1_name"),
    ("country", "$geoip_country_name"),
    ("location_lat", "$geoip_latitude"),
    ("location_lng", "$geoip_longitude"),
    ("user_id", "$amplitude_user_id"),
    ("event_id", "$amplitude_event_id"),
    ("session_id", "$amplitude_session_id"),
    ("platform", "$amplitude_platform"),
    ("library", "$amplitude_library"),
];

pub(super) fn draft(mut line: LineObject<'_>) -> Draft<'_> {
    let mut draft = Draft {
        name: line.take("event_type").map(|name| super::renamed(name, &EVENTS)),
        time: line.take("event_time").or_else(|| line.take("client_event_time")),
        identity: identity(&line),
        ..Draft::default()
    };
    let [user, device] = ["user_id", "device_id"].map(|name| {
        let value = line.get(name).filter(|value| *value != "\"\"");
        value.map(str::to_owned)
    });
    if user.is_some() {
        draft.known_before_as = line.text("device_id").map(Cow::into_owned);
    }
    draft.distinct_id = user.or_else(|| device.clone()).map(Cow::Owned);

    let mut part = |name| match line.take(name) {
        None => LineObject::default(),
        Some(json) => super::object(json).unwrap_or_else(|kind| {
            draft.defects.push(Defect::with(kind, format_args!("`{name}`")));
            LineObject::default()
        }),
    };
    let mut properties = part("event_properties");
    let user_properties = part("user_properties");
    let groups = part("groups");

    for (from, to) in PROPERTIES {
        properties.rename(from, to);
    }
    add_device(&line, &mut properties);
    add_session(&line, device.as_deref(), &mut properties);
    add_person(user_properties, &mut properties);
    add_groups(groups, &mut properties);
    for (from, to) in COLUMNS {
        if let Some(value) = line.take(from).filter(|value| value != "\"\"") {
            properties.add(to, value);
        }
    }
    draft.properties = properties;
    draft
}

fn identity<'a>(line: &LineObject<'a>) -> Identity<'a> {
    let own = line.text("uuid").and_then(|text| Uuid::parse_str(&text).ok());
    if let Some(uuid) = own.filter(|uuid| !uuid.is_nil()) {
        return Identity::Derived(uuid);
    }
    let Some(insert_id) = line.text("$insert_id").or_else(|| line.text("insert_id")) else {
        return Identity::Content;
    };
    // Only unique per device.
    let whose = line.get("device_id").or_else(|| line.get("user_id")).unwrap_or_default();
    Identity::Derived(identity::of(&["amplitude", &insert_id, whose]))
}

/// In a browser, the columns of the system contain the browser, and the type of the
/// device contains the system.
fn add_device<'a>(line: &LineObject<'a>, properties: &mut LineObject<'a>) {
    let mut add = |to, from| {
        if let Some(value) = line.text(from) {
            properties.add(to, json::quoted(&value));
        }
    };
    let platform = line.text("platform").unwrap_or_default();
    let kind = if platform.eq_ignore_ascii_case("web") {
        add("$browser", "os_name");
        add("$browser_version", "os_version");
        add("$os", "device_type");
        match line.text("device_type").as_deref() {
            Some("Windows" | "Linux" | "Mac" | "Mac OS X" | "macOS" | "Chrome OS") => "Desktop",
            Some("iOS" | "Android" | "iPhone") => "Mobile",
            Some("iPad") => "Tablet",
            _ => return,
        }
    } else {
        add("$os", "os_name");
        add("$os_version", "os_version");
        add("$device_name", "device_type");
        match &*platform {
            "iOS" | "Android" => "Mobile",
            _ => return,
        }
    };
    properties.add("$device_type", json::quoted(kind));
}

/// Amplitude identifies a session by its start; -1 means no session.
fn add_session(line: &LineObject<'_>, device: Option<&str>, properties: &mut LineObject<'_>) {
    let start = line.get("session_id").and_then(|start| start.parse::<u64>().ok());
    if let (Some(start), Some(device)) = (start.filter(|start| *start > 0), device) {
        let uuid = identity::session(start, device);
        properties.add("$session_id", json::quoted(&uuid.to_string()));
    }
}

/// Person properties at the time of the event: initial values go to `$set_once`.
fn add_person<'a>(person: LineObject<'a>, properties: &mut LineObject<'a>) {
    let (mut set, mut set_once) = (LineObject::default(), LineObject::default());
    for (name, value) in person.into_members() {
        if !name.starts_with("initial_") {
            set.add(name, value);
        } else if value != "\"EMPTY\"" && value != "null" {
            set_once.add(format!("${name}"), value);
        }
    }
    for (name, object) in [("$set", set), ("$set_once", set_once)] {
        if !object.is_empty() {
            properties.add(name, object.to_json());
        }
    }
}

/// Amplitude allows a list of group keys; here an event belongs to one group of each
/// type.
fn add_groups<'a>(groups: LineObject<'a>, properties: &mut LineObject<'a>) {
    let mut named = LineObject::default();
    for (kind, key) in groups.into_members() {
        let first = || serde_json::from_str::<Vec<&serde_json::value::RawValue>>(&key);
        let key = match first() {
            Ok(list) => list.first().map(|key| key.get().to_owned()),
            Err(_) => Some(key.clone().into_owned()),
        };
        if let Some(key) = key.filter(|key| json::string(key).is_some_and(|key| !key.is_empty())) {
            named.add(kind, key);
        }
    }
    if !named.is_empty() {
        properties.add("$groups", named.to_json());
    }
}
