//! Exports of persons.

use uuid::Uuid;
use weir_model::exports::{ExportModel, Run, Status};
use weir_store::persons::{Facts, Merged, PersonState, first_id};

use super::backfills::{backfill, ended, start};
use super::support::{BEGIN, Fixture, PROJECT};
use crate::rows::Cell;

const INTERVAL: i64 = 300;

fn completed(count: usize) -> impl Fn(&[Run]) -> bool {
    move |runs| runs.len() == count && runs.iter().all(|run| run.status == Status::Completed)
}

fn person(distinct_ids: &[&str]) -> PersonState {
    PersonState::Person(Facts {
        distinct_ids: distinct_ids.iter().map(|id| (*id).to_owned()).collect(),
        properties: format!(r#"{{"known as":{}}}"#, distinct_ids.len()),
        created_at: BEGIN * 1_000_000,
        is_identified: true,
    })
}

fn merged(into: &str) -> PersonState {
    let (at, by) = (BEGIN * 1_000_000, Uuid::from_u128(1));
    PersonState::Merged(Merged { into: first_id(PROJECT, into), at, by })
}

/// Events from seven users, one after the other. The first user is one person with two of
/// the distinct ids and one without events, one user was never stored as a person, and
/// the others are one person each.
async fn fixture() -> Fixture {
    let fixture = Fixture::of("every 5 minutes", ExportModel::Persons).await;
    fixture.will_write("user 0", 4, person(&["user 0", "user 1", "silent"]));
    fixture.will_write("user 1", 1, merged("silent"));
    fixture.will_write("silent", 2, merged("user 0"));
    for n in 3..7 {
        let id = format!("user {n}");
        fixture.will_write(&id, 0, person(&[&id]));
    }
    fixture
}

/// All persons of [`fixture`].
fn everybody() -> Vec<(String, Uuid, i64)> {
    let row =
        |id: &str, person: &str, version| (id.to_owned(), first_id(PROJECT, person).0, version);
    vec![
        row("silent", "user 0", 4),
        row("user 0", "user 0", 4),
        row("user 1", "user 0", 4),
        row("user 3", "user 3", 0),
        row("user 4", "user 4", 0),
        row("user 5", "user 5", 0),
        row("user 6", "user 6", 0),
    ]
}

/// Distinct ids at the destination with their persons and versions, in order.
fn there(fixture: &Fixture, end: i64) -> Vec<(String, Uuid, i64)> {
    let end = weir_model::Timestamp::from_micros((BEGIN + end) * 1_000_000);
    let rows = fixture.world(|world| world.people.get(&end).cloned().unwrap_or_default());
    let read = |row: Vec<Cell>| {
        let [_, Cell::Text(distinct_id), Cell::Uuid(person), _, Cell::Integer(version), ..] =
            row.as_slice()
        else {
            panic!("{row:?}")
        };
        (distinct_id.clone(), *person, *version)
    };
    let mut rows: Vec<_> = rows.into_iter().map(read).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn each_person_with_events_is_exported_once_with_all_distinct_ids() {
    let mut fixture = fixture().await;
    fixture.start();
    fixture.arrive(3_000).await;
    fixture.services.advance(INTERVAL);
    let runs = fixture.until_runs(completed(1)).await;
    assert_eq!(there(&fixture, INTERVAL), everybody());
    assert_eq!((runs[0].records_total_count, runs[0].records_completed), (Some(7), Some(7)));
    let lines = fixture.lines(runs[0].id).await;
    let first = "Try 1: exporting the persons that had events to NoOp.";
    assert_eq!(lines[0].message, first);
    assert_eq!(lines.last().unwrap().message, "Completed: 7 rows of persons are delivered.");

    // The next run has the persons of its own events, number 3001 and 3002.
    fixture.arrive(2).await;
    fixture.services.advance(INTERVAL);
    fixture.until_runs(completed(2)).await;
    let expected: Vec<_> =
        everybody().into_iter().filter(|(id, _, _)| id == "user 5" || id == "user 6").collect();
    assert_eq!(there(&fixture, 2 * INTERVAL), expected);

    // There are no new events.
    fixture.services.advance(INTERVAL);
    let runs = fixture.until_runs(completed(3)).await;
    assert_eq!(runs[2].records_completed, Some(0));
    assert_eq!(fixture.world(|world| world.begun), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_persons_than_fit_into_memory_are_there_once_too() {
    for most in 1..=4 {
        let mut fixture = fixture().await;
        fixture.persons = most;
        fixture.start();
        fixture.arrive(3_000).await;
        fixture.services.advance(INTERVAL);
        fixture.until_runs(completed(1)).await;
        assert_eq!(there(&fixture, INTERVAL), everybody(), "{most}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_restarts() {
    let mut fixture = fixture().await;
    fixture.world(|world| {
        world.goes_on = true;
        world.hangs = true;
    });
    fixture.start();
    fixture.arrive(100).await;
    fixture.services.advance(INTERVAL);
    fixture.until_world(|world| world.begun == 1).await;
    fixture.kill();
    fixture.world(|world| world.hangs = false);
    fixture.start();
    let runs = fixture.until_runs(completed(1)).await;
    assert_eq!(there(&fixture, INTERVAL), everybody());
    assert_eq!((runs[0].records_completed, runs[0].cursor.as_deref()), (Some(7), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_has_those_with_events_of_its_time() {
    let mut fixture = fixture().await;
    fixture.change(|row| row.paused = true).await;
    // One event of every user, an hour apart from the first on.
    let hour = 3_600;
    let from = BEGIN - 10 * hour;
    fixture.arrive_at(7, |n| from + i64::try_from(n).unwrap() * hour).await;
    fixture.start();
    let (begin, end) = (from + 3 * hour, from + 3 * hour + INTERVAL);
    let id = start(&fixture, backfill(&fixture, Some(begin), end)).await;
    assert_eq!(ended(&fixture, id).await.status, Status::Completed);
    let expected: Vec<_> = everybody().into_iter().filter(|(id, _, _)| id == "user 3").collect();
    assert_eq!(there(&fixture, end - BEGIN), expected);
}
