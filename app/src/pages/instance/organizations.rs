//! All organizations of the instance, for staff.

use leptos::prelude::*;

use crate::server_fns::limits::{
    InstanceOrganizationsView, MAX_PAGE_SIZE, list_instance_organizations,
};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::bytes;
use crate::ui::download::DownloadCsv;
use crate::ui::number::Count;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::table::{Column, Table, TableRow, cell, truncated_link};
use crate::ui::time::Ago;

const TITLE: &str = "Organizations of this instance";
/// Organizations on one page.
const PAGE_SIZE: u32 = 50;

#[component]
pub(crate) fn InstanceOrganizations() -> impl IntoView {
    page(
        TITLE,
        || {
            let list_page = page_in_query(PAGE_SIZE);
            ListPage { limit: list_page.limit.min(MAX_PAGE_SIZE), ..list_page }
        },
        |list_page| list_instance_organizations(list_page.limit, list_page.offset),
        draw,
    )
}

fn draw(list_page: ListPage, found: InstanceOrganizationsView) -> AnyView {
    let columns = vec![
        Column::text("Name"),
        Column::text("Created"),
        Column::number("Events this month"),
        Column::number("Disk space"),
    ];
    let rows = found.organizations.into_iter().map(|organization| {
        let href = format!("/instance/organizations/{}", organization.id);
        let disk = organization.disk_bytes.map(bytes::text);
        let created_at = organization.created_at.to_string();
        TableRow::new(vec![
            truncated_link(href, organization.name),
            cell(view! { <Ago iso=created_at /> }),
            cell(view! { <Count value=organization.events_this_month /> }),
            cell(disk.unwrap_or_else(|| "Not measured yet".to_owned())),
        ])
    });
    let rows: Vec<TableRow> = rows.collect();
    let call = ApiCall::new("GET", "/api/instance/organizations/".to_owned(), "*");
    view! {
        <PageHead title=TITLE><DownloadCsv /></PageHead>
        <p class="lead">"Choose an organization to see and change its limits. Only staff can see this page."</p>
        <Table caption=TITLE columns=columns rows=rows />
        <Pager page=list_page total=found.total what="organizations" />
        <ApiRequest call=call of="list the organizations" />
    }
    .into_any()
}
