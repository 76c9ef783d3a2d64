//! Submits filters immediately after a choice.

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement, HtmlFormElement};

use super::{closest, on, within};

/// Fields with a choice, in contrast to fields for text.
const CHOSEN: &str = "select, input[type=checkbox], input[type=radio]";

/// `data-autosubmit` on a list, or on an element around fields of a form.
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

/// Submits as the button would, so that other listeners see a `submit` event.
fn send(form: &Element) {
    if let Some(button) = within::<HtmlElement>(form, "button[type=submit]") {
        button.click();
    } else if let Some(form) = form.dyn_ref::<HtmlFormElement>() {
        // Ignored: a form that cannot be sent stays unchanged.
        let _ = form.submit();
    }
}
