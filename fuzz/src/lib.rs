//! What the targets share: a context in which events are decided on.

use chrono::{DateTime, Utc};
use weir_capture::{Context, Decision, Payload, RawEvent, decide, shape};

/// A request that came on 2026-06-01.
pub fn context(sent_at: Option<DateTime<Utc>>) -> Context {
    Context {
        received_at: DateTime::from_timestamp(1_780_308_000, 0).unwrap_or_default(),
        sent_at,
        project: 1,
        client_address: Some("192.0.2.7".to_owned()),
        engage: false,
    }
}

/// Takes a payload apart and decides on its events.
pub fn decide_all(payload: &Payload) {
    if let Ok(batch) = shape(payload) {
        let context = context(batch.sent_at);
        for event in &batch.events {
            check(&event, &decide(&event, &context));
        }
    }
}

/// What holds for every decision.
pub fn check(event: &RawEvent<'_>, decision: &Decision) {
    match decision {
        Decision::Accept(accepted) => {
            assert!(!accepted.event.is_empty() && !accepted.distinct_id.trim().is_empty());
            assert!(accepted.event.chars().count() <= 200);
            assert!(accepted.distinct_id.chars().count() <= 200);
            // It can be read again.
            let stored = format!("{{\"properties\":{}}}", accepted.properties);
            assert!(RawEvent::parse(&stored).is_ok(), "{event:?}");
        }
        Decision::Drop(dropped) => assert!(dropped.sample.len() <= 4096),
    }
}
