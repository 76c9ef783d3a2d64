//! What every reader of events returns, to be compared before and after a change of the
//! layers that the events are in.

use std::collections::HashSet;
use std::time::Duration;

use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::events::EventQuery;

use super::super::support::{PROJECT, query};
use super::support::{NOW, ids};
use crate::Store;
use crate::events::{
    Begin, EventBounds, Except, Scan, Search, Selection, StoredEvent, TimeRange, TimeSteps,
    by_step, count, estimate, first_times, last_before, next_time, page, search, see_each, skip,
    stored_uuids,
};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Longer than any of these reads takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// The results of all readers.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    by_time: Vec<Vec<StoredEvent>>,
    by_uuid: Vec<Option<StoredEvent>>,
    skipped: Vec<Begin>,
    by_step: Option<Vec<u64>>,
    searched: Vec<Vec<StoredEvent>>,
    scanned: Vec<Vec<StoredEvent>>,
    counted: Vec<(u64, u64)>,
    next: Vec<Option<i64>>,
    first: Vec<i64>,
    received: Vec<u64>,
    each: Vec<StoredEvent>,
    stored: Vec<Uuid>,
}

impl Seen {
    /// Reads everything. `known` are uuids to look for.
    pub(super) async fn of(store: &Store, known: &[Uuid]) -> Self {
        let mut each = Vec::new();
        see_each(store, PROJECT, known, |event| each.push(event.clone())).await.unwrap();
        each.sort_by_key(|event| event.arrival);
        let mut stored = stored_uuids(store, PROJECT, known).await.unwrap();
        stored.sort_unstable();
        let mut by_uuid = Vec::new();
        for uuid in known.iter().step_by(7).chain(known.last()) {
            let query = EventQuery { uuid: Some(*uuid), ..query(3) };
            by_uuid.push(page(store, PROJECT, &query).await.unwrap().0.pop());
        }
        Self {
            by_time: by_time(store).await,
            by_uuid,
            skipped: skipped(store).await,
            by_step: by_step(
                store,
                PROJECT,
                TimeSteps { start: NOW, length: 600 * SECOND, count: 20 },
                PATIENCE,
            )
            .await
            .unwrap(),
            searched: searched(store).await,
            scanned: scanned(store).await,
            counted: counted(store).await,
            next: next(store).await,
            first: first_times(store, PROJECT, wanted(i64::MIN), 20, |time| time + DAY)
                .await
                .unwrap(),
            received: received(store).await,
            each,
            stored,
        }
    }

    /// All events in order of arrival.
    pub(super) fn events(&self) -> &[StoredEvent] {
        &self.scanned[0]
    }

    /// The events of every seventh uuid.
    pub(super) fn by_uuid(&self) -> &[Option<StoredEvent>] {
        &self.by_uuid
    }

    pub(super) fn stored(&self) -> &[Uuid] {
        &self.stored
    }

    /// Fails with the first reader that differs.
    #[track_caller]
    pub(super) fn assert_same(&self, other: &Self) {
        macro_rules! same {
            ($($field:ident),*) => {
                $(assert!(self.$field == other.$field, "`{}` differs", stringify!($field));)*
            };
        }
        same!(scanned, by_time, by_uuid, each, stored, searched, skipped, by_step, counted);
        same!(next, first, received);
        assert_eq!(self, other);
    }
}

/// Filters of pages by time and searches.
fn queries() -> Vec<EventQuery> {
    let [id, other] = ids(1);
    vec![
        query(23),
        EventQuery { event: Some("event 2".to_owned()), ..query(9) },
        EventQuery { distinct_id: Some(id.clone()), ..query(9) },
        EventQuery { any_of: vec![id, other, "unknown".to_owned()], ..query(50) },
        EventQuery {
            after: Some(Timestamp::from_micros(NOW + 40 * SECOND)),
            before: Some(Timestamp::from_micros(NOW + 300 * SECOND)),
            ..query(17)
        },
    ]
}

async fn by_time(store: &Store) -> Vec<Vec<StoredEvent>> {
    let mut all = Vec::new();
    for first in queries() {
        let (mut found, mut next) = (Vec::new(), first);
        loop {
            let (part, more) = page(store, PROJECT, &next).await.unwrap();
            found.extend(part);
            let Some(last) = found.last().filter(|_: &&StoredEvent| more) else { break };
            next.before = Some(Timestamp::from_micros(last.timestamp));
            next.before_uuid = Some(last.uuid);
        }
        all.push(found);
    }
    all
}

async fn skipped(store: &Store) -> Vec<Begin> {
    let mut all = Vec::new();
    for query in queries() {
        for offset in [1, 20, 111, 400, 100_000] {
            all.push(skip(store, PROJECT, &query, offset, PATIENCE).await.unwrap());
        }
    }
    all
}

async fn searched(store: &Store) -> Vec<Vec<StoredEvent>> {
    let all = Search {
        before: None,
        after: 0,
        since: None,
        limit: 60,
        within: None,
        distinct_id: None,
        takes_name: None,
        takes: &|_| true,
    };
    let takes_name = |name: &str| name == "event 4";
    let takes = |event: &StoredEvent| takes_name(&event.event);
    let [id, _] = ids(0);
    let is_about = |event: &StoredEvent| event.distinct_id == id;
    let since = |event: &StoredEvent| event.received_at >= NOW + 200 * SECOND;
    let mut found = Vec::new();
    for first in [
        all,
        Search { takes_name: Some(&takes_name), takes: &takes, ..all },
        Search { distinct_id: Some(&id), takes: &is_about, ..all },
        Search { since: Some(NOW + 200 * SECOND), takes: &since, ..all },
        Search { before: Some(300), after: 120, ..all },
    ] {
        let (mut events, mut next) = (Vec::new(), first);
        loop {
            let page = search(store, PROJECT, &next).await.unwrap();
            events.extend(page.events);
            let Some(before) = page.next else { break };
            next.before = Some(before);
        }
        found.push(events);
    }
    found
}

fn selections() -> Vec<Selection> {
    let all = Selection { up_to: 1 << 40, ..Selection::default() };
    let names = |name: &str| HashSet::from([name.to_owned()]);
    let time = TimeRange { start: NOW, end: NOW + 500 * SECOND };
    vec![
        all.clone(),
        Selection { after: 50, up_to: 333, ..all.clone() },
        Selection { time: Some(time), ..all.clone() },
        Selection { include: names("event 1"), ..all.clone() },
        Selection { exclude: names("event 1"), except: vec![Except { up_to: 200, time }], ..all },
    ]
}

async fn scanned(store: &Store) -> Vec<Vec<StoredEvent>> {
    let mut all = Vec::new();
    for selection in selections() {
        let mut scan = Scan::begin(store, PROJECT, selection).await.unwrap();
        let mut found = Vec::new();
        while let Some(events) = scan.next().await.unwrap() {
            found.extend(events);
        }
        all.push(found);
    }
    all
}

async fn counted(store: &Store) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for selection in selections() {
        let about = estimate(store, PROJECT, selection.clone()).await.unwrap();
        all.push((count(store, PROJECT, selection).await.unwrap(), about));
    }
    all
}

fn wanted(start: i64) -> EventBounds {
    EventBounds { after: 0, up_to: u64::MAX, time: TimeRange { start, end: i64::MAX } }
}

async fn next(store: &Store) -> Vec<Option<i64>> {
    let mut all = Vec::new();
    for start in [i64::MIN, NOW, NOW + 77 * SECOND, NOW + 10 * DAY, NOW + 10_000 * DAY] {
        all.push(next_time(store, PROJECT, wanted(start), i64::MIN).await.unwrap());
        let some = EventBounds { after: 120, up_to: 400, ..wanted(start) };
        all.push(next_time(store, PROJECT, some, i64::MIN).await.unwrap());
    }
    all
}

async fn received(store: &Store) -> Vec<u64> {
    let mut all = Vec::new();
    for after in [0, 1, 50, 111, 222, 333, 444, 555, 10_000] {
        let time = Timestamp::from_micros(NOW + after * SECOND);
        all.push(last_before(store, PROJECT, time).await.unwrap());
    }
    all
}
