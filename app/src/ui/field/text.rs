//! Fields for text.

use leptos::prelude::*;

use super::line::Line;
use super::{FieldFrame, Ties, explained, initial};
use crate::ui::form::FormResult;

/// A field with one line.
#[component]
pub(crate) fn Field(
    result: FormResult,
    name: &'static str,
    #[prop(into)] label: String,
    #[prop(into, optional)] hint: String,
    #[prop(default = "text")] kind: &'static str,
    #[prop(optional)] value: String,
    /// Value of the `autocomplete` attribute.
    #[prop(default = "off")]
    autocomplete: &'static str,
    #[prop(default = 200)] max: usize,
    #[prop(default = true)] required: bool,
    /// Regular expression for valid values.
    #[prop(optional)]
    pattern: &'static str,
    /// Kind of on-screen keyboard.
    #[prop(optional)]
    inputmode: &'static str,
    /// An example, shown while the field is empty.
    #[prop(optional)]
    placeholder: &'static str,
    /// Whether the field gets the focus when the page is loaded.
    #[prop(optional)]
    autofocus: bool,
    /// Id of a list of suggestions.
    #[prop(optional)]
    list: Option<&'static str>,
    /// The text that enables the form's guarded button.
    #[prop(optional, into)]
    must_equal: Option<String>,
) -> impl IntoView {
    let name = name.to_owned();
    let line = Line {
        name,
        label,
        hint,
        kind,
        value,
        autocomplete,
        max,
        required,
        autofocus,
        pattern,
        inputmode,
        placeholder,
        list,
        must_equal,
        disabled: false,
    };
    line.drawn(result)
}

/// A field with one line whose name is computed.
#[component]
pub(crate) fn TextLine(
    result: FormResult,
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    #[prop(into, optional)] hint: String,
    #[prop(into, optional)] value: String,
    #[prop(default = "text")] kind: &'static str,
    #[prop(default = 500)] max: usize,
    #[prop(optional)] required: bool,
    /// Why it cannot be changed. Empty if it can.
    #[prop(into, optional)]
    disabled: String,
) -> impl IntoView {
    let line = Line {
        name,
        label,
        hint: explained(hint, &disabled),
        value,
        kind,
        max,
        required,
        autocomplete: "off",
        disabled: !disabled.is_empty(),
        ..Line::default()
    };
    line.drawn(result)
}

/// A field with several lines.
#[component]
pub(crate) fn TextArea(
    result: FormResult,
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    #[prop(into, optional)] hint: String,
    #[prop(into, optional)] value: String,
    /// Number of visible lines.
    #[prop(default = 5)]
    rows: u32,
    #[prop(default = 10_000)] max: usize,
    #[prop(optional)] required: bool,
    /// Whether the text is code. The Tab key still leaves the field.
    #[prop(optional)]
    code: bool,
) -> impl IntoView {
    let ties = Ties::new(name.clone(), hint, result);
    let autofocus = result.has_focus(&name, false);
    // Browsers drop a line break at the beginning of the element in a document.
    let begin = if cfg!(feature = "ssr") { "\n" } else { "" };
    let value = format!("{begin}{}", escaped(&initial(&name, value)));
    let (class, spellcheck) = if code { ("mono", "false") } else { ("", "true") };
    view! {
        <FieldFrame ties=ties.clone() label=label>
            <textarea
                id=name.clone()
                name=name
                class=class
                rows=rows.to_string()
                maxlength=max.to_string()
                required=required
                autocomplete="off"
                autocapitalize=code.then_some("off")
                autofocus=autofocus
                wrap=code.then_some("off")
                spellcheck=spellcheck
                aria-describedby=ties.described_by()
                aria-invalid=ties.invalid()
                inner_html=value
            ></textarea>
        </FieldFrame>
    }
}

/// A text as the content of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// The names that fields with this `list` suggest.
pub(crate) fn suggestions(id: &'static str, names: Vec<String>) -> AnyView {
    let names = names.into_iter().map(|name| view! { <option value=name></option> }).collect_view();
    view! { <datalist id=id>{names}</datalist> }.into_any()
}
