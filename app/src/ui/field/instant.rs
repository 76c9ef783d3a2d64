//! Fields for times. Browsers send them without a zone; the value is in UTC.

use leptos::prelude::*;
use weir_model::Timestamp;

use super::line::Line;
use crate::ui::form::FormResult;

/// Type of the input.
pub(super) const MOMENT: &str = "datetime-local";

/// A field for a time.
#[component]
pub(crate) fn MomentField(
    result: FormResult,
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    #[prop(into, optional)] hint: String,
    /// The initial value, in RFC 3339, or empty.
    #[prop(into, optional)]
    value: String,
    #[prop(optional)] required: bool,
) -> impl IntoView {
    let (kind, autocomplete) = (MOMENT, "off");
    let label = format!("{label} (UTC)");
    Line { name, label, hint, value, kind, required, autocomplete, ..Line::default() }.drawn(result)
}

/// Parses the value of such a field, or an RFC 3339 time.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse_lenient(text)
}

/// Formats a time for such a field.
pub(crate) fn shown(text: &str) -> String {
    let Some(time) = parse_time(text) else { return String::new() };
    let text = time.to_string();
    let to_the_second = text.split(['.', 'Z']).next().unwrap_or_default();
    to_the_second.strip_suffix(":00").unwrap_or(to_the_second).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{parse_time, shown};

    #[test]
    fn a_field_sends_utc() {
        let read = |text| parse_time(text).map(|time| time.to_string());
        for text in ["2026-08-21T14:05", "2026-08-21T14:05:00Z", "2026-08-21T16:05:00+02:00"] {
            assert_eq!(read(text).as_deref(), Some("2026-08-21T14:05:00Z"), "{text}");
        }
        assert_eq!(read(""), None);
        assert_eq!(read("tomorrow"), None);
    }

    #[test]
    fn a_field_accepts_local_forms_only() {
        assert_eq!(shown("2026-08-21T14:05:00Z"), "2026-08-21T14:05");
        assert_eq!(shown("2026-08-21T14:05:09.5Z"), "2026-08-21T14:05:09");
        assert_eq!(shown("2026-08-21T14:05"), "2026-08-21T14:05");
        assert_eq!(shown(""), "");
    }
}
