//! The whole pipeline: events are appended, applied and read back, and the pipeline is
//! stopped and started again.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;
use weir_model::events::EventQuery;
use weir_model::outcomes::DropReason;
use weir_model::{ProjectId, Timestamp};
use weir_store::events::{SealBounds, StoredEvent};
use weir_store::{
    ByteBudget, Location, Settings, Store, counts as event_counts, groups, persons, warnings,
};

use super::*;
use crate::batch::Batch;
use crate::batch::tests::batch;
use crate::log::Offset;
use crate::transform::{TransformInput, Transformed};
use weir_capture::DroppedEvent;

const PROJECT: ProjectId = ProjectId(1);

/// Name of an event that makes processing panic.
pub(crate) const POISON: &str = "poison";

/// Panics on the event of that name, as a defect would.
pub(crate) fn stumble(event: crate::logged::EventView<'_>) {
    assert_ne!(event.event, POISON, "a defect");
}

pub(crate) async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

pub(crate) async fn start(directory: &Path, store: &Store) -> Ingest {
    start_with(directory, store, None).await
}

pub(crate) async fn start_with(
    directory: &Path,
    store: &Store,
    locations: Option<Locations>,
) -> Ingest {
    let locations = locations.map(Arc::new);
    start_in(directory, store, Dependencies { locations, ..dependencies() }).await
}

pub(crate) async fn start_transforming(
    directory: &Path,
    store: &Store,
    transform: Arc<dyn Transform>,
) -> Ingest {
    start_in(directory, store, Dependencies { transform, ..dependencies() }).await
}

fn dependencies() -> Dependencies {
    let transform = Arc::new(NoTransformations);
    Dependencies { applying: Handle::current(), locations: None, transform }
}

async fn start_in(directory: &Path, store: &Store, dependencies: Dependencies) -> Ingest {
    let log = OpenLog::open(directory, LogSettings::default(), store.clone()).await.unwrap();
    log.start(dependencies)
}

/// No project has transformations.
struct NoTransformations;

#[async_trait]
impl Transform for NoTransformations {
    fn concerns(&self, _: ProjectId) -> bool {
        false
    }

    async fn may_be_omitted(&self, _: ProjectId) -> bool {
        true
    }

    async fn transform(
        &self,
        _: ProjectId,
        _: u16,
        given: Vec<TransformInput>,
    ) -> Vec<Transformed> {
        given.iter().map(|_| Transformed::Unchanged).collect()
    }
}

fn dropped(reason: DropReason) -> DroppedEvent {
    DroppedEvent { reason, event: None, distinct_id: None, uuid: None, sample: "{}".to_owned() }
}

/// Moves all events into files, and damages the list of their uuids. No events are applied
/// meanwhile.
pub(crate) async fn seal_and_damage(data: &Path, store: &Store) {
    let now = Timestamp::from_micros(batch("ada", 1).received_at);
    events::seal_all(store, now, usize::MAX, SealBounds::ALL).await.unwrap();
    let runs: Vec<_> = std::fs::read_dir(data.join("segments/uuids")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    let run = runs[0].as_ref().unwrap().path();
    let mut content = std::fs::read(&run).unwrap();
    // Among the first entries, which follow the header.
    content[(16 << 10) + 100] ^= 1;
    std::fs::write(&run, content).unwrap();
}

async fn all(store: &Store) -> Vec<StoredEvent> {
    let (mut all, mut query) = (Vec::new(), EventQuery { limit: 100_000, ..EventQuery::default() });
    loop {
        let (found, more) = events::page(store, PROJECT, &query).await.unwrap();
        all.extend(found);
        let Some(last) = all.last().filter(|_| more) else { return all };
        query.before = Some(Timestamp::from_micros(last.timestamp));
        query.before_uuid = Some(last.uuid);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_appended_can_be_read_exactly_once() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    let mut sent: Vec<Uuid> = Vec::new();
    for n in 0..60_u32 {
        let batch = batch(&format!("user-{}", n % 7), n % 50 + 1);
        sent.extend(batch.accepted.iter().map(|e| e.uuid));
        ingest.appender().append(PROJECT, batch.clone().into_encoded()).await.unwrap();
        if n % 10 == 0 {
            // A client that did not get its answer sends the events again.
            ingest.appender().append(PROJECT, batch.into_encoded()).await.unwrap();
        }
    }
    ingest.applied().await;
    let stored = all(&store).await;
    let mut uuids: Vec<Uuid> = stored.iter().map(|e| e.uuid).collect();
    uuids.sort_unstable();
    sent.sort_unstable();
    assert_eq!(uuids, sent);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    let duplicates: u64 = (0..60).filter(|n| n % 10 == 0).map(|n| n % 50 + 1).sum();
    assert_eq!(counts.len(), 1);
    assert_eq!((counts[0].code.as_str(), counts[0].count), ("duplicate_uuid", duplicates));
    assert_eq!(ingest.lag_bytes(), 0);
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_uuid_live_and_historical_is_stored_once() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    for round in 0..20 {
        let live = batch(&format!("user-{round}"), 5);
        let historical = Batch { historical: true, ..live.clone() };
        // Both partitions process them concurrently.
        let (first, second) = tokio::join!(
            ingest.appender().append(PROJECT, live.into_encoded()),
            ingest.appender().append(PROJECT, historical.into_encoded())
        );
        first.unwrap();
        second.unwrap();
    }
    ingest.applied().await;
    assert_eq!(all(&store).await.len(), 100);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    assert_eq!((counts[0].code.as_str(), counts[0].count), ("duplicate_uuid", 100));
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_import_drops_is_counted_with_the_import() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    for historical in [true, false] {
        let mut batch = Batch { historical, ..batch("ada", 1) };
        batch.push_dropped(dropped(DropReason::MissingEventName));
        ingest.appender().append(PROJECT, batch.into_encoded()).await.unwrap();
    }
    ingest.applied().await;
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    assert_eq!((counts.len(), counts[0].count), (1, 2));
    let mut keys: Vec<_> =
        warnings::dropped(&store, PROJECT, 9).await.unwrap().into_iter().map(|s| s.key).collect();
    keys.sort();
    let own = [events::live_partition(PROJECT, ""), events::historical_partition(PROJECT)];
    assert_eq!(keys, own.map(|partition| warnings::sample_key(partition.into(), 0)));
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_many_events_is_applied_in_steps() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    // One step takes 4,000 events.
    let mut large = batch("user-0", 4_200);
    large.accepted[4_100].uuid = large.accepted[10].uuid;
    for _ in 0..3 {
        large.push_dropped(dropped(DropReason::MissingEventName));
    }
    ingest.appender().append(PROJECT, large.into_encoded()).await.unwrap();
    ingest.appender().append(PROJECT, batch("user-0", 1).into_encoded()).await.unwrap();
    ingest.applied().await;
    assert_eq!(all(&store).await.len(), 4_200);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
    assert_eq!(counts, [("duplicate_uuid", 1), ("missing_event_name", 3)]);
    ingest.close(Duration::from_secs(10)).await;
    // No record is read again.
    let again = start(place.path(), &store).await;
    again.applied().await;
    assert_eq!(all(&store).await.len(), 4_200);
    again.close(Duration::from_secs(10)).await;
}

/// Events that clients send again are found wherever they are, also while they move.
#[tokio::test(flavor = "multi_thread")]
async fn events_are_stored_once_while_they_are_sealed() {
    let place = tempfile::tempdir().unwrap();
    let location = Location::Directory(place.path().join("data"));
    let store = Store::open(&location, Settings::default()).await.unwrap();
    let ingest = start(&place.path().join("log"), &store).await;
    let batches: Vec<Batch> = (0..3).map(|n| batch(&format!("user-{n}"), 1_600)).collect();
    // Every block is old then.
    let later = Timestamp::from_micros(i64::MAX / 2);
    let mut sealed = 0;
    for _ in 0..3 {
        for batch in &batches {
            ingest.appender().append(PROJECT, batch.clone().into_encoded()).await.unwrap();
        }
        loop {
            let is_applied = ingest.lag_bytes() == 0;
            sealed += events::seal_all(&store, later, usize::MAX, SealBounds::default())
                .await
                .unwrap()
                .events;
            if is_applied {
                break;
            }
        }
    }
    ingest.applied().await;
    assert!(sealed >= 3_000, "{sealed}");
    assert_eq!(all(&store).await.len(), 4_800);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    assert_eq!((counts.len(), counts[0].count), (1, 2 * 4_800));
    assert_eq!(counts[0].code, "duplicate_uuid");
    let ids: Vec<_> = (0..3).map(|n| persons::first_id(PROJECT, &format!("user-{n}"))).collect();
    let found = persons::resolve(&store, PROJECT, ids).await.unwrap();
    let found: Vec<_> = found.into_values().map(Arc::unwrap_or_clone).collect();
    let counted = event_counts::of_persons(&store, PROJECT, &found).await.unwrap().unwrap();
    let counted: Vec<_> = counted.iter().map(|one| (one.events, one.is_complete)).collect();
    assert_eq!(counted, [(1_600, true); 3], "what was sent again is not counted");
    ingest.close(Duration::from_secs(10)).await;
}

/// The files of a store are damaged where events may be that clients send again.
#[tokio::test(flavor = "multi_thread")]
async fn events_wait_for_the_repair_of_damaged_files_and_none_is_dropped() {
    let place = tempfile::tempdir().unwrap();
    let (data, log) = (place.path().join("data"), place.path().join("log"));
    let location = Location::Directory(data.clone());
    let store = Store::open(&location, Settings::default()).await.unwrap();
    let ingest = start(&log, &store).await;
    let sent = batch("ada", 1_000);
    ingest.appender().append(PROJECT, sent.clone().into_encoded()).await.unwrap();
    ingest.applied().await;
    ingest.close(Duration::from_secs(10)).await;
    drop(ingest);
    seal_and_damage(&data, &store).await;
    let ingest = start(&log, &store).await;
    let mut again = sent.clone();
    again.accepted.extend(batch("ada", 1).accepted);
    let partition = |id: &str| events::live_partition(PROJECT, id);
    let mut ids = (0..).map(|number| format!("user-{number}"));
    let other = ids.find(|id| partition(id) != partition("ada")).unwrap();
    ingest.appender().append(PROJECT, again.into_encoded()).await.unwrap();
    events::damage_found(&store).await;
    // Acknowledged and applied meanwhile.
    ingest.appender().append(PROJECT, batch(&other, 1).into_encoded()).await.unwrap();
    while all(&store).await.len() < 1_001 {
        tokio::task::yield_now().await;
    }
    assert!(ingest.lag_bytes() > 0);
    assert_eq!(warnings::counts(&store, PROJECT).await.unwrap(), []);
    events::repair_runs(&store).await.unwrap();
    ingest.applied().await;
    assert_eq!(all(&store).await.len(), 1_002);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
    assert_eq!(counts, [("duplicate_uuid", 1_000)]);
    ingest.close(Duration::from_secs(10)).await;
}

/// While a batch is committed, the next one is planned on what it writes. If it is
/// refused, the next one is planned again.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_follow_one_another_closely_have_the_same_effects() {
    const EVENTS: usize = 600;
    // Bytes end a batch after some 90 of these events, and they hardly become smaller.
    let long = || (0..2_000).map(|_| Uuid::new_v4().simple().to_string()).collect::<String>();
    let of = |n: usize| {
        let mut batch = batch("ada", 1);
        batch.accepted[0].properties =
            format!(r#"{{"text":"{}","$set":{{"last":{n}}},"$set_once":{{"first":{n}}}}}"#, long());
        batch
    };
    let mut sent: Vec<Batch> = (0..EVENTS).map(of).collect();
    // Repeats of events of the same batch, of the one before, and of an earlier one.
    for (repeat, first) in [(250, 249), (350, 280), (590, 5)] {
        sent[repeat].accepted[0].uuid = sent[first].accepted[0].uuid;
    }
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let open = OpenLog::open(place.path(), LogSettings::default(), store.clone()).await.unwrap();
    for batch in sent {
        open.appender().append(PROJECT, batch.into_encoded()).await.unwrap();
    }
    let ingest = open.start(dependencies());
    ingest.applied().await;
    let repeated = [251, 351, 591];
    let expected: Vec<u64> = (1..=EVENTS as u64).filter(|n| !repeated.contains(n)).collect();
    let mut arrivals: Vec<u64> = all(&store).await.iter().map(|e| e.arrival).collect();
    arrivals.sort_unstable();
    assert_eq!(arrivals, expected);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
    assert_eq!(counts, [("duplicate_uuid", 3)]);
    let id = persons::first_id(PROJECT, "ada");
    let found = persons::resolve(&store, PROJECT, [id]).await.unwrap().remove(&id).unwrap();
    let properties: serde_json::Value = serde_json::from_str(&found.properties).unwrap();
    assert_eq!((&properties["first"], &properties["last"]), (&0.into(), &(EVENTS - 1).into()));
    let heads = events::heads(&store, PROJECT).await.unwrap();
    let counted: i64 = heads.values().map(|head| head.count).sum();
    assert_eq!(usize::try_from(counted).unwrap(), expected.len());
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_beyond_its_size_is_kept_as_it_was_and_counted() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    let sized = |name: &str, length: usize| {
        let mut batch = batch("ada", 1);
        let long = "x".repeat(length);
        batch.accepted[0].properties = format!(r#"{{"$set":{{"{name}":"{long}"}}}}"#);
        batch
    };
    ingest.appender().append(PROJECT, sized("a", 600_000).into_encoded()).await.unwrap();
    ingest.appender().append(PROJECT, sized("b", 10).into_encoded()).await.unwrap();
    ingest.appender().append(PROJECT, sized("c", 600_000).into_encoded()).await.unwrap();
    ingest.applied().await;
    assert_eq!(all(&store).await.len(), 3);
    let id = persons::first_id(PROJECT, "ada");
    let ada = persons::resolve(&store, PROJECT, [id]).await.unwrap().remove(&id).unwrap();
    let properties: serde_json::Value = serde_json::from_str(&ada.properties).unwrap();
    assert_eq!(
        (&properties["a"], &properties["b"]),
        (&serde_json::Value::Null, &"xxxxxxxxxx".into())
    );
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    assert_eq!((counts[0].code.as_str(), counts[0].count), ("person_too_large", 2));
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_resumes_where_the_last_one_stopped() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    ingest.appender().append(PROJECT, batch("a", 10).into_encoded()).await.unwrap();
    // Without patience: the next start applies the rest.
    ingest.close(Duration::ZERO).await;
    drop(ingest);
    let ingest = start(place.path(), &store).await;
    ingest.appender().append(PROJECT, batch("a", 5).into_encoded()).await.unwrap();
    ingest.applied().await;
    let mut arrivals: Vec<u64> = all(&store).await.iter().map(|e| e.arrival).collect();
    arrivals.sort_unstable();
    assert_eq!(arrivals, (1..=15).collect::<Vec<_>>(), "numbered without gaps, stored once");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_one_distinct_id_keep_their_order() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    for value in 0..30 {
        let mut one = batch("ada", 1);
        one.accepted[0].properties =
            format!(r#"{{"$set":{{"last":{value}}},"$set_once":{{"first":{value}}}}}"#);
        ingest.appender().append(PROJECT, one.into_encoded()).await.unwrap();
    }
    ingest.applied().await;
    let id = persons::first_id(PROJECT, "ada");
    let found = persons::resolve(&store, PROJECT, [id]).await.unwrap().remove(&id).unwrap();
    let properties: serde_json::Value = serde_json::from_str(&found.properties).unwrap();
    assert_eq!((&properties["first"], &properties["last"]), (&0.into(), &29.into()));
    assert_eq!(found.distinct_ids, ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_events_are_counted_sampled_and_shown_live() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    let mut live = ingest.live().watch(PROJECT);
    let mut mixed = batch("a", 1);
    mixed.dropped.push(DroppedEvent {
        reason: DropReason::MissingDistinctId,
        event: Some("no id".to_owned()),
        distinct_id: None,
        uuid: None,
        sample: r#"{"event":"no id"}"#.to_owned(),
    });
    ingest.appender().append(PROJECT, mixed.into_encoded()).await.unwrap();
    ingest.applied().await;
    let rows = [live.recv().await.unwrap(), live.recv().await.unwrap()];
    let dropped = rows.iter().find(|r| r.event.as_deref() == Some("no id")).unwrap();
    assert_eq!(dropped.reasons, ["missing_distinct_id"]);
    let samples = warnings::dropped(&store, PROJECT, 9).await.unwrap();
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].key, dropped.key, "the store and the feed name a row alike");
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_without_a_profile_make_no_person() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    let mut anonymous = batch("visitor", 1);
    anonymous.accepted[0].properties = r#"{"$process_person_profile":false}"#.to_owned();
    ingest.appender().append(PROJECT, anonymous.into_encoded()).await.unwrap();
    ingest.applied().await;
    let id = persons::first_id(PROJECT, "visitor");
    assert!(persons::resolve(&store, PROJECT, [id]).await.unwrap().is_empty());
    assert_eq!(all(&store).await.len(), 1);
}

/// Skipped events belong to the step with the first event of their request, also when a
/// batch is full just before it.
#[tokio::test(flavor = "multi_thread")]
async fn skipped_events_are_counted_once_per_batch() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let log = place.path();
    // One request fills a batch of 4,000 exactly. The partition that counts skips takes
    // it.
    let id = (0..)
        .map(|n| format!("user-{n}"))
        .find(|id| events::live_partition(PROJECT, id) == events::live_partition(PROJECT, ""));
    let id = id.unwrap();
    let ingest = start(log, &store).await;
    let mut second = batch(&id, 1);
    second.push_dropped(dropped(DropReason::MissingEventName));
    let (first, second) = (batch(&id, 4_000).into_encoded(), second.into_encoded());
    let (one, two) = tokio::join!(
        ingest.appender().append(PROJECT, first),
        ingest.appender().append(PROJECT, second)
    );
    one.unwrap();
    two.unwrap();
    ingest.applied().await;
    assert_eq!(all(&store).await.len(), 4_001);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
    assert_eq!(counts, [("missing_event_name", 1)]);
    ingest.close(Duration::from_secs(10)).await;
}

/// A person or a group of half a megabyte.
fn fat(event: &str, distinct_id: &str, more: &str) -> weir_capture::AcceptedEvent {
    let text = "x".repeat(500_000);
    let mut fat = batch(distinct_id, 1).accepted.remove(0);
    fat.event = event.to_owned();
    fat.properties = match event {
        "$groupidentify" => format!(
            r#"{{"$group_type":"company","$group_key":"{distinct_id}","$group_set":{{"x":"{text}"}}}}"#
        ),
        _ => format!(r#"{{"$set":{{"x":"{text}"{more}}}}}"#),
    };
    fat
}

/// More persons and groups than a batch may change at a time, from one small request.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_large_persons_and_groups_is_applied_in_parts() {
    const FAT: usize = 40;
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(place.path(), &store).await;
    for n in 0..FAT {
        let id = format!("fat-{n}");
        let events = vec![fat("pageview", &id, ""), fat("$groupidentify", &id, "")];
        let large = Batch { accepted: events, ..Batch::new(0, false) };
        ingest.appender().append(PROJECT, large.into_encoded()).await.unwrap();
    }
    ingest.applied().await;
    let all_of = (0..FAT).flat_map(|n| {
        let id = format!("fat-{n}");
        let mut person = batch(&id, 1).accepted.remove(0);
        person.properties = r#"{"$set":{"last":1}}"#.to_owned();
        let mut group = batch("user", 1).accepted.remove(0);
        group.event = "$groupidentify".to_owned();
        group.properties =
            format!(r#"{{"$group_type":"company","$group_key":"{id}","$group_set":{{"last":1}}}}"#);
        [person, group]
    });
    let all_of = Batch { accepted: all_of.collect(), ..Batch::new(0, false) };
    ingest.appender().append(PROJECT, all_of.into_encoded()).await.unwrap();
    ingest.applied().await;
    for n in 0..FAT {
        let id = format!("fat-{n}");
        let first = persons::first_id(PROJECT, &id);
        let found = persons::resolve(&store, PROJECT, [first]).await.unwrap();
        assert!(found[&first].properties.contains(r#""last":1"#), "{id}");
        let key = [(0, id.as_str())];
        let found = groups::by_keys(&store, PROJECT, &key, &mut ByteBudget::of(1)).await.unwrap();
        assert!(found[0].group.properties.contains(r#""last":1"#), "{id}");
    }
    let heads = events::heads(&store, PROJECT).await.unwrap();
    assert_eq!(heads.values().map(|head| head.count).sum::<i64>(), 4 * FAT as i64);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    assert!(counts.is_empty(), "{counts:?}");
    ingest.close(Duration::from_secs(10)).await;
}

/// Records how many events are transformed together.
#[derive(Default)]
pub(crate) struct Sizes(Mutex<Vec<usize>>);

impl Sizes {
    pub(crate) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[async_trait]
impl Transform for Sizes {
    fn concerns(&self, _project: ProjectId) -> bool {
        true
    }

    async fn may_be_omitted(&self, _project: ProjectId) -> bool {
        true
    }

    async fn transform(
        &self,
        _project: ProjectId,
        _partition: u16,
        given: Vec<TransformInput>,
    ) -> Vec<Transformed> {
        self.0.lock().push(given.len());
        given.iter().map(|_| Transformed::Unchanged).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_what_waits_is_applied_in_small_steps() {
    for (has_crashed, smallest) in [(true, 8), (false, 1)] {
        let (place, store) = (tempfile::tempdir().unwrap(), store().await);
        let sizes = Arc::new(Sizes::default());
        let ingest = start(place.path(), &store).await;
        assert!(place.path().join("applying").exists());
        ingest.close(Duration::from_secs(10)).await;
        assert!(!place.path().join("applying").exists(), "it has stopped in order");

        let log = open_log(place.path(), &store).await;
        log.append(PROJECT, batch("ada", 500).into_encoded()).await.unwrap();
        drop(log);
        if has_crashed {
            std::fs::write(place.path().join("applying"), "").unwrap();
        }
        let ingest = start_transforming(place.path(), &store, sizes.clone()).await;
        ingest.applied().await;
        let applied = sizes.take();
        assert_eq!(applied.iter().sum::<usize>(), 500);
        assert!(applied.len() >= smallest, "{applied:?}");
        // Later events are applied as usual.
        ingest.appender().append(PROJECT, batch("ada", 500).into_encoded()).await.unwrap();
        ingest.applied().await;
        assert_eq!(sizes.take(), [500]);
        ingest.close(Duration::from_secs(10)).await;
    }
}

async fn open_log(directory: &Path, store: &Store) -> LocalLog {
    let positions = events::positions(store).await.unwrap();
    let arrivals = events::next_arrivals(store).await.unwrap();
    let (applied, settings) = (Applied::of(&positions), LogSettings::default());
    LocalLog::open(directory, settings, arrivals, applied, store.disk()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_of_the_log_is_a_warning_of_the_project() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let log = open_log(place.path(), &store).await;
    for id in ["a", "b", "c"] {
        log.append(PROJECT, batch(id, 3).into_encoded()).await.unwrap();
    }
    let second = usize::try_from(log.read(Offset(0), 1).unwrap()[0].next.0).unwrap();
    drop(log);
    let path = place.path().join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[second + 80] ^= 0xFF;
    std::fs::write(&path, &bytes).unwrap();

    for copies in [1, 0] {
        let ingest = start(place.path(), &store).await;
        ingest.applied().await;
        assert_eq!(all(&store).await.len(), 6);
        let counts = warnings::counts(&store, PROJECT).await.unwrap();
        let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
        assert_eq!(counts, [("unreadable_record", 3)], "once, however often it starts");
        assert_eq!(ingest.damage().copies, copies, "shown until it has been dealt with");
        if copies > 0 {
            std::fs::remove_dir_all(place.path().join("quarantine")).unwrap();
        }
        ingest.check(Instant::now());
        assert!(ingest.damage().is_none());
        ingest.close(Duration::from_secs(10)).await;
    }
}

/// A destroyed header does not say whose events they were. The numbers of the project's
/// other events do, unless it has no later record.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_destroyed_header_are_a_warning_of_the_project() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let other = ProjectId(2);
    let log = open_log(place.path(), &store).await;
    let mut offsets = Vec::new();
    for (project, id) in [(PROJECT, "a"), (PROJECT, "b"), (other, "c"), (PROJECT, "d")] {
        offsets.push(log.append(project, batch(id, 3).into_encoded()).await.unwrap().0);
    }
    drop(log);
    let path = place.path().join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    for destroyed in &offsets[1..3] {
        bytes[usize::try_from(*destroyed).unwrap() + 30] ^= 0xFF;
    }
    std::fs::write(&path, &bytes).unwrap();

    for _ in 0..2 {
        let ingest = start(place.path(), &store).await;
        ingest.applied().await;
        assert_eq!(all(&store).await.len(), 6);
        for (project, expected) in [(PROJECT, vec![("unreadable_record", 3)]), (other, vec![])] {
            let counts = warnings::counts(&store, project).await.unwrap();
            let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
            assert_eq!(counts, expected, "once, however often it starts");
        }
        let Damage { copies, bytes, missing } = ingest.damage();
        assert_eq!((copies, bytes, missing), (1, offsets[3] - offsets[1], 0), "all of it shows");
        ingest.close(Duration::from_secs(10)).await;
    }
}

/// An idle partition has its position in memory only. After a kill the next start needs
/// the records from the stored position on, and would find them missing.
#[tokio::test(flavor = "multi_thread")]
async fn no_segment_is_removed_before_all_positions_are_stored_behind_it() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let settings = LogSettings { segment_size: 64 << 10, keep_bytes: 0, ..LogSettings::default() };
    let log = OpenLog::open(place.path(), settings, store.clone()).await.unwrap();
    let ingest = log.start(dependencies());
    let first = place.path().join(format!("{:020}.log", 0));
    loop {
        ingest.appender().append(PROJECT, batch("ada", 20).into_encoded()).await.unwrap();
        ingest.applied().await;
        if !first.exists() {
            break;
        }
    }
    let names = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let begin = names.filter_map(|name| name.to_str()?.strip_suffix(".log")?.parse().ok()).min();
    let positions = events::positions(&store).await.unwrap();
    assert!(Applied::of(&positions).lowest.0 >= begin.unwrap(), "{begin:?} {positions:?}");
    ingest.close(Duration::from_secs(10)).await;
}

/// The store says which numbers the events of a project have before the first record.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_destroyed_first_record_are_a_warning_of_the_project() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let log = open_log(place.path(), &store).await;
    for id in ["a", "b", "c"] {
        log.append(PROJECT, batch(id, 3).into_encoded()).await.unwrap();
    }
    drop(log);
    let path = place.path().join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..100].fill(0);
    std::fs::write(&path, &bytes).unwrap();

    let ingest = start(place.path(), &store).await;
    ingest.applied().await;
    assert_eq!(all(&store).await.len(), 6);
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
    assert_eq!(counts, [("unreadable_record", 3)]);
    assert_eq!(ingest.damage().copies, 1);
    ingest.close(Duration::from_secs(10)).await;
}

/// Damaged records without a sound one behind them.
#[tokio::test(flavor = "multi_thread")]
async fn damage_at_the_end_of_the_log_is_a_warning_of_the_project() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    let log = open_log(place.path(), &store).await;
    let mut offsets = Vec::new();
    for id in ["a", "b", "c", "d"] {
        offsets.push(log.append(PROJECT, batch(id, 3).into_encoded()).await.unwrap().0);
    }
    drop(log);
    let path = place.path().join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    for damaged in &offsets[1..] {
        bytes[usize::try_from(*damaged).unwrap() + 80] ^= 0xFF;
    }
    std::fs::write(&path, &bytes).unwrap();

    for torn in [true, false] {
        let ingest = start(place.path(), &store).await;
        ingest.applied().await;
        assert_eq!(all(&store).await.len(), 3);
        let counts = warnings::counts(&store, PROJECT).await.unwrap();
        let counts: Vec<_> = counts.iter().map(|c| (c.code.as_str(), c.count)).collect();
        assert_eq!(counts, [("unreadable_record", 6)], "once, however often it starts");
        assert!(!ingest.damage().is_none());
        assert_eq!(ingest.recovery().torn_bytes > 0, torn, "nothing proves that of the last one");
        ingest.close(Duration::from_secs(10)).await;
    }
}
