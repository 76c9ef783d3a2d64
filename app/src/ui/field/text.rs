//! Fields that are written in.

use leptos::prelude::*;

use super::line::Line;
use super::{FieldFrame, Ties, initial};
use crate::ui::form::Sent;

/// A field for one line.
#[component]
pub(crate) fn Field(
    /// What became of the form.
    sent: Sent,
    /// Name and id.
    name: &'static str,
    /// Label.
    #[prop(into)]
    label: String,
    /// Hint.
    #[prop(into, optional)]
    hint: String,
    /// Kind of input.
    #[prop(default = "text")]
    kind: &'static str,
    /// The value to begin with.
    #[prop(optional)]
    value: String,
    /// What the browser may fill in.
    #[prop(default = "off")]
    autocomplete: &'static str,
    /// Longest value, in characters.
    #[prop(default = 200)]
    max: usize,
    /// Whether it must be filled in.
    #[prop(default = true)]
    required: bool,
    /// What a value must look like.
    #[prop(optional)]
    pattern: &'static str,
    /// Which keys a keyboard on a screen shows.
    #[prop(optional)]
    inputmode: &'static str,
    /// An example, shown while it is empty.
    #[prop(optional)]
    placeholder: &'static str,
    /// Whether the page begins here.
    #[prop(optional)]
    autofocus: bool,
    /// Id of a list of suggestions.
    #[prop(optional)]
    list: Option<&'static str>,
    /// What must be typed before the form's guarded button works.
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
    };
    line.drawn(sent)
}

/// A field for one line whose name is worked out.
#[component]
pub(crate) fn TextLine(
    /// What became of the form.
    sent: Sent,
    /// Name and id.
    #[prop(into)]
    name: String,
    /// Label.
    #[prop(into)]
    label: String,
    /// Hint.
    #[prop(into, optional)]
    hint: String,
    /// The value to begin with.
    #[prop(into, optional)]
    value: String,
    /// Kind of input.
    #[prop(default = "text")]
    kind: &'static str,
    /// Longest value, in characters.
    #[prop(default = 500)]
    max: usize,
    /// Whether it must be filled in.
    #[prop(optional)]
    required: bool,
) -> impl IntoView {
    let autocomplete = "off";
    let line =
        Line { name, label, hint, value, kind, max, required, autocomplete, ..Line::default() };
    line.drawn(sent)
}

/// A field for several lines.
#[component]
pub(crate) fn TextArea(
    /// What became of the form.
    sent: Sent,
    /// Name and id.
    #[prop(into)]
    name: String,
    /// Label.
    #[prop(into)]
    label: String,
    /// Hint.
    #[prop(into, optional)]
    hint: String,
    /// The value to begin with.
    #[prop(into, optional)]
    value: String,
    /// Lines that are seen at a time.
    #[prop(default = 5)]
    rows: u32,
    /// Longest value, in characters.
    #[prop(default = 10_000)]
    max: usize,
    /// Whether it must be filled in.
    #[prop(optional)]
    required: bool,
    /// Whether it is for a machine. Tab leaves the field as it leaves any other.
    #[prop(optional)]
    code: bool,
) -> impl IntoView {
    let ties = Ties::new(name.clone(), hint, sent);
    let autofocus = sent.begins_at(&name, false);
    // Browsers leave out a line break at the very beginning.
    let value = format!("\n{}", initial(&name, value));
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
            >
                {value}
            </textarea>
        </FieldFrame>
    }
}
