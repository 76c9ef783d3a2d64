mod unread;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use weir_model::exports::{LogLevel, LogLine, RECENT_RUNS, Status};
use weir_model::{BackfillId, MembershipId, RunId, UserId};

use super::backfills::{BackfillRow, Plan};
use super::logs::{LINES, Logs};
use super::runs::{Progress, RunRow, Runs};
use super::schedule::Schedule;
use super::*;
use crate::organizations::{self, NewOrganization, OrganizationRow};
use crate::projects::{self, ProjectRow};
use crate::update::tests::replace;
use crate::{Location, Settings, ids};

const PROJECT: ProjectId = ProjectId(1);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_787_000_000_000_000).plus_seconds(seconds)
}

async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

const WRITE: Statement = Statement::write(
    "test",
    "UPSERT type::record('batch_export', $export.uuid) CONTENT $export RETURN NONE;",
);

/// An export without its organization.
async fn export(store: &Store) -> ExportRow {
    let row = ExportRow {
        id: BatchExportId(ids::time_ordered(at(0))),
        organization: OrganizationId(Uuid::from_u128(7)),
        project: PROJECT,
        name: "Warehouse".to_owned(),
        kind: "NoOp".to_owned(),
        config: "{}".to_owned(),
        secrets: None,
        model: "events".to_owned(),
        interval: "hour".to_owned(),
        timezone: None,
        offset_day: None,
        offset_hour: None,
        paused: false,
        created_at: at(0),
        updated_at: at(0),
        last_paused_at: None,
        backfilled: Backfilled(None),
        start_at: None,
        end_at: None,
        query: None,
        schema: None,
        revision: Uuid::from_u128(1),
        latest: Vec::new(),
    };
    store.db.run(WRITE, bind! { export: row.clone() }).await.unwrap();
    row
}

fn run(export: &ExportRow, seconds: i64) -> RunRow {
    let created_at = at(seconds);
    let run = Run {
        id: RunId(ids::time_ordered(created_at)),
        status: Status::Starting,
        records_completed: None,
        latest_error: None,
        data_interval_start: Some(at(seconds - 3600)),
        data_interval_end: created_at,
        cursor: None,
        created_at,
        finished_at: None,
        last_updated_at: created_at,
        records_total_count: None,
        batch_export: export.id,
        failing_since: None,
        next_try_at: None,
    };
    RunRow { after: 3, up_to: 9, ..RunRow::new(run) }
}

fn progress(status: Status, completed: u64) -> Progress {
    Progress {
        status,
        completed: Some(completed),
        total: Some(6),
        latest_error: None,
        cursor: Some("c".to_owned()),
        delivered: Some(5),
        attempt: 2,
        bytes: 100,
        target: Some("t".to_owned()),
        failing_since: Some(at(1)),
        next_try: Some(at(2)),
    }
}

fn schedule(seconds: i64, watermark: u64) -> Schedule {
    Schedule::new(at(seconds), watermark, "hour".to_owned())
}

/// Creates a run as the schedule does, from the beginning of its interval.
async fn create_run(store: &Store, row: &RunRow) {
    let (export, end) = (row.run.batch_export, row.run.data_interval_end);
    let present = schedule::all(store).await.unwrap().remove(&export);
    let after = Schedule { last_end: end, ..schedule(0, row.up_to) };
    let before = Schedule { last_end: end.plus_seconds(-3600), ..schedule(0, row.after) };
    assert!(schedule::advance(store, export, present.as_ref(), &before).await.unwrap());
    assert!(runs::create(store, row, &before, &after).await.unwrap());
}

#[tokio::test]
async fn an_interval_has_one_run() {
    let store = store().await;
    let export = export(&store).await;
    let (zero, one, two) = (schedule(0, 0), schedule(3600, 9), schedule(7200, 20));
    assert!(schedule::advance(&store, export.id, None, &zero).await.unwrap());
    assert!(!schedule::advance(&store, export.id, None, &one).await.unwrap());
    let first = run(&export, 3600);
    assert!(runs::create(&store, &first, &zero, &one).await.unwrap());
    // With an outdated schedule.
    assert!(!runs::create(&store, &run(&export, 7200), &zero, &two).await.unwrap());
    assert_eq!(schedule::all(&store).await.unwrap()[&export.id], one);
    assert_eq!(runs::row(&store, export.id, first.run.id).await.unwrap(), Some(first.clone()));
    let latest = find(&store, export.id).await.unwrap().unwrap().latest;
    assert_eq!(latest.first(), Some(&first.run.id));
}

#[tokio::test]
async fn a_run_that_ended_stays_as_it_is() {
    let store = store().await;
    let export = export(&store).await;
    let row = run(&export, 0);
    let id = row.run.id;
    create_run(&store, &row).await;
    assert_eq!(runs::active(&store).await.unwrap(), [row]);
    let step = progress(Status::Running, 4);
    assert!(runs::step(&store, export.id, id, &step, at(1)).await.unwrap());
    let stored = runs::row(&store, export.id, id).await.unwrap().unwrap();
    assert_eq!(
        (stored.run.status, stored.run.records_completed, stored.delivered, stored.attempt),
        (Status::Running, Some(4), Some(5), 2)
    );
    assert_eq!(stored.target.as_deref(), Some("t"));
    assert_eq!((stored.run.failing_since, stored.run.next_try_at), (Some(at(1)), Some(at(2))));
    assert_eq!((stored.after, stored.up_to, stored.run.finished_at), (3, 9, None));

    assert!(runs::request_cancel(&store, export.id, id, at(2), &[]).await.unwrap());
    assert!(!runs::request_cancel(&store, export.id, id, at(3), &[]).await.unwrap());
    let done = progress(Status::Completed, 6);
    assert!(!runs::step(&store, export.id, id, &done, at(4)).await.unwrap());
    let stored = runs::find(&store, export.id, id).await.unwrap().unwrap();
    assert_eq!((stored.status, stored.next_try_at), (Status::Cancelled, None));
    assert_eq!((stored.records_completed, stored.finished_at), (Some(4), Some(at(2))));
    assert_eq!(runs::active(&store).await.unwrap(), []);
    let nobody = RunId(Uuid::from_u128(5));
    assert!(!runs::request_cancel(&store, export.id, nobody, at(2), &[]).await.unwrap());
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    let store = store().await;
    let export = export(&store).await;
    let mut rows = Vec::new();
    for n in 0..30 {
        rows.push(run(&export, n * 7_000));
        create_run(&store, rows.last().unwrap()).await;
    }
    rows.reverse();
    let newest: Vec<RunId> = rows.iter().map(|row| row.run.id).collect();
    let page = async |wanted: Runs| -> Vec<RunId> {
        let found = runs::page(&store, export.id, wanted).await.unwrap();
        found.into_iter().map(|run| run.id).collect()
    };
    let all = Runs { limit: 100, ..Runs::default() };
    assert_eq!(page(all).await, newest);
    let first = page(Runs { limit: 7, ..all }).await;
    assert_eq!(first, newest[..7]);
    let second = page(Runs { limit: 7, cursor: first.last().copied(), ..all }).await;
    assert_eq!(second, newest[7..14]);
    let within = Runs { after: Some(at(7_000)), before: Some(at(21_000)), ..all };
    assert_eq!(page(within).await, newest[26..29]);
    let all = briefs_of_all(&store, &[export.id]).await.unwrap();
    for (most, expected) in [(10, 10), (1_000, RECENT_RUNS)] {
        let found = runs::latest(&store, &all, most).await.unwrap();
        let found: Vec<RunId> = found[0].iter().map(|run| run.id).collect();
        assert_eq!(found, newest[..expected]);
    }
}

#[tokio::test]
async fn lines_of_a_run_are_bounded_and_found() {
    let store = store().await;
    let export = export(&store).await;
    let (one, two) = (run(&export, 0), run(&export, 1));
    let line = |row: &RunRow, seconds: i64, level, message: &str| LogLine {
        log_source_id: export.id,
        instance_id: row.run.id,
        timestamp: at(seconds),
        level,
        message: message.to_owned(),
    };
    for row in [&one, &two] {
        create_run(&store, row).await;
    }
    let fault = line(&two, 5, LogLevel::Error, "Connection refused");
    logs::add(&store, &fault, 0).await.unwrap();
    // Once more, as after an unknown outcome.
    logs::add(&store, &fault, 0).await.unwrap();
    for n in 0..LINES + 5 {
        let line = line(&one, 10, LogLevel::Info, &format!("line {n}"));
        logs::add(&store, &line, n).await.unwrap();
    }
    let page = async |run: Option<RunId>, wanted: Logs| {
        let found = logs::page(&store, export.id, run, wanted).await.unwrap();
        found.into_iter().map(|line| line.message).collect::<Vec<_>>()
    };
    let all = Logs { limit: 500, ..Logs::default() };
    assert_eq!(page(None, all.clone()).await.len(), LINES as usize + 1);
    let own = page(Some(one.run.id), all.clone()).await;
    assert_eq!(own.len(), LINES as usize);
    assert!(own[0].contains("omitted"), "{}", own[0]);
    let errors = Logs { levels: vec![LogLevel::Error], ..all.clone() };
    assert_eq!(page(None, errors).await, ["Connection refused"]);
    let search = Logs { search: Some("REFUSED".to_owned()), ..all.clone() };
    assert_eq!(page(None, search).await, ["Connection refused"]);
    let before = Logs { before: Some(at(9)), ..all.clone() };
    assert_eq!(page(None, before).await, ["Connection refused"]);
    assert_eq!(page(None, Logs { limit: 3, ..all }).await.len(), 3);
}

async fn started(store: &Store, export: &ExportRow) -> BackfillId {
    let backfill = BackfillRow {
        id: BackfillId(ids::time_ordered(at(0))),
        export: export.id,
        project: PROJECT,
        start_at: None,
        end_at: at(7200),
        total_runs: None,
        retry_of: None,
        created_at: at(0),
    };
    let id = backfill.id;
    let row = ExportRow { revision: ids::time_ordered(at(1)), ..export.clone() };
    replace(store, row.id, &row, Some(NewBackfill { row: backfill, most: 5 })).await;
    id
}

#[tokio::test]
async fn a_backfill_goes_from_run_to_run() {
    let store = store().await;
    let export = export(&store).await;
    let id = started(&store, &export).await;
    let found = backfills::active(&store).await.unwrap();
    assert_eq!((found.len(), found[0].plan, found[0].shown.progress), (1, None, None));
    let plan = Plan { start: at(0), total_runs: 2, each: Some(1), after: 0, up_to: 50 };
    assert!(backfills::begin(&store, export.id, id, plan, at(1)).await.unwrap());

    let first = RunRow { backfill: Some(id), by_time: true, ..run(&export, 3600) };
    assert!(backfills::add_run_of(&store, &first, at(0), at(3600)).await.unwrap());
    let other = RunRow { backfill: Some(id), ..run(&export, 3600) };
    assert!(!backfills::add_run_of(&store, &other, at(0), at(3601)).await.unwrap());
    let done = progress(Status::Completed, 6);
    assert!(runs::step(&store, export.id, first.run.id, &done, at(9)).await.unwrap());

    let shown = backfills::find(&store, PROJECT, export.id, id).await.unwrap().unwrap();
    assert_eq!(shown.total_records_count, Some(6));
    assert_eq!(shown.adjusted_start_at, Some(at(0)));
    let progress = shown.progress.unwrap();
    assert_eq!((progress.total_runs, progress.finished_runs, progress.progress), (2, 1, 0.5));
    let state = &backfills::active(&store).await.unwrap()[0];
    assert_eq!((state.plan, state.next), (Some(plan), Some(at(3600))));
    let page = backfills::page(&store, PROJECT, export.id, None, 50).await.unwrap();
    assert_eq!(page, [shown]);
    assert_eq!(backfills::page(&store, PROJECT, export.id, Some(id), 50).await.unwrap(), []);
}

#[tokio::test]
async fn a_cancelled_run_counts_for_its_backfill_and_a_failed_one_ends_it() {
    let store = store().await;
    let export = export(&store).await;
    let id = started(&store, &export).await;
    let plan = Plan { start: at(0), total_runs: 2, each: Some(1), after: 0, up_to: 50 };
    assert!(backfills::begin(&store, export.id, id, plan, at(1)).await.unwrap());
    let shown = async || backfills::find(&store, PROJECT, export.id, id).await.unwrap().unwrap();

    let first = RunRow { backfill: Some(id), by_time: true, ..run(&export, 3600) };
    assert!(backfills::add_run_of(&store, &first, at(0), at(3600)).await.unwrap());
    let step = progress(Status::Running, 4);
    assert!(runs::step(&store, export.id, first.run.id, &step, at(2)).await.unwrap());
    assert!(runs::request_cancel(&store, export.id, first.run.id, at(3), &[]).await.unwrap());
    let found = shown().await;
    assert_eq!((found.status, found.total_records_count), (Status::Running, Some(4)));
    assert_eq!(found.progress.map(|progress| progress.finished_runs), Some(1));

    let second = RunRow { backfill: Some(id), by_time: true, ..run(&export, 7200) };
    assert!(backfills::add_run_of(&store, &second, at(3600), at(7200)).await.unwrap());
    let failed = progress(Status::TimedOut, 2);
    assert!(runs::step(&store, export.id, second.run.id, &failed, at(5)).await.unwrap());
    let found = shown().await;
    assert_eq!((found.status, found.finished_at), (Status::Failed, Some(at(5))));
    assert_eq!(found.total_records_count, Some(6));
    assert_eq!(backfills::active(&store).await.unwrap(), []);
}

#[tokio::test]
async fn a_backfill_without_one_of_its_runs_is_not_completed() {
    let store = store().await;
    let export = export(&store).await;
    let plan = Plan { start: at(0), total_runs: 1, each: Some(1), after: 0, up_to: 50 };
    for (is_cancelled, status) in [(true, Status::Cancelled), (false, Status::Completed)] {
        let id = started(&store, &export).await;
        assert!(backfills::begin(&store, export.id, id, plan, at(1)).await.unwrap());
        let row = RunRow { backfill: Some(id), by_time: true, ..run(&export, 3600) };
        assert!(backfills::add_run_of(&store, &row, at(0), at(3600)).await.unwrap());
        if is_cancelled {
            let cancelled = runs::request_cancel(&store, export.id, row.run.id, at(3), &[]).await;
            assert!(cancelled.unwrap());
        } else {
            let done = progress(Status::Completed, 4);
            assert!(runs::step(&store, export.id, row.run.id, &done, at(3)).await.unwrap());
        }
        let ended = Status::Completed;
        assert!(backfills::end(&store, PROJECT, export.id, id, ended, at(4), &[]).await.unwrap());
        let found = backfills::find(&store, PROJECT, export.id, id).await.unwrap().unwrap();
        assert_eq!(found.status, status);
    }
}

#[tokio::test]
async fn an_unreadable_record_blocks_no_other() {
    let store = store().await;
    let export = export(&store).await;
    let (damaged, whole) = (run(&export, 0), run(&export, 3600));
    for row in [&damaged, &whole] {
        create_run(&store, row).await;
    }
    let (spoilt, id) = (started(&store, &export).await, damaged.run.id);
    let damage = Statement::write(
        "test",
        "UPDATE type::record('batch_export_run', [$export, $run]) SET status = 'Dancing';
         UPDATE type::record('batch_export_backfill', [$export, $backfill])
             SET status = 'Dancing';",
    );
    let vars = bind! { export: export.id.0, run: id.0, backfill: spoilt.0 };
    store.db.run(damage, vars).await.unwrap();
    assert_eq!(runs::active(&store).await.unwrap(), std::slice::from_ref(&whole));
    assert_eq!(runs::row(&store, export.id, id).await.unwrap(), None);
    let all = Runs { limit: 100, ..Runs::default() };
    assert_eq!(runs::page(&store, export.id, all).await.unwrap(), [whole.run]);
    assert_eq!(backfills::active(&store).await.unwrap(), []);
}

#[tokio::test]
async fn cancelling_a_backfill_cancels_its_runs_alone() {
    let store = store().await;
    let export = export(&store).await;
    let id = started(&store, &export).await;
    let plan = Plan { start: at(0), total_runs: 2, each: Some(1), after: 0, up_to: 50 };
    assert!(backfills::begin(&store, export.id, id, plan, at(1)).await.unwrap());
    let own = RunRow { backfill: Some(id), ..run(&export, 3600) };
    assert!(backfills::add_run_of(&store, &own, at(0), at(3600)).await.unwrap());
    let other = run(&export, 3600);
    create_run(&store, &other).await;
    assert!(backfills::cancel(&store, PROJECT, export.id, id, at(5), &[]).await.unwrap());
    assert!(!backfills::cancel(&store, PROJECT, export.id, id, at(6), &[]).await.unwrap());
    let run = runs::find(&store, export.id, own.run.id).await.unwrap().unwrap();
    assert_eq!((run.status, run.finished_at), (Status::Cancelled, Some(at(5))));
    assert_eq!(runs::active(&store).await.unwrap(), [other]);
    assert!(backfills::active(&store).await.unwrap().is_empty());
    let begun = backfills::begin(&store, export.id, id, plan, at(7)).await.unwrap();
    assert!(!begun, "it has ended");
}

#[tokio::test]
async fn what_is_old_is_forgotten() {
    let store = store().await;
    let export = export(&store).await;
    let mut rows = Vec::new();
    for n in 0..30 {
        let row = run(&export, n * 86_400);
        create_run(&store, &row).await;
        let line = LogLine {
            log_source_id: export.id,
            instance_id: row.run.id,
            timestamp: row.run.created_at,
            level: LogLevel::Info,
            message: String::new(),
        };
        logs::add(&store, &line, 0).await.unwrap();
        rows.push(row.run);
    }
    let stored = find(&store, export.id).await.unwrap().unwrap();
    forget(&store, &stored, at(27 * 86_400), at(40 * 86_400)).await.unwrap();
    let all = Runs { limit: 100, ..Runs::default() };
    rows.reverse();
    // The newest runs stay.
    assert_eq!(runs::page(&store, export.id, all).await.unwrap(), rows[..RECENT_RUNS]);
    let lines = logs::page(&store, export.id, None, Logs { limit: 100, ..Logs::default() });
    assert_eq!(lines.await.unwrap().len(), 2);
}

/// The number of records of a table of exports.
async fn records(store: &Store, table: &str) -> usize {
    const ALL: Statement = Statement::read("test", "SELECT VALUE id FROM type::table($table);");
    let vars = bind! { table: table.to_owned() };
    let found = store.db.run(ALL, vars).await.unwrap();
    { found }.rows::<surrealdb::types::RecordId>(0).unwrap().len()
}

fn line(row: &RunRow, seconds: i64) -> LogLine {
    LogLine {
        log_source_id: row.run.batch_export,
        instance_id: row.run.id,
        timestamp: at(seconds),
        level: LogLevel::Info,
        message: "Try 1".to_owned(),
    }
}

#[tokio::test]
async fn a_deleted_export_disappears_immediately_and_its_runs_later() {
    let store = store().await;
    let (gone, stays) = (export(&store).await, export(&store).await);
    for export in [&gone, &stays] {
        for n in 0..30 {
            let row = run(export, n * 86_400);
            create_run(&store, &row).await;
            logs::add(&store, &line(&row, n * 86_400), 0).await.unwrap();
        }
        started(&store, export).await;
    }
    delete(&store, gone.organization, gone.id, &[]).await.unwrap();
    assert_eq!(find(&store, gone.id).await.unwrap(), None);
    let active = runs::active(&store).await.unwrap();
    assert!(active.len() == 30 && active.iter().all(|row| row.run.batch_export == stays.id));
    assert_eq!(backfills::active(&store).await.unwrap().len(), 1);
    // The runs of the deleted export have ended, so no line is added.
    let late = line(&run(&gone, 1), 1);
    logs::add(&store, &late, 1).await.unwrap();

    // The clock was set back meanwhile.
    sweep(&store, at(10 * 86_400)).await.unwrap();
    for (table, left) in [
        ("batch_export_run", 30),
        ("batch_export_log", 30),
        ("batch_export_backfill", 1),
        ("batch_export_state", 1),
        ("removed_export", 0),
    ] {
        assert_eq!(records(&store, table).await, left, "{table}");
    }
    sweep(&store, at(0)).await.unwrap();
}

#[tokio::test]
async fn an_export_that_cannot_be_removed_holds_up_no_other() {
    let store = store().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let gone = export(&store).await;
        create_run(&store, &run(&gone, 0)).await;
        delete(&store, gone.organization, gone.id, &[]).await.unwrap();
        ids.push(gone.id.0);
    }
    ids.sort_unstable();
    // The first export that is removed.
    let stuck = Statement::write(
        "test",
        "DEFINE EVENT stuck ON TABLE batch_export_run
         WHEN $event = 'DELETE' AND $before.status = 'stuck' THEN { THROW 'stuck' };
         UPDATE batch_export_run:[$export]..=[$export, ..] SET status = 'stuck';",
    );
    store.db.run(stuck, bind! { export: ids[0] }).await.unwrap();
    assert!(sweep(&store, at(86_400)).await.is_err());
    assert_eq!(records(&store, "batch_export_run").await, 1);
    assert_eq!(records(&store, "removed_export").await, 1);
    let free = Statement::write("test", "REMOVE EVENT stuck ON TABLE batch_export_run;");
    store.db.run(free, bind! {}).await.unwrap();
    sweep(&store, at(86_400)).await.unwrap();
    assert_eq!(records(&store, "removed_export").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_runs_do_not_delay_cancelling() {
    let store = store().await;
    let export = export(&store).await;
    for n in 0..150 {
        create_run(&store, &run(&export, n)).await;
    }
    let id = started(&store, &export).await;
    let plan = Plan { start: at(0), total_runs: 2, each: Some(1), after: 0, up_to: 50 };
    assert!(backfills::begin(&store, export.id, id, plan, at(1)).await.unwrap());
    let mut busy = tokio::task::JoinSet::new();
    let begun = Arc::new(Semaphore::new(0));
    for n in 0..8 {
        let (store, row, begun) = (store.clone(), run(&export, n), Arc::clone(&begun));
        create_run(&store, &row).await;
        busy.spawn(async move {
            let id = row.run.id;
            let mut steps = 0;
            // Until the run has ended, as the engine does.
            while runs::step(&store, row.run.batch_export, id, &progress(Status::Running, 1), at(1))
                .await
                .unwrap()
            {
                logs::add(&store, &line(&row, n), steps).await.unwrap();
                if steps == 1 {
                    begun.add_permits(1);
                }
                steps += 1;
            }
            steps
        });
    }
    let own = run(&export, 3_600);
    let own = RunRow { backfill: Some(id), ..own };
    assert!(backfills::add_run_of(&store, &own, at(0), at(3_600)).await.unwrap());
    let _all = begun.acquire_many(8).await.unwrap();
    // Without fairness it would take as long as the runs.
    let soon = Duration::from_secs(5);
    let begun = std::time::Instant::now();
    assert!(backfills::cancel(&store, PROJECT, export.id, id, at(5), &[]).await.unwrap());
    assert!(begun.elapsed() < soon, "cancelled after {:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    delete(&store, export.organization, export.id, &[]).await.unwrap();
    assert!(begun.elapsed() < soon, "deleted after {:?}", begun.elapsed());
    let steps: u32 = busy.join_all().await.into_iter().sum();
    assert!(steps > 8, "they were busy");
}

#[tokio::test]
async fn small_fields_of_large_exports_are_read_where_whole_records_are_too_large() {
    let store = store().await;
    // Each number needs two bytes here, and much more when it is parsed.
    let config = format!("{{\"n\":[{}0]}}", "0,".repeat(300_000));
    let mut made = Vec::new();
    for kind in ["LocalDirectory", "NoOp"] {
        let row = ExportRow {
            kind: kind.to_owned(),
            config: config.clone(),
            backfilled: Backfilled(Some(BackfilledPause {
                backfill: Some(BackfillId(Uuid::from_u128(3))),
                earlier: None,
                since: at(1),
                until: at(2),
            })),
            latest: vec![RunId(Uuid::from_u128(4))],
            ..export(&store).await
        };
        store.db.run(WRITE, bind! { export: row.clone() }).await.unwrap();
        made.push(row);
    }
    let ids: Vec<BatchExportId> = made.iter().map(|row| row.id).collect();
    let home = made[0].organization;
    assert!(matches!(rows(&store, home, &ids).await, Err(Error::TooLarge { .. })));
    assert_eq!(rows(&store, home, &ids[1..]).await.unwrap(), made[1..]);
    let found = briefs(&store, home, &ids).await.unwrap();
    for (brief, row) in found.iter().zip(&made) {
        assert_eq!((brief.id, &brief.kind, brief.created_at), (row.id, &row.kind, row.created_at));
        assert_eq!((brief.backfilled, &brief.latest), (row.backfilled, &row.latest));
    }
    assert_eq!(found.len(), 2);
    assert!(briefs(&store, OrganizationId(Uuid::nil()), &ids).await.unwrap().is_empty());
    let local = configs_of_kind(&store, &ids, "LocalDirectory").await.unwrap();
    assert_eq!(local, [(ids[0], home, config)]);
}

#[tokio::test]
async fn a_project_has_a_maximum_of_exports() {
    let store = store().await;
    let home = OrganizationId(Uuid::from_u128(7));
    let project = |number: i64, organization| {
        let token = format!("phc_{number}");
        ProjectRow::new(ProjectId(number), organization, "Shop".to_owned(), token, at(0))
    };
    let organization = NewOrganization {
        row: OrganizationRow { slug: "acme".to_owned(), ..OrganizationRow::new(home, at(0)) },
        owner: UserId(Uuid::from_u128(2)),
        membership: MembershipId(Uuid::from_u128(3)),
        project: project(1, home),
    };
    organizations::create(&store, &organization, &[]).await.unwrap();
    let owner = organization.owner;
    assert!(projects::create(&store, &project(2, home), owner, &[]).await.unwrap());
    let row = export(&store).await;
    let mut made = BTreeSet::new();
    for (number, expected) in
        [(1, Created::Yes), (1, Created::Yes), (1, Created::TooMany), (2, Created::Yes)]
    {
        let id = BatchExportId(ids::time_ordered(at(9)));
        let new = ExportRow { id, project: ProjectId(number), ..row.clone() };
        for _ in 0..2 {
            // The second run is a retry after a lost answer.
            assert_eq!(create(&store, &new, 2, None, &[]).await.unwrap(), expected);
        }
        if expected == Created::Yes {
            made.insert(id);
        }
    }
    let all: BTreeSet<BatchExportId> = all(&store).await.unwrap().into_iter().collect();
    assert_eq!(all, made);
    // The limit of the organization counts the exports of all of its projects.
    let id = BatchExportId(ids::time_ordered(at(10)));
    let new = ExportRow { id, project: ProjectId(2), ..row };
    for (most, expected) in [(3, Created::OverLimit), (4, Created::Yes), (4, Created::Yes)] {
        assert_eq!(create(&store, &new, 9, Some(most), &[]).await.unwrap(), expected, "{most}");
    }
}
