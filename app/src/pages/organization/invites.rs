//! Invites to an organization: creating, sharing links, revoking.

use futures::future::try_join3;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Tabs;
use super::invite_form::InviteForm;
use crate::error::UiError;
use crate::pages::id_in_path;
use crate::server_fns::invites::{
    InviteView, InvitesView, ListedView, NewLink, ResendInvite, RevokeInvite, list_invites,
    preview_invites, reveal_invite_links,
};
use crate::server_fns::organizations::{OrganizationView, get_organization};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::Confirm;
use crate::ui::copy::CopyValue;
use crate::ui::empty::Empty;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::page::{PageHead, page_of_secrets};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::in_query;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

const TITLE: &str = "Invites";
/// Invites on one page.
const PAGE_SIZE: u32 = 50;

/// The inputs of the page.
#[derive(Clone, PartialEq)]
struct Inputs {
    /// Id of the organization.
    id: String,
    /// The entered list.
    people: String,
    list_page: ListPage,
}

/// The data of the page.
#[derive(Clone, Serialize, Deserialize)]
struct Loaded {
    organization: OrganizationView,
    found: InvitesView,
    /// The preview of the entered list.
    listed: Vec<ListedView>,
    links: Vec<NewLink>,
}

/// The actions of the list.
#[derive(Clone, Copy)]
struct Actions {
    resend: FormAction<ResendInvite>,
    revoke: FormAction<RevokeInvite>,
}

/// The form and the list.
#[component]
pub(crate) fn Invites() -> impl IntoView {
    page_of_secrets(
        TITLE,
        || Inputs {
            id: id_in_path(),
            people: in_query("people"),
            list_page: page_in_query(PAGE_SIZE),
        },
        load,
        draw,
    )
}

async fn load(inputs: Inputs) -> Result<Loaded, UiError> {
    let Inputs { id, people, list_page } = inputs;
    let listed = async {
        match people.trim().is_empty() {
            true => Ok(Vec::new()),
            false => preview_invites(id.clone(), people.clone()).await,
        }
    };
    let found = list_invites(id.clone(), list_page.limit, list_page.offset);
    let (organization, found, listed) =
        try_join3(get_organization(id.clone()), found, listed).await?;
    // After the rest, so that a failure of the rest does not lose the links.
    let links = reveal_invite_links(id).await?;
    Ok(Loaded { organization, found, listed, links })
}

fn draw(inputs: Inputs, loaded: Loaded) -> AnyView {
    let Inputs { id, people, list_page } = inputs;
    let Loaded { organization, found, listed, links } = loaded;
    let actions = Actions { resend: form_action(), revoke: form_action() };
    let (resent, revoked) = (form_result(actions.resend), form_result(actions.revoke));
    let sends_mail = found.sends_mail;
    let links = new_links(links, sends_mail);
    let list = if found.invites.is_empty() {
        view! {
            <Empty title="No pending invite">
                <p>"Invite people by e-mail or by a link. An invite works for three days, and only for its address."</p>
            </Empty>
        }
        .into_any()
    } else {
        let rows = found.invites.into_iter().map(|one| row(&id, one, sends_mail, actions));
        let rows: Vec<TableRow> = rows.collect();
        view! { <Table caption="Invites" columns=columns() rows=rows /> }.into_any()
    };
    view! {
        <PageHead title=TITLE within=organization.name />
        <Tabs id=id.clone() />
        {(!sends_mail).then(|| view! {
            <Alert kind="note">
                <p>"Mail is not set up on this instance. The link of an invite is shown once, when the invite is created: copy it and send it. New link replaces a lost link."</p>
            </Alert>
        })}
        {links}
        <Section id="inviting" title="Invite people">
            <InviteForm id=id people=people listed=listed levels=found.levels sends_mail=sends_mail />
        </Section>
        <FormFailure result=resent />
        <FormFailure result=revoked />
        {list}
        <Pager page=list_page total=found.total what="invites" />
    }
    .into_any()
}

fn columns() -> Vec<Column> {
    ["Invited", "Level", "Invited by", "Sent", "State", "Actions"].map(Column::text).into()
}

/// The links of the invites that the user just created.
fn new_links(links: Vec<NewLink>, sends_mail: bool) -> Option<AnyView> {
    if links.is_empty() {
        return None;
    }
    let rows = links.into_iter().map(|NewLink { email, link }| {
        TableRow::new(vec![
            cell(view! { <span class="wrap">{email}</span> }),
            cell(view! { <CopyValue text=link what="invite link" /> }),
        ])
    });
    let rows: Vec<TableRow> = rows.collect();
    let columns: Vec<Column> = ["Invited", "Link"].map(Column::text).into();
    let why = match sends_mail {
        true => {
            "The mail has a link of its own. These links are for sending yourself. They are shown only once."
        }
        false => {
            "Copy each link now and send it. It is shown only once, because Weir stores only a hash of it."
        }
    };
    Some(
        view! {
            <Section id="links" title="New invite links">
                <Alert kind="warning"><p>{why}</p></Alert>
                <Table caption="New invite links" columns=columns rows=rows />
            </Section>
        }
        .into_any(),
    )
}

fn row(id: &str, invite: InviteView, sends_mail: bool, actions: Actions) -> TableRow {
    let InviteView { id: invite_id, email, first_name, level, invited_by, sent_at, .. } =
        invite.clone();
    let who = view! {
        <span class="wrap">{email.clone()}</span>
        {(!first_name.is_empty()).then(|| view! { <span class="faint">" " {first_name}</span> })}
    };
    let by = if invited_by.is_empty() { "A former member".to_owned() } else { invited_by };
    let doings = match invite_id {
        Some(invite_id) => doings(id, &invite_id, &invite, sends_mail, actions),
        None => {
            view! { <span class="hint">"Only members of that level or above can change it."</span> }
                .into_any()
        }
    };
    TableRow::new(vec![
        cell(who),
        cell(level.word),
        cell(by),
        cell(view! { <Time iso=sent_at /> }),
        state(&invite, sends_mail),
        doings,
    ])
}

/// Whether the invite is still valid, and whether it was mailed.
fn state(invite: &InviteView, sends_mail: bool) -> AnyView {
    let until = invite.expires_at.clone();
    if invite.expired {
        return view! {
            <Status tone=Tone::Warn label="Expired" />
            <span class="hint">" " <Time iso=until /></span>
        }
        .into_any();
    }
    let (tone, label) = match (invite.mailed, sends_mail) {
        (true, _) => (Tone::Good, "Mailed"),
        (false, true) => (Tone::Busy, "Mail on its way"),
        (false, false) => (Tone::Quiet, "Not mailed"),
    };
    view! {
        <Status tone=tone label=label />
        <span class="hint">" until " <Time iso=until /></span>
    }
    .into_any()
}

fn doings(
    id: &str,
    invite: &str,
    found: &InviteView,
    sends_mail: bool,
    actions: Actions,
) -> AnyView {
    let call = |method, rest: &str| {
        let path = format!("/api/organizations/{id}/invites/{rest}");
        ApiCall::new(method, path, "organization_member:write")
    };
    // A new invite for the same address replaces this one.
    let resend = call("POST", "").with(json!({
        "target_email": found.email,
        "first_name": found.first_name,
        "level": found.level.number,
        "message": found.message,
    }));
    let revoke = call("DELETE", &format!("{invite}/"));
    let (id, other_id) = (id.to_owned(), id.to_owned());
    let (invite, other_invite) = (invite.to_owned(), invite.to_owned());
    let (of, other_of) = (found.email.clone(), found.email.clone());
    let (button, submit) = match sends_mail {
        true => ("Resend", "Resend invite"),
        false => ("New link", "Make new link"),
    };
    view! {
        <span class="row-actions">
            <Confirm button=button of=of>
                <ActionForm action=actions.resend>
                    <p>"The invite gets a new link for three more days. The current link ends."</p>
                    <input type="hidden" name="id" value=id />
                    <input type="hidden" name="invite" value=invite />
                    <ReturnAddress />
                    <button type="submit" class="button button-primary" data-busy="Making link...">
                        {submit}
                    </button>
                </ActionForm>
                <ApiRequest call=resend />
            </Confirm>
            <Confirm button="Revoke" of=other_of danger=true>
                <ActionForm action=actions.revoke>
                    <p>"The link ends immediately. You can invite the person again."</p>
                    <input type="hidden" name="id" value=other_id />
                    <input type="hidden" name="invite" value=other_invite />
                    <ReturnAddress />
                    <button type="submit" class="button button-danger" data-busy="Revoking invite...">
                        "Revoke invite"
                    </button>
                </ActionForm>
                <ApiRequest call=revoke />
            </Confirm>
        </span>
    }
    .into_any()
}
