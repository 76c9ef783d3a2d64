//! The import statistics of one request. They are computed once per request, from numbers
//! that capture has already.

use std::collections::BTreeMap;

use weir_ingest::batch::Batch;
use weir_model::imports::{ImportCounts, ImportSource};
use weir_model::outcomes::{DropReason, Warning};

/// In microseconds. Events that are older on arrival look like history, even if the
/// request is not marked as historical.
const OLD: i64 = 24 * 60 * 60 * 1_000_000;
const MINUTE: i64 = 60 * 1_000_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// Characters of a key that are shown.
const SHOWN: usize = 8;
/// Longest name of a library, in characters.
const LIBRARY: usize = 60;

/// The import statistics of a request; `None` if it is not part of an import. If the
/// request is not marked as historical, only its old events count.
pub(super) fn source(key: &str, batch: &Batch) -> Option<ImportSource> {
    if batch.is_empty() {
        return None;
    }
    let (historical, old) = (batch.historical, batch.received_at.saturating_sub(OLD));
    let times = || {
        let times = batch.accepted.iter().map(|event| event.timestamp);
        times.filter(move |time| historical || *time < old)
    };
    let accepted = times().count() as u64;
    if !batch.historical && accepted == 0 {
        return None;
    }
    let (mut oldest, mut newest, mut out_of_order) = (i64::MAX, i64::MIN, 0);
    let mut before = i64::MIN;
    for time in times() {
        oldest = oldest.min(time);
        newest = newest.max(time);
        out_of_order += u64::from(time < before);
        before = time;
    }
    let reasons = if batch.historical { reasons(batch) } else { BTreeMap::new() };
    let dropped: u64 = reasons.values().sum();
    let missing = reasons.get(DropReason::MissingDistinctId.code()).copied().unwrap_or(0);
    let ahead = |warnings: &[Warning]| warnings.contains(&Warning::FutureTimestamp);
    let future = batch.accepted.iter().filter(|event| ahead(&event.warnings)).count() as u64;
    Some(ImportSource {
        day: batch.received_at.div_euclid(DAY),
        key: beginning(key),
        library: library(batch),
        historical: batch.historical,
        counts: ImportCounts {
            accepted,
            dropped,
            first_at: batch.received_at,
            last_at: batch.received_at,
            oldest,
            newest,
            begins: times().next().unwrap_or(i64::MIN),
            ends: before,
            out_of_order,
            future: if batch.historical { future } else { 0 },
            missing_ids: missing,
            minutes: 1,
            peak: accepted + dropped,
            minute: batch.received_at.div_euclid(MINUTE),
            in_minute: accepted + dropped,
            reasons,
        },
    })
}

/// The beginning of a key: enough to recognize it, too little to use it.
pub(super) fn beginning(key: &str) -> String {
    let shown: String = key.chars().filter(|c| c.is_ascii_graphic()).take(SHOWN).collect();
    format!("{shown}...")
}

fn reasons(batch: &Batch) -> BTreeMap<String, u64> {
    let mut reasons: BTreeMap<DropReason, u64> = BTreeMap::new();
    for event in &batch.dropped {
        *reasons.entry(event.reason).or_default() += 1;
    }
    for (reason, times) in &batch.further_drops {
        *reasons.entry(*reason).or_default() += times;
    }
    reasons.into_iter().map(|(reason, times)| (reason.code().to_owned(), times)).collect()
}

/// The library that the first event names. All events of a request come from the same
/// library.
fn library(batch: &Batch) -> String {
    const MEMBER: &str = "\"$lib\":";
    let named = batch.accepted.first().and_then(|event| {
        let (_, rest) = event.properties.split_once(MEMBER)?;
        rest.trim_start().strip_prefix('"')?.split('"').next()
    });
    let name: String = named
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control() && *c != '\\')
        .take(LIBRARY)
        .collect();
    if name.is_empty() { "not named".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use weir_capture::{AcceptedEvent, DroppedEvent};

    use super::*;

    const NOW: i64 = 20_000 * DAY + 7 * MINUTE;

    fn batch(historical: bool, times: &[i64]) -> Batch {
        let mut batch = Batch::new(NOW, historical);
        batch.accepted = times
            .iter()
            .map(|time| AcceptedEvent {
                uuid: Uuid::nil(),
                event: "a".to_owned(),
                distinct_id: "b".to_owned(),
                timestamp: *time,
                properties: r#"{"a":1,"$lib":"posthog-python"}"#.to_owned(),
                elements_chain: String::new(),
                warnings: Vec::new(),
            })
            .collect();
        batch
    }

    #[test]
    fn imports_are_reported_with_their_order() {
        let mut batch = batch(true, &[10, 30, 20, 40]);
        batch.push_dropped(DroppedEvent {
            reason: DropReason::MissingDistinctId,
            event: None,
            distinct_id: None,
            uuid: None,
            sample: "{}".to_owned(),
        });
        let source = source("phc_abcdefgh", &batch).unwrap();
        assert_eq!((source.day, source.key.as_str()), (20_000, "phc_abcd..."));
        assert_eq!(source.library, "posthog-python");
        let counts = source.counts;
        assert_eq!((counts.accepted, counts.dropped, counts.missing_ids), (4, 1, 1));
        assert_eq!((counts.oldest, counts.newest, counts.out_of_order), (10, 40, 1));
        assert_eq!((counts.begins, counts.ends), (10, 40));
    }

    #[test]
    fn old_live_events_are_reported() {
        assert_eq!(source("phc_a", &batch(false, &[NOW, NOW - OLD])), None);
        let facts = source("phc_a", &batch(false, &[NOW, NOW - OLD - 1])).unwrap();
        assert_eq!((facts.historical, facts.counts.accepted), (false, 1));
        assert_eq!(source("phc_a", &Batch::new(NOW, true)), None);
    }
}
