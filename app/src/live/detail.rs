//! One event in full: what became of it and why, and its payload.

use leptos::prelude::*;

use super::badge::badge;
use super::list::Opening;
use super::row::Row;
use crate::ui::bytes;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::json;
use crate::ui::prose::prose;
use crate::ui::time::Time;

/// Id of the heading, which takes the focus when a row is opened.
pub(super) const HEADING: &str = "detail-heading";

/// The detail of a row.
pub(super) fn detail(row: &Row, opening: Opening) -> AnyView {
    let reasons = row
        .explained()
        .into_iter()
        .map(|explained| {
            view! {
                <div class="reason">
                    <p class="reason-what">{explained.sentence}</p>
                    <p>{prose(explained.fix)}</p>
                </div>
            }
        })
        .collect_view();
    let caption = if row.is_dropped() { "Payload as received" } else { "Event as stored" };
    view! {
        <section class="detail" aria-labelledby=HEADING>
            <header class="detail-head">
                <h2 id=HEADING tabindex="-1">{row.name()}</h2>
                <a
                    class="button button-quiet"
                    href=opening.address.run(None)
                    on:click=move |event| opening.go(&event, None)
                >
                    <Icon name="close" />
                    "Close"
                </a>
            </header>
            <p class="detail-outcome">{badge(row.fate())}</p>
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
                {fact("Person", row.person.clone())}
                {fact("URL or screen", row.place.clone())}
                {fact("Library", row.library.clone())}
                <dt>"Size"</dt>
                <dd>{bytes::text(row.size)}</dd>
            </dl>
            <figure class="code" data-copyable="">
                <figcaption>
                    <span>{caption}</span>
                    <CopyButton what="payload" />
                </figcaption>
                <pre tabindex="0"><code>{json::pretty(&row.payload)}</code></pre>
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
