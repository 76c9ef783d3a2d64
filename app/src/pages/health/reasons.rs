//! Reasons for dropped or altered events of a project: the cause, the solution, the
//! count, and a sample.

use leptos::prelude::*;
use weir_model::live::{Outcome, OutcomeLabel};
use weir_model::outcomes::Meaning;

use crate::live::{badge, sample_caption};
use crate::server_fns::projects::ProjectView;
use crate::server_fns::warnings::{ReasonView, SampleView};
use crate::ui::chart::Spark;
use crate::ui::code_figure::CodeFigure;
use crate::ui::empty::first_event;
use crate::ui::json;
use crate::ui::number::grouped;
use crate::ui::prose::prose;
use crate::ui::time::{Ago, Time};

/// The reasons, each with its trend over the selected range.
pub(super) fn reasons(
    project: &ProjectView,
    found: Vec<ReasonView>,
    trends: &[(String, Vec<u64>)],
) -> AnyView {
    if found.is_empty() {
        return nothing(project);
    }
    let trend =
        |code: &str| trends.iter().find(|(of, _)| of == code).map(|(_, values)| values.clone());
    let entries = found
        .into_iter()
        .map(|reason| {
            let values = trend(&reason.code).unwrap_or_default();
            entry(project.id, reason, values)
        })
        .collect_view();
    view! { <ul class="plain reasons">{entries}</ul> }.into_any()
}

/// The text when there are no problems, or no events.
fn nothing(project: &ProjectView) -> AnyView {
    if project.has_events {
        return view! {
            <div class="empty">
                <h2>"No event was dropped or altered"</h2>
                <p>"Every event was stored unchanged. Dropped and altered events are listed here with the reason and the fix."</p>
            </div>
        }
        .into_any();
    }
    view! {
        <div class="empty">
            <h2>"No event received yet"</h2>
            <p>"Dropped and altered events are listed here with the reason and the fix."</p>
            {first_event(project.id)}
        </div>
    }
    .into_any()
}

/// The outcome of a code. `None`: this version does not know the code.
pub(super) fn outcome_label(code: &str) -> Option<OutcomeLabel> {
    Meaning::of(code).map(|found| match found.outcome {
        Outcome::Dropped => OutcomeLabel::Dropped,
        Outcome::Rejected => OutcomeLabel::Rejected,
        Outcome::Accepted => OutcomeLabel::Altered,
    })
}

fn entry(project: i64, reason: ReasonView, trend: Vec<u64>) -> AnyView {
    let ReasonView { code, count, first_at, last_at, sample } = reason;
    let anchor = code.clone();
    let events = format!("/projects/{project}/health/events?code={code}");
    let meaning = Meaning::of(&code);
    let label = outcome_label(&code);
    let (sentence, fix) = match meaning {
        Some(found) => (found.sentence, found.fix),
        None => ("This version does not know the reason.", "A newer version of Weir wrote it."),
    };
    let times: u64 = trend.iter().sum();
    let trend = if times == 0 {
        "None".into_any()
    } else {
        let summary = format!("{} in this range", grouped(times));
        view! { {grouped(times)} " " <Spark values=trend summary=summary /> }.into_any()
    };
    let sample = sample.map(|kept| latest(kept, label, sentence));
    view! {
        <li class="card" id=anchor>
            <div class="cause-head">
                {label.map(badge)}
                <h2>{prose(sentence)}</h2>
            </div>
            <p>{prose(fix)}</p>
            <dl class="facts facts-row">
                <div><dt>"Events"</dt><dd>{grouped(count)}</dd></div>
                <div><dt>"In this range"</dt><dd>{trend}</dd></div>
                <div><dt>"First seen"</dt><dd><Ago iso=first_at /></dd></div>
                <div><dt>"Last seen"</dt><dd><Ago iso=last_at /></dd></div>
                <div><dt>"Code"</dt><dd><code>{code}</code></dd></div>
            </dl>
            {sample}
            <p>
                <a class="line-link" href=events>"All of these events"<span class="hidden">": " {sentence}</span></a>
            </p>
        </li>
    }
    .into_any()
}

/// The newest event with the reason.
fn latest(sample: SampleView, label: Option<OutcomeLabel>, sentence: &'static str) -> AnyView {
    view! {
        <details class="sample">
            <summary>"Latest sample"<span class="hidden">": " {sentence}</span></summary>
            {details(sample, label)}
        </details>
    }
    .into_any()
}

/// The stored facts about an event, and its payload.
pub(super) fn details(sample: SampleView, label: Option<OutcomeLabel>) -> AnyView {
    let SampleView { received_at, detail, event, distinct_id, payload } = sample;
    let caption = match label {
        Some(OutcomeLabel::Dropped | OutcomeLabel::Rejected) => sample_caption(payload.len()),
        Some(OutcomeLabel::Accepted | OutcomeLabel::Altered) | None => "Properties as stored",
    };
    // In a flood, events are counted without a stored sample.
    let payload = (!payload.is_empty()).then(|| {
        view! { <CodeFigure caption=caption what="payload" text=json::pretty(&payload) /> }
    });
    view! {
        <dl class="facts">
            <dt>"Received"</dt>
            <dd><Time iso=received_at /></dd>
            {fact("Detail", detail)}
            {fact("Event", event)}
            {fact("Distinct id", distinct_id)}
        </dl>
        {payload}
    }
    .into_any()
}

/// One fact. Missing and blank values are omitted, because the payload shows them.
fn fact(name: &'static str, value: Option<String>) -> Option<impl IntoView> {
    value.filter(|value| !value.trim().is_empty()).map(|value| {
        view! {
            <dt>{name}</dt>
            <dd class="mono wrap">{value}</dd>
        }
    })
}
