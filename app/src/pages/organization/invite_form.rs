//! Invites one or more users in three steps: a list of people, a preview, and the
//! invites. The list is in the address, so the preview changes nothing, and going back
//! restores it.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use serde_json::{Value, json};

use super::LEVELS;
use crate::server_fns::invites::{ListedView, SendInvites};
use crate::server_fns::members::Choosable;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Choice, Select, TextArea};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell, truncated};

/// Longest list, in characters, because it must fit into an address.
const PEOPLE_MAX: usize = 4000;
/// Longest message, in characters.
const MESSAGE_MAX: usize = 5000;

/// The form, and the preview of the list.
#[component]
pub(super) fn InviteForm(
    /// Id of the organization.
    id: String,
    /// The entered list.
    people: String,
    /// The preview of the list. Empty without a list.
    listed: Vec<ListedView>,
    /// The levels that the user may assign.
    levels: Vec<Choosable>,
    /// Whether this instance sends mail.
    sends_mail: bool,
) -> impl IntoView {
    let send = form_action::<SendInvites>();
    let result = form_result(send);
    let is_entered = !listed.is_empty();
    let invited = listed.iter().filter(|one| one.invited).count();
    let call = call(&id, &listed);
    let preview = is_entered.then(|| preview(listed));
    let sending = (invited > 0).then(
        || view! {
            <SendForm send=send result=result id=id people=people.clone() levels=levels sends_mail=sends_mail call=call />
        },
    );
    let nothing_entered = (is_entered && invited == 0).then(
        || view! { <p>"No address in this list can be invited. Change the list and check it again."</p> },
    );
    view! {
        <FormFailure result=result fields=&["people", "level", "message"] />
        <PeopleForm result=result people=people />
        {preview}
        {nothing_entered}
        {sending}
    }
}

#[component]
fn PeopleForm(result: FormResult, people: String) -> impl IntoView {
    let path = use_location().pathname.get_untracked();
    view! {
        <form method="get" action=path>
            <TextArea result=result name="people" label="E-mail addresses" value=people rows=4 max=PEOPLE_MAX required=true
                hint="One on each line, or separated by commas, 20 at most. A name can precede an address: Ada <ada@mail.example>." />
            <div class="submit">
                <button type="submit" class="button" data-busy="Checking addresses...">"Check addresses"</button>
            </div>
        </form>
    }
}

/// The API request that invites the same people.
fn call(id: &str, listed: &[ListedView]) -> ApiCall {
    let invite = |one: &ListedView| {
        json!({
            "target_email": one.email,
            "first_name": one.first_name,
            "level": "{level}",
            "message": "{message}",
        })
    };
    let invites: Vec<Value> = listed.iter().filter(|one| one.invited).map(invite).collect();
    ApiCall {
        method: "POST",
        path: format!("/api/organizations/{id}/invites/bulk/"),
        scope: "organization_member:write",
        body: Some(Value::from(invites)),
    }
}

fn preview(listed: Vec<ListedView>) -> AnyView {
    let rows = listed.into_iter().map(|one| {
        let ListedView { text, email, first_name, invited, verdict } = one;
        let tone = if invited { Tone::Good } else { Tone::Warn };
        let address = if email.is_empty() { text } else { email };
        let name = if first_name.is_empty() { "-".to_owned() } else { first_name };
        TableRow::new(vec![
            truncated(address),
            truncated(name),
            cell(view! { <Status tone=tone label=verdict /> }),
        ])
    });
    let rows: Vec<TableRow> = rows.collect();
    let columns: Vec<Column> = ["Address", "First name", "Result"].map(Column::text).into();
    view! { <Table caption="Preview of invites" columns=columns rows=rows /> }.into_any()
}

#[component]
fn SendForm(
    send: FormAction<SendInvites>,
    result: FormResult,
    id: String,
    people: String,
    levels: Vec<Choosable>,
    sends_mail: bool,
    call: ApiCall,
) -> impl IntoView {
    let where_it_stands = match sends_mail {
        true => "Optional. It is shown in the mail and on the page that the link opens.",
        false => "Optional. It is shown on the page that the link opens.",
    };
    let choices: Vec<Choice> =
        levels.into_iter().map(|level| Choice::new(level.number.to_string(), level.word)).collect();
    view! {
        <ActionForm action=send>
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="people" value=people />
            <ReturnAddress />
            <Select result=result name="level" label="Level" choices=choices value="1" hint=LEVELS />
            <TextArea result=result name="message" label="Message" rows=3 max=MESSAGE_MAX
                hint=where_it_stands />
            <Submit result=result label="Send invites" busy="Sending invites..." />
            <ApiRequest call=call />
        </ActionForm>
    }
}
