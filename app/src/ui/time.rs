//! Times. Server and first client render print UTC; then the viewer's zone
//! takes its place. The key `u` switches between the two.

use js_sys::Date;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsValue;

/// Whether times are shown in the viewer's zone.
#[derive(Clone, Copy)]
pub(crate) struct Zone(RwSignal<bool>);

/// Makes times local once the page is alive.
pub(crate) fn provide_zone() {
    let zone = Zone(RwSignal::new(false));
    provide_context(zone);
    Effect::new(move |_| zone.0.set(true));
    super::keyboard::on_key("u", move || zone.0.update(|local| *local = !*local));
}

fn is_local() -> bool {
    use_context::<Zone>().is_some_and(|zone| zone.0.get())
}

/// The name of the zone in which times are shown.
#[component]
pub(crate) fn ZoneName() -> impl IntoView {
    move || if is_local() { "local time" } else { "UTC" }
}

/// Date and time to the minute.
#[component]
pub(crate) fn Time(
    /// RFC 3339, UTC.
    iso: String,
) -> impl IntoView {
    let shown = iso.clone();
    let text = move || {
        let moment = if is_local() { local(&shown) } else { None };
        match moment {
            Some(local) => format!("{} {}", &local[..10], &local[11..16]),
            None => utc_minute(&shown),
        }
    };
    let exact = exact(&iso);
    view! { <time class="time" datetime=iso title=exact>{text}</time> }
}

/// The time of day, to the millisecond.
#[component]
pub(crate) fn Clock(
    /// RFC 3339, UTC.
    iso: String,
) -> impl IntoView {
    let shown = iso.clone();
    let text = move || {
        let moment = if is_local() { local(&shown) } else { None };
        clock(moment.as_deref().unwrap_or(&shown))
    };
    let exact = exact(&iso);
    view! { <time class="clock" datetime=iso title=exact>{text}</time> }
}

fn exact(iso: &str) -> String {
    iso.replacen('T', " ", 1).replacen('Z', " UTC", 1)
}

fn utc_minute(iso: &str) -> String {
    match (iso.get(..10), iso.get(11..16)) {
        (Some(date), Some(time)) => format!("{date} {time} UTC"),
        _ => iso.to_owned(),
    }
}

/// `14:05:09.123`, also when the decimals were left out.
fn clock(iso: &str) -> String {
    let time = iso.get(11..19).unwrap_or(iso);
    let decimals = iso.get(20..23).filter(|_| iso.get(19..20) == Some(".")).unwrap_or("000");
    format!("{time}.{decimals}")
}

/// The same moment on the viewer's clock, in the same form. Runs in the browser.
fn local(iso: &str) -> Option<String> {
    let moment = Date::new(&JsValue::from_str(iso));
    let shifted = moment.get_time() - moment.get_timezone_offset() * 60_000.0;
    if shifted.is_nan() {
        return None;
    }
    Some(String::from(Date::new(&JsValue::from_f64(shifted)).to_iso_string()))
}

#[cfg(test)]
mod tests {
    use super::{clock, exact, utc_minute};

    #[test]
    fn forms() {
        let iso = "2026-08-21T14:05:09.123456Z";
        assert_eq!(clock(iso), "14:05:09.123");
        assert_eq!(clock("2026-08-21T14:05:09Z"), "14:05:09.000");
        assert_eq!(utc_minute(iso), "2026-08-21 14:05 UTC");
        assert_eq!(exact("2026-08-21T14:05:09Z"), "2026-08-21 14:05:09 UTC");
        assert_eq!(utc_minute("?"), "?");
    }
}
