//! Invites to an organization: creating, sharing links, revoking.

use futures::future::try_join3;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Tabs;
use super::invite_form::InviteForm;
use crate::error::UiError;
use crate::pages::id_in_path;
use crate::server_fns::bulk::{ResendInvites, RevokeInvites};
use crate::server_fns::invites::{
    InviteView, InvitesView, ListedView, NewLink, ResendInvite, RevokeInvite, list_invites,
    preview_invites, reveal_invite_links,
};
use crate::server_fns::organizations::{OrganizationView, get_organization};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::bulk::{self, BulkBar, BulkDialog, selectable};
use crate::ui::confirm::{ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::copy::CopyValue;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::Empty;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::page::{PageHead, page_of_secrets};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::in_query;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell, truncated};
use crate::ui::time::{Ago, Time};

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
    let (resend_all, revoke_all) = (form_action::<ResendInvites>(), form_action::<RevokeInvites>());
    let results = [
        form_result(actions.resend),
        form_result(actions.revoke),
        form_result(resend_all),
        form_result(revoke_all),
    ];
    let sends_mail = found.sends_mail;
    let links = new_links(links, sends_mail);
    let file = (!found.invites.is_empty()).then(|| view! { <DownloadCsv /> });
    let list = if found.invites.is_empty() {
        view! {
            <Empty title="No pending invite">
                <p>"Invite people by e-mail or by a link. An invite works for three days, and only for its address."</p>
            </Empty>
        }
        .into_any()
    } else {
        let changeable = found.invites.iter().filter(|one| one.id.is_some()).count();
        let are_selected = bulk::is_worth_it(changeable);
        let bar = are_selected.then(|| {
            let (label, title, verb) = match sends_mail {
                true => ("Resend selected...", "Resend the selected invites?", "Resend invites"),
                false => ("New links for selected...", "Make new links for the selected invites?", "Make new links"),
            };
            view! {
                <BulkBar what="invites" fields=vec![("id", id.clone())]>
                    <BulkDialog action=resend_all id="resend-selected" label=label title=title
                        explanation="Each invite gets a new link for three more days. The current links end."
                        verb=verb busy="Making links..." />
                    <BulkDialog action=revoke_all id="revoke-selected" label="Revoke selected..."
                        title="Revoke the selected invites?"
                        explanation="Their links end immediately. You can invite the people again."
                        verb="Revoke invites" busy="Revoking invites..." danger=true />
                </BulkBar>
            }
        });
        let row = |one| row(&id, one, sends_mail, actions, are_selected);
        let rows: Vec<TableRow> = found.invites.into_iter().map(row).collect();
        view! {
            {bar}
            <Table caption="Invites" columns=columns() rows=rows />
        }
        .into_any()
    };
    view! {
        <PageHead title=TITLE within=organization.name>{file}</PageHead>
        <Tabs id=id.clone() />
        {(!sends_mail).then(|| view! {
            <Alert kind="note">
                <p>"Mail is not set up on this instance. The link of an invite is shown once, when the invite is created: copy it and send it. If it is lost, create a new link."</p>
            </Alert>
        })}
        {links}
        <Section id="inviting" title="Invite people">
            <InviteForm id=id people=people listed=listed levels=found.levels sends_mail=sends_mail />
        </Section>
        {results.map(|result| view! { <FormFailure result=result /> }).into_iter().collect_view()}
        {list}
        <Pager page=list_page total=found.total what="invites" />
    }
    .into_any()
}

fn columns() -> Vec<Column> {
    ["Invited", "Level", "Invited by", "Sent", "State", ACTIONS].map(Column::text).into()
}

/// The links of the invites that the user just created.
fn new_links(links: Vec<NewLink>, sends_mail: bool) -> Option<AnyView> {
    if links.is_empty() {
        return None;
    }
    let rows = links.into_iter().map(|NewLink { email, link }| {
        TableRow::new(vec![
            truncated(email),
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

fn row(
    id: &str,
    invite: InviteView,
    sends_mail: bool,
    actions: Actions,
    is_selectable: bool,
) -> TableRow {
    let InviteView { id: invite_id, email, first_name, level, invited_by, sent_at, .. } =
        invite.clone();
    let who = cell(view! {
        {truncated(email)}
        {(!first_name.is_empty()).then(|| view! { <span class="hint">{first_name}</span> })}
    });
    let who = match invite_id.clone().filter(|_| is_selectable) {
        Some(invite_id) => selectable(invite_id, &invite.email, who),
        None => who,
    };
    let by = if invited_by.is_empty() { "A former member".to_owned() } else { invited_by };
    let menu = match invite_id {
        Some(invite_id) => menu(id, &invite_id, &invite, sends_mail, actions),
        None => {
            let why = "Only members of that level or above can change it.";
            view! { <RowMenu of=invite.email.clone()><li class="menu-title">{why}</li></RowMenu> }
                .into_any()
        }
    };
    TableRow::new(vec![
        who,
        cell(level.word),
        truncated(by),
        cell(view! { <Ago iso=sent_at /> }),
        state(&invite, sends_mail),
        menu,
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

fn menu(id: &str, invite: &str, found: &InviteView, sends_mail: bool, actions: Actions) -> AnyView {
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
    let (of, email) = (found.email.clone(), found.email.clone());
    let (item, title, submit) = match sends_mail {
        true => ("Resend...", format!("Resend the invite of {email}?"), "Resend invite"),
        false => ("New link...", format!("Make a new link for {email}?"), "Make new link"),
    };
    let (renewal, ending) = (format!("renew-{invite}"), format!("revoke-{invite}"));
    let (renewal_form, ending_form) = (renewal.clone(), ending.clone());
    let (renew, revoked) = (renewal.clone(), ending.clone());
    let names = || {
        view! {
            <input type="hidden" name="id" value=id.to_owned() />
            <input type="hidden" name="invite" value=invite.to_owned() />
            <ReturnAddress />
        }
        .into_any()
    };
    let (names_of_renewal, names_of_ending) = (names(), names());
    view! {
        <RowMenu of=of>
            <OpenDialog id=renew label=item />
            <OpenDialog id=revoked label="Revoke..." danger=true />
        </RowMenu>
        <ConfirmDialog id=renewal title=title>
            <ActionForm action=actions.resend>
                <p>"The invite gets a new link for three more days. The current link ends."</p>
                {names_of_renewal}
                <ConfirmButtons id=renewal_form verb=submit busy="Making link..." />
            </ActionForm>
            <ApiRequest call=resend />
        </ConfirmDialog>
        <ConfirmDialog id=ending title=format!("Revoke the invite of {email}?")>
            <ActionForm action=actions.revoke>
                <p>"The link ends immediately. You can invite the person again."</p>
                {names_of_ending}
                <ConfirmButtons id=ending_form verb="Revoke invite" busy="Revoking invite..." danger=true />
            </ActionForm>
            <ApiRequest call=revoke />
        </ConfirmDialog>
    }
    .into_any()
}
