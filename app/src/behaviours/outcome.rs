//! What a form added to the address to say how it went is said once: a reload
//! or a pasted link does not repeat it.

use leptos::prelude::window;
use leptos::wasm_bindgen::JsValue;

use crate::local_path::without_outcome;

/// Takes it out of the address.
pub(super) fn start() {
    let location = window().location();
    let (Ok(path), Ok(query)) = (location.pathname(), location.search()) else { return };
    let here = format!("{path}{query}");
    let clean = without_outcome(&here);
    if clean != here
        && let Ok(history) = window().history()
    {
        // The part of the page that it leads to stays.
        let clean = clean + &location.hash().unwrap_or_default();
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&clean));
    }
}
