//! The open sessions of the user, and signing out of them.

use leptos::prelude::*;

use crate::server_fns::security::{EndOtherSessions, EndSession, SessionView};
use crate::ui::confirm::Confirm;
use crate::ui::download::DownloadCsv;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell};
use crate::ui::time::Ago;

/// The section about open sessions.
#[component]
pub(crate) fn SessionsSection(
    /// The sessions, the current one first.
    sessions: Vec<SessionView>,
) -> impl IntoView {
    let end = form_action::<EndSession>();
    let end_others = form_action::<EndOtherSessions>();
    let (ended, others_ended) = (form_result(end), form_result(end_others));
    let are_others = sessions.len() > 1;
    let columns = vec![
        Column::text("Device"),
        Column::text("IP address"),
        Column::text("Signed in with"),
        Column::text("Signed in"),
        Column::text("Last used"),
        Column::text(ACTIONS),
    ];
    let rows = sessions.into_iter().map(|session| row(session, end)).collect::<Vec<_>>();
    view! {
        <Section
            id="sessions"
            title="Sessions"
            hint="Your browsers that are signed in. A session ends automatically after 12 hours without use, and after 14 days."
        >
            <FormFailure result=ended />
            <FormFailure result=others_ended />
            <Table caption="Your sessions" columns=columns rows=rows />
            <p><DownloadCsv page="/account/security/sessions" of="sessions" /></p>
            {are_others.then(|| view! {
                <Confirm button="Sign out other sessions">
                    <ActionForm action=end_others>
                        <p>"You have to sign in again in all other browsers. API keys continue to work."</p>
                        <ReturnAddress />
                        <button type="submit" class="button button-danger" data-busy="Signing out...">
                            "Sign out everywhere else"
                        </button>
                    </ActionForm>
                </Confirm>
            })}
        </Section>
    }
}

fn row(session: SessionView, end: FormAction<EndSession>) -> TableRow {
    let SessionView { id, device, way, address, signed_in_at, seen_at, is_this } = session;
    let of = device.clone();
    let menu = (!is_this).then(|| {
        view! {
            <RowMenu of=of>
                <li>
                    <ActionForm action=end>
                        <input type="hidden" name="id" value=id />
                        <ReturnAddress />
                        <button type="submit" data-busy="Signing out...">"Sign out"</button>
                    </ActionForm>
                </li>
            </RowMenu>
        }
    });
    let this = is_this.then(|| view! { " " <Status tone=Tone::Good label="This session" /> });
    TableRow::new(vec![
        cell(view! { {device} {this} }),
        cell(address.unwrap_or_else(|| "-".to_owned())),
        cell(way),
        cell(view! { <Ago iso=signed_in_at /> }),
        cell(view! { <Ago iso=seen_at /> }),
        cell(menu),
    ])
}
