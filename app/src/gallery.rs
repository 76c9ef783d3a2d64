//! Islands with made-up data, for design work without a server.

use leptos::prelude::*;
use weir_model::live::Outcome;

use crate::live::{Filter, LiveList, RecentEvents, Row};

/// All islands, one below the other.
#[component]
pub fn Gallery() -> impl IntoView {
    let host = "http://127.0.0.1:8000".to_owned();
    view! {
        <main>
            <h2>"Start page, nothing yet"</h2>
            <RecentEvents project=0 rows=Vec::new() host=host.clone() />
            <h2>"Start page"</h2>
            <RecentEvents project=0 rows=rows() host=host />
            <h2>"Live page, nothing yet"</h2>
            <LiveList project=0 host=String::new() key=String::new() rows=Vec::new() filter=Filter::default() open=None />
            <h2>"Live page"</h2>
            <LiveList project=0 host=String::new() key=String::new() rows=rows() filter=Filter::default() open=Some("b".to_owned()) />
        </main>
    }
}

fn rows() -> Vec<Row> {
    let row = |key: &str, outcome, reason: Option<&str>| Row {
        key: key.to_owned(),
        received_at: "2026-08-21T14:05:09.123456Z".to_owned(),
        outcome,
        reasons: reason.into_iter().map(str::to_owned).collect(),
        detail: None,
        event: Some("page viewed".to_owned()),
        distinct_id: Some("ada".to_owned()),
        timestamp: Some("2026-08-21T14:05:08Z".to_owned()),
        url_or_screen: Some("https://weir.example/prices".to_owned()),
        library: Some("web".to_owned()),
        size: 1312,
        payload: r#"{"event":"page viewed","properties":{"plan":"pro"}}"#.to_owned(),
        project_key: None,
        person: None,
        effects: Vec::new(),
    };
    vec![
        row("a", Outcome::Accepted, None),
        Row { distinct_id: None, ..row("b", Outcome::Dropped, Some("missing_distinct_id")) },
        row("c", Outcome::Accepted, Some("event_name_cut")),
        Row {
            event: None,
            distinct_id: None,
            timestamp: None,
            url_or_screen: Some("/batch/".to_owned()),
            payload: String::new(),
            project_key: Some("phc_abcd...".to_owned()),
            ..row("d", Outcome::Rejected, Some("payload_too_large"))
        },
    ]
}
