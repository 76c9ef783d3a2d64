//! Labelled fields: label above, hint below, error below the hint, linked to the field
//! for screen readers.

mod choice;
mod instant;
mod line;
mod secret;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use leptos::prelude::*;

use super::form::FormResult;
use super::icon::Icon;
use crate::edits::{FormFingerprints, SEEN, TICKED, fingerprint};
use crate::form_names::FUNCTION;

pub(crate) use choice::{Check, Choice, RadioCards, Select, choices};
pub(crate) use instant::{MomentField, parse_time, shown as moment_shown};
pub(crate) use secret::SecretField;
pub(crate) use text::{Field, TextArea, TextLine, suggestions};

/// Typed values of a form that was not saved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Typed(Arc<Entered>);

#[derive(Debug, Default)]
struct Entered {
    values: BTreeMap<String, String>,
    seen: FormFingerprints,
}

impl Typed {
    /// From the fields of a form. If a name occurs several times, the first one counts.
    pub(crate) fn new(fields: Vec<(String, String)>) -> Self {
        let mut values = BTreeMap::new();
        for (name, value) in fields {
            values.entry(name).or_insert(value);
        }
        let seen = values.get(SEEN).map(|text| FormFingerprints::read(text)).unwrap_or_default();
        Self(Arc::new(Entered { values, seen }))
    }

    /// The form, identified by the path of its server function.
    pub(crate) fn function(&self) -> Option<&str> {
        self.0.values.get(FUNCTION).map(String::as_str)
    }

    /// The typed value of a field, if it differs from the value that the form showed.
    /// Unchanged fields show the stored value.
    fn value(&self, name: &str) -> Option<&str> {
        let value = self.0.values.get(name)?;
        let is_own = self.0.seen.print(name).is_none_or(|print| print != fingerprint(value));
        is_own.then_some(value.as_str())
    }

    /// The typed state of a box, if it differs from the state that the form showed.
    /// Browsers do not send unticked boxes, so a missing value means unticked.
    /// `None` without typed values: a form that was refused in the browser keeps its boxes.
    fn ticked(&self, name: &str) -> Option<bool> {
        if self.0.values.is_empty() {
            return None;
        }
        let is_ticked = self.0.values.contains_key(name);
        let word = if is_ticked { TICKED } else { "" };
        let is_own = self.0.seen.print(name).is_none_or(|print| print != fingerprint(word));
        is_own.then_some(is_ticked)
    }

    /// The previous fingerprint of a field, if the user changed the field.
    pub(crate) fn seen(&self, name: &str) -> Option<&str> {
        let print = self.0.seen.print(name)?;
        let is_own = self.value(name).is_some() || self.ticked(name) == Some(false);
        is_own.then_some(print)
    }
}

/// Typed values of the form that led to this document.
#[derive(Clone)]
struct OfDocument(ArcStoredValue<Typed>);

/// Makes the typed values available to the fields of the page.
pub(crate) fn provide_typed_values(typed: Typed) {
    provide_context(OfDocument(ArcStoredValue::new(typed)));
}

/// The typed values. Empty if there are none.
pub(crate) fn typed_values() -> Typed {
    use_context::<OfDocument>().map(|typed| typed.0.get_value()).unwrap_or_default()
}

/// Forgets the typed values in the browser: they belong to the first page of a document.
pub(crate) fn forget_typed_values() {
    let begins = Owner::current_shared_context().is_none_or(|shared| shared.during_hydration());
    if !begins
        && !cfg!(feature = "ssr")
        && let Some(typed) = use_context::<OfDocument>()
    {
        typed.0.set_value(Typed::default());
    }
}

/// The initial value of a field.
pub(crate) fn initial(name: &str, otherwise: String) -> String {
    typed_values().value(name).map_or(otherwise, str::to_owned)
}

/// Whether a box is initially ticked.
pub(crate) fn ticked(result: FormResult, name: &str, otherwise: bool) -> bool {
    let typed = typed_values().ticked(name).filter(|_| result.shows_typed_values());
    typed.unwrap_or(otherwise)
}

/// The hint of a field, with the reason why it cannot be changed.
fn explained(hint: String, disabled: &str) -> String {
    match (hint.is_empty(), disabled.is_empty()) {
        (_, true) => hint,
        (true, false) => disabled.to_owned(),
        (false, false) => format!("{hint} {disabled}"),
    }
}

/// Attributes that link a field to its hint and error.
#[derive(Clone)]
pub(crate) struct Ties {
    name: String,
    hint: String,
    fault: Option<String>,
}

impl Ties {
    /// The attributes of the field `name`, for this result of its form.
    pub(crate) fn new(
        name: impl Into<String>,
        hint: impl Into<String>,
        result: FormResult,
    ) -> Self {
        let name = name.into();
        Self { fault: result.field_error(&name), hint: hint.into(), name }
    }

    /// The value of `aria-describedby`.
    pub(crate) fn described_by(&self) -> Option<String> {
        let hint = (!self.hint.is_empty()).then(|| format!("{}-hint", self.name));
        let fault = self.fault.as_ref().map(|_| format!("{}-fault", self.name));
        match (hint, fault) {
            (Some(hint), Some(fault)) => Some(format!("{hint} {fault}")),
            (hint, fault) => hint.or(fault),
        }
    }

    /// The value of `aria-invalid`.
    pub(crate) fn invalid(&self) -> Option<&'static str> {
        self.fault.as_ref().map(|_| "true")
    }

    /// Hint and error, shown below the control.
    fn below(self) -> AnyView {
        let Self { name, hint, fault } = self;
        view! {
            {(!hint.is_empty()).then(|| view! {
                <p class="hint" id=format!("{name}-hint")>{hint}</p>
            })}
            {fault.map(|fault| view! {
                <p class="fault" id=format!("{name}-fault")>
                    <Icon name="alert" />
                    {fault}
                </p>
            })}
        }
        .into_any()
    }
}

/// Label, hint and error around a control.
#[component]
pub(crate) fn FieldFrame(
    /// The attributes of the control.
    ties: Ties,
    #[prop(into)] label: String,
    /// The control.
    children: Children,
) -> impl IntoView {
    let name = ties.name.clone();
    view! {
        <div class="field">
            <label for=name>{label}</label>
            {children()}
            {ties.below()}
        </div>
    }
    .into_any()
}
