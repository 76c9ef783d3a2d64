//! Groups of a project by type: the list and its search.

use futures::future::try_join;
use leptos::prelude::*;

use super::timeline::segment;
use super::{in_path, project_in_path};
use crate::error::UiError;
use crate::server_fns::groups::{GroupList, GroupRow, list_groups};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::code::Code;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, EmptyPage, NoMatch};
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ContinueSearch, ListPage, PagerWithoutTotal, page_in_query};
use crate::ui::query::{FilterForm, SearchField, in_query, with_query};
use crate::ui::sections::{SubNav, Tab};
use crate::ui::table::{Column, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::Ago;

const TITLE: &str = "Groups";
/// Groups on one page.
const PAGE_SIZE: u32 = 50;

/// The list of groups, of one type or of all.
#[component]
pub(crate) fn Groups() -> impl IntoView {
    page(TITLE, read, load, draw)
}

/// The list in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    /// Empty for all types.
    group_type: String,
    search: String,
    /// Cursor of a continued search.
    cursor: String,
    list_page: ListPage,
}

fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        group_type: in_path("type"),
        search: in_query("q"),
        cursor: in_query("after"),
        list_page: page_in_query(PAGE_SIZE),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, GroupList), UiError> {
    let Inputs { project, group_type, search, cursor, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    let groups = list_groups(project, group_type, search, limit, offset, cursor);
    try_join(get_project(project), groups).await
}

fn draw(inputs: Inputs, (project_view, found): (ProjectView, GroupList)) -> AnyView {
    let name = project_view.name.clone();
    if found.types.is_empty() {
        return view! {
            <PageHead title=TITLE within=name />
            {no_group_type(&project_view)}
        }
        .into_any();
    }
    let (project, search) = (inputs.project, inputs.search.clone());
    let types = found.types.clone();
    let file = (!found.groups.is_empty()).then(|| view! { <DownloadCsv /> });
    view! {
        <PageHead title=TITLE within=name>{file}</PageHead>
        <SubNav label="Group types" tabs=tabs(project, types) />
        <FilterForm label="Search groups">
            <SearchField label="Key or property" value=search />
        </FilterForm>
        {list(&project_view, inputs, found)}
    }
    .into_any()
}

fn list(project_view: &ProjectView, inputs: Inputs, found: GroupList) -> AnyView {
    let Inputs { project, group_type, search, cursor, list_page } = inputs;
    let is_continued = !cursor.is_empty();
    let shown = found.groups.len();
    let continue_search =
        found.search_cursor.map(|cursor| view! { <ContinueSearch what="groups" cursor=cursor /> });
    if shown == 0 && search.is_empty() && list_page.offset == 0 && !is_continued {
        no_created_group(project_view, group_type, &found.types)
    } else if shown == 0 && search.is_empty() {
        // A continued list without a search can be empty too.
        view! {
            <EmptyPage what="groups" />
            {continue_search}
        }
        .into_any()
    } else if shown == 0 {
        let clear = with_query(&[("q", None), ("after", None), ("offset", None)]);
        let filter = format!("with \"{search}\" in its key or properties");
        view! {
            <NoMatch filter=filter clear=clear />
            {continue_search}
        }
        .into_any()
    } else {
        let columns = vec![
            Column::text("Group"),
            Column::text("Type"),
            Column::text("Key"),
            Column::number("Properties"),
            Column::text("First seen"),
        ];
        let rows = found.groups.into_iter().map(|group| row(project, group)).collect();
        view! {
            <Table caption="Groups" columns=columns rows=rows />
            {continue_search}
            {(!is_continued)
                .then(|| view! { <PagerWithoutTotal page=list_page has_next=found.has_next_page shown=shown what="groups" /> })}
        }
        .into_any()
    }
}

fn tabs(project: i64, types: Vec<String>) -> Vec<Tab> {
    let all = format!("/projects/{project}/groups");
    let of_type = |group_type: String| {
        Tab::new(format!("/projects/{project}/groups/{}", segment(&group_type)), group_type)
    };
    let first = Tab::new(all, "All types");
    std::iter::once(first).chain(types.into_iter().map(of_type)).collect()
}

fn row(project: i64, group: GroupRow) -> TableRow {
    let GroupRow { group_type, key, name, properties, first_seen } = group;
    let href = format!("/projects/{project}/groups/{}/{}", segment(&group_type), segment(&key));
    let shown = name.unwrap_or_else(|| key.clone());
    TableRow::new(vec![
        truncated_link(href, shown),
        truncated(group_type),
        cell(view! { <span class="mono">{truncated(key)}</span> }),
        cell(grouped(properties as u64)),
        cell(view! { <Ago iso=first_seen /> }),
    ])
}

/// An example event that creates a group of this type.
fn snippet(project: &ProjectView, group_type: &str) -> String {
    let ProjectView { key, capture_host: capture_url, .. } = project;
    // Quoted, so that the shell reads it as part of one word.
    let group_type = serde_json::to_string(group_type).unwrap_or_default().replace('\'', r"'\''");
    format!(
        "curl -sS {capture_url}/i/v0/e/ \\\n  -H 'Content-Type: application/json' \\\n  -d '{{\n    \
           \"api_key\": \"{key}\",\n    \
           \"event\": \"$groupidentify\",\n    \
           \"distinct_id\": \"me\",\n    \
           \"properties\": {{\n      \
             \"$group_type\": {group_type},\n      \
             \"$group_key\": \"acme\",\n      \
             \"$group_set\": {{ \"name\": \"Acme Tea\" }}\n    \
           }}\n  \
         }}'"
    )
}

/// Empty state: events refer to groups of this type, but none was created.
fn no_created_group(project: &ProjectView, group_type: String, types: &[String]) -> AnyView {
    let (title, group_type) = match (group_type.is_empty(), types.first()) {
        (true, Some(first)) => ("No group yet", first.clone()),
        _ => ("No group of this type yet", group_type),
    };
    let (snippet, named) = (snippet(project, &group_type), group_type);
    view! {
        <Empty title=title>
            <p>
                "Events name groups of the type " <code>{named}</code> " in " <code>"$groups"</code> ", but no event "
                <code>"$groupidentify"</code> " has created one and set its properties. This sends one:"
            </p>
            <Code text=snippet what="snippet" />
        </Empty>
    }
    .into_any()
}

/// Empty state: no event refers to a group.
fn no_group_type(project: &ProjectView) -> AnyView {
    let snippet = snippet(project, "company");
    view! {
        <Empty title="No group yet">
            <p>
                "Events can name groups as well as persons. A group is a company or a team, for example. An event "
                <code>"$groupidentify"</code> " creates a group and sets its properties. Other events name it in "
                <code>"$groups"</code> "."
            </p>
            <Code text=snippet what="snippet" />
        </Empty>
    }
    .into_any()
}
