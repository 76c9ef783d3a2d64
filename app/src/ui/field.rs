//! Labelled fields: label above, hint below, fault below the hint, tied to the
//! field for assistive technology.

mod choice;
mod instant;
mod line;
mod secret;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use leptos::prelude::*;

use super::form::Sent;
use super::icon::Icon;
use crate::context::FUNCTION;
use crate::edits::{SEEN, Seen, TICKED, fingerprint};

pub(crate) use choice::{Check, Choice, RadioCards, Select};
pub(crate) use instant::{MomentField, moment, shown as moment_shown};
pub(crate) use secret::SecretField;
pub(crate) use text::{Field, TextArea, TextLine};

/// What was entered into a form that was not saved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Typed(Arc<Entered>);

#[derive(Debug, Default)]
struct Entered {
    values: BTreeMap<String, String>,
    seen: Seen,
}

impl Typed {
    /// Of these fields; the first of a name counts.
    pub(crate) fn new(fields: Vec<(String, String)>) -> Self {
        let mut values = BTreeMap::new();
        for (name, value) in fields {
            values.entry(name).or_insert(value);
        }
        let seen = values.get(SEEN).map(|text| Seen::read(text)).unwrap_or_default();
        Self(Arc::new(Entered { values, seen }))
    }

    /// The form: the path of the function that it was sent to.
    pub(crate) fn function(&self) -> Option<&str> {
        self.0.values.get(FUNCTION).map(String::as_str)
    }

    /// What was entered into the field of this name, if that is not what it showed
    /// before: a field that was left alone shows what is stored.
    fn value(&self, name: &str) -> Option<&str> {
        let value = self.0.values.get(name)?;
        let is_own = self.0.seen.print(name).is_none_or(|print| print != fingerprint(value));
        is_own.then_some(value.as_str())
    }

    /// The same of a box. One that is not ticked is not sent: what was sent says it all.
    fn ticked(&self, name: &str) -> Option<bool> {
        let is_ticked = self.0.values.contains_key(name);
        let word = if is_ticked { TICKED } else { "" };
        let is_own = self.0.seen.print(name).is_none_or(|print| print != fingerprint(word));
        is_own.then_some(is_ticked)
    }

    /// The fingerprint that the field of this name had, if something else was entered.
    pub(crate) fn seen(&self, name: &str) -> Option<&str> {
        let print = self.0.seen.print(name)?;
        let is_own = self.value(name).is_some() || self.ticked(name) == Some(false);
        is_own.then_some(print)
    }
}

/// The value a field begins with.
pub(crate) fn initial(name: &str, otherwise: String) -> String {
    let typed = use_context::<Typed>();
    typed.and_then(|typed| typed.value(name).map(str::to_owned)).unwrap_or(otherwise)
}

/// Whether a box begins ticked.
pub(crate) fn ticked(sent: Sent, name: &str, otherwise: bool) -> bool {
    let typed = use_context::<Typed>().filter(|_| sent.is_back());
    typed.and_then(|typed| typed.ticked(name)).unwrap_or(otherwise)
}

/// Attributes of a field that tie it to its hint and fault.
#[derive(Clone)]
pub(crate) struct Ties {
    name: String,
    hint: String,
    fault: Option<String>,
}

impl Ties {
    /// Ties of the field `name` to what became of its form.
    pub(crate) fn new(name: impl Into<String>, hint: impl Into<String>, sent: Sent) -> Self {
        let name = name.into();
        Self { fault: sent.fault(&name), hint: hint.into(), name }
    }

    /// For `aria-describedby`.
    pub(crate) fn described_by(&self) -> Option<String> {
        let hint = (!self.hint.is_empty()).then(|| format!("{}-hint", self.name));
        let fault = self.fault.as_ref().map(|_| format!("{}-fault", self.name));
        match (hint, fault) {
            (Some(hint), Some(fault)) => Some(format!("{hint} {fault}")),
            (hint, fault) => hint.or(fault),
        }
    }

    /// For `aria-invalid`.
    pub(crate) fn invalid(&self) -> Option<&'static str> {
        self.fault.as_ref().map(|_| "true")
    }

    /// Hint and fault, to stand below the control.
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

/// Label, hint and fault around a control.
#[component]
pub(crate) fn FieldFrame(
    /// Ties of the control.
    ties: Ties,
    /// Label.
    #[prop(into)]
    label: String,
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
