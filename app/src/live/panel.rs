//! The panel of one event: its outcome and facts, properties, raw payload, steps, and
//! requests to the API.

use leptos::prelude::*;
use weir_model::outcomes::DropReason;

use super::address;
use super::badge::badge;
use super::row::{Row, sample_caption};
use super::row_table::Opening;
use crate::server_fns::events::EventView;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::code_figure::CodeFigure;
use crate::ui::icon::Icon;
use crate::ui::prose::prose;
use crate::ui::time::{Clock, Time};

/// Id of the heading. It gets the focus when a row is opened.
pub(super) const HEADING: &str = "detail-heading";

/// The panel of an event.
pub(super) fn panel(event: EventView, project: i64, opening: Opening) -> AnyView {
    let EventView { row, properties, raw, project_key, effects, command } = event;
    let reasons = row
        .meanings()
        .into_iter()
        .map(|meaning| {
            view! {
                <div class="reason">
                    <p class="reason-what">{meaning.sentence}</p>
                    <p>{prose(meaning.fix)}</p>
                </div>
            }
        })
        .collect_view();
    let label = if row.is_rejected() { "Path" } else { "URL or screen" };
    view! {
        <section class="detail" aria-labelledby=HEADING>
            <header class="detail-head">
                <h2 id=HEADING tabindex="-1">{row.name()}</h2>
                <a
                    class="button button-quiet"
                    href=opening.address(None)
                    on:click=move |event| opening.go(&event, None)
                >
                    <Icon name="close" />
                    "Close"
                </a>
            </header>
            <p class="detail-outcome">
                {badge(row.outcome_label())}
                {similar(&row, project)}
            </p>
            {reasons}
            <dl class="facts">
                <dt>"Received"</dt>
                <dd><Time iso=row.received_at.clone() /></dd>
                {row.timestamp.clone().map(|iso| view! {
                    <dt>"Event time"</dt>
                    <dd><Time iso=iso /></dd>
                })}
                {fact("Detail", row.detail.clone())}
                {fact("Distinct id", row.distinct_id.clone())}
                {person(&row, project)}
                {fact(label, row.url_or_screen.clone())}
                {fact("Library", row.library.clone())}
                {fact("Project key", project_key)}
                <dt>"Size"</dt>
                <dd>{row.size_text("at least ")}</dd>
            </dl>
            {property_list(properties)}
            {steps(&row, effects)}
            {payload(&row, raw)}
            {requests(&row, command, project)}
        </section>
    }
    .into_any()
}

fn fact(name: &'static str, value: Option<String>) -> AnyView {
    let fact = value.map(|value| {
        view! {
            <dt>{name}</dt>
            <dd class="mono wrap">{value}</dd>
        }
    });
    fact.into_any()
}

fn person(row: &Row, project: i64) -> AnyView {
    let person = row.person.clone().map(|id| {
        let href = address::person(project, &id);
        view! {
            <dt>"Person"</dt>
            <dd class="mono wrap"><a href=href>{id}</a></dd>
        }
    });
    person.into_any()
}

/// A link to rows with the same event name.
fn similar(row: &Row, project: i64) -> AnyView {
    let name = row.event.clone().filter(|name| !name.trim().is_empty());
    let link = name.map(|name| {
        let href = address::of(project, &[("event", &name)]);
        view! { <a class="button button-quiet" href=href>"Find similar"</a> }
    });
    link.into_any()
}

/// A part of the panel that can be closed.
fn part(id: &'static str, title: &'static str, is_open: bool, content: AnyView) -> AnyView {
    view! {
        <details class="detail-part" id=id open=is_open>
            <summary>{title}</summary>
            {content}
        </details>
    }
    .into_any()
}

fn property_list(properties: Vec<(String, String)>) -> AnyView {
    if properties.is_empty() {
        return ().into_any();
    }
    let facts = properties.into_iter().map(|(name, value)| {
        view! {
            <dt class="mono wrap">{name}</dt>
            <dd class="mono wrap">{value}</dd>
        }
    });
    let list = view! { <dl class="facts">{facts.collect_view()}</dl> };
    part("event-properties", "Properties", true, list.into_any())
}

/// What happened to the event, in order.
fn steps(row: &Row, effects: Vec<String>) -> AnyView {
    let done = if row.is_rejected() {
        "Its request was refused. Nothing was stored.".to_owned()
    } else if let Some(how) = transformation(row) {
        format!("Not stored: {how}.")
    } else if row.is_dropped() {
        "Dropped. It was not stored.".to_owned()
    } else if row.reasons.is_empty() {
        "Stored as sent.".to_owned()
    } else {
        "Stored with changes.".to_owned()
    };
    let effects = effects.into_iter().map(|effect| view! { <li class="wrap">{effect}</li> });
    let list = view! {
        <ol class="detail-steps">
            <li>"Received at " <Clock iso=row.received_at.clone() /> "."</li>
            <li>{done}</li>
            {effects.collect_view()}
        </ol>
    };
    part("event-steps", "Steps", true, list.into_any())
}

/// The transformation that kept the event from being stored, and how.
fn transformation(row: &Row) -> Option<&str> {
    let codes = [DropReason::DroppedByTransformation, DropReason::TransformationUnavailable];
    let is_named =
        row.reasons.iter().any(|reason| codes.iter().any(|code| code.code() == reason.as_str()));
    row.detail.as_deref().filter(|_| is_named)
}

/// The payload as text. A refused request has none.
fn payload(row: &Row, raw: String) -> AnyView {
    if row.is_rejected() {
        return ().into_any();
    }
    let caption = if row.is_dropped() {
        sample_caption(usize::try_from(row.size).unwrap_or(usize::MAX))
    } else {
        "Event as stored"
    };
    let figure = view! { <CodeFigure caption=caption what="payload" text=raw /> };
    part("event-raw", "Raw", row.is_dropped(), figure.into_any())
}

/// Requests that read the stored event, and send it again.
fn requests(row: &Row, command: Option<String>, project: i64) -> AnyView {
    let read = row.is_stored().then(|| {
        let path = format!("/api/projects/{project}/events/?uuid={}", row.key);
        view! { <ApiRequest call=ApiCall::new("GET", path, "event:read") of="read this event" /> }
    });
    let again = command.map(|text| {
        view! { <CodeFigure caption="Send it again with curl" what="curl command" text=text /> }
    });
    if read.is_none() && again.is_none() {
        return ().into_any();
    }
    let content = view! {
        {again}
        {read}
    };
    part("event-requests", "API request", false, content.into_any())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Row, transformation};

    #[test]
    fn the_transformation_that_dropped_an_event_is_named() {
        let row = |reason: &str| {
            let row = json!({"key": "k", "received_at": "", "outcome": "dropped", "size": 0,
                             "reasons": [reason], "detail": "dropped by Bots (config 1)"});
            serde_json::from_value::<Row>(row).unwrap()
        };
        let dropped = row("dropped_by_transformation");
        assert_eq!(transformation(&dropped), Some("dropped by Bots (config 1)"));
        assert_eq!(transformation(&row("duplicate_uuid")), None);
    }
}
