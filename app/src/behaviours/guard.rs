//! Enables the button of a form only after the required text is typed.

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlButtonElement, HtmlInputElement};

use super::{closest, each, on, within};

/// `data-must-equal` on a field: the text that enables the form's `data-guarded` button.
/// `data-guard-why` is the element that says why the button is disabled.
pub(super) fn start() {
    again();
    on("input", |_, target| {
        if let Some(input) = target.dyn_ref::<HtmlInputElement>() {
            check(input);
        }
    });
}

/// Checks all guarded forms: after a page is drawn again, and after `busy` has enabled
/// its buttons.
pub(crate) fn again() {
    each::<HtmlInputElement>("[data-must-equal]", check);
}

fn check(input: &HtmlInputElement) {
    let Some(wanted) = input.get_attribute("data-must-equal") else { return };
    let Some(form) = closest(input, "form") else { return };
    let blocked = input.value().trim() != wanted;
    if let Some(button) = within::<HtmlButtonElement>(&form, "[data-guarded]") {
        button.set_disabled(blocked);
    }
    if let Some(why) = within::<Element>(&form, "[data-guard-why]") {
        let text = if blocked { "Type the name to continue." } else { "" };
        why.set_text_content(Some(text));
    }
}
