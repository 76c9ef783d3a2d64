//! One event in full: what became of it and why, and its payload.

use std::sync::Arc;

use leptos::prelude::*;

use super::badge::OutcomeBadge;
use super::row::Row;
use crate::ui::bytes;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::json;
use crate::ui::time::Time;

/// The detail of a row.
#[component]
pub(crate) fn Detail(
    /// The row.
    row: Arc<Row>,
    /// Where closing leads.
    close: String,
) -> impl IntoView {
    let heading = NodeRef::new();
    // The person asked for it: that is where they read on.
    Effect::new(move |_| {
        if crate::ui::page_head::has_navigated() {
            crate::ui::focus(heading);
        }
    });
    let reasons = row
        .explained()
        .into_iter()
        .map(|explained| {
            view! {
                <div class="reason">
                    <p class="reason-what">{explained.sentence}</p>
                    <p>{explained.fix}</p>
                </div>
            }
        })
        .collect_view();
    let payload = json::pretty(&row.payload);
    let caption = if row.is_dropped() { "Payload as received" } else { "Event as stored" };
    view! {
        <section class="detail" aria-labelledby="detail-heading">
            <header class="detail-head">
                <h2 id="detail-heading" tabindex="-1" node_ref=heading>{row.name()}</h2>
                <a class="button button-quiet" href=close data-noscroll="">
                    <Icon name="close" />
                    "Close"
                </a>
            </header>
            <p class="detail-outcome"><OutcomeBadge row=&row /></p>
            {reasons}
            <dl class="facts">
                <dt>"Received"</dt>
                <dd><Time iso=row.received_at.clone() /></dd>
                {row.timestamp.clone().map(|iso| view! {
                    <dt>"Event time"</dt>
                    <dd><Time iso=iso /></dd>
                })}
                {fact("Distinct id", row.distinct_id.clone())}
                {fact("Person", row.person.clone())}
                {fact("URL or screen", row.place.clone())}
                {fact("Library", row.library.clone())}
                <dt>"Size"</dt>
                <dd>{bytes::text(row.size)}</dd>
            </dl>
            <figure class="code">
                <figcaption>
                    <span>{caption}</span>
                    <CopyButton text=payload.clone() what="payload" />
                </figcaption>
                <pre tabindex="0"><code>{payload}</code></pre>
            </figure>
        </section>
    }
    .into_any()
}

fn fact(name: &'static str, value: Option<String>) -> Option<impl IntoView> {
    value.map(|value| {
        view! {
            <dt>{name}</dt>
            <dd class="mono wrap">{value}</dd>
        }
    })
}
