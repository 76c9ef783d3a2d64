//! The API request of a form follows what is typed into it.

use js_sys::JSON;
use leptos::wasm_bindgen::{JsCast as _, JsValue};
use web_sys::{Element, HtmlInputElement, HtmlSelectElement, HtmlTextAreaElement};

use super::{closest, each, on, within};
use crate::ui::blanks;

/// Where the request is kept as it came.
const BLANK: &str = "data-blank";

/// `data-api-request` within a form: blanks of its code are filled in with the
/// form's fields.
pub(super) fn start() {
    write_all();
    for event in ["input", "change"] {
        on(event, |_, _| write_all());
    }
}

fn write_all() {
    each::<Element>("[data-api-request]", write);
}

fn write(request: &Element) {
    let (Some(form), Some(code)) =
        (closest(request, "form"), within::<Element>(request, "pre > code"))
    else {
        return;
    };
    let blank = code.get_attribute(BLANK).unwrap_or_else(|| {
        let text = code.text_content().unwrap_or_default();
        let _ = code.set_attribute(BLANK, &text);
        text
    });
    code.set_text_content(Some(&blanks::fill(&blank, |name| value(&form, name))));
}

/// What a field would send, as JSON within quotation marks of a shell. Secrets
/// and unknown fields stay blank.
fn value(form: &Element, name: &str) -> Option<String> {
    let selector = |rest: &str| format!("[name=\"{name}\"]{rest}");
    let field: Element = within(form, &selector(""))?;
    if let Some(input) = field.dyn_ref::<HtmlInputElement>() {
        return match input.type_().as_str() {
            "password" => None,
            "checkbox" => Some(input.checked().to_string()),
            "number" => {
                let number = input.value();
                Some(if number.is_empty() { "null".to_owned() } else { number })
            }
            "radio" => {
                let chosen: Option<HtmlInputElement> = within(form, &selector(":checked"));
                text(&chosen?.value())
            }
            // A secret that is being shown.
            _ if marked_secret(form, name) => None,
            _ => text(&input.value()),
        };
    }
    let written = field.dyn_ref::<HtmlTextAreaElement>().map(HtmlTextAreaElement::value);
    let value = match written {
        Some(written) => written,
        None => field.dyn_ref::<HtmlSelectElement>()?.value(),
    };
    text(&value)
}

fn marked_secret(form: &Element, name: &str) -> bool {
    within::<Element>(form, &format!("[name=\"secret:{name}\"]")).is_some()
}

fn text(value: &str) -> Option<String> {
    let json = JSON::stringify(&JsValue::from_str(value)).ok()?;
    Some(String::from(json).replace('\'', r"'\''"))
}
