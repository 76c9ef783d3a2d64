//! Filters that work as soon as something is chosen.

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement, HtmlFormElement};

use super::{closest, on, within};

/// What is chosen rather than written.
const CHOSEN: &str = "select, input[type=checkbox], input[type=radio]";

/// `data-autosubmit` on a list, or around fields of a form.
pub(super) fn start() {
    on("change", |_, target| {
        let chosen = target.matches(CHOSEN).unwrap_or(false);
        if chosen
            && closest(target, "[data-autosubmit]").is_some()
            && let Some(form) = closest(target, "form")
        {
            send(&form);
        }
    });
}

/// As if its button was used, so that whoever listens hears of it.
fn send(form: &Element) {
    if let Some(button) = within::<HtmlElement>(form, "button[type=submit]") {
        button.click();
    } else if let Some(form) = form.dyn_ref::<HtmlFormElement>() {
        // A form that cannot be sent stays as it is.
        let _ = form.submit();
    }
}
