//! Shared code of fields with one line.

use leptos::prelude::*;

use super::instant::{MOMENT, shown};
use super::{FieldFrame, Ties, initial};
use crate::ui::form::FormResult;

/// Attributes of a field with one line. Empty texts are omitted.
#[derive(Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) hint: String,
    pub(super) kind: &'static str,
    pub(super) value: String,
    pub(super) autocomplete: &'static str,
    pub(super) max: usize,
    pub(super) required: bool,
    pub(super) autofocus: bool,
    pub(super) pattern: &'static str,
    pub(super) inputmode: &'static str,
    pub(super) placeholder: &'static str,
    pub(super) list: Option<&'static str>,
    pub(super) must_equal: Option<String>,
    pub(super) disabled: bool,
}

impl Line {
    /// Label, field, hint and error.
    pub(super) fn drawn(self, result: FormResult) -> AnyView {
        let given = |text: &'static str| (!text.is_empty()).then_some(text);
        let ties = Ties::new(self.name.clone(), self.hint, result);
        let is_moment = self.kind == MOMENT;
        let value = initial(&self.name, self.value);
        let value = if is_moment { shown(&value) } else { value };
        let autofocus = result.has_focus(&self.name, self.autofocus);
        // `step="any"`, because browsers otherwise refuse decimals and seconds. A maximum
        // length has no effect on these fields.
        let is_figures = is_moment || self.kind == "number";
        let length = (!is_figures).then(|| self.max.to_string());
        let step = is_figures.then_some("any");
        let label = self.label;
        view! {
            <FieldFrame ties=ties.clone() label=label>
                <input
                    id=self.name.clone()
                    name=self.name
                    type=self.kind
                    value=value
                    required=self.required
                    disabled=self.disabled
                    maxlength=length
                    step=step
                    pattern=given(self.pattern)
                    inputmode=given(self.inputmode)
                    placeholder=given(self.placeholder)
                    autocomplete=self.autocomplete
                    autofocus=autofocus
                    list=self.list
                    spellcheck="false"
                    aria-describedby=ties.described_by()
                    aria-invalid=ties.invalid()
                    data-must-equal=self.must_equal
                />
            </FieldFrame>
        }
        .into_any()
    }
}
