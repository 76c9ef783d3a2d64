//! The skipped and altered events of a batch: counts with samples, and the events.
//!
//! What belongs here: counting. What does not: deciding which events are skipped
//! (`apply_batch`) or altered (`process`).

use std::collections::BTreeMap;

use weir_model::outcomes::DropReason;
use weir_store::events::{NewEvent, Sample, Span, WarningCount};
use weir_store::traffic::Applied;
use weir_store::warnings::Affected;

use super::apply_batch::{Part, Skip, Spike};

/// Bytes of an altered event that are kept as a sample.
const SAMPLE: usize = 1_024;

/// The dropped events in the order of the skips, followed by the altered events.
pub(super) fn affected(part: &Part, events: &[NewEvent<'_>]) -> Vec<Affected> {
    let dropped = part.skips.iter().map(|skip| Affected {
        codes: vec![skip.dropped.reason.code().to_owned()],
        is_stored: false,
        received_at: skip.received_at,
        detail: skip.detail.clone(),
        event: skip.dropped.event.clone(),
        distinct_id: skip.dropped.distinct_id.clone(),
        uuid: skip.dropped.uuid,
        payload: skip.dropped.sample.clone(),
    });
    let altered = events.iter().filter(|event| !event.warnings.is_empty());
    let altered = altered.map(|event| Affected {
        codes: event.warnings.iter().map(|code| (*code).to_owned()).collect(),
        is_stored: true,
        received_at: event.received_at,
        detail: None,
        event: Some(event.event.to_owned()),
        distinct_id: Some(event.distinct_id.to_owned()),
        uuid: Some(event.uuid),
        payload: String::new(),
    });
    dropped.chain(altered).collect()
}

/// Counts by code, with a sample of each.
pub(super) fn warnings(part: &Part, events: &[NewEvent<'_>]) -> Vec<WarningCount> {
    let mut tally = Tally::default();
    for skip in &part.skips {
        let code = skip.dropped.reason.code();
        tally.count(code, 1, skip.received_at, || Some(sample(skip)));
    }
    for (reason, times, at) in &part.further {
        tally.count(reason.code(), *times, *at, || None);
    }
    for event in events {
        for code in event.warnings.iter() {
            tally.count(code, 1, event.received_at, || Some(altered(code, event)));
        }
    }
    for spike in &part.spikes {
        let code = spike.warning.code();
        tally.count(code, spike.events, spike.at, || Some(flood(spike)));
    }
    tally.counts.into_values().collect()
}

/// The traffic of a project in a batch.
pub(super) fn traffic(events: &[NewEvent<'_>], warnings: &[WarningCount]) -> Applied {
    let received = events.iter().map(|event| (event.received_at, event.event));
    Applied::of(received, warnings, |code| DropReason::from_code(code).is_some())
}

#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, WarningCount>,
}

impl Tally {
    fn count(&mut self, code: &str, times: u64, at: i64, sample: impl FnOnce() -> Option<Sample>) {
        let times = i64::try_from(times).unwrap_or(i64::MAX);
        match self.counts.get_mut(code) {
            Some(present) => {
                present.count = present.count.saturating_add(times);
                present.seen = present.seen.with(at);
            }
            None => {
                let count = WarningCount {
                    code: code.to_owned(),
                    count: times,
                    seen: Span { from: at, to: at },
                    // One sample per batch is enough: there are many batches.
                    sample: sample(),
                };
                self.counts.insert(code.to_owned(), count);
            }
        }
    }
}

fn sample(skip: &Skip) -> Sample {
    Sample {
        code: skip.dropped.reason.code().to_owned(),
        received_at: skip.received_at,
        detail: skip.detail.clone(),
        event: skip.dropped.event.clone(),
        distinct_id: skip.dropped.distinct_id.clone(),
        payload: skip.dropped.sample.clone(),
    }
}

fn altered(code: &str, event: &NewEvent<'_>) -> Sample {
    Sample {
        code: code.to_owned(),
        received_at: event.received_at,
        detail: None,
        event: Some(event.event.to_owned()),
        distinct_id: Some(event.distinct_id.to_owned()),
        payload: cut(event.properties, SAMPLE).to_owned(),
    }
}

fn flood(spike: &Spike) -> Sample {
    Sample {
        code: spike.warning.code().to_owned(),
        received_at: spike.at,
        detail: None,
        event: None,
        distinct_id: spike.of.clone(),
        payload: String::new(),
    }
}

/// The beginning of a text, at most this many bytes.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}
