//! Confirmation of actions with consequences: details that explain them, dialogs for the
//! entries of lists, and for irreversible actions a name to type.

use leptos::html;
use leptos::prelude::*;

use super::field::Field;
use super::form::FormResult;

/// A button that opens the explanation and the form.
#[component]
pub(crate) fn Confirm(
    /// The label of the button, such as `Revoke`.
    #[prop(into)]
    button: String,
    /// Name of the affected object, for screen readers.
    #[prop(into, optional)]
    of: String,
    /// Whether data is lost.
    #[prop(optional)]
    danger: bool,
    /// The explanation, and the form with its submit button.
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

/// The button of a menu that opens a [`ConfirmDialog`].
#[component]
pub(crate) fn OpenDialog(
    /// Id of the dialog.
    id: String,
    /// The label of the button. It ends with dots, because the action asks first.
    label: &'static str,
    /// Whether data is lost.
    #[prop(optional)]
    danger: bool,
) -> impl IntoView {
    let class = if danger { "menu-risk" } else { "" };
    let button = html::button()
        .r#type("button")
        .class(class)
        .attr("popovertarget", id)
        .attr("aria-haspopup", "dialog")
        .child(label);
    view! { <li>{button}</li> }.into_any()
}

/// A dialog with the explanation and the form of an action. It is a popover, which opens and
/// closes without scripts.
#[component]
pub(crate) fn ConfirmDialog(
    id: String,
    /// The question, with the name of the affected object.
    #[prop(into)]
    title: String,
    /// The explanation, and the form with [`ConfirmButtons`].
    children: Children,
) -> impl IntoView {
    let heading = format!("{id}-title");
    view! {
        <dialog class="dialog" id=id popover="auto" aria-labelledby=heading>
            <h2 id=heading.clone()>{title}</h2>
            {children()}
        </dialog>
    }
    .into_any()
}

/// The buttons of a [`ConfirmDialog`]. The dialog focuses its first field or button, so
/// *Cancel* comes before an action that loses data.
#[component]
pub(crate) fn ConfirmButtons(
    /// Id of the dialog.
    id: String,
    /// The label of the submit button: verb and object.
    verb: &'static str,
    /// The label while the request runs.
    busy: &'static str,
    /// Whether data is lost.
    #[prop(optional)]
    danger: bool,
) -> impl IntoView {
    let class = if danger { "button button-danger" } else { "button button-primary" };
    let cancel = html::button()
        .r#type("button")
        .class("button")
        .attr("popovertarget", id)
        .attr("popovertargetaction", "hide")
        .child("Cancel");
    view! {
        <div class="submit">
            {cancel}
            <button type="submit" class=class data-busy=busy>{verb}</button>
        </div>
    }
    .into_any()
}

/// The name field and the submit button of a form. The server checks the name as
/// `typed_name`; scripts disable the button until the name is right.
#[component]
pub(crate) fn TypedConfirm(
    result: FormResult,
    /// The name of the field, for a page with several.
    #[prop(default = "typed_name")]
    name: &'static str,
    /// Text that the user must type, the name of the object.
    #[prop(into)]
    name_to_type: String,
    #[prop(into)] label: String,
    /// The label of the button: verb and object.
    #[prop(into)]
    verb: String,
    /// The label of the button while the request runs.
    #[prop(into)]
    busy: String,
) -> impl IntoView {
    let why = format!("{name}-why");
    view! {
        <p>"To continue, type " <strong class="typed-name">{name_to_type.clone()}</strong></p>
        <Field result=result name=name label=label max=800 must_equal=name_to_type />
        <div class="submit">
            <button
                type="submit"
                class="button button-danger"
                aria-describedby=why.clone()
                data-busy=busy
                data-guarded=""
            >
                {verb}
            </button>
            <span id=why class="hint" data-guard-why=""></span>
        </div>
    }
    .into_any()
}
