//! The accounts at providers that sign the user in.

use leptos::prelude::*;

use crate::server_fns::security::{LinkedAccountsView, LinkedView, UnlinkAccount};
use crate::ui::alert::Alert;
use crate::ui::confirm::{ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::sections::Section;
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell};
use crate::ui::time::Ago;

/// The section about linked accounts. Nothing if there are no providers.
#[component]
pub(super) fn LinkedSection(
    linked: LinkedAccountsView,
    /// The code of a link that failed.
    error_code: String,
) -> impl IntoView {
    let LinkedAccountsView { accounts, providers } = linked;
    if accounts.is_empty() && providers.is_empty() {
        return ().into_any();
    }
    let unlink = form_action::<UnlinkAccount>();
    let result = form_result(unlink);
    let columns = vec![
        Column::text("Provider"),
        Column::text("Address there"),
        Column::text("Linked"),
        Column::text("Last sign-in"),
        Column::text(ACTIONS),
    ];
    let is_empty = accounts.is_empty();
    let rows = accounts.into_iter().map(|account| row(account, unlink)).collect::<Vec<_>>();
    let links = providers.into_iter().map(|(label, href)| {
        view! { <li><a class="button" href=href rel="external">{format!("Link {label}")}</a></li> }
    });
    let links = links.collect_view();
    let failure = match error_code.as_str() {
        "" => None,
        "already_linked" => Some("This account is linked to another user of this instance."),
        "too_many_linked" => {
            Some("You have linked as many accounts as possible. Remove one first.")
        }
        "other_address" => Some(
            "Your organization requires this provider. Link the account there that has your address.",
        ),
        "sso_too_many" => Some(
            "The account was not linked: too many sign-ins came from your network. Wait a minute, then try again.",
        ),
        _ => Some("The account was not linked. Try again."),
    };
    view! {
        <Section
            id="linked"
            title="Linked accounts"
            hint="Accounts at other providers that sign you in. Each one opens your account, like a password."
        >
            {failure.map(|failure| view! { <Alert kind="warning"><p>{failure}</p></Alert> })}
            <FormFailure result=result />
            {match is_empty {
                true => view! { <p>"No linked accounts."</p> }.into_any(),
                false => view! { <Table caption="Linked accounts" columns=columns rows=rows /> }.into_any(),
            }}
            <ul class="plain">{links}</ul>
        </Section>
    }
    .into_any()
}

fn row(account: LinkedView, unlink: FormAction<UnlinkAccount>) -> TableRow {
    let LinkedView { id, name, email, linked_at, used_at } = account;
    let of = match email.is_empty() {
        true => name.clone(),
        false => format!("{email} at {name}"),
    };
    let title = format!("Remove {of}?");
    let dialog = format!("unlink-{id}");
    let (opened, buttons) = (dialog.clone(), dialog.clone());
    TableRow::new(vec![
        cell(name),
        cell(email),
        cell(view! { <Ago iso=linked_at /> }),
        cell(view! { <Ago iso=used_at /> }),
        cell(view! {
            <RowMenu of=of>
                <OpenDialog id=opened label="Remove..." danger=true />
            </RowMenu>
            <ConfirmDialog id=dialog title=title>
                <ActionForm action=unlink>
                    <p>"It does not sign you in any more. You can link it again."</p>
                    <input type="hidden" name="id" value=id />
                    <ReturnAddress />
                    <ConfirmButtons id=buttons verb="Remove account" busy="Removing account..." danger=true />
                </ActionForm>
            </ConfirmDialog>
        }),
    ])
}
