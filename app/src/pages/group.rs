//! One group: properties, members, recent events.

use futures::future::try_join;
use leptos::prelude::*;

use super::person_counts::{number, times};
use super::timeline::{segment, timeline};
use super::{in_path, project_in_path};
use crate::server_fns::groups::{GroupView, MemberList, get_group};
use crate::server_fns::persons::CountsView;
use crate::server_fns::projects::get_project;
use crate::ui::copy::CopyValue;
use crate::ui::download::DownloadCsv;
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::Ago;

/// Members on one page.
const PAGE_SIZE: u32 = 50;

#[component]
pub(crate) fn Group() -> impl IntoView {
    page(
        "Group",
        || (project_in_path(), in_path("type"), in_path("key"), page_in_query(PAGE_SIZE)),
        |(project, group_type, key, list_page)| {
            let ListPage { limit, offset } = list_page;
            try_join(get_project(project), get_group(project, group_type, key, limit, offset))
        },
        |(project, group_type, key, list_page), (of, group)| {
            let path =
                format!("/projects/{project}/groups/{}/{}", segment(&group_type), segment(&key));
            let first_seen = group.first_seen.clone().map(|iso| {
                view! {
                    <dt>"First seen"</dt>
                    <dd><Ago iso=iso /></dd>
                }
            });
            view! {
                <PageHead title=group.name.clone() within=of.name />
                <dl class="facts">
                    <dt>"Type"</dt>
                    <dd>{group_type}</dd>
                    <dt>"Key"</dt>
                    <dd><CopyValue text=key what="group key" /></dd>
                    {first_seen}
                </dl>
                {properties(&group)}
                {members(project, &path, group.members.clone(), list_page)}
                {events(project, &path, group)}
            }
            .into_any()
        },
    )
}

fn properties(group: &GroupView) -> AnyView {
    if group.properties.is_empty() {
        return view! {
            <Section id="properties" title="Properties">
                <p>"No properties yet. An event " <code>"$groupidentify"</code> " sets them with " <code>"$group_set"</code> "."</p>
            </Section>
        }
        .into_any();
    }
    let columns = vec![Column::text("Property"), Column::text("Value")];
    let row = |(name, value): (String, String)| {
        TableRow::new(vec![
            cell(view! { <span class="mono">{truncated(name)}</span> }),
            cell(view! { <span class="mono">{truncated(value)}</span> }),
        ])
    };
    let rows = group.properties.iter().cloned().map(row).collect();
    view! {
        <Section id="properties" title="Properties">
            <Table caption="Properties of the group" columns=columns rows=rows />
        </Section>
    }
    .into_any()
}

fn members(
    project: i64,
    // The address of the page.
    path: &str,
    members: Result<MemberList, String>,
    list_page: ListPage,
) -> AnyView {
    let MemberList { count, is_exact, members } = match members {
        Ok(members) => members,
        Err(why) => {
            return view! {
                <Section id="members" title="Members"><p>{why}</p></Section>
            }
            .into_any();
        }
    };
    if count == 0 {
        return view! {
            <Section id="members" title="Members"><p>"No person was seen with this group."</p></Section>
        }
        .into_any();
    }
    let columns = vec![
        Column::text("Person"),
        Column::number("Events"),
        Column::text("First seen"),
        Column::text("Last seen"),
    ];
    let row = |(id, name, counts): (String, String, CountsView)| {
        let href = format!("/projects/{project}/persons/{id}");
        let shown = if name.is_empty() { id } else { name };
        let counts = Some(counts);
        let [first, last] = times(counts.as_ref());
        TableRow::new(vec![truncated_link(href, shown), number(counts.as_ref()), first, last])
    };
    let rows = members.into_iter().map(row).collect();
    let file = format!("{path}/persons");
    view! {
        <Section id="members" title="Members" hint=hint(count, is_exact)>
            <Table caption="Persons seen with the group" columns=columns rows=rows />
            <Pager page=list_page total=count what="members" />
            <p><DownloadCsv page=file of="persons" /></p>
        </Section>
    }
    .into_any()
}

/// The sentence about the members and their numbers.
fn hint(count: u64, is_exact: bool) -> String {
    let members = grouped(count);
    match (is_exact, count) {
        (true, 1) => "1 person with events of the group.".to_owned(),
        (true, _) => format!("{members} persons with events of the group."),
        (false, _) => format!(
            "More than {members} persons with events of the group. Only some of its distinct ids \
             are read, so these have at least the events that are shown."
        ),
    }
}

fn events(project: i64, path: &str, group: GroupView) -> AnyView {
    let hint = match group.more {
        Some(false) => "",
        Some(true) => "The last ones that arrived. The group has older ones, which are not shown.",
        None => {
            "The last ones that arrived. The group may have older ones, which are not searched."
        }
    };
    let file = (!group.events.is_empty()).then(|| {
        view! { <p><DownloadCsv page=format!("{path}/events") of="events" /></p> }
    });
    let content = match (group.events.is_empty(), group.more) {
        (false, _) => timeline(project, group.events),
        (true, Some(_)) => view! {
            <p>"None. Events name their groups in " <code>"$groups"</code> "."</p>
        }
        .into_any(),
        (true, None) => {
            view! { <p>"None of the newest events of the project names the group."</p> }.into_any()
        }
    };
    view! {
        <Section id="events" title="Latest events" hint=hint.to_owned()>
            {content}
            {file}
        </Section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn a_number_of_members_that_is_not_exact_says_so() {
        assert_eq!(hint(1, true), "1 person with events of the group.");
        assert_eq!(hint(1_234, true), "1,234 persons with events of the group.");
        assert!(hint(100_000, false).starts_with("More than 100,000 persons"));
    }
}
