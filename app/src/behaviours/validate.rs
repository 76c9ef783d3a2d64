//! Checks fields with the browser's own rules when they lose the focus, once the user has
//! tried to submit the form. The message of the browser is shown where the server would
//! show its message.

use js_sys::Reflect;
use leptos::prelude::document;
use leptos::wasm_bindgen::JsValue;
use web_sys::Element;

use super::{closest, each, on, within};

/// Attribute of a form that the user tried to submit. There is no `submit` event when the
/// browser blocks the submission.
const SUBMIT_TRIED: &str = "data-submit-tried";
/// Attribute of a message that this module added.
const ADDED: &str = "data-browser-message";
const DESCRIBED_BY: &str = "aria-describedby";
const INVALID: &str = "aria-invalid";

/// Acts on fields with an id inside `.field`.
pub(super) fn start() {
    on("click", |_, target| {
        let button = closest(target, "button[type=submit]:not([formnovalidate])");
        if let Some(form) = button.and_then(|button| closest(&button, "form")) {
            let _ = form.set_attribute(SUBMIT_TRIED, "");
        }
    });
    on("focusout", |_, target| {
        let form = closest(target, "form");
        if form.is_some_and(|form| form.has_attribute(SUBMIT_TRIED) || is_refused(&form)) {
            check(target);
        }
    });
    on("input", |_, target| {
        // Remove the message as soon as it is no longer true.
        if message_of(target).is_some_and(|message| message.has_attribute(ADDED)) {
            check(target);
        }
    });
}

/// Removes the messages that this module added, before a page is drawn again.
pub(crate) fn undo() {
    each::<Element>(&format!("[{ADDED}]"), |message| {
        let id = message.id();
        let field = id.strip_suffix("-fault").unwrap_or_default();
        if let Some(field) = document().get_element_by_id(field) {
            unlink_message(&field);
        }
        message.remove();
    });
}

/// Whether the server returned the form with errors.
fn is_refused(form: &Element) -> bool {
    within::<Element>(form, "[aria-invalid=true]").is_some()
}

/// The element with the message about a field, from the server or from this module.
fn message_of(field: &Element) -> Option<Element> {
    document().get_element_by_id(&message_id(field))
}

fn message_id(field: &Element) -> String {
    format!("{}-fault", field.id())
}

/// Adds, changes or removes the message about a field.
fn check(field: &Element) {
    let Some(wrapper) = closest(field, ".field").filter(|_| !field.id().is_empty()) else {
        return;
    };
    let text = Reflect::get(field, &JsValue::from_str("validationMessage"));
    let Some(text) = text.ok().and_then(|text| text.as_string()) else { return };
    match (message_of(field), text.is_empty()) {
        // Messages of the server stay until the form is sent again.
        (Some(message), _) if !message.has_attribute(ADDED) => {}
        (Some(message), false) => message.set_text_content(Some(&text)),
        (Some(message), true) => {
            message.remove();
            unlink_message(field);
        }
        (None, false) => {
            if add_message(field, &wrapper, &text).is_some() {
                link_message(field);
            }
        }
        (None, true) => {}
    }
}

/// Adds a message below the field. `None`: the browser refused a step.
fn add_message(field: &Element, wrapper: &Element, text: &str) -> Option<()> {
    let message = document().create_element("p").ok()?;
    message.set_class_name("fault");
    message.set_id(&message_id(field));
    message.set_attribute(ADDED, "").ok()?;
    message.set_text_content(Some(text));
    wrapper.append_child(&message).ok()?;
    Some(())
}

/// Links the message to the field for screen readers.
fn link_message(field: &Element) {
    let _ = field.set_attribute(INVALID, "true");
    let id = message_id(field);
    let ids = match other_descriptions(field) {
        others if others.is_empty() => id,
        others => format!("{others} {id}"),
    };
    let _ = field.set_attribute(DESCRIBED_BY, &ids);
}

/// Removes the link of the message to the field.
fn unlink_message(field: &Element) {
    let _ = field.remove_attribute(INVALID);
    let others = other_descriptions(field);
    let _ = if others.is_empty() {
        field.remove_attribute(DESCRIBED_BY)
    } else {
        field.set_attribute(DESCRIBED_BY, &others)
    };
}

/// The ids of the elements that describe a field, without its message.
fn other_descriptions(field: &Element) -> String {
    let ids = field.get_attribute(DESCRIBED_BY).unwrap_or_default();
    let message = message_id(field);
    let others: Vec<&str> = ids.split(' ').filter(|id| !id.is_empty() && *id != message).collect();
    others.join(" ")
}
