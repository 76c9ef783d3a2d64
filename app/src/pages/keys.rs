//! The list of personal API keys: scopes, use, and refused calls.

use leptos::prelude::*;
use weir_model::scopes::Scope;

use super::account_nav::AccountNav;
use super::key_form::caution;
use crate::server_fns::bulk::RevokeKeys;
use crate::server_fns::keys::{
    AddKeyScope, CallView, EndOldValue, KeyView, PreviousView, RefusalView, RevokeKey, list_keys,
};
use crate::ui::bulk::{self, BulkBar, BulkDialog, check_box};
use crate::ui::confirm::{Confirm, ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::Empty;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::icon::Icon;
use crate::ui::menu::RowMenu;
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::status::{Status, Tone};
use crate::ui::time::{Ago, Time};

const TITLE: &str = "API keys";
/// What revoking a key does.
const REVOKED: &str = "Scripts that use this key stop working immediately. This cannot be undone.";

/// The actions for a key.
#[derive(Clone, Copy)]
pub(super) struct Actions {
    revoke: FormAction<RevokeKey>,
    end: FormAction<EndOldValue>,
    add: FormAction<AddKeyScope>,
}

impl Actions {
    pub(super) fn new() -> Self {
        Self { revoke: form_action(), end: form_action(), add: form_action() }
    }

    /// The failures of the actions.
    pub(super) fn failures(self) -> AnyView {
        let (revoked, ended, added) =
            (form_result(self.revoke), form_result(self.end), form_result(self.add));
        view! {
            <FormFailure result=revoked />
            <FormFailure result=ended />
            <FormFailure result=added />
        }
        .into_any()
    }
}

#[component]
pub(crate) fn Keys() -> impl IntoView {
    page(TITLE, || (), |()| list_keys(), |(), found| draw(found))
}

fn draw(found: Vec<KeyView>) -> AnyView {
    let actions = Actions::new();
    let revoke_all = form_action::<RevokeKeys>();
    let all_revoked = form_result(revoke_all);
    let file = (!found.is_empty()).then(|| view! { <DownloadCsv /> });
    let content = if found.is_empty() {
        nothing()
    } else {
        let are_selected = bulk::is_worth_it(found.len());
        let bar = are_selected.then(|| {
            view! {
                <BulkBar what="keys" fields=Vec::new()>
                    <BulkDialog action=revoke_all id="revoke-selected" label="Revoke selected..."
                        title="Revoke the selected keys?"
                        explanation="Scripts that use these keys stop working immediately. This cannot be undone."
                        verb="Revoke keys" busy="Revoking keys..." danger=true />
                </BulkBar>
            }
        });
        let rows = found.into_iter().map(|key| entry(key, actions, are_selected));
        view! {
            {bar}
            <ul class="plain">{rows.collect_view()}</ul>
        }
        .into_any()
    };
    view! {
        <PageHead title=TITLE>
            {file}
            <a class="button button-primary" href="/account/keys/new">
                <Icon name="plus" />
                "New key"
            </a>
        </PageHead>
        <AccountNav />
        <p class="lead">
            "Keys let scripts use the management API as you. To send events, use the project key instead."
        </p>
        {actions.failures()}
        <FormFailure result=all_revoked />
        {content}
    }
    .into_any()
}

fn nothing() -> AnyView {
    view! {
        <Empty title="No key yet">
            <p>"A key lets a script read or change organizations, projects and events through the API."</p>
            <p><a class="button button-primary" href="/account/keys/new">"Create a key"</a></p>
        </Empty>
    }
    .into_any()
}

fn entry(key: KeyView, actions: Actions, is_selectable: bool) -> AnyView {
    let address = format!("/account/keys/{}", key.id);
    let rotate = format!("{address}#rotate");
    let label = key.label.clone();
    let dialog = format!("revoke-{}", key.id);
    let ending = dialog.clone();
    let selecting = is_selectable.then(|| check_box(key.id.clone(), &key.label));
    view! {
        <li class="card key">
            <div class="key-head">
                {selecting}
                <h2><a href=address.clone()>{label}</a></h2>
                <code class="faint">{key.mask.clone()}</code>
                <RowMenu of=key.label.clone()>
                    <li><a href=address>"Edit"</a></li>
                    <li><a href=rotate>"Rotate"</a></li>
                    <OpenDialog id=ending label="Revoke..." danger=true />
                </RowMenu>
            </div>
            {facts(&key)}
            {previous(&key, actions)}
            {refused(&key, actions)}
            {revocation(dialog, key, actions)}
        </li>
    }
    .into_any()
}

/// Scopes, limits, expiry and last use of a key.
pub(super) fn facts(key: &KeyView) -> AnyView {
    let scopes = key.scopes.iter().map(|scope| scope_chip(scope)).collect_view();
    let expires = match (key.expires_at.clone(), key.expired) {
        (Some(iso), true) => {
            view! { <span class="fault-text">"Expired "</span><Time iso=iso /> }.into_any()
        }
        (Some(iso), false) => view! { <Ago iso=iso /> }.into_any(),
        (None, _) => "Never".into_any(),
    };
    let used = match key.last.clone() {
        Some(last) => call(last),
        None => "Never".into_any(),
    };
    let places: Vec<String> = key
        .organizations
        .iter()
        .map(|(_, name)| name.clone())
        .chain(key.projects.iter().map(|(_, name)| format!("project {name}")))
        .collect();
    let works_in =
        if places.is_empty() { "All your organizations".to_owned() } else { places.join(", ") };
    view! {
        <ul class="chips" aria-label="Scopes">{scopes}</ul>
        <dl class="facts facts-row">
            <div><dt>"Works in"</dt><dd>{works_in}</dd></div>
            <div><dt>"Created"</dt><dd><Ago iso=key.created_at.clone() /></dd></div>
            <div><dt>"Last used"</dt><dd>{used}</dd></div>
            <div><dt>"Expires"</dt><dd>{expires}</dd></div>
        </dl>
    }
    .into_any()
}

fn scope_chip(scope: &str) -> AnyView {
    let text = if scope == "*" { "everything".to_owned() } else { scope.to_owned() };
    let warning = scope.parse::<Scope>().ok().and_then(caution);
    match warning {
        Some(warning) => view! {
            <li class="chip chip-caution" title=warning>
                <Icon name="alert" />
                {text}
                <span class="hidden">" (" {warning} ")"</span>
            </li>
        }
        .into_any(),
        None => view! { <li class="chip">{text}</li> }.into_any(),
    }
}

fn call(call: CallView) -> AnyView {
    let CallView { at, route, address } = call;
    view! {
        <Ago iso=at />
        {(!address.is_empty()).then(|| view! { " from " <code>{address}</code> })}
        {(!route.is_empty()).then(|| view! { <code class="key-route">{route}</code> })}
    }
    .into_any()
}

/// The previous value, while it is valid.
pub(super) fn previous(key: &KeyView, actions: Actions) -> AnyView {
    let Some(PreviousView { mask, until, used_at }) = key.previous.clone() else {
        return ().into_any();
    };
    let (id, label) = (key.id.clone(), key.label.clone());
    let used = match used_at {
        Some(iso) => view! { "It was last used " <Time iso=iso /> "." }.into_any(),
        None => "It was not used since.".into_any(),
    };
    view! {
        <div class="key-previous">
            <p>
                <Status tone=Tone::Busy label="Old value works" />
                " "
                <code>{mask}</code> " works until " <Time iso=until /> ". " {used}
            </p>
            <ActionForm action=actions.end>
                <input type="hidden" name="id" value=id />
                <ReturnAddress />
                <button type="submit" class="button" data-busy="Ending the old value...">
                    "End the old value now"
                    <span class="hidden">" of " {label}</span>
                </button>
            </ActionForm>
        </div>
    }
    .into_any()
}

/// The refused calls, and the scopes that would have allowed them.
pub(super) fn refused(key: &KeyView, actions: Actions) -> AnyView {
    if key.refused == 0 || key.refusals.is_empty() {
        return ().into_any();
    }
    let mut lacked: Vec<String> = Vec::new();
    for refusal in key.refusals.iter().filter(|refusal| !refusal.held) {
        if !lacked.contains(&refusal.scope) {
            lacked.push(refusal.scope.clone());
        }
    }
    let forms = lacked.into_iter().map(|scope| add_scope(key, scope, actions)).collect_view();
    let calls = key.refusals.iter().cloned().map(refusal).collect_view();
    let count = counted(key.refused, "call refused", "calls refused");
    view! {
        <details class="key-refused">
            <summary>
                <Icon name="alert" />
                {count} " in the last 7 days"
                <span class="hidden">" of " {key.label.clone()}</span>
            </summary>
            <ul class="key-calls">{calls}</ul>
            {forms}
        </details>
    }
    .into_any()
}

fn refusal(refusal: RefusalView) -> AnyView {
    let RefusalView { call: made, scope, held } = refusal;
    let since = if held { " It has it now." } else { "" };
    view! {
        <li>
            {call(made)}
            <span class="key-lacked">"lacked " <code>{scope}</code> "." {since}</span>
        </li>
    }
    .into_any()
}

fn add_scope(key: &KeyView, scope: String, actions: Actions) -> AnyView {
    let warning = scope.parse::<Scope>().ok().and_then(caution);
    let (id, label) = (key.id.clone(), key.label.clone());
    view! {
        <ActionForm action=actions.add>
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="scope" value=scope.clone() />
            <ReturnAddress />
            {warning.map(|warning| view! { <p class="hint">{warning}</p> })}
            <button type="submit" class="button" data-busy="Adding scope...">
                "Add scope " <code>{scope}</code>
                <span class="hidden">" to " {label}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}

/// The dialog that revokes a key of the list.
fn revocation(dialog: String, key: KeyView, actions: Actions) -> AnyView {
    let buttons = dialog.clone();
    view! {
        <ConfirmDialog id=dialog title=format!("Revoke the key {}?", key.label)>
            <ActionForm action=actions.revoke>
                <p>{REVOKED}</p>
                <input type="hidden" name="id" value=key.id />
                <ReturnAddress />
                <ConfirmButtons id=buttons verb="Revoke key" busy="Revoking key..." danger=true />
            </ActionForm>
        </ConfirmDialog>
    }
    .into_any()
}

/// Revokes the key.
pub(super) fn revoke(id: String, label: String, actions: Actions) -> AnyView {
    view! {
        <Confirm button="Revoke" of=label danger=true>
            <ActionForm action=actions.revoke>
                <p>{REVOKED}</p>
                <input type="hidden" name="id" value=id />
                <ReturnAddress />
                <button type="submit" class="button button-danger" data-busy="Revoking key...">
                    "Revoke key"
                </button>
            </ActionForm>
        </Confirm>
    }
    .into_any()
}
