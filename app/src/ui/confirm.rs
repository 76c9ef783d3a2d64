//! Asking before something that costs: a disclosure that says what follows, and
//! for what cannot be undone a name to type.

use leptos::prelude::*;

use super::field::Field;
use super::form::Sent;

/// A button that opens what follows and the form that does it.
#[component]
pub(crate) fn Confirm(
    /// What the button says, such as `Revoke`.
    #[prop(into)]
    button: String,
    /// The thing it is about, for people who do not see what the button stands
    /// beside.
    #[prop(into, optional)]
    of: String,
    /// Whether something is lost.
    #[prop(optional)]
    danger: bool,
    /// What follows, and the form with its verb.
    children: Children,
) -> impl IntoView {
    let class = if danger { "button button-risk" } else { "button" };
    view! {
        <details class="confirm">
            <summary class=class>
                {button}
                {(!of.is_empty()).then(|| view! { <span class="hidden">" " {of}</span> })}
            </summary>
            <div class="confirm-body">{children()}</div>
        </details>
    }
    .into_any()
}

/// The name to type and the button, within a form. The server checks the name as
/// `typed_name`; scripts hold the button back until it fits.
#[component]
pub(crate) fn TypedConfirm(
    /// What became of the form.
    sent: Sent,
    /// What must be typed.
    #[prop(into)]
    name_to_type: String,
    /// Label of the field.
    #[prop(into)]
    label: String,
    /// Verb and object.
    #[prop(into)]
    verb: String,
    /// The same while an answer is awaited.
    #[prop(into)]
    busy: String,
) -> impl IntoView {
    view! {
        <p>"To go on, type " <strong class="typed-name">{name_to_type.clone()}</strong></p>
        <Field sent=sent name="typed_name" label=label max=800 must_equal=name_to_type />
        <div class="submit">
            <button
                type="submit"
                class="button button-danger"
                aria-describedby="typed-name-why"
                data-busy=busy
                data-guarded=""
            >
                {verb}
            </button>
            <span id="typed-name-why" class="hint" data-guard-why=""></span>
        </div>
    }
    .into_any()
}
