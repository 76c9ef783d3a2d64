//! Lists: navigation, filters, tables, pagination, confirmations.

use leptos::prelude::*;

use crate::ui::confirm::{Confirm, ConfirmButtons, ConfirmDialog, OpenDialog, TypedConfirm};
use crate::ui::field::{Choice, Select, TextLine};
use crate::ui::form::FormResult;
use crate::ui::menu::RowMenu;
use crate::ui::number::{Count, Id};
use crate::ui::pager::{ListPage, Pager, PagerWithoutTotal, page_in_query};
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::refresh::Refresh;
use crate::ui::sections::{Section, SubNav, Tab};
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Direction, Sort, Table, TableRow, cell, truncated_link};
use crate::ui::time::Time;

/// Id of the sample of a dialog.
const DIALOG: &str = "remove-finance";
/// Entries on one page of a list.
const PAGE_SIZE: u32 = 50;

/// Made-up exports: name, id, tone, state, rows.
const EXPORTS: [(&str, &str, Tone, &str, u64); 3] = [
    (
        "Nightly to the lake",
        "0191d3a2-7c1e-7b52-a3f0-5c2f9be4d017",
        Tone::Good,
        "Running",
        1_250_000,
    ),
    ("Finance", "0191d3a2-9d40-7e01-8c11-0f2a6b3c9e55", Tone::Bad, "Failing", 312),
    (
        "Ahrefs_crawl_of_the_whole_site_without_any_space",
        "0191d3a2-c4f7-7a90-b0d2-71e84a5d6f23",
        Tone::Quiet,
        "Paused",
        0,
    ),
];

/// Samples of the components of lists.
pub(super) fn sections() -> AnyView {
    let list_page = page_in_query(PAGE_SIZE);
    let at = |offset| ListPage { limit: PAGE_SIZE, offset };
    let (first, second, third) = (at(0), at(50), at(100));
    let result = FormResult::sample(None);
    view! {
        <Section id="ways" title="Navigation">
            {navigation()}
            <Refresh seconds=3_600 />
        </Section>
        <Section id="filter" title="Filter">{filter()}</Section>
        <Section id="table" title="Table">{table()}</Section>
        <Section id="pagers" title="Pagination">
            <Pager page=list_page total=1_204 what="members" />
            <Pager page=third total=1_204 what="members" />
            <Pager page=first total=12 what="members" />
            <PagerWithoutTotal page=second has_next=true shown=50 what="events" />
            <PagerWithoutTotal page=third has_next=false shown=0 what="events" />
        </Section>
        <Section id="confirm" title="Confirmations">
            <div class="key-actions">
                <Confirm button="Pause" of="Finance">
                    <p>"Nothing is exported until it is resumed."</p>
                    <button type="button" class="button button-primary">"Pause export"</button>
                </Confirm>
                <Confirm button="Revoke" of="the key Nightly report" danger=true>
                    <p>"Scripts that use this key stop working immediately. This cannot be undone."</p>
                    <button type="button" class="button button-danger">"Revoke key"</button>
                </Confirm>
                <RowMenu of="Finance">
                    <li><a href="#table">"Settings"</a></li>
                    <OpenDialog id=DIALOG.to_owned() label="Remove..." danger=true />
                </RowMenu>
                <ConfirmDialog id=DIALOG.to_owned() title="Remove Finance?">
                    <form action="/gallery">
                        <p>"The export ends. Delivered rows stay."</p>
                        <ConfirmButtons id=DIALOG.to_owned() verb="Remove export" busy="Removing export..." danger=true />
                    </form>
                </ConfirmDialog>
            </div>
        </Section>
        <Section id="typed-confirm" title="Confirmation by name" danger=true
            hint="For changes that cannot be undone.">
            <form action="/gallery">
                <TypedConfirm
                    result=result
                    name_to_type="Upstream Works"
                    label="Name of the organization"
                    verb="Delete organization"
                    busy="Deleting organization..."
                />
            </form>
        </Section>
    }
    .into_any()
}

fn navigation() -> AnyView {
    let tabs = vec![
        Tab::new("/gallery", "General"),
        Tab::new("/gallery/members", "Members"),
        Tab::new("/gallery/invites", "Invites"),
        Tab::new("/gallery/domains", "Domains"),
    ];
    view! { <SubNav label="Organization" tabs=tabs /> }.into_any()
}

fn filter() -> AnyView {
    let result = FormResult::sample(None);
    let levels = [("", "All levels"), ("member", "Member"), ("owner", "Owner")];
    let levels = levels.map(|(value, label)| Choice::new(value, label));
    view! {
        <FilterForm label="Members">
            <TextLine result=result name="q" label="Name or address" kind="search" value=in_query("q") />
            <Select result=result name="level" label="Level" choices=Vec::from(levels) value=in_query("level") />
        </FilterForm>
    }
    .into_any()
}

fn table() -> AnyView {
    let is_descending = in_query("sort") == "-rows";
    let direction = if is_descending { Direction::Descending } else { Direction::Ascending };
    let sort = Sort {
        href: with_query(&[("sort", (!is_descending).then_some("-rows"))]),
        current: Some(direction),
    };
    let name = Sort { href: with_query(&[("sort", Some("name"))]), current: None };
    let columns = vec![
        Column::text("Name").sorted(name),
        Column::text("Id"),
        Column::text("State"),
        Column::text("Last run"),
        Column::number("Rows").sorted(sort),
    ];
    let run = "2026-08-21T14:05:09Z";
    let row =
        |(name, id, tone, state, rows): (&'static str, &'static str, Tone, &'static str, u64)| {
            let cells = vec![
                truncated_link("#table".to_owned(), name.to_owned()),
                cell(view! { <Id text=id what="export id" /> }),
                cell(view! { <Status tone=tone label=state /> }),
                cell(view! { <Time iso=run.to_owned() /> }),
                cell(view! { <Count value=rows /> }),
            ];
            TableRow::new(cells).id(format!("export-{state}")).class("export")
        };
    let rows = EXPORTS.into_iter().map(row).collect();
    view! { <Table caption="Exports" columns=columns rows=rows /> }.into_any()
}
