//! Counts of a config, and its last failure.

use leptos::prelude::*;

use crate::server_fns::plugin_configs::views::{ConfigLine, FaultView};
use crate::ui::code_figure::CodeFigure;
use crate::ui::icon::Icon;
use crate::ui::json;
use crate::ui::number::{grouped, percent};
use crate::ui::time::Time;

/// Counts of the last 24 hours.
pub(super) fn counts(line: &ConfigLine) -> AnyView {
    let tried = line.succeeded.saturating_add(line.failed);
    let rate = match tried {
        0 => "-".to_owned(),
        tried => percent(line.succeeded, tried),
    };
    let (failed, dropped) = (line.failed, line.dropped);
    let events = tried.saturating_add(dropped);
    let dropped = (dropped > 0).then(|| {
        view! { <div><dt>"Dropped"</dt><dd>{grouped(dropped)}</dd></div> }
    });
    view! {
        <dl class="facts facts-row">
            <div><dt>"Succeeded in 24 h"</dt><dd>{rate}</dd></div>
            <div><dt>"Events"</dt><dd>{grouped(events)}</dd></div>
            <div><dt>"Failed"</dt><dd>{grouped(failed)}</dd></div>
            {dropped}
        </dl>
    }
    .into_any()
}

/// The last failure, with the event that caused it.
pub(super) fn last_failure(fault: FaultView) -> AnyView {
    let FaultView { message, at, event } = fault;
    let sample = event.map(|event| {
        view! {
            <details class="sample">
                <summary>"The event that caused it"</summary>
                <CodeFigure caption="Event" what="event" text=json::pretty(&event) />
            </details>
        }
    });
    view! {
        <div class="step-fault">
            <p class="fault">
                <Icon name="alert" />
                <span class="wrap">{message}</span>
            </p>
            {at.map(|iso| view! { <p class="faint">"Last at " <Time iso=iso /></p> })}
            {sample}
        </div>
    }
    .into_any()
}
