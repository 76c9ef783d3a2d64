//! Removes the outcome of a form from the address, so that a reload or a pasted link does
//! not show it again.

use leptos::prelude::window;
use leptos::wasm_bindgen::JsValue;

use crate::local_path::without_outcome;

/// Replaces the address of the page by one without the outcome.
pub(crate) fn clean() {
    let location = window().location();
    let (Ok(path), Ok(query)) = (location.pathname(), location.search()) else { return };
    let here = format!("{path}{query}");
    let clean = without_outcome(&here);
    if clean != here
        && let Ok(history) = window().history()
    {
        // Keep the fragment.
        let clean = clean + &location.hash().unwrap_or_default();
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&clean));
    }
}
