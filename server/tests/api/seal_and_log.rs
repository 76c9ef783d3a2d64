//! `weir seal` and `weir log`, which work on a data directory.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_testkit::Caller;

use crate::process::{Output, Serving, events, run, set_up, weir};

/// One run of `weir log`.
async fn log(data: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = weir(data);
    command.arg("log").args(arguments);
    run(command, input).await
}

async fn inspected(data: &Path, arguments: &[&str]) -> Value {
    let report = log(data, &[&["inspect", "--json"][..], arguments].concat(), "").await;
    assert!(report.ok, "{}", report.err);
    serde_json::from_str(&report.out).unwrap()
}

/// All events and persons, in a fixed order.
async fn everything(caller: &Caller, made: &Value) -> (Vec<Value>, Vec<Value>) {
    let caller = caller.with_key(made["personal_api_key"].as_str().unwrap());
    let mut lists = Vec::new();
    for (list, id) in [("events", "uuid"), ("persons", "id")] {
        let path = format!("/api/projects/{}/{list}/?limit=1000", made["project_id"]);
        let mut all = caller.get(&path).await.json()["results"].as_array().unwrap().clone();
        all.sort_by_key(|row| row[id].as_str().unwrap().to_owned());
        lists.push(all);
    }
    let persons = lists.pop().unwrap();
    (lists.pop().unwrap(), persons)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_events_are_sealed_on_request_and_read_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let seal = async || {
        let mut command = weir(data);
        command.arg("seal");
        run(command, "").await
    };
    let refused = seal().await;
    assert!(!refused.ok && refused.err.contains("no store"), "{}", refused.err);
    let made = set_up(data, "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let batch = |name: &str| {
        let events = (0..100).map(|n| {
            json!({"event": name, "distinct_id": format!("user-{}", n % 9),
                   "uuid": uuid::Uuid::from_u128(1 << 100 | n)})
        });
        json!({"api_key": made["project_api_key"], "batch": events.collect::<Vec<_>>()})
    };
    let mut before = None;
    for round in 0..2 {
        let serving = Serving::start(data).await;
        // The second time they are known already.
        assert_eq!(serving.caller.post("/batch/", &batch("reported")).await.status, 200);
        events(&serving.caller, &made, 100).await;
        let now = everything(&serving.caller, &made).await;
        assert_eq!((now.0.len(), now.1.len()), (100, 9));
        assert_eq!(*before.get_or_insert(now.clone()), now);
        let refused = seal().await;
        assert!(
            !refused.ok && refused.err.contains("in use by another process"),
            "{}",
            refused.err
        );
        serving.signal(Signal::TERM);
        assert_eq!(serving.ended().await, Some(0));
        let sealed = seal().await;
        assert!(sealed.ok, "{}", sealed.err);
        match round {
            0 => assert!(sealed.out.starts_with("Moved 100 events into"), "{}", sealed.out),
            _ => assert!(sealed.out.starts_with("All stored events"), "{}", sealed.out),
        }
        // The log, which has the events twice in the end, leads to no second event.
        let replayed = log(data, &["replay", "--yes"], "").await;
        let known = format!("Stored already: {}\nAppended again: 0", 100 * (round + 1));
        assert!(replayed.out.contains(&known), "{}", replayed.out);
    }
    let mut command = weir(data);
    command.args(["seal", "--persons"]);
    let sealed = run(command, "").await;
    let said = "persons written: 9, of projects: 1";
    assert!(sealed.ok && sealed.out.contains(said), "{}{}", sealed.out, sealed.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_inspected_and_applied_once_more_without_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    // Without a data directory there is nothing to show, and none is created.
    let empty = inspected(data, &[]).await;
    assert_eq!((&empty["segments"], &empty["end"]), (&json!([]), &Value::Null));
    let refused = log(data, &["replay", "--yes"], "").await;
    assert!(!refused.ok && refused.err.contains("no store"), "{}", refused.err);
    assert!(!data.join("data").exists());

    let made = set_up(data, "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let serving = Serving::start(data).await;
    for request in 0..10 {
        let batch: Vec<Value> = (0..10)
            .map(|n| {
                json!({"event": "reported", "distinct_id": format!("user-{n}"),
                       "properties": {"$set": {"last": request}}})
            })
            .collect();
        let body = json!({"api_key": made["project_api_key"], "batch": batch,
                          "historical_migration": request == 4});
        assert_eq!(serving.caller.post("/batch/", &body).await.status, 200);
    }
    assert_eq!(events(&serving.caller, &made, 100).await.len(), 100);
    let before = everything(&serving.caller, &made).await;
    assert_eq!((before.0.len(), before.1.len()), (100, 10));

    // While the service runs, the log on disk can be inspected, but not the positions; a
    // replay is refused.
    let seen = inspected(data, &["--records"]).await;
    assert_eq!((&seen["in_use"], &seen["partitions"]), (&json!(true), &Value::Null));
    assert_eq!(seen["records"].as_array().unwrap().len(), 10);
    let refused = log(data, &["replay", "--yes"], "").await;
    assert!(!refused.ok && refused.err.contains("in use by another process"), "{}", refused.err);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    let seen = inspected(data, &["--records"]).await;
    assert_eq!((&seen["in_use"], &seen["waiting"]["events"]), (&json!(false), &json!(0)));
    let [segment] = seen["segments"].as_array().unwrap().as_slice() else {
        unreachable!("one segment: {seen}")
    };
    assert_eq!((&segment["records"], &segment["events"]), (&json!(10), &json!(100)));
    assert_eq!((&seen["broken"], &seen["quarantine"]), (&json!([]), &json!([])));
    let records = seen["records"].as_array().unwrap();
    assert_eq!((&records[4]["events"], &records[4]["historical"]), (&json!(10), &json!(true)));
    let shown = log(data, &["inspect", "--records"], "").await;
    assert!(shown.out.contains("historical") && shown.out.contains("Waiting: 0 events"));

    // Simulates a version that cannot read the second record.
    let bytes = std::fs::read(segment["path"].as_str().unwrap()).unwrap();
    let place = |record: usize| usize::try_from(records[record]["offset"].as_u64().unwrap());
    let (from, to) = (place(1).unwrap(), place(2).unwrap());
    let quarantine = Path::new(seen["directory"].as_str().unwrap()).join("quarantine");
    std::fs::create_dir(&quarantine).unwrap();
    std::fs::write(quarantine.join(format!("{from:020}.bytes")), &bytes[from..to]).unwrap();
    let kept = &inspected(data, &[]).await["quarantine"][0];
    assert_eq!((&kept["offset"], &kept["records"]), (&json!(from), &json!([records[1]])));
    let shown = log(data, &["inspect"], "").await;
    assert!(shown.out.contains("10 events from number 11"), "{}", shown.out);
    assert!(shown.out.contains("`weir log replay` can bring it back"), "{}", shown.out);

    let (end, second) = (&seen["end"], &records[1]["offset"]);
    for (arguments, input, expected) in [
        (vec!["--from", "3"], "", "no sound record begins at offset 3"),
        (vec!["--from", "999999999"], "", "the log ends at offset"),
    ] {
        let refused = log(data, &[&["replay"][..], arguments.as_slice()].concat(), input).await;
        assert!(!refused.ok && refused.err.contains(expected), "{}", refused.err);
    }
    let asked = log(data, &["replay"], "no\n").await;
    assert!(asked.ok && asked.out.contains("10 records with 100 events, from offset 0"));
    assert!(asked.out.contains("Nothing was changed."), "{}", asked.out);
    let part = log(data, &["replay", "--from", &second.to_string()], "y\n").await;
    assert!(part.out.contains("Stored already: 90"), "{}", part.out);
    let whole = log(data, &["replay", "--yes"], "").await;
    assert!(whole.out.contains("Stored already: 100\nAppended again: 0"), "{}", whole.out);
    assert_eq!(&inspected(data, &[]).await["end"], end, "nothing was appended");

    let serving = Serving::start(data).await;
    assert_eq!(everything(&serving.caller, &made).await, before);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}
