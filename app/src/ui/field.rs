//! Labelled fields: label above, hint below, fault below the hint, tied to the
//! field for assistive technology.

mod choice;
mod instant;
mod line;
mod secret;
mod text;

use leptos::prelude::*;

use super::form::Sent;
use super::icon::Icon;

pub(crate) use choice::{Check, Choice, RadioCards, Select};
pub(crate) use instant::{MomentField, moment};
pub(crate) use secret::SecretField;
pub(crate) use text::{Field, TextArea, TextLine};

/// What was typed into a form that failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Typed(pub(crate) Vec<(String, String)>);

impl Typed {
    fn value(self, name: &str) -> Option<String> {
        self.0.into_iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }
}

/// The value a field begins with.
pub(crate) fn initial(name: &str, otherwise: String) -> String {
    use_context::<Typed>().and_then(|typed| typed.value(name)).unwrap_or(otherwise)
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
