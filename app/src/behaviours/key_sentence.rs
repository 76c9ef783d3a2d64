//! Updates the sentence that describes what a new key will be able to do.

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlInputElement, HtmlOptionElement};
use weir_model::scopes::ScopeObject;

use super::{closest, on, within, write};
use crate::days::day;
use crate::key_words::{Access, access, sentence};

/// `data-sentence` in a form: updated at every change of the form.
pub(super) fn start() {
    on("change", |_, target| {
        if let Some(form) = closest(target, "form")
            && let Some(place) = within::<Element>(&form, "[data-sentence]")
        {
            write(&place, &of(&form));
        }
    });
}

fn of(form: &Element) -> String {
    let checked = |name: &str| {
        within::<HtmlInputElement>(form, &format!("[name=\"{name}\"]:checked"))
            .map(|input| input.value())
            .unwrap_or_default()
    };
    let chosen: Vec<Access> = (0..ScopeObject::OFFERED.len())
        .map(|at| access(&checked(&format!("scopes[{at}]"))))
        .collect();
    let option = within::<Element>(form, "option:checked")
        .and_then(|option| option.dyn_into::<HtmlOptionElement>().ok());
    let until = match option {
        // The last day is in a separate field.
        Some(option) if option.value() == "date" => {
            within::<HtmlInputElement>(form, "[name=\"last_day\"]")
                .and_then(|field| day(&field.value()))
        }
        option => option.and_then(|option| option.get_attribute("data-until")),
    };
    sentence(&checked("preset"), &chosen, until.as_deref())
}
