//! Times. The server prints UTC. The browser shows the viewer's time zone, and the key `u`
//! switches between the two (`behaviours::times`). The viewer's zone is that of
//! the browser, unless the page names another. Where the age of a moment matters, the browser
//! adds it, and the style sheet shows it beside the time or, in cells, in its place.

use std::cell::RefCell;

use js_sys::{Date, Function, Object, Reflect};
use leptos::prelude::*;
use leptos::wasm_bindgen::{JsCast as _, JsValue};

/// Attribute of the page while times are in the viewer's zone.
pub(crate) const LOCAL_ZONE_ATTR: &str = "data-zone-local";
/// Window event when the zone changes.
#[cfg(not(feature = "ssr"))]
pub(crate) const ZONE_CHANGED: &str = "zonechanged";

/// Attribute of the page with the zone in the user's preferences.
pub(crate) const PREFERRED_ZONE_ATTR: &str = "data-zone";
const UTC: &str = "UTC";
/// Ages are computed again after so many seconds.
#[cfg(not(feature = "ssr"))]
const AGES_SECONDS: u64 = 60;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Averages, for ages only.
const MONTH: u64 = 30 * DAY;
const YEAR: u64 = 365 * DAY;

/// Whether a page starts with times in the viewer's zone. Runs in the browser.
#[cfg(any(feature = "hydrate", feature = "csr"))]
pub(crate) fn begins_local() -> bool {
    preferred_zone().is_none_or(|zone| zone != UTC)
}

/// The zone in the page's attribute. Runs in the browser.
fn preferred_zone() -> Option<String> {
    document().document_element()?.get_attribute(PREFERRED_ZONE_ATTR)
}

/// The zone in the page's attribute unless it is UTC, because `u` switches between it and
/// UTC.
fn preferred_zone_except_utc() -> Option<String> {
    preferred_zone().filter(|zone| zone != UTC)
}

/// How times are shown.
#[derive(Clone, Copy)]
struct Zone {
    /// Whether the browser draws. Only the browser knows the viewer's zone.
    in_browser: RwSignal<bool>,
    /// Whether times are in the viewer's zone.
    local: RwSignal<bool>,
    /// IANA name of the zone of the page's project.
    project: RwSignal<Option<String>>,
    /// Changes when the ages of the page are out of date. One for all of them.
    ages: RwSignal<u32>,
}

/// Makes the times below this component follow the zone of the page.
pub(crate) fn provide_zone() {
    let zone = Zone {
        in_browser: RwSignal::new(false),
        local: RwSignal::new(false),
        project: RwSignal::new(None),
        ages: RwSignal::new(0),
    };
    provide_context(zone);
    let follow = move || {
        let page = document().document_element();
        zone.local.set(page.is_some_and(|page| page.has_attribute(LOCAL_ZONE_ATTR)));
    };
    // The first drawing in the browser must be the one of the server.
    #[cfg(not(feature = "ssr"))]
    crate::client::when_hydrated(move || {
        zone.in_browser.set(true);
        follow();
        let _forever = window_event_listener_untyped(ZONE_CHANGED, move |_| follow());
        let later = move || zone.ages.update(|count| *count = count.wrapping_add(1));
        set_interval(later, std::time::Duration::from_secs(AGES_SECONDS));
    });
    #[cfg(feature = "ssr")]
    let _ = follow;
}

/// Whether times are in the viewer's zone. Tracked.
pub(crate) fn is_local() -> bool {
    use_context::<Zone>().is_some_and(|zone| zone.local.get())
}

/// The moment in the zone of the page, in the format of ISO 8601. Drawings with it are
/// drawn again when the zone changes.
pub(crate) fn in_page_zone(iso: &str) -> String {
    let moment = if is_local() { local(iso) } else { None };
    moment.unwrap_or_else(|| iso.to_owned())
}

/// Whether the browser draws. `false` for its first drawing, which is that of the server.
pub(crate) fn is_in_browser() -> bool {
    use_context::<Zone>().is_some_and(|zone| zone.in_browser.get())
}

/// The title of a time, see [`title`].
pub(crate) fn title_now(iso: &str) -> String {
    let Some(zone) = use_context::<Zone>() else { return title(iso, false, None) };
    zone.project.with(|project| title(iso, zone.in_browser.get(), project.as_deref()))
}

/// Adds the local time of the project to the titles of the times of the page.
#[component]
pub(crate) fn ProjectZone(
    /// IANA name of the zone.
    zone: String,
) -> impl IntoView {
    let Some(shown) = use_context::<Zone>() else { return };
    // Titles have no line for UTC, so they are not written again for it.
    let zone = Some(zone).filter(|zone| zone != UTC);
    let set = move |zone: Option<String>| {
        if shown.project.with_untracked(|now| *now != zone) {
            shown.project.set(zone);
        }
    };
    Effect::new(move |_| {
        set(zone.clone());
        on_cleanup(move || set(None));
    });
}

/// The name of the zone in which times are shown.
#[component]
pub(crate) fn ZoneName() -> impl IntoView {
    move || match is_local() {
        true => preferred_zone_except_utc().unwrap_or_else(|| "local time".to_owned()),
        false => UTC.to_owned(),
    }
}

/// Date and time to the minute.
#[component]
pub(crate) fn Time(
    /// RFC 3339, UTC.
    iso: String,
) -> impl IntoView {
    let (shown, for_title) = (iso.clone(), iso.clone());
    let text = move || to_the_minute(&shown, is_local());
    let title = move || title_now(&for_title);
    view! { <time class="time" datetime=iso title=title>{text}</time> }
}

/// Date and time to the minute, and in the browser its age, such as `3 min ago`. For moments
/// whose age matters more than their date. Screen readers read the time alone.
#[component]
pub(crate) fn Ago(
    /// RFC 3339, UTC.
    iso: String,
) -> impl IntoView {
    let (shown, for_title, for_age) = (iso.clone(), iso.clone(), iso.clone());
    let text = move || to_the_minute(&shown, is_local());
    let title = move || title_now(&for_title);
    let age = move || age_now(&for_age);
    view! {
        <time class="time ago" datetime=iso title=title data-ago=age>
            <span>{text}</span>
        </time>
    }
}

/// The age of a moment. `None` for the first drawing in the browser. Tracked.
fn age_now(iso: &str) -> Option<String> {
    let zone = use_context::<Zone>().filter(|zone| zone.in_browser.get())?;
    zone.ages.track();
    let seconds = (Date::now() - Date::parse(iso)) / 1000.0;
    seconds.is_finite().then(|| age(seconds as i64))
}

/// How long ago a moment was, or how far away it is, in one unit. Clocks can differ by less
/// than a minute.
fn age(seconds: i64) -> String {
    let distance = seconds.unsigned_abs();
    let (count, unit) = match distance {
        0..MINUTE => return "now".to_owned(),
        MINUTE..HOUR => (distance / MINUTE, "min"),
        HOUR..DAY => (distance / HOUR, "h"),
        _ if distance < 2 * DAY => (1, "day"),
        _ if distance < 2 * MONTH => (distance / DAY, "days"),
        // The nearest: a key for 90 days expires in 3 months.
        _ if distance < 2 * YEAR => ((distance + MONTH / 2) / MONTH, "months"),
        _ => (distance / YEAR, "years"),
    };
    if seconds < 0 { format!("in {count} {unit}") } else { format!("{count} {unit} ago") }
}

/// The time of day with milliseconds.
#[component]
pub(crate) fn Clock(
    /// RFC 3339, UTC.
    iso: String,
) -> impl IntoView {
    let (shown, for_title) = (iso.clone(), iso.clone());
    let text = move || {
        let moment = if is_local() { local(&shown) } else { None };
        clock(moment.as_deref().unwrap_or(&shown))
    };
    let title = move || title_now(&for_title);
    view! { <time class="clock" datetime=iso title=title>{text}</time> }
}

/// Date and time to the minute, in the viewer's zone or in UTC.
pub(crate) fn to_the_minute(iso: &str, in_local: bool) -> String {
    match if in_local { local(iso) } else { None } {
        Some(local) => format!("{} {}", &local[..10], &local[11..16]),
        None => utc_to_the_minute(iso),
    }
}

/// The title of a time: UTC with the fraction, with `with_local` also the viewer's local
/// time, and the local time of the project, if known.
pub(crate) fn title(iso: &str, with_local: bool, project: Option<&str>) -> String {
    let mut lines = vec![utc_with_fraction(iso)];
    if with_local {
        let zone = preferred_zone_except_utc().unwrap_or_else(|| "local time".to_owned());
        lines.extend(local(iso).and_then(|moment| to_the_second(&moment, &zone)));
    }
    if let Some(zone) = project.filter(|zone| *zone != UTC) {
        let moment = in_zone(&Date::new(&JsValue::from_str(iso)), zone);
        lines
            .extend(moment.and_then(|moment| to_the_second(&moment, &format!("{zone} (project)"))));
    }
    lines.join("\n")
}

/// `2026-08-21 16:05:09 Europe/Berlin`.
fn to_the_second(moment: &str, zone: &str) -> Option<String> {
    Some(format!("{} {} {zone}", moment.get(..10)?, moment.get(11..19)?))
}

fn utc_with_fraction(iso: &str) -> String {
    iso.replacen('T', " ", 1).replacen('Z', " UTC", 1)
}

fn utc_to_the_minute(iso: &str) -> String {
    match (iso.get(..10), iso.get(11..16)) {
        (Some(date), Some(time)) => format!("{date} {time} UTC"),
        _ => iso.to_owned(),
    }
}

/// `14:05:09.123`. Missing decimals are added.
fn clock(iso: &str) -> String {
    let time = iso.get(11..19).unwrap_or(iso);
    let decimals = iso.get(20..23).filter(|_| iso.get(19..20) == Some(".")).unwrap_or("000");
    format!("{time}.{decimals}")
}

thread_local! {
    /// The last moment, and the zone and result of its conversion: it is converted for its text
    /// and for its title.
    static CONVERTED: RefCell<(String, Option<String>, String)> = RefCell::default();
}

/// The same moment in the viewer's zone, in the same format. Runs in the browser.
fn local(iso: &str) -> Option<String> {
    let zone = preferred_zone_except_utc();
    let known = CONVERTED.with_borrow(|(moment, in_zone, found)| {
        (moment == iso && *in_zone == zone).then(|| found.clone())
    });
    if known.is_some() {
        return known;
    }
    let moment = Date::new(&JsValue::from_str(iso));
    let found = match &zone {
        Some(zone) => in_zone(&moment, zone),
        None => in_browser_zone(&moment),
    }?;
    CONVERTED.set((iso.to_owned(), zone, found.clone()));
    Some(found)
}

fn in_browser_zone(moment: &Date) -> Option<String> {
    let shifted = moment.get_time() - moment.get_timezone_offset() * 60_000.0;
    if shifted.is_nan() {
        return None;
    }
    Some(String::from(Date::new(&JsValue::from_f64(shifted)).to_iso_string()))
}

/// The moment in a zone, computed by the browser. `None` for an unknown zone.
fn in_zone(moment: &Date, zone: &str) -> Option<String> {
    let options = Object::new();
    for (name, value) in [
        ("timeZone", zone),
        ("hourCycle", "h23"),
        ("year", "numeric"),
        ("month", "2-digit"),
        ("day", "2-digit"),
        ("hour", "2-digit"),
        ("minute", "2-digit"),
        ("second", "2-digit"),
    ] {
        Reflect::set(&options, &JsValue::from_str(name), &JsValue::from_str(value)).ok()?;
    }
    let digits = JsValue::from_str("fractionalSecondDigits");
    Reflect::set(&options, &digits, &JsValue::from_f64(3.0)).ok()?;
    // Called by name, because the binding would not catch the exception for an unknown
    // zone.
    let write = Reflect::get(moment, &JsValue::from_str("toLocaleString")).ok()?;
    let write: Function = write.dyn_into().ok()?;
    // This locale is close to ISO 8601: `2026-08-21 14:05:09,123`.
    let written = write.call2(moment, &JsValue::from_str("sv-SE"), &options).ok()?;
    iso_like(&written.as_string()?)
}

/// Converts to `2026-08-21T14:05:09.123`. `None` for another format.
fn iso_like(written: &str) -> Option<String> {
    let text = written.replacen(' ', "T", 1).replacen(',', ".", 1);
    let fits = text.is_ascii() && text.len() == 23 && text.as_bytes().get(10) == Some(&b'T');
    fits.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{DAY, HOUR, YEAR, age, clock, iso_like, title, to_the_minute, to_the_second};

    #[test]
    fn forms() {
        let iso = "2026-08-21T14:05:09.123456Z";
        assert_eq!(clock(iso), "14:05:09.123");
        assert_eq!(clock("2026-08-21T14:05:09Z"), "14:05:09.000");
        assert_eq!(to_the_minute(iso, false), "2026-08-21 14:05 UTC");
        assert_eq!(title("2026-08-21T14:05:09Z", false, None), "2026-08-21 14:05:09 UTC");
        assert_eq!(
            to_the_second("2026-08-21T16:05:09.123", "Europe/Berlin").as_deref(),
            Some("2026-08-21 16:05:09 Europe/Berlin")
        );
        assert_eq!(to_the_minute("?", false), "?");
        let written = iso_like("2026-08-21 14:05:09,123").unwrap();
        assert_eq!(clock(&written), "14:05:09.123");
        assert_eq!(iso_like("Invalid Date"), None);
    }

    #[test]
    fn ages_have_one_unit() {
        for (seconds, past) in [
            (0, "now"),
            (59, "now"),
            (60, "1 min ago"),
            (HOUR - 1, "59 min ago"),
            (HOUR, "1 h ago"),
            (DAY - 1, "23 h ago"),
            (DAY, "1 day ago"),
            (2 * DAY, "2 days ago"),
            (59 * DAY, "59 days ago"),
            (60 * DAY, "2 months ago"),
            (2 * YEAR - 1, "24 months ago"),
            (2 * YEAR, "2 years ago"),
        ] {
            assert_eq!(age(seconds.cast_signed()), past);
        }
        assert_eq!(age(-59), "now");
        assert_eq!(age(-90 * 60), "in 1 h");
        assert_eq!(age(1 - (90 * DAY).cast_signed()), "in 3 months");
    }
}
