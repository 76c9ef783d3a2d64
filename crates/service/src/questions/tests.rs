use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use serde_json::value::RawValue;
use weir_model::{ProjectId, Timestamp};
use weir_questions::results::ResolvedRange;
use weir_store::events::{TimeRange, snapshot};
use weir_store::people;

use super::engine::Found;
use super::kinds::Computed;
use super::recent::{Key, Recent};
use super::results::{Results, Version};
use super::stop::Stop;
use super::*;
use crate::Services;
use crate::test_support::{ada, set_up};

const TOOK: Duration = Duration::from_millis(10);

fn computed(text: &str) -> Arc<Computed> {
    let time = Timestamp::from_micros(0);
    let range = ResolvedRange { date_from: time, date_to: time };
    let results = RawValue::from_string(json!(text).to_string()).unwrap();
    Arc::new(Computed { results, has_more: None, range: Some(range), rows: None, at: time })
}

async fn entered(services: &Services) -> ProjectCtx {
    let ctx = ada(services).await;
    services.projects.enter(&ctx, "@current").await.unwrap()
}

/// The version of the events of a project without events.
async fn version(services: &Services, project: ProjectId) -> Version {
    let store = services.organizations.store();
    let times = TimeRange { start: 0, end: 1 };
    let events = snapshot(store, project, times).await.unwrap().version();
    let (_, view) = people::of(store, project).await.unwrap();
    Version { events, people: view.version(), erasures: 0 }
}

#[tokio::test]
async fn an_answer_is_kept_for_its_version_and_for_a_moment() {
    let services = set_up().await;
    let version = version(&services, entered(&services).await.project).await;
    let later = Version { erasures: 1, ..version };
    let results = Results::new(4_000);
    results.put("a", &computed("one"), version, TOOK);
    let now = Instant::now();
    let texts = |found: Option<Arc<Computed>>| found.map(|found| found.results.get().to_owned());
    let one = Some("\"one\"".to_owned());
    assert_eq!(texts(results.of_version("a", version)), one);
    assert_eq!(texts(results.of_version("a", later)), None);
    assert_eq!(texts(results.recent("a", 0, now)), one);
    assert_eq!(texts(results.recent("a", 0, now + TOOK * 11)), None);
    assert_eq!(texts(results.any("a", 0)), one);
    // A person was erased since.
    assert_eq!(texts(results.recent("a", 1, now)), None);
    assert_eq!(texts(results.any("a", 1)), None);
    assert_eq!(texts(results.any("b", 0)), None);
    results.put("a", &computed("two"), version, TOOK);
    assert_eq!(texts(results.any("a", 0)), Some("\"two\"".to_owned()));
}

#[tokio::test]
async fn the_answers_that_were_used_last_are_kept() {
    let services = set_up().await;
    let version = version(&services, entered(&services).await.project).await;
    let results = Results::new(2_000);
    for key in ["a", "b", "c"] {
        results.put(key, &computed(key), version, TOOK);
    }
    assert!(results.any("a", 0).is_some());
    results.put("d", &computed("d"), version, TOOK);
    let kept = ["a", "b", "c", "d"].map(|key| results.any(key, 0).is_some());
    assert_eq!(kept, [true, false, true, true]);
    results.put("e", &computed(&"x".repeat(2_000)), version, TOOK);
    assert!(results.any("e", 0).is_none() && results.any("a", 0).is_some());
    let none = Results::new(0);
    none.put("a", &computed("a"), version, TOOK);
    assert!(none.any("a", 0).is_none());
}

#[tokio::test]
async fn a_question_is_found_and_cancelled_by_its_user() {
    let services = set_up().await;
    let project = entered(&services).await;
    let key = |id: &str| Key::of(&project, id.to_owned());
    let time = Timestamp::from_micros;
    let (recent, stop) = (Recent::default(), Arc::new(Stop::default()));
    let number = recent.begin(key("one"), time(1), &stop);
    let status = recent.status(&key("one")).unwrap();
    assert_eq!((status.begun, status.ended, status.fault), (time(1), None, None));
    assert!(recent.status(&key("two")).is_none() && !recent.cancel(&key("two")));
    assert!(recent.cancel(&key("one")));
    stop.stopped().await;

    // A later question with the same id takes its place.
    let other = Arc::new(Stop::default());
    let later = recent.begin(key("one"), time(2), &other);
    let found = |text: &str| {
        Ok(Found { computed: computed(text), is_cached: false, cache_key: String::new() })
    };
    recent.end(&key("one"), number, time(3), &found("of the first"));
    assert!(recent.status(&key("one")).unwrap().ended.is_none());
    recent.end(&key("one"), later, time(4), &found("of the second"));
    let status = recent.status(&key("one")).unwrap();
    assert_eq!((status.begun, status.ended), (time(2), Some(time(4))));
    assert_eq!(status.results.unwrap().get(), "\"of the second\"");
    // One that has ended stays as it is.
    assert!(recent.cancel(&key("one")));
    assert!(recent.status(&key("one")).unwrap().fault.is_none());

    let failed = recent.begin(key("two"), time(5), &other);
    let refused = Err(Error::Unavailable("others are asked"));
    recent.end(&key("two"), failed, time(6), &refused);
    let fault = recent.status(&key("two")).unwrap().fault.unwrap();
    assert_eq!(fault, "The question was not answered: others are asked.");
}

#[tokio::test]
async fn a_stop_is_noticed_before_and_after_the_threads_begin() {
    let stop = Stop::default();
    stop.stop();
    stop.stopped().await;
    let until = Instant::now() + Duration::from_secs(60);
    // Both have the same mark.
    assert!(Arc::ptr_eq(&stop.begin(until), &stop.begin(until)));
    let services = set_up().await;
    let project = entered(&services).await;
    let query = json!({"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}]});
    let query = Query::read(&query).unwrap();
    let answered = services.questions.ask(&project, query.clone(), Asking::default());
    assert!(!answered.await.unwrap().answer.is_cached);
    // No event was stored since.
    let answered = services.questions.ask(&project, query, Asking::default());
    assert!(answered.await.unwrap().answer.is_cached);
    assert_eq!(services.questions.memory_used(), 0);
}

#[tokio::test]
async fn an_answer_in_rows_is_computed_each_time() {
    let services = set_up().await;
    let project = entered(&services).await;
    let sql = "SELECT count() AS n, max(created_at) AS seen FROM persons";
    for (query, columns, types) in [
        (
            json!({"kind": "EventsQuery", "select": ["event", "*"]}),
            ["event", "*"],
            json!(["String", "Tuple"]),
        ),
        (
            json!({"kind": "HogQLQuery", "query": sql}),
            ["n", "seen"],
            json!([["n", "Int64"], ["seen", "DateTime64(6, 'UTC')"]]),
        ),
    ] {
        let query = Query::read(&query).unwrap();
        for refresh in [Refresh::Usual, Refresh::Usual, Refresh::Never] {
            let asking = Asking { refresh, id: None };
            let answered = services.questions.ask(&project, query.clone(), asking).await.unwrap();
            assert!(!answered.answer.is_cached);
            assert_eq!(answered.answer.has_more, Some(false));
            assert!(answered.answer.resolved_date_range.is_none());
            let rows = answered.rows.unwrap();
            assert_eq!(
                (rows.columns, rows.types),
                (columns.map(str::to_owned).to_vec(), types.clone())
            );
            assert_eq!((rows.limit, rows.offset), (100, 0));
        }
    }
}
