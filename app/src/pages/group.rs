//! One group: properties, members, recent events.

use leptos::prelude::*;

use super::timeline::{segment, timeline};
use super::{in_path, project_in_path};
use crate::server_fns::groups::{GroupView, get_group};
use crate::server_fns::projects::get_project;
use crate::ui::copy::CopyValue;
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::table::{Column, Line, Table, cell};
use crate::ui::time::Time;

#[component]
pub(crate) fn Group() -> impl IntoView {
    let project = project_in_path();
    let (kind, key) = (in_path("kind"), in_path("key"));
    page("Group", async move {
        let within = get_project(project).await?.name;
        let group = get_group(project, kind.clone(), key.clone()).await?;
        let back = format!("/projects/{project}/groups/{}", segment(&kind));
        let looked = looked(&group);
        let first_seen = group.first_seen.clone().map(|iso| {
            view! {
                <dt>"First seen"</dt>
                <dd><Time iso=iso /></dd>
            }
        });
        Ok(view! {
            <PageHead title=group.name.clone() within=within>
                <a class="button" href=back>"All of this type"</a>
            </PageHead>
            <dl class="facts">
                <dt>"Type"</dt>
                <dd>{kind}</dd>
                <dt>"Key"</dt>
                <dd><CopyValue text=key what="group key" /></dd>
                {first_seen}
            </dl>
            {properties(&group)}
            {(!group.more).then(|| members(project, &group, looked.clone()))}
            {events(group, looked)}
        }
        .into_any())
    })
}

/// The number of events in which members and events were searched, as a text.
fn looked(group: &GroupView) -> String {
    let count = counted(group.looked_at as u64, "event", "events");
    if group.more {
        format!("Searched among the latest {count} of the project.")
    } else {
        format!("Searched among all {count} of the project.")
    }
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
    let line = |(name, value): (String, String)| {
        Line::new(vec![
            cell(view! { <span class="mono wrap">{name}</span> }),
            cell(view! { <span class="mono wrap">{value}</span> }),
        ])
    };
    let lines = group.properties.iter().cloned().map(line).collect();
    view! {
        <Section id="properties" title="Properties">
            <Table caption="Properties of the group" columns=columns lines=lines />
        </Section>
    }
    .into_any()
}

fn members(project: i64, group: &GroupView, looked: String) -> AnyView {
    if group.members.is_empty() {
        return view! {
            <Section id="members" title="Members" hint=looked><p>"No person was seen with this group."</p></Section>
        }
        .into_any();
    }
    let columns = vec![Column::text("Person"), Column::number("Events")];
    let line = |(id, name, events): (String, String, u64)| {
        let href = format!("/projects/{project}/persons/{id}");
        let shown = if name.is_empty() { id } else { name };
        Line::new(vec![
            cell(view! { <a class="wrap" href=href>{shown}</a> }),
            cell(grouped(events)),
        ])
    };
    let lines = group.members.iter().cloned().map(line).collect();
    view! {
        <Section id="members" title="Members" hint=looked>
            <Table caption="Persons seen with the group" columns=columns lines=lines />
        </Section>
    }
    .into_any()
}

fn events(group: GroupView, looked: String) -> AnyView {
    let content = if group.events.is_empty() {
        view! {
            <p>"None. Events name their groups in " <code>"$groups"</code> "."</p>
        }
        .into_any()
    } else {
        timeline(group.events)
    };
    view! { <Section id="events" title="Latest events" hint=looked>{content}</Section> }.into_any()
}
