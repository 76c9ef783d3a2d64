//! The lists of the overview page: the names of events, what fails, and the last changes.

use leptos::prelude::*;

use crate::local_path::encode;
use crate::pages::organization::activity_words::{action, kind};
use crate::server_fns::activity::EntryView;
use crate::server_fns::overview::ByNameView;
use crate::ui::chart::ShareBar;
use crate::ui::number::{counted, grouped};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::truncated_link;
use crate::ui::time::Time;

pub(super) fn names(id: i64, by_name: ByNameView) -> AnyView {
    let ByNameView { names, others } = by_name;
    // Bars are relative to the most frequent name, not to all events.
    let most = names.first().map_or(0, |(_, count)| *count);
    let rows = names
        .into_iter()
        .map(|(name, count)| {
            let href = format!("/projects/{id}/events?event={}", encode(&name));
            view! {
                <li>
                    {truncated_link(href, name)}
                    <span class="number">{grouped(count)}</span>
                    <ShareBar part=count whole=most />
                </li>
            }
        })
        .collect_view();
    let more = (others > 0).then(|| {
        let more = counted(others, "event", "events");
        view! { <p class="hint">{format!("{more} with other names")}</p> }
    });
    view! {
        <Section id="names" title="Events by name">
            <p class="hint">"Stored in the last 30 days"</p>
            <ol class="overview-names">{rows}</ol>
            {more}
        </Section>
    }
    .into_any()
}

/// The numbers of failing exports, transformations, and other plugins. Each leads to its
/// list.
pub(super) fn health(id: i64, organization: &str, failing: [u64; 3]) -> AnyView {
    let [exports, transformations, others] = failing;
    let line = |count: u64, one: &str, many: &str, href: String| {
        let (tone, words) = match count {
            0 => (Tone::Good, format!("No failing {many}")),
            _ => (Tone::Bad, counted(count, &format!("failing {one}"), &format!("failing {many}"))),
        };
        view! { <li><a href=href><Status tone=tone label=words /></a></li> }.into_any()
    };
    let lines = [
        line(exports, "export", "exports", format!("/organizations/{organization}/exports")),
        line(
            transformations,
            "transformation",
            "transformations",
            format!("/projects/{id}/transformations"),
        ),
        line(
            others,
            "destination or app",
            "destinations or apps",
            format!("/organizations/{organization}/plugins/destinations"),
        ),
    ];
    let lines = lines.into_iter().collect_view();
    view! {
        <Section id="health" title="Health">
            <ul class="plain overview-health">
                {lines}
                <li><a href=format!("/projects/{id}/health")>"Charts and drop reasons"</a></li>
            </ul>
        </Section>
    }
    .into_any()
}

pub(super) fn changes(organization: &str, changed: Vec<EntryView>) -> AnyView {
    let all = format!("/organizations/{organization}/activity");
    let line = |entry: EntryView| {
        let EntryView {
            id,
            who,
            by_service,
            identity_provider,
            action: done,
            subject,
            item,
            name,
            at,
            ..
        } = entry;
        let who = match who.map(|(_, name, _)| name).or(identity_provider) {
            Some(name) => name,
            None if by_service => "Weir".to_owned(),
            None => "A deleted user".to_owned(),
        };
        let what = format!("{} {}", kind(subject), name.unwrap_or(item));
        view! {
            <li>
                <a href=format!("{all}?entry={id}#{id}")>{what}</a>
                <span class="hint">{action(done)} " by " {who} ", " <Time iso=at /></span>
            </li>
        }
    };
    let lines = changed.into_iter().map(line).collect_view();
    view! {
        <Section id="changes" title="Last changes">
            <ol class="overview-changes">{lines}</ol>
            <p><a href=all.clone()>"All activity"</a></p>
        </Section>
    }
    .into_any()
}
