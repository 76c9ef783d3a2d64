//! The lists of what a project has saved under names: insights and dashboards.
//!
//! What belongs here: what their pages share. What does not: what a row shows (`insights`,
//! `dashboards`).

use leptos::prelude::*;

use super::project_in_path;
use crate::local_path::encode;
use crate::server_fns::projects::ProjectView;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{EmptyPage, NoMatch};
use crate::ui::page::PageHead;
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, SearchField, in_query, with_query};
use crate::ui::table::{Column, Table, TableRow};
use crate::ui::time::ProjectZone;

/// Entries on one page.
const PAGE_SIZE: u32 = 50;

/// The list in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inputs {
    pub(super) project: i64,
    pub(super) search: String,
    pub(super) list_page: ListPage,
}

pub(super) fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        search: in_query("q"),
        list_page: page_in_query(PAGE_SIZE),
    }
}

/// The words of a list.
pub(super) struct NamedList {
    pub(super) title: &'static str,
    /// The entries, in texts and in addresses: `dashboards`.
    pub(super) entries: &'static str,
    /// One of them.
    pub(super) entry: &'static str,
    /// The scope that reads them.
    pub(super) scope: &'static str,
    /// What one of them is.
    pub(super) lead: &'static str,
}

/// A page of a list.
pub(super) struct Found {
    /// Number of entries that match the search.
    pub(super) total: u64,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<TableRow>,
}

/// Draws the page of a list. `empty` is shown for a project without entries.
pub(super) fn draw(
    list: &'static NamedList,
    inputs: Inputs,
    of: ProjectView,
    found: Found,
    empty: impl FnOnce(i64) -> AnyView,
) -> AnyView {
    let NamedList { title, entries, entry, scope, lead } = *list;
    let (project, search) = (inputs.project, inputs.search.clone());
    let file = (!found.rows.is_empty()).then(|| view! { <DownloadCsv /> });
    let query =
        if search.is_empty() { String::new() } else { format!("?search={}", encode(&search)) };
    let call = ApiCall::new("GET", format!("/api/projects/{project}/{entries}/{query}"), scope);
    let has_list = found.total > 0 || !search.is_empty();
    let filter = has_list.then(|| {
        view! {
            <FilterForm label=format!("Search {entries}")>
                <SearchField label="Name" value=search />
            </FilterForm>
        }
    });
    let content = if has_list { table(list, inputs, found) } else { empty(project) };
    view! {
        <PageHead title=title within=of.name>
            <a class="button button-primary" href=format!("/projects/{project}/{entries}/new")>
                {format!("New {entry}")}
            </a>
            {file}
        </PageHead>
        <ProjectZone zone=of.timezone />
        {super::dashboards::tabs(project)}
        <p class="lead">{lead}</p>
        {filter}
        {content}
        <ApiRequest call=call />
    }
    .into_any()
}

fn table(list: &'static NamedList, inputs: Inputs, found: Found) -> AnyView {
    let Inputs { search, list_page, .. } = inputs;
    let Found { total, columns, rows } = found;
    if total == 0 {
        let clear = with_query(&[("q", None), ("offset", None)]);
        let filter = format!("with \"{search}\" in its name");
        return view! { <NoMatch filter=filter clear=clear /> }.into_any();
    }
    if rows.is_empty() {
        return view! { <EmptyPage what=list.entries /> }.into_any();
    }
    view! {
        <Table caption=list.title columns=columns rows=rows />
        <Pager page=list_page total=total what=list.entries />
    }
    .into_any()
}

/// The name of a member, who can have left.
pub(super) fn member(name: String) -> String {
    if name.is_empty() { "A former member".to_owned() } else { name }
}
