//! Keeps the API request that a form shows in step with the fields of the form.

use js_sys::JSON;
use leptos::wasm_bindgen::{JsCast as _, JsValue};
use web_sys::{Element, HtmlInputElement, HtmlSelectElement, HtmlTextAreaElement};

use super::{closest, each, on, within};
use crate::ui::blanks::{self, Conversion};

/// Attribute with the original text of the request, in which blanks are unfilled.
const BLANK: &str = "data-blank";

/// `data-api-request` in a form: fills the blanks of its code with the values of the
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
    super::write(&code, &blanks::fill(&blank, |name, kind| value(&form, name, kind)));
}

/// The value that a field would send, as JSON in shell quotation marks. `None` (the blank
/// stays) for unknown fields, and for secrets unless the blank is one for a secret.
fn value(form: &Element, name: &str, kind: Conversion) -> Option<String> {
    let selector = |rest: &str| format!("[name=\"{name}\"]{rest}");
    let field: Element = within(form, &selector(""))?;
    let Some(input) = field.dyn_ref::<HtmlInputElement>() else {
        let written = field.dyn_ref::<HtmlTextAreaElement>().map(HtmlTextAreaElement::value);
        let text = match written {
            Some(written) => written,
            None => field.dyn_ref::<HtmlSelectElement>()?.value(),
        };
        return sent(&text, kind);
    };
    let text = input.value();
    match input.type_().as_str() {
        "password" if kind != Conversion::Secret => None,
        "checkbox" => Some(input.checked().to_string()),
        "number" | "datetime-local" if text.is_empty() => Some("null".to_owned()),
        "number" => Some(text),
        // Values of these fields are in UTC, and browsers omit seconds that are zero.
        "datetime-local" if text.len() == "2026-08-21T14:05".len() => json(&format!("{text}:00Z")),
        "datetime-local" => json(&format!("{text}Z")),
        "radio" => {
            let chosen: Option<HtmlInputElement> = within(form, &selector(":checked"));
            sent(&chosen?.value(), kind)
        }
        // A secret that is visible at the moment.
        _ if kind != Conversion::Secret && marked_secret(form, name) => None,
        _ => sent(&text, kind),
    }
}

fn marked_secret(form: &Element, name: &str) -> bool {
    within::<Element>(form, &format!("[name=\"secret:{name}\"]")).is_some()
}

fn sent(text: &str, kind: Conversion) -> Option<String> {
    let trimmed = text.trim();
    match kind {
        Conversion::Text => json(text),
        Conversion::Optional | Conversion::Time | Conversion::List | Conversion::Secret
            if trimmed.is_empty() =>
        {
            Some("null".to_owned())
        }
        Conversion::Secret => json("..."),
        Conversion::Optional | Conversion::Time => json(text),
        Conversion::List => {
            let lines = trimmed.lines().map(str::trim).filter(|line| !line.is_empty());
            let lines: Vec<String> = lines.filter_map(json).collect();
            Some(format!("[{}]", lines.join(", ")))
        }
        Conversion::Object if trimmed.is_empty() => Some("{}".to_owned()),
        // Not parsed: numbers in JavaScript cannot hold every JSON number.
        Conversion::Object => Some(in_quotes(trimmed)),
    }
}

fn json(text: &str) -> Option<String> {
    let json = JSON::stringify(&JsValue::from_str(text)).ok()?;
    Some(in_quotes(&String::from(json)))
}

/// A text for use in shell quotation marks.
fn in_quotes(text: &str) -> String {
    text.replace('\'', r"'\''")
}
