//! The address of the live page. It has the filter and the open row, so that a reload or
//! a pasted link shows the same view.

use leptos::prelude::window;
use leptos::wasm_bindgen::JsValue;
use web_sys::{MouseEvent, UrlSearchParams};

use super::filter::Filter;
use crate::local_path;

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

/// Parses the address of the browser. This function and the ones below run in the browser
/// only.
pub(super) fn read() -> (Filter, Option<String>) {
    let search = window().location().search().unwrap_or_default();
    let Ok(query) = UrlSearchParams::new_with_str(&search) else {
        return (Filter::default(), None);
    };
    let value = |name: &str| query.get(name).filter(|value| !value.is_empty());
    (Filter { outcome: value("outcome"), text: value("q") }, value("row"))
}

/// Adds a view to the history, so that the back button returns to the current one.
pub(super) fn push(address: &str) {
    if let Ok(history) = window().history() {
        let _ = history.push_state_with_url(&JsValue::NULL, "", Some(address));
    }
}

/// Replaces the current view in the history, so that typing in the filter adds no
/// entries.
pub(super) fn replace(address: &str) {
    if let Ok(history) = window().history() {
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(address));
    }
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
