//! The address of the live page. It has the filter and the open row, so that a reload or
//! a pasted link shows the same view.

use web_sys::MouseEvent;

use super::filter::Filter;
use crate::local_path;
use crate::ui::query::in_query;

/// The address with this filter and row. Unset values are omitted.
pub(crate) fn of(project: i64, filter: &Filter, row: Option<&str>) -> String {
    let pairs =
        [("q", filter.text.as_deref()), ("outcome", filter.outcome.as_deref()), ("row", row)];
    let query: Vec<String> = pairs
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", local_path::encode(value?))))
        .collect();
    let path = format!("/projects/{project}/live");
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// The address of the page of a person.
pub(super) fn person(project: i64, id: &str) -> String {
    format!("/projects/{project}/persons/{id}")
}

/// The filter and the row in the address. Tracked.
pub(crate) fn read() -> (Filter, Option<String>) {
    let value = |name: &str| Some(in_query(name)).filter(|value| !value.trim().is_empty());
    (Filter { outcome: value("outcome"), text: value("q") }, value("row"))
}

/// Adds a view to the history, so that the back button returns to the current one.
pub(super) fn push(address: &str) {
    #[cfg(not(feature = "ssr"))]
    crate::client::navigation::go_to(address);
    #[cfg(feature = "ssr")]
    let _ = address;
}

/// Replaces the current view in the history, so that typing in the filter adds no
/// entries.
pub(super) fn replace(address: &str) {
    #[cfg(not(feature = "ssr"))]
    crate::client::navigation::replace_by(address);
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
    use super::{Filter, of};

    #[test]
    fn defaults_are_omitted() {
        assert_eq!(of(1, &Filter::default(), None), "/projects/1/live");
        let filter = Filter { outcome: Some("dropped".to_owned()), text: Some("a=b&c".to_owned()) };
        assert_eq!(of(1, &filter, Some("k")), "/projects/1/live?q=a%3Db%26c&outcome=dropped&row=k");
    }
}
