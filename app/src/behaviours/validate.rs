//! Checks fields with the browser's own rules when they lose the focus, once the user
//! tried to submit the form. The message of the browser is shown where the server would
//! show its message.

use js_sys::Reflect;
use leptos::prelude::document;
use leptos::wasm_bindgen::JsValue;
use web_sys::Element;

use super::{closest, each, on, within};

/// Attribute of a form that the user tried to submit. There is no `submit` event when the
/// browser blocks the submission.
const TRIED: &str = "data-tried";
/// Attribute of a message that this module added.
const OWN: &str = "data-native";
const DESCRIBED_BY: &str = "aria-describedby";
const INVALID: &str = "aria-invalid";

/// Acts on fields with an id inside `.field`.
pub(super) fn start() {
    on("click", |_, target| {
        let button = closest(target, "button[type=submit]:not([formnovalidate])");
        if let Some(form) = button.and_then(|button| closest(&button, "form")) {
            let _ = form.set_attribute(TRIED, "");
        }
    });
    on("focusout", |_, target| {
        let form = closest(target, "form");
        if form.is_some_and(|form| form.has_attribute(TRIED) || is_refused(&form)) {
            check(target);
        }
    });
    on("input", |_, target| {
        // Remove the message as soon as it is no longer true.
        if line(target).is_some_and(|line| line.has_attribute(OWN)) {
            check(target);
        }
    });
}

/// Removes the messages that this module added.
pub(crate) fn take_back() {
    each::<Element>(&format!("[{OWN}]"), |line| {
        let field = line.id();
        let field = field.strip_suffix("-fault").unwrap_or_default();
        if let Some(field) = document().get_element_by_id(field) {
            tie(&field, false);
        }
        line.remove();
    });
}

/// Whether the server returned the form with errors.
fn is_refused(form: &Element) -> bool {
    within::<Element>(form, "[aria-invalid=true]").is_some()
}

/// The message of a field.
fn line(field: &Element) -> Option<Element> {
    document().get_element_by_id(&format!("{}-fault", field.id()))
}

fn check(field: &Element) {
    let Some(around) = closest(field, ".field").filter(|_| !field.id().is_empty()) else { return };
    let said = Reflect::get(field, &JsValue::from_str("validationMessage"));
    let Some(said) = said.ok().and_then(|said| said.as_string()) else { return };
    let found = line(field);
    match (found, said.is_empty()) {
        // Messages of the server stay until the form is sent again.
        (Some(line), _) if !line.has_attribute(OWN) => {}
        (Some(line), false) => line.set_text_content(Some(&said)),
        (Some(line), true) => {
            line.remove();
            tie(field, false);
        }
        (None, false) => {
            if add(field, &around, &said).is_some() {
                tie(field, true);
            }
        }
        (None, true) => {}
    }
}

/// Adds a message below the field.
fn add(field: &Element, around: &Element, said: &str) -> Option<()> {
    let line = document().create_element("p").ok()?;
    line.set_class_name("fault");
    line.set_id(&format!("{}-fault", field.id()));
    line.set_attribute(OWN, "").ok()?;
    line.set_text_content(Some(said));
    around.append_child(&line).ok()?;
    Some(())
}

/// Links the message to the field for screen readers, or removes the link.
fn tie(field: &Element, is_said: bool) {
    let id = format!("{}-fault", field.id());
    let before = field.get_attribute(DESCRIBED_BY).unwrap_or_default();
    let mut ids: Vec<&str> =
        before.split(' ').filter(|one| !one.is_empty() && *one != id).collect();
    if is_said {
        ids.push(&id);
        let _ = field.set_attribute(INVALID, "true");
    } else {
        let _ = field.remove_attribute(INVALID);
    }
    let _ = if ids.is_empty() {
        field.remove_attribute(DESCRIBED_BY)
    } else {
        field.set_attribute(DESCRIBED_BY, &ids.join(" "))
    };
}
