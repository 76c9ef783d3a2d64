//! Labelled fields: label above, hint below, fault below the hint, tied to the
//! field for assistive technology.

use leptos::prelude::*;

use super::form::Sent;
use super::icon::Icon;

/// What was typed into a form that failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Typed(pub(crate) Vec<(String, String)>);

/// The value a field begins with.
pub(crate) fn initial(name: &str, otherwise: String) -> String {
    use_context::<Typed>()
        .and_then(|typed| {
            typed.0.into_iter().find(|(field, _)| field == name).map(|(_, value)| value)
        })
        .unwrap_or(otherwise)
}

/// Attributes of a field that tie it to its hint and fault.
#[derive(Clone)]
pub(crate) struct Ties {
    name: &'static str,
    hint: &'static str,
    fault: Option<String>,
}

impl Ties {
    /// Ties of the field `name` to what became of its form.
    pub(crate) fn new(name: &'static str, hint: &'static str, sent: Sent) -> Self {
        Self { name, hint, fault: sent.fault(name) }
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
}

/// Label, hint and fault around a control.
#[component]
pub(crate) fn FieldFrame(
    /// Ties of the control.
    ties: Ties,
    /// Label.
    label: &'static str,
    /// The control.
    children: Children,
) -> impl IntoView {
    let Ties { name, hint, fault } = ties;
    view! {
        <div class="field">
            <label for=name>{label}</label>
            {children()}
            {(!hint.is_empty()).then(|| view! {
                <p class="hint" id=format!("{name}-hint")>{hint}</p>
            })}
            {fault.map(|fault| view! {
                <p class="fault" id=format!("{name}-fault")>
                    <Icon name="alert" />
                    {fault}
                </p>
            })}
        </div>
    }
    .into_any()
}

/// A field for one line.
#[component]
pub(crate) fn Field(
    /// What became of the form.
    sent: Sent,
    /// Name and id.
    name: &'static str,
    /// Label.
    label: &'static str,
    /// Hint.
    #[prop(optional)]
    hint: &'static str,
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
    let ties = Ties::new(name, hint, sent);
    view! {
        <FieldFrame ties=ties.clone() label=label>
            <input
                id=name
                name=name
                type=kind
                value=initial(name, value)
                required
                maxlength=max.to_string()
                autocomplete=autocomplete
                autofocus=sent.begins_at(name, autofocus)
                list=list
                spellcheck="false"
                aria-describedby=ties.described_by()
                aria-invalid=ties.invalid()
                data-must-equal=must_equal
            />
        </FieldFrame>
    }
}
