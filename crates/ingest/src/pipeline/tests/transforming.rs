//! Events and their transformations.

use async_trait::async_trait;
use parking_lot::Mutex;
use weir_capture::DroppedEvent;
use weir_model::PluginConfigId;
use weir_model::events::EventQuery;
use weir_model::outcomes::{DropReason, Warning};

use super::*;
use crate::pipeline::apply_batch::{ApplyBatch, Part, Spike};
use crate::transform::{Changed, Transform, TransformInput, Transformed};

const CONCERNED: ProjectId = ProjectId(1);
const OTHER: ProjectId = ProjectId(2);
/// The project whose events must not be stored without its transformations.
const PROTECTED: ProjectId = ProjectId(3);

/// A transformation that does with each event what its name says.
#[derive(Default)]
struct Steps {
    /// The events that it received.
    seen: Mutex<Vec<Uuid>>,
}

#[async_trait]
impl Transform for Steps {
    fn concerns(&self, project: ProjectId) -> bool {
        project != OTHER
    }

    async fn may_be_omitted(&self, project: ProjectId) -> bool {
        project == CONCERNED
    }

    async fn transform(
        &self,
        _project: ProjectId,
        _partition: u16,
        given: Vec<TransformInput>,
    ) -> Vec<Transformed> {
        let of = |given: &TransformInput| {
            let event = given.event();
            self.seen.lock().push(event.uuid);
            assert_ne!(event.event, "panic", "a defect");
            let dropped = || Transformed::Dropped {
                config: PluginConfigId(12),
                name: "Bot filter".to_owned(),
            };
            let text = json!({"event": "changed", "distinct_id": "bob", "properties": {"b": 1}});
            match event.event.as_str() {
                "drop" => Some(dropped()),
                "change" => Some(Transformed::Changed(Box::new(
                    Changed::read(given, given.event(), &text.to_string()).unwrap(),
                ))),
                "lose" => None,
                "miss" => Some(Transformed::Unavailable {
                    config: PluginConfigId(13),
                    name: "Redaction".to_owned(),
                }),
                _ => Some(Transformed::Unchanged),
            }
        };
        given.iter().filter_map(of).collect()
    }
}

async fn names(store: &Store, project: ProjectId) -> Vec<(String, String)> {
    let query = EventQuery { limit: 100, ..EventQuery::default() };
    let (events, _) = events::page(store, project, &query).await.unwrap();
    let mut names: Vec<_> = events.into_iter().map(|e| (e.event, e.distinct_id)).collect();
    names.sort();
    names
}

fn named(names: &[&str]) -> Vec<AcceptedEvent> {
    (0..).zip(names).map(|(at, name)| event(name, "ada", at, &json!({"a": 1}))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_stored_as_transformations_leave_them() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start_transforming(directory.path(), &store, Arc::new(Steps::default())).await;
    for project in [CONCERNED, OTHER] {
        append(&ingest, project, named(&["keep", "drop", "change"])).await;
    }
    ingest.applied().await;
    let pair = |name: &str, id: &str| (name.to_owned(), id.to_owned());
    assert_eq!(names(&store, CONCERNED).await, [pair("changed", "bob"), pair("keep", "ada")]);
    let all = [pair("change", "ada"), pair("drop", "ada"), pair("keep", "ada")];
    assert_eq!(names(&store, OTHER).await, all, "other projects are left alone");

    assert!(person(&store, CONCERNED, "bob").await.is_some());
    let query = EventQuery { distinct_id: Some("bob".to_owned()), limit: 9, ..Default::default() };
    let (of_bob, _) = events::page(&store, CONCERNED, &query).await.unwrap();
    assert_eq!(of_bob.len(), 1, "it is found by the id that it was given");

    assert_eq!(codes(&store, CONCERNED).await, [("dropped_by_transformation".to_owned(), 1)]);
    let samples = warnings::dropped(&store, CONCERNED, 9).await.unwrap();
    assert_eq!(samples[0].detail.as_deref(), Some("dropped by Bot filter (config 12)"));
    assert_eq!(samples[0].event.as_deref(), Some("drop"));
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_transformation_loses_no_event() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start_transforming(directory.path(), &store, Arc::new(Steps::default())).await;
    for failure in ["panic", "lose"] {
        append(&ingest, CONCERNED, named(&[failure, "change"])).await;
        ingest.applied().await;
    }
    let stored: Vec<_> = names(&store, CONCERNED).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(stored, ["change", "change", "lose", "panic"]);
    let skipped = [("transformation_skipped".to_owned(), 4)];
    assert_eq!(codes(&store, CONCERNED).await, skipped, "each of them is counted");
    let (events, _) =
        events::page(&store, CONCERNED, &EventQuery { limit: 9, ..Default::default() })
            .await
            .unwrap();
    assert!(events.iter().all(|event| event.warnings == ["transformation_skipped"]));
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_be_transformed_is_dropped_where_it_cannot_be() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start_transforming(directory.path(), &store, Arc::new(Steps::default())).await;
    for failure in ["panic", "lose", "miss"] {
        append(&ingest, PROTECTED, named(&[failure, "change"])).await;
        ingest.applied().await;
    }
    let stored: Vec<_> = names(&store, PROTECTED).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(stored, ["changed"], "beside the one that could not be transformed");
    assert_eq!(codes(&store, PROTECTED).await, [("transformation_unavailable".to_owned(), 5)]);
    let samples = warnings::dropped(&store, PROTECTED, 9).await.unwrap();
    assert_eq!(samples[0].detail.as_deref(), Some("Redaction (config 13) could not be run"));
    // The content that the transformation removes is in no sample.
    for sample in samples {
        assert_eq!((sample.distinct_id, sample.payload.as_str()), (None, "{}"));
    }
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_are_not_transformed() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let steps = Arc::new(Steps::default());
    let transform: Arc<dyn Transform> = Arc::clone(&steps) as Arc<dyn Transform>;
    let ingest = start_transforming(directory.path(), &store, transform).await;
    let sent = named(&["keep", "change"]);
    for _ in 0..3 {
        append(&ingest, CONCERNED, sent.clone()).await;
        ingest.applied().await;
    }
    assert_eq!(steps.seen.lock().len(), 2);
    assert_eq!(codes(&store, CONCERNED).await, [("duplicate_uuid".to_owned(), 4)]);
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_of_events_that_must_be_transformed_are_withheld() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start_transforming(directory.path(), &store, Arc::new(Steps::default())).await;
    let refused = DroppedEvent {
        reason: DropReason::MissingDistinctId,
        event: Some("refused".to_owned()),
        distinct_id: None,
        uuid: None,
        sample: r#"{"a":1}"#.to_owned(),
    };
    for (project, shown) in [(CONCERNED, r#"{"a":1}"#), (PROTECTED, "{}")] {
        let repeated = named(&["keep", "drop"]);
        append(&ingest, project, repeated.clone()).await;
        // A dropped event is a repeat only of one in the same step.
        ingest.applied().await;
        append(&ingest, project, repeated).await;
        let batch = Batch { dropped: vec![refused.clone()], ..Batch::new(1, false) };
        ingest.appender().append(project, batch.into_encoded()).await.unwrap();
        ingest.applied().await;
        let expected =
            [("dropped_by_transformation", 2), ("duplicate_uuid", 1), ("missing_distinct_id", 1)];
        let expected = expected.map(|(code, count)| (code.to_owned(), count));
        assert_eq!(codes(&store, project).await, expected);
        for sample in warnings::dropped(&store, project, 9).await.unwrap() {
            assert_eq!(sample.payload, shown, "{}", sample.code);
            assert!(shown != "{}" || sample.distinct_id.is_none(), "{}", sample.code);
        }
    }
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn floods_of_a_project_with_a_required_step_do_not_name_the_distinct_id() {
    let spike = Spike {
        warning: Warning::DistinctIdSpike,
        events: 1,
        at: NOON,
        of: Some("ada@example.com".to_owned()),
    };
    let part = || Part { spikes: vec![spike.clone()], ..Part::default() };
    let projects = [CONCERNED, PROTECTED];
    let mut batch = ApplyBatch { parts: projects.map(|project| (project, part())).into() };
    batch.transform(0, &projects.into(), &Steps::default()).await;
    let of = |project: ProjectId| batch.parts[&project].spikes[0].of.as_deref();
    assert_eq!(of(CONCERNED), Some("ada@example.com"));
    assert_eq!(of(PROTECTED), None);
}
