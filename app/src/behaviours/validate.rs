//! A form that was sent once says what is wrong with a field as soon as it is left,
//! in the words of the browser, where the server would say it too.

use js_sys::Reflect;
use leptos::prelude::document;
use leptos::wasm_bindgen::JsValue;
use web_sys::Element;

use super::{closest, on, within};

/// Mark of a form that somebody tried to send. One that the browser holds back
/// tells no `submit`.
const TRIED: &str = "data-tried";
/// Mark of a line that stands here and not in the page as it came.
const OWN: &str = "data-native";
const DESCRIBED_BY: &str = "aria-describedby";
const INVALID: &str = "aria-invalid";

/// Fields with an id within `.field`.
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
        // What is said goes as soon as it is not true any more.
        if line(target).is_some_and(|line| line.has_attribute(OWN)) {
            check(target);
        }
    });
}

/// Whether the form came back from the server.
fn is_refused(form: &Element) -> bool {
    within::<Element>(form, "[aria-invalid=true]").is_some()
}

/// The line of a field's fault.
fn line(field: &Element) -> Option<Element> {
    document().get_element_by_id(&format!("{}-fault", field.id()))
}

fn check(field: &Element) {
    let Some(around) = closest(field, ".field").filter(|_| !field.id().is_empty()) else { return };
    let said = Reflect::get(field, &JsValue::from_str("validationMessage"));
    let Some(said) = said.ok().and_then(|said| said.as_string()) else { return };
    let found = line(field);
    match (found, said.is_empty()) {
        // What the server said stays until the form is sent again.
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

/// A line below the field that says it.
fn add(field: &Element, around: &Element, said: &str) -> Option<()> {
    let line = document().create_element("p").ok()?;
    line.set_class_name("fault");
    line.set_id(&format!("{}-fault", field.id()));
    line.set_attribute(OWN, "").ok()?;
    line.set_text_content(Some(said));
    around.append_child(&line).ok()?;
    Some(())
}

/// Ties the line to the field, or takes the tie away.
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
