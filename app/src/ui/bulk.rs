//! Actions on several entries of a list: check boxes in the entries, and a bar above them with
//! the buttons. Without scripts the boxes and buttons work too; `behaviours::bulk` counts, and
//! selects all.

use leptos::html;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use server_fn::ServerFn;

use super::confirm::ConfirmDialog;
use super::form::ReturnAddress;
use super::form_action::FormAction;
use super::query::with_query;

/// Id of the form. A page has one.
const FORM: &str = "bulk";
/// From this number of entries on, selecting is worth it.
const SEVERAL: usize = 2;

/// Whether a list with so many entries that the user may change has the bar.
pub(crate) fn is_worth_it(entries: usize) -> bool {
    entries >= SEVERAL
}

/// The entries that were selected before the page of [`BulkBar`] asks.
pub(crate) fn selected_in_query() -> Vec<String> {
    use_query_map().with(|query| query.get_all("ids[]")).unwrap_or_default()
}

/// The address of the page without the question: nothing is selected.
pub(crate) fn without_selection() -> String {
    with_query(&[("ids[]", None), ("ids%5B%5D", None)])
}

/// The check box of an entry.
pub(crate) fn check_box(id: String, of: &str) -> AnyView {
    html::input()
        .r#type("checkbox")
        .name("ids[]")
        .value(id)
        .class("bulk-entry")
        .attr("form", FORM)
        .attr("aria-label", format!("Select {of}"))
        .attr("data-bulk-entry", "")
        .into_any()
}

/// The first cell of an entry with its check box.
pub(crate) fn selectable(id: String, of: &str, cell: AnyView) -> AnyView {
    let entry = check_box(id, of);
    view! { <div class="selectable">{entry} <div>{cell}</div></div> }.into_any()
}

/// The form of the selected entries, above them.
#[component]
pub(crate) fn BulkBar(
    /// Name of the entries, such as `exports`.
    what: &'static str,
    /// The fields that all actions have: name and value.
    fields: Vec<(&'static str, String)>,
    /// The address of a page that asks first. Empty: the buttons name their functions.
    #[prop(optional, into)]
    asks_at: String,
    /// The buttons.
    children: Children,
) -> impl IntoView {
    let hidden = fields
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value /> })
        .collect_view();
    let asks = !asks_at.is_empty();
    let method = if asks { "get" } else { "post" };
    let action = asks.then_some(asks_at);
    view! {
        <form id=FORM class="bulk" data-bulk="" aria-label=format!("Selected {what}") method=method action=action>
            // Enter in a check box presses the first button that is enabled. This one sends nothing.
            <button type="submit" formmethod="dialog" hidden></button>
            {hidden}
            {(!asks).then(|| view! { <ReturnAddress /> })}
            <label class="check needs-scripts">
                <input type="checkbox" data-bulk-all="" />
                "Select all"
            </label>
            <span class="hint needs-scripts" role="status" data-bulk-count="">"None selected"</span>
            <span class="hint needs-no-scripts">"Select " {what} " below."</span>
            {children()}
        </form>
    }
    .into_any()
}

/// A button of the bar that needs no confirmation.
#[component]
pub(crate) fn BulkButton<S: ServerFn + 'static>(
    /// What the button calls.
    action: FormAction<S>,
    /// The label: a verb.
    label: &'static str,
    /// The label while the request runs.
    busy: &'static str,
    /// A field that only this action has: name and value.
    #[prop(optional)]
    field: Option<(&'static str, &'static str)>,
) -> impl IntoView {
    let _ = action;
    submit(S::PATH, label, busy, "button", field)
}

fn submit(
    path: &'static str,
    label: &'static str,
    busy: &'static str,
    class: &'static str,
    field: Option<(&'static str, &'static str)>,
) -> AnyView {
    let (name, value) = field.unzip();
    html::button()
        .r#type("submit")
        .class(class)
        .attr("formaction", path)
        .attr("name", name)
        .attr("value", value)
        .attr("data-busy", busy)
        .child(label)
        .into_any()
}

/// A button of the bar that opens a dialog, which asks first.
#[component]
pub(crate) fn BulkDialog<S: ServerFn + 'static>(
    /// What the button in the dialog calls.
    action: FormAction<S>,
    id: &'static str,
    /// The label of the button that opens the dialog. It ends with dots.
    label: &'static str,
    /// The question.
    title: &'static str,
    /// What happens.
    explanation: &'static str,
    /// The label of the submit button: verb and object.
    verb: &'static str,
    /// The label while the request runs.
    busy: &'static str,
    /// Whether data is lost.
    #[prop(optional)]
    danger: bool,
) -> impl IntoView {
    let _ = action;
    let class = if danger { "button button-danger" } else { "button button-primary" };
    dialog(id, label, title, explanation, submit(S::PATH, verb, busy, class, None), danger)
}

fn dialog(
    id: &'static str,
    label: &'static str,
    title: &'static str,
    explanation: &'static str,
    submit: AnyView,
    danger: bool,
) -> AnyView {
    let class = if danger { "button button-risk" } else { "button" };
    let opener = html::button()
        .r#type("button")
        .class(class)
        .attr("popovertarget", id)
        .attr("aria-haspopup", "dialog")
        .child(label);
    let cancel = html::button()
        .r#type("button")
        .class("button")
        .attr("popovertarget", id)
        .attr("popovertargetaction", "hide")
        .child("Cancel");
    view! {
        {opener}
        <ConfirmDialog id=id.to_owned() title=title>
            <p>{explanation}</p>
            <div class="submit">{cancel} {submit}</div>
        </ConfirmDialog>
    }
    .into_any()
}
