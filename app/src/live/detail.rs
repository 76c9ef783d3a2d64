//! The detail of one event: its outcome, the reasons, and its payload.

use leptos::prelude::*;
use weir_model::live::{SAMPLE_LIMIT, may_be_cut};

use super::address;
use super::badge::badge;
use super::filter::Filter;
use super::row::Row;
use super::row_list::Opening;
use crate::ui::code_figure::CodeFigure;
use crate::ui::icon::Icon;
use crate::ui::json;
use crate::ui::prose::prose;
use crate::ui::time::Time;

/// Id of the heading. It gets the focus when a row is opened.
pub(super) const HEADING: &str = "detail-heading";

const _: () = assert!(SAMPLE_LIMIT == 4 << 10, "a caption says 4 KiB");

/// Values of the detail that are not in the row.
pub(super) struct Around {
    /// Number of the project.
    pub(super) project: i64,
    /// Scheme and host that events are sent to.
    pub(super) host: String,
    /// Key of the project.
    pub(super) key: String,
}

/// The detail of a row.
pub(super) fn detail(row: &Row, around: &Around, opening: Opening) -> AnyView {
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
    let caption = if row.is_dropped() { sample_caption(&row.payload) } else { "Event as stored" };
    let label = if row.is_rejected() { "Path" } else { "URL or screen" };
    // A refused request has no stored payload.
    let payload = (!row.is_rejected()).then(|| {
        view! { <CodeFigure caption=caption what="payload" text=json::pretty(&row.payload) /> }
    });
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
            <p class="detail-outcome">{badge(row.outcome_label())}</p>
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
                {person(row, around.project)}
                {fact(label, row.url_or_screen.clone())}
                {fact("Library", row.library.clone())}
                {fact("Project key", row.project_key.clone())}
                <dt>"Size"</dt>
                <dd>{row.size_text("at least ")}</dd>
            </dl>
            {effects(row)}
            {similar(row, around.project)}
            {payload}
            {as_curl(row, around)}
        </section>
    }
    .into_any()
}

/// Caption for the sample of an event that was not stored.
pub(crate) fn sample_caption(sample: &str) -> &'static str {
    if may_be_cut(sample) {
        "The first 4 KiB of the payload as received"
    } else {
        "Payload as received"
    }
}

fn fact(name: &'static str, value: Option<String>) -> Option<impl IntoView> {
    value.map(|value| {
        view! {
            <dt>{name}</dt>
            <dd class="mono wrap">{value}</dd>
        }
    })
}

fn person(row: &Row, project: i64) -> Option<impl IntoView> {
    row.person.clone().map(|id| {
        let href = address::person(project, &id);
        view! {
            <dt>"Person"</dt>
            <dd class="mono wrap"><a href=href>{id}</a></dd>
        }
    })
}

/// The effects of the event on its person and groups.
fn effects(row: &Row) -> Option<AnyView> {
    if row.effects.is_empty() {
        return None;
    }
    let entries = row
        .effects
        .iter()
        .map(|effect| view! { <li class="wrap">{effect.clone()}</li> })
        .collect_view();
    let view = view! {
        <h3>"Person and groups"</h3>
        <ul class="effects">{entries}</ul>
    };
    Some(view.into_any())
}

/// A link to rows with the same event name. There is none for a name with an equals sign:
/// the filter would read it as a property.
fn similar(row: &Row, project: i64) -> Option<AnyView> {
    let name = row.event.clone().filter(|name| !name.trim().is_empty() && !name.contains('='))?;
    let filter = Filter { outcome: None, text: Some(name) };
    let href = address::of(project, &filter, None);
    Some(view! { <p><a class="button" href=href>"Find similar"</a></p> }.into_any())
}

/// A command that sends the same event again. Only for a complete payload.
fn as_curl(row: &Row, around: &Around) -> Option<AnyView> {
    let is_whole = row.payload.len() as u64 >= row.size && row.payload.trim_end().ends_with('}');
    if !is_whole || row.may_be_cut() {
        return None;
    }
    let text = command(row, around);
    let view = view! {
        <CodeFigure caption="Send it again with curl" what="curl command" text=text />
    };
    Some(view.into_any())
}

fn command(row: &Row, around: &Around) -> String {
    let event = if row.is_dropped() {
        row.payload.clone()
    } else {
        let json = |text: &Option<String>| {
            serde_json::to_string(text.as_deref().unwrap_or_default()).unwrap_or_default()
        };
        format!(
            r#"{{"event":{},"distinct_id":{},"properties":{}}}"#,
            json(&row.event),
            json(&row.distinct_id),
            row.payload
        )
    };
    // Quoted, so that the shell reads the body as one word.
    let body = format!(r#"{{"api_key":"{}","batch":[{event}]}}"#, around.key);
    let body = body.replace('\'', r"'\''");
    format!(
        "curl -sS '{}/batch/' \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'",
        around.host
    )
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_model::live::Outcome;

    use super::{Around, Row, command};

    #[test]
    fn a_body_is_one_word_of_the_command() {
        let around = Around { project: 1, host: "http://h".to_owned(), key: "phc_k".to_owned() };
        let row = Row {
            key: "1".to_owned(),
            received_at: String::new(),
            outcome: Outcome::Accepted,
            reasons: Vec::new(),
            detail: None,
            event: Some("it's \"on\"".to_owned()),
            distinct_id: Some("ada".to_owned()),
            timestamp: None,
            url_or_screen: None,
            library: None,
            size: 2,
            payload: "{}".to_owned(),
            project_key: None,
            person: None,
            effects: Vec::new(),
        };
        let text = command(&row, &around);
        let expected = r#"-d '{"api_key":"phc_k","batch":[{"event":"it'\''s \"on\"","distinct_id":"ada","properties":{}}]}'"#;
        assert!(text.ends_with(expected), "{text}");
    }
}
