//! Events over HTTP, to receivers that fail, hang, throttle and close connections on
//! request.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_egress::{Egress, Resolve, Rules};
use weir_export::columns::{Columns, Source};
use weir_export::destination::{Altered, Delivered, Destination, Failure, Job, Writer};
use weir_export::destinations::{Dependencies, open};
use weir_export::rows::{Batch, Cell, Kind};
use weir_model::exports::ExportModel;
use weir_model::{BatchExportId, ProjectId, RunId, Timestamp};
use weir_testkit::TestApp;
use weir_testkit::servers::{Receiver, Reception};

/// 2026-07-01T10:00:00.123456Z
const TIME: i64 = 1_782_900_000_123_456;
/// Rows in a batch.
const EVENTS_PER_REQUEST: usize = 700;

fn rules(allow: &[&str]) -> Rules {
    Rules { allow: allow.iter().map(|network| network.parse().unwrap()).collect(), own: Vec::new() }
}

fn local() -> Egress {
    Egress::new(rules(&["127.0.0.1/32"])).unwrap()
}

fn over(egress: Egress, url: &str, token: &str) -> Box<dyn Destination> {
    let config = json!({"url": url, "token": token, "exclude_events": null});
    let dependencies = Dependencies::new(egress, None);
    open("HTTP", config.as_object().unwrap(), &dependencies).unwrap()
}

fn destination(receiver: &Receiver) -> Box<dyn Destination> {
    over(local(), &receiver.url(), "phc_token")
}

fn job(destination: &dyn Destination, cursor: Option<String>) -> Job {
    Job {
        export: BatchExportId(Uuid::from_u128(1)),
        run: RunId(Uuid::from_u128(2)),
        project: ProjectId(3),
        start: None,
        end: Timestamp::from_micros(TIME),
        by_time: false,
        model: ExportModel::Events,
        columns: Arc::new(destination.columns()),
        cursor,
    }
}

fn uuid(n: u64) -> Uuid {
    Uuid::from_u128(u128::from(n))
}

fn row(n: u64, properties: &str, chain: &str) -> Vec<Cell> {
    vec![
        Cell::Uuid(uuid(n)),
        Cell::Text(format!("user-{}", n % 7)),
        Cell::Timestamp(TIME + i64::try_from(n).unwrap()),
        Cell::Text(if chain.is_empty() { "paid" } else { "$autocapture" }.to_owned()),
        Cell::Json(properties.to_owned()),
        Cell::Text(chain.to_owned()),
    ]
}

/// Events with the arrival numbers from `after` + 1 to `up_to`.
fn rows(after: u64, up_to: u64) -> Vec<(u64, Vec<Cell>)> {
    (after + 1..=up_to).map(|n| (n, row(n, &format!("{{\"n\":{n}}}"), ""))).collect()
}

async fn write(writer: &mut dyn Writer, rows: Vec<(u64, Vec<Cell>)>) -> Result<(), Failure> {
    for rows in rows.chunks(EVENTS_PER_REQUEST) {
        let (arrivals, rows) = rows.iter().cloned().unzip();
        writer.write(Batch { rows, arrivals: Some(arrivals) }).await?;
    }
    writer.finish().await
}

struct Outcome {
    result: Result<(), Failure>,
    delivered: Option<Delivered>,
    altered: Vec<Altered>,
}

/// A run, or one attempt of it.
async fn run(
    destination: &dyn Destination,
    cursor: Option<String>,
    rows: Vec<(u64, Vec<Cell>)>,
) -> Outcome {
    let mut writer = destination.begin(job(destination, cursor)).await.unwrap();
    let result = write(writer.as_mut(), rows).await;
    let (delivered, altered) = (writer.delivered(), writer.altered());
    if result.is_err() {
        writer.abort().await;
    }
    Outcome { result, delivered, altered }
}

fn delivered(rows: u64, arrival: u64) -> Option<Delivered> {
    Some(Delivered { rows, arrival, cursor: rows.to_string() })
}

/// The numbers of the stored events in the order of their arrival.
fn numbers(receiver: &Receiver) -> Vec<u64> {
    let number = |event: &Value| event["properties"]["n"].as_u64().unwrap();
    receiver.seen().events.iter().map(number).collect()
}

#[tokio::test]
async fn events_arrive_in_order_and_in_few_requests() {
    let receiver = Receiver::start(&[]).await;
    let done = run(destination(&receiver).as_ref(), None, rows(0, 12_001)).await;
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.delivered, delivered(12_001, 12_001));
    assert_eq!(done.altered, []);
    assert_eq!(numbers(&receiver), (1..=12_001).collect::<Vec<_>>());

    let seen = receiver.seen();
    let sizes: Vec<_> =
        seen.requests.iter().map(|(_, body)| body["batch"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [5000, 5000, 2001]);
    let (asked, body) = &seen.requests[0];
    assert_eq!((asked.method.as_str(), asked.version.as_str()), ("POST", "HTTP/1.1"));
    assert_eq!((asked.path.as_str(), asked.query.as_str()), ("/batch/", "ip=0"));
    assert_eq!(asked.header("content-type"), "application/json");
    assert_eq!(
        (&body["api_key"], &body["historical_migration"]),
        (&json!("phc_token"), &json!(true))
    );
    assert_eq!(
        body["batch"][4],
        json!({
            "uuid": "00000000-0000-0000-0000-000000000005",
            "distinct_id": "user-5",
            "timestamp": "2026-07-01T10:00:00.123461Z",
            "event": "paid",
            "properties": {"n": 5, "$geoip_disable": true},
        })
    );
}

#[tokio::test]
async fn an_empty_run_sends_no_request() {
    let receiver = Receiver::start(&[]).await;
    let done = run(destination(&receiver).as_ref(), None, Vec::new()).await;
    assert_eq!((done.result, done.delivered, receiver.requests()), (Ok(()), None, 0));
}

#[tokio::test]
async fn long_events_make_more_requests() {
    let receiver = Receiver::with_limit(&[], 8 << 20).await;
    let long = "x".repeat(1 << 20);
    let rows = (1..=20).map(|n| (n, row(n, &format!("{{\"n\":{n},\"t\":\"{long}\"}}"), "")));
    let done = run(destination(&receiver).as_ref(), None, rows.collect()).await;
    assert_eq!(done.result, Ok(()));
    assert_eq!(numbers(&receiver), (1..=20).collect::<Vec<_>>());
    assert_eq!(receiver.requests(), 4);
}

#[tokio::test]
async fn a_throttled_run_waits_and_resumes_where_it_was() {
    let throttled = Reception::Answer(429, "retry-after: 7\r\n".to_owned());
    let receiver = Receiver::start(&[Reception::Accept, throttled]).await;
    let destination = destination(&receiver);
    let cut = run(destination.as_ref(), None, rows(0, 12_000)).await;
    let failure = cut.result.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("Throttled", true));
    assert_eq!(failure.wait, Some(Duration::from_secs(7)));
    assert_eq!(cut.delivered, delivered(5000, 5000));

    let Delivered { arrival, cursor, .. } = cut.delivered.unwrap();
    let done = run(destination.as_ref(), Some(cursor), rows(arrival, 12_000)).await;
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.delivered, delivered(12_000, 12_000));
    assert_eq!(numbers(&receiver), (1..=12_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_closed_or_hangs_is_tried_again() {
    let closed = (Reception::Close, "ConnectionBroken");
    let taken = (Reception::AcceptInSilence, "ConnectionBroken");
    let hangs = (Reception::Hang, "TimedOut");
    for (act, class) in [closed, taken, hangs] {
        let receiver = Receiver::start(std::slice::from_ref(&act)).await;
        let egress = match act {
            Reception::Hang => local().within(Duration::from_millis(1500)),
            _ => local(),
        };
        let hasty = over(egress, &receiver.url(), "t");
        let cut = run(hasty.as_ref(), None, rows(0, 6_000)).await;
        let failure = cut.result.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), (class, true), "{act:?}");
        assert_eq!(cut.delivered, None);

        // With a long timeout, because other tests keep the machine busy.
        let patient = destination(&receiver);
        let done = run(patient.as_ref(), None, rows(0, 6_000)).await;
        assert_eq!((done.result, done.delivered), (Ok(()), delivered(6_000, 6_000)));
        // Events that the receiver accepted without an answer come again with the same
        // uuids.
        let kept: HashMap<String, usize> = receiver.seen().by_uuid();
        assert_eq!(kept.len(), 6_000);
        let again = kept.values().filter(|times| **times == 2).count();
        assert_eq!(again, if act == Reception::AcceptInSilence { 5_000 } else { 0 });
    }
    let receiver = Receiver::start(&[]).await;
    let url = receiver.url();
    drop(receiver);
    let failed = async {
        loop {
            let outcome = run(over(local(), &url, "t").as_ref(), None, rows(0, 1)).await;
            // The listener may live a moment longer than its owner.
            match outcome.result.unwrap_err() {
                failure if failure.class == "ConnectionRefused" => return failure,
                failure => assert_eq!(failure.class, "ConnectionBroken"),
            }
        }
    };
    assert!(failed.await.is_retryable);
}

#[tokio::test]
async fn refusals_are_final_and_faults_of_the_receiver_are_not() {
    let location = "location: http://127.0.0.2/\r\n";
    for (status, headers, class, is_retryable) in [
        (302, location, "Redirected", false),
        (400, "", "InvalidRequest", false),
        (401, "", "TokenRefused", false),
        (404, "", "NoReceiver", false),
        (422, "", "HttpStatus", false),
        (500, "", "HttpStatus", true),
        (503, "retry-after: 3\r\n", "HttpStatus", true),
    ] {
        let receiver = Receiver::start(&[Reception::Answer(status, headers.to_owned())]).await;
        let outcome = run(destination(&receiver).as_ref(), None, rows(0, 10)).await;
        let failure = outcome.result.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{status}");
        assert_eq!(failure.wait, (status == 503).then(|| Duration::from_secs(3)));
        // The message has no text of the receiver.
        assert!(!failure.message.contains("127.0.0.2") && !failure.message.contains('{'));
        assert_eq!((outcome.delivered, receiver.requests()), (None, 1), "{status}");
    }
}

#[tokio::test]
async fn successful_answers_are_checked() {
    let over_quota = Reception::AcceptSaying(r#"{"quota_limited":["events"]}"#.to_owned());
    let receiver = Receiver::start(&[over_quota]).await;
    let failure = run(destination(&receiver).as_ref(), None, rows(0, 1)).await.result.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("OverQuota", false));

    let huge = Reception::AcceptSaying("x".repeat(3 << 20));
    let receiver = Receiver::start(&[huge, Reception::AcceptSaying("Ok".to_owned())]).await;
    let done = run(destination(&receiver).as_ref(), None, rows(0, 5_001)).await;
    assert_eq!((done.result, done.delivered), (Ok(()), delivered(5_001, 5_001)));
}

#[tokio::test]
async fn a_receiver_of_small_requests_gets_small_ones() {
    let receiver = Receiver::with_limit(&[], 100_000).await;
    let mut all = rows(0, 7_999);
    let long = "x".repeat(200_000);
    all.push((8_000, row(8_000, &format!("{{\"n\":8000,\"t\":\"{long}\"}}"), "")));
    all.extend(rows(8_000, 9_000));
    let done = run(destination(&receiver).as_ref(), None, all).await;
    // One event is missing at the receiver.
    assert_eq!((done.result, done.delivered), (Ok(()), delivered(8_999, 9_000)));
    let expected: Vec<u64> = (1..=9_000).filter(|n| *n != 8_000).collect();
    assert_eq!(numbers(&receiver), expected);
    let [altered] = &done.altered[..] else { panic!("{:?}", done.altered) };
    assert_eq!(altered.uuid, Some(uuid(8_000)));
    assert!(altered.what.contains("skipped"), "{}", altered.what);
    // The learned limit holds for the rest of the run.
    let is_refused = |body: &Value| body.to_string().len() > 100_000;
    let refused = receiver.seen().requests.iter().filter(|(_, body)| is_refused(body)).count();
    assert!(refused < 20, "{refused} requests were too large");
}

#[tokio::test]
async fn a_run_that_is_dropped_sends_nothing_more() {
    let receiver = Receiver::start(&[Reception::Hang]).await;
    let destination = destination(&receiver);
    let mut writer = destination.begin(job(destination.as_ref(), None)).await.unwrap();
    let (arrivals, rows) = rows(0, 5_500).into_iter().unzip();
    writer.write(Batch { rows, arrivals: Some(arrivals) }).await.unwrap();
    receiver.wait_for(1).await;
    assert_eq!(writer.delivered(), None);
    drop(writer);
    let again = run(destination.as_ref(), None, Vec::new()).await;
    assert_eq!((again.result, receiver.requests()), (Ok(()), 1));
}

/// A name that resolves to a public address first and to this machine afterwards.
struct Rebinding(AtomicUsize);

#[async_trait]
impl Resolve for Rebinding {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let address = match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => "8.8.8.8",
            _ => "127.0.0.1",
        };
        Ok(vec![address.parse().unwrap()])
    }
}

#[tokio::test]
async fn inner_addresses_are_refused_when_a_run_dials_them() {
    let receiver = Receiver::start(&[]).await;
    let port = receiver.url().rsplit(':').next().unwrap().to_owned();
    let unreachable = || Egress::new(rules(&[])).unwrap();
    let names = Arc::new(Rebinding(AtomicUsize::new(0)));
    let rebound = Egress::with_resolver(rules(&[]), names).unwrap();
    let saved = over(rebound, &format!("http://a.example:{port}"), "t");
    assert_eq!(saved.test(0, ExportModel::Events).await, Ok(()));
    for destination in [
        saved,
        over(unreachable(), &receiver.url(), "t"),
        over(unreachable(), &format!("http://localhost:{port}"), "t"),
        over(unreachable(), &format!("http://0x7f000001:{port}"), "t"),
        over(unreachable(), &format!("http://[::ffff:127.0.0.1]:{port}"), "t"),
    ] {
        let failure = run(destination.as_ref(), None, rows(0, 1)).await.result.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), ("ForbiddenAddress", false));
    }
    assert_eq!(receiver.requests(), 0);
    let failure = over(unreachable(), "http://u:p@a.example/", "t")
        .test(0, ExportModel::Events)
        .await
        .unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("ForbiddenAddress", false));
}

#[tokio::test]
async fn a_test_leaves_nothing_and_says_what_is_wrong() {
    let answer = |status| Reception::Answer(status, String::new());
    let receiver = Receiver::start(&[answer(200), answer(400)]).await;
    let working = destination(&receiver);
    assert_eq!(working.steps().len(), 2);
    assert_eq!(
        (working.test(0, ExportModel::Events).await, working.test(1, ExportModel::Events).await),
        (Ok(()), Ok(()))
    );
    // Some receivers answer a batch without events with an error.
    assert_eq!(working.test(1, ExportModel::Events).await, Ok(()));
    for (status, class) in [(401, "TokenRefused"), (404, "NoReceiver"), (502, "HttpStatus")] {
        receiver.then(&[answer(status)]);
        assert_eq!(working.test(1, ExportModel::Events).await.unwrap_err().class, class);
    }
    assert_eq!(receiver.seen().events, Vec::<Value>::new());
}

#[tokio::test]
async fn receivers_take_whole_events_only() {
    let receiver = Receiver::start(&[]).await;
    let destination = destination(&receiver);
    let mut queried = job(destination.as_ref(), None);
    queried.columns = Arc::new(Columns::of(&[("event", Kind::Text, Source::Event)]));
    let mut persons = job(destination.as_ref(), None);
    persons.model = ExportModel::Persons;
    for job in [queried, persons] {
        let failure = destination.begin(job).await.err().unwrap();
        assert_eq!((failure.class, failure.is_retryable), ("WrongColumns", false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_instance_gets_the_same_events() {
    let app = TestApp::with_owner().await;
    let destination = over(local(), &format!("http://{}", app.address()), app.project_key());
    assert_eq!(destination.test(1, ExportModel::Events).await, Ok(()));
    let rows = vec![
        (1, row(1, r#"{"big":9007199254740993,"text":"ünï \u0000","list":[null,{"a":1.5}]}"#, "")),
        (2, row(2, r#"{"$geoip_disable":false}"#, r#"a:href="/"text="Go""#)),
    ];
    // The second call changes nothing.
    for _ in 0..2 {
        let done = run(destination.as_ref(), None, rows.clone()).await;
        assert_eq!((done.result, done.delivered), (Ok(()), delivered(2, 2)));
    }
    app.app().ingest.applied().await;
    let caller = app.owner().key(&["event:read"]).await;
    let answer = caller.get(&format!("/api/projects/{}/events/", app.project())).await;
    assert!(String::from_utf8_lossy(&answer.body).contains("9007199254740993"));
    let events = answer.json();
    let [second, first] = &events["results"].as_array().unwrap()[..] else { panic!("{events}") };
    assert_eq!(first["uuid"], uuid(1).to_string());
    assert_eq!((&first["event"], &first["distinct_id"]), (&json!("paid"), &json!("user-1")));
    assert_eq!(first["timestamp"], "2026-07-01T10:00:00.123457Z");
    assert_eq!((&first["historical"], &first["elements_chain"]), (&json!(true), &json!("")));
    assert_eq!(first["properties"]["list"], json!([null, {"a": 1.5}]));
    assert_eq!(first["properties"]["$geoip_disable"], true);
    assert_eq!(first["properties"].get("$ip"), None);
    assert_eq!(second["event"], "$autocapture");
    assert_eq!(second["elements_chain"], r#"a:href="/"text="Go""#);
    assert_eq!(second["properties"]["$geoip_disable"], true);
}
