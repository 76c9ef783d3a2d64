//! Refused requests: those of the project, and those without a known project.

use leptos::prelude::*;
use weir_model::traffic::Refusal;

use crate::server_fns::traffic::{UnknownSendersView, UnknownView};
use crate::ui::download::DownloadCsv;
use crate::ui::number::grouped;
use crate::ui::prose::prose;
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Ago;

/// Refused requests of the project, by reason.
pub(super) fn refusals(found: &[(String, u64)]) -> AnyView {
    let content = if found.is_empty() {
        view! { <p>"No request was rejected in this range."</p> }.into_any()
    } else {
        table("Rejected requests by reason", found)
    };
    view! {
        <Section
            id="rejected"
            title="Rejected requests"
            hint="Requests in this range that were rejected and whose project is known. None of their events are stored. Client libraries send again after a temporary fault."
        >
            {content}
        </Section>
    }
    .into_any()
}

/// Refused requests of unknown senders to the instance. `None`: the user has no access to
/// them.
pub(super) fn unknown_senders(project: i64, found: Option<UnknownSendersView>) -> AnyView {
    let Some(UnknownSendersView { refusals, keys }) = found else {
        return view! {
            <p class="hint">
                "Staff of this instance can see requests with an unknown key."
            </p>
        }
        .into_any();
    };
    let refused = if refusals.is_empty() {
        view! { <p>"No request had an unknown project key in this range."</p> }.into_any()
    } else {
        table("Rejected requests without a project", &refusals)
    };
    let unknown = (!keys.is_empty()).then(|| {
        let columns = vec![
            Column::text("Key"),
            Column::text("Sender"),
            Column::number("Requests"),
            Column::text("First seen"),
            Column::text("Last seen"),
        ];
        let rows = keys.into_iter().map(key).collect();
        let file = format!("/projects/{project}/health/unknown-keys");
        view! {
            <Table caption="Unknown keys" columns=columns rows=rows />
            <p><DownloadCsv page=file of="unknown keys" /></p>
        }
    });
    view! {
        <Section
            id="unknown"
            title="Unknown project keys"
            hint="Rejected requests to this instance without a known project key. Copy the project key from the start page of the project into the sender."
        >
            {refused}
            {unknown}
        </Section>
    }
    .into_any()
}

fn key(seen: UnknownView) -> TableRow {
    let UnknownView { mask, caller, count, first_at, last_at } = seen;
    let sender = if caller.is_empty() { "-".to_owned() } else { caller };
    TableRow::new(vec![
        cell(view! { <code>{mask}</code> }),
        cell(view! { <span class="mono wrap">{sender}</span> }),
        cell(grouped(count)),
        cell(view! { <Ago iso=first_at /> }),
        cell(view! { <Ago iso=last_at /> }),
    ])
}

fn table(caption: &'static str, found: &[(String, u64)]) -> AnyView {
    let columns = vec![
        Column::text("What happened"),
        Column::text("What to do"),
        Column::number("Requests"),
        Column::text("Code"),
    ];
    let row = |(code, count): &(String, u64)| {
        let words = Refusal::of(code);
        TableRow::new(vec![
            cell(prose(words.map_or("This version does not know the reason.", |of| of.sentence))),
            cell(prose(words.map_or("-", |of| of.fix))),
            cell(grouped(*count)),
            cell(view! { <code>{code.clone()}</code> }),
        ])
    };
    let rows = found.iter().map(row).collect();
    view! { <Table caption=caption columns=columns rows=rows /> }.into_any()
}
