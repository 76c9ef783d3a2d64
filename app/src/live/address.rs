//! Addresses of the events page. They have the filter and the selected row, so that a
//! reload or a pasted link shows the same view.

use web_sys::MouseEvent;

use crate::local_path;
use crate::ui::query::in_query;

/// Query parameter of the selected row.
const SELECTED: &str = "selected";

/// The address of the events page with these values. Unset values are omitted.
pub(crate) fn of(project: i64, pairs: &[(&str, &str)]) -> String {
    let query: Vec<String> = pairs
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}", local_path::encode(value)))
        .collect();
    let sign = if query.is_empty() { "" } else { "?" };
    format!("/projects/{project}/events{sign}{}", query.join("&"))
}

/// An address of the events page with a row selected.
pub(super) fn with_row(page: &str, key: Option<&str>) -> String {
    let Some(key) = key else { return page.to_owned() };
    let sign = if page.contains('?') { '&' } else { '?' };
    format!("{page}{sign}{SELECTED}={}", local_path::encode(key))
}

/// The address of the page of a person.
pub(super) fn person(project: i64, id: &str) -> String {
    format!("/projects/{project}/persons/{id}")
}

/// The key of the row in the address. Tracked.
pub(crate) fn selected() -> Option<String> {
    Some(in_query(SELECTED)).filter(|key| !key.is_empty())
}

/// Adds a view to the history, so that the back button returns to the current one.
pub(super) fn push(address: &str) {
    #[cfg(not(feature = "ssr"))]
    crate::client::navigation::go_to(address);
    #[cfg(feature = "ssr")]
    let _ = address;
}

/// Whether a click opens the link in this tab.
pub(super) fn is_plain(event: &MouseEvent) -> bool {
    let modified = event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key();
    event.button() == 0 && !modified
}

#[cfg(test)]
mod tests {
    use super::{of, with_row};

    #[test]
    fn unset_values_are_omitted() {
        assert_eq!(of(1, &[]), "/projects/1/events");
        let page = of(1, &[("event", "a=b&c"), ("person", ""), ("outcome", "dropped")]);
        assert_eq!(page, "/projects/1/events?event=a%3Db%26c&outcome=dropped");
        assert_eq!(with_row(&page, Some("k")), format!("{page}&selected=k"));
        assert_eq!(with_row("/projects/1/events", Some("k")), "/projects/1/events?selected=k");
        assert_eq!(with_row("/projects/1/events", None), "/projects/1/events");
    }
}
