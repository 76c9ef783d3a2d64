//! Labelled fields: label above, hint below, fault below the hint, tied to the
//! field for assistive technology.

use leptos::html;
use leptos::prelude::*;

use super::form::Sent;
use super::icon::Icon;

/// What was typed into a form that failed without scripts. Only the server
/// knows it; the browser leaves values of fields alone when it takes over.
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
#[derive(Clone, Copy)]
pub(crate) struct Ties {
    /// Name and id of the field.
    pub(crate) name: &'static str,
    /// Whether it has a hint.
    pub(crate) hint: bool,
    /// What is wrong with it.
    pub(crate) fault: Memo<Option<String>>,
}

impl Ties {
    /// Ties of the field `name` to what became of its form.
    pub(crate) fn new(name: &'static str, hint: &'static str, sent: Sent) -> Self {
        let fault = Memo::new(move |_| {
            sent.failure.with(|failure| {
                failure.as_ref().and_then(|error| error.at(name)).map(str::to_owned)
            })
        });
        Self { name, hint: !hint.is_empty(), fault }
    }

    /// For `aria-describedby`.
    pub(crate) fn described_by(self) -> Option<String> {
        let hint = self.hint.then(|| format!("{}-hint", self.name));
        let fault = self.fault.get().map(|_| format!("{}-fault", self.name));
        match (hint, fault) {
            (Some(hint), Some(fault)) => Some(format!("{hint} {fault}")),
            (hint, fault) => hint.or(fault),
        }
    }

    /// For `aria-invalid`.
    pub(crate) fn invalid(self) -> Option<&'static str> {
        self.fault.get().map(|_| "true")
    }

    /// Moves the focus to the field whenever a fault appears.
    pub(crate) fn focus_when_at_fault(self, input: NodeRef<html::Input>) {
        Effect::new(move |_| {
            if self.fault.get().is_some() {
                super::focus(input);
            }
        });
    }
}

/// Label, hint and fault around a control.
#[component]
pub(crate) fn FieldFrame(
    /// Ties of the control.
    ties: Ties,
    /// Label.
    label: &'static str,
    /// Hint.
    hint: &'static str,
    /// The control.
    children: Children,
) -> impl IntoView {
    let name = ties.name;
    view! {
        <div class="field">
            <label for=name>{label}</label>
            {children()}
            {(!hint.is_empty()).then(|| view! {
                <p class="hint" id=format!("{name}-hint")>{hint}</p>
            })}
            {move || ties.fault.get().map(|fault| view! {
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
    /// Called with every change.
    #[prop(optional)]
    on_value: Option<Callback<String>>,
) -> impl IntoView {
    let ties = Ties::new(name, hint, sent);
    let input = NodeRef::new();
    ties.focus_when_at_fault(input);
    let value = initial(name, value);
    view! {
        <FieldFrame ties=ties label=label hint=hint>
            <input
                node_ref=input
                id=name
                name=name
                type=kind
                value=value
                required
                maxlength=max.to_string()
                autocomplete=autocomplete
                autofocus=autofocus
                list=list
                spellcheck="false"
                aria-describedby=move || ties.described_by()
                aria-invalid=move || ties.invalid()
                on:input=move |event| {
                    if let Some(on_value) = on_value {
                        on_value.run(event_target_value(&event));
                    }
                }
            />
        </FieldFrame>
    }
}
