//! One group: properties, members, recent events.

use futures::future::try_join;
use leptos::prelude::*;

use super::timeline::timeline;
use super::{in_path, project_in_path};
use crate::server_fns::groups::{GroupView, MemberList, get_group};
use crate::server_fns::projects::get_project;
use crate::ui::copy::CopyValue;
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell, cut, cut_link};
use crate::ui::time::Time;

/// The sentence in place of members that are not known.
const UNCOUNTED: &str = "Not shown: the project has more events than this page reads, so the \
                         members and their numbers would be incomplete.";

#[component]
pub(crate) fn Group() -> impl IntoView {
    page(
        "Group",
        || (project_in_path(), in_path("type"), in_path("key")),
        |(project, group_type, key)| {
            try_join(get_project(project), get_group(project, group_type, key))
        },
        |(project, group_type, key), (of, group)| {
            let first_seen = group.first_seen.clone().map(|iso| {
                view! {
                    <dt>"First seen"</dt>
                    <dd><Time iso=iso /></dd>
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
                {members(project, group.members.clone())}
                {events(project, group)}
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
            cell(view! { <span class="mono">{cut(name)}</span> }),
            cell(view! { <span class="mono">{cut(value)}</span> }),
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

fn members(project: i64, members: Option<MemberList>) -> AnyView {
    let Some(MemberList { count, first }) = members else {
        return view! {
            <Section id="members" title="Members"><p>{UNCOUNTED}</p></Section>
        }
        .into_any();
    };
    if first.is_empty() {
        return view! {
            <Section id="members" title="Members"><p>"No person was seen with this group."</p></Section>
        }
        .into_any();
    }
    let hint = shown_of(first.len(), count);
    let columns = vec![Column::text("Person"), Column::number("Events")];
    let row = |(id, name, events): (String, String, u64)| {
        let href = format!("/projects/{project}/persons/{id}");
        let shown = if name.is_empty() { id } else { name };
        TableRow::new(vec![cut_link(href, shown), cell(grouped(events))])
    };
    let rows = first.into_iter().map(row).collect();
    view! {
        <Section id="members" title="Members" hint=hint>
            <Table caption="Persons seen with the group" columns=columns rows=rows />
        </Section>
    }
    .into_any()
}

/// The sentence about a list of members that is cut; empty if it is not.
fn shown_of(shown: usize, count: usize) -> String {
    if shown == count {
        return String::new();
    }
    let (shown, count) = (grouped(shown as u64), grouped(count as u64));
    format!("The {shown} of {count} persons with the most events of the group.")
}

fn events(project: i64, group: GroupView) -> AnyView {
    let hint = match group.more {
        Some(false) => "",
        Some(true) => "The last ones that arrived. The group has older ones, which are not shown.",
        None => {
            "The last ones that arrived. The group may have older ones, which are not searched."
        }
    };
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
    view! { <Section id="events" title="Latest events" hint=hint.to_owned()>{content}</Section> }
        .into_any()
}

#[cfg(test)]
mod tests {
    use super::shown_of;

    #[test]
    fn a_cut_list_of_members_says_so() {
        assert_eq!(
            shown_of(50, 1_234),
            "The 50 of 1,234 persons with the most events of the group."
        );
        assert_eq!(shown_of(50, 50), "");
    }
}
