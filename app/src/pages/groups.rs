//! Groups of a project by type: the list and its search.

use leptos::prelude::*;

use super::timeline::segment;
use super::{in_path, project_in_path};
use crate::server_fns::groups::{GroupLine, list_groups};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::code::Code;
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{LookFurther, PagerMore, Slice, slice_in_query};
use crate::ui::query::{FilterForm, SearchField, in_query, with_query};
use crate::ui::sections::{SubNav, Tab};
use crate::ui::table::{Column, Line, Table, cell};
use crate::ui::time::Time;

const TITLE: &str = "Groups";
/// Groups on one page.
const PAGE: u32 = 50;

/// The list of groups, of one type or of all.
#[component]
pub(crate) fn Groups() -> impl IntoView {
    let project = project_in_path();
    let kind = in_path("kind");
    let (search, after) = (in_query("q"), in_query("after"));
    let slice = slice_in_query(PAGE);
    page(TITLE, async move {
        let of = get_project(project).await?;
        let Slice { limit, offset } = slice;
        let continues = !after.is_empty();
        let found =
            list_groups(project, kind.clone(), search.clone(), limit, offset, after).await?;
        let name = of.name.clone();
        if found.types.is_empty() {
            return Ok(view! {
                <PageHead title=TITLE within=name />
                {nothing(&of)}
            }
            .into_any());
        }
        let shown = found.groups.len();
        let further = found.further.map(|at| view! { <LookFurther what="groups" at=at /> });
        let content = if shown == 0 && search.is_empty() && offset == 0 && !continues {
            named_only(&of, kind, &found.types)
        } else if shown == 0 {
            let clear = with_query(&[("q", None), ("after", None), ("offset", None)]);
            let filter = if search.is_empty() {
                "on this page of the list".to_owned()
            } else {
                format!("with \"{search}\" in its key or properties")
            };
            view! {
                <NoMatch filter=filter clear=clear />
                {further}
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
            let lines = found.groups.into_iter().map(|group| line(project, group)).collect();
            view! {
                <Table caption="Groups" columns=columns lines=lines />
                {further}
                {(!continues)
                    .then(|| view! { <PagerMore slice=slice more=found.more shown=shown what="groups" /> })}
            }
            .into_any()
        };
        Ok(view! {
            <PageHead title=TITLE within=name />
            <SubNav label="Group types" tabs=tabs(project, found.types) />
            <FilterForm label="Search groups">
                <SearchField label="Key or property" value=search />
            </FilterForm>
            {content}
        }
        .into_any())
    })
}

fn tabs(project: i64, types: Vec<String>) -> Vec<Tab> {
    let all = format!("/projects/{project}/groups");
    let of_type = |kind: String| Tab {
        href: format!("/projects/{project}/groups/{}", segment(&kind)),
        label: kind,
        count: None,
    };
    let first = Tab { href: all, label: "All types".to_owned(), count: None };
    std::iter::once(first).chain(types.into_iter().map(of_type)).collect()
}

fn line(project: i64, group: GroupLine) -> Line {
    let GroupLine { kind, key, name, properties, first_seen } = group;
    let href = format!("/projects/{project}/groups/{}/{}", segment(&kind), segment(&key));
    let shown = name.unwrap_or_else(|| key.clone());
    Line::new(vec![
        cell(view! { <a class="wrap" href=href>{shown}</a> }),
        cell(kind),
        cell(view! { <span class="mono wrap">{key}</span> }),
        cell(grouped(properties as u64)),
        cell(view! { <Time iso=first_seen /> }),
    ])
}

/// An example event that creates a group of this type.
fn snippet(project: &ProjectView, kind: &str) -> String {
    let ProjectView { key, host, .. } = project;
    // Quoted, so that the shell reads it as part of one word.
    let kind = serde_json::to_string(kind).unwrap_or_default().replace('\'', r"'\''");
    format!(
        "curl -sS {host}/i/v0/e/ \\\n  -H 'Content-Type: application/json' \\\n  -d '{{\n    \
           \"api_key\": \"{key}\",\n    \
           \"event\": \"$groupidentify\",\n    \
           \"distinct_id\": \"me\",\n    \
           \"properties\": {{\n      \
             \"$group_type\": {kind},\n      \
             \"$group_key\": \"acme\",\n      \
             \"$group_set\": {{ \"name\": \"Acme Tea\" }}\n    \
           }}\n  \
         }}'"
    )
}

/// Events name groups of this type, or of these types, but no event created one.
fn named_only(project: &ProjectView, kind: String, types: &[String]) -> AnyView {
    let (title, kind) = match (kind.is_empty(), types.first()) {
        (true, Some(first)) => ("No group yet", first.clone()),
        _ => ("No group of this type yet", kind),
    };
    let (snippet, named) = (snippet(project, &kind), kind);
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

fn nothing(project: &ProjectView) -> AnyView {
    let snippet = snippet(project, "company");
    view! {
        <Empty title="No group yet">
            <p>
                "Events are about groups as well as persons. A group is a company or a team, for example. An event "
                <code>"$groupidentify"</code> " creates a group and sets its properties. Other events name it in "
                <code>"$groups"</code> "."
            </p>
            <Code text=snippet what="snippet" />
        </Empty>
    }
    .into_any()
}
