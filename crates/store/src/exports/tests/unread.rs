//! What retention keeps for exports.

use super::*;
use crate::events::EventBounds;

const POINT: Statement = Statement::write(
    "test",
    "UPSERT type::record('project_batch_export', [$export.project, $export.uuid])
         CONTENT {} RETURN NONE;",
);

const UNREAD_ALL: EventBounds = EventBounds { after: 0, up_to: u64::MAX, time: TimeRange::ALL };

#[tokio::test]
async fn unread_is_what_schedules_and_runs_will_read() {
    let store = store().await;
    let unread = async || unread(&store, PROJECT).await.unwrap();
    assert_eq!(unread().await, []);
    let mut row = export(&store).await;
    store.db.run(POINT, bind! { export: row.clone() }).await.unwrap();
    assert_eq!(unread().await, [UNREAD_ALL], "its first interval is not known yet");
    let (zero, one) = (schedule(0, 3), schedule(3600, 9));
    assert!(schedule::advance(&store, row.id, None, &zero).await.unwrap());
    assert_eq!(unread().await, [EventBounds::after(3)]);
    let first = run(&row, 3600);
    assert!(runs::create(&store, &first, &zero, &one).await.unwrap());
    let of_run = EventBounds { up_to: 9, ..EventBounds::after(3) };
    assert_eq!(unread().await, [EventBounds::after(9), of_run]);
    assert_eq!(super::unread(&store, ProjectId(2)).await.unwrap(), []);

    // An interval that ended before the pause may still get its run.
    row = ExportRow { paused: true, last_paused_at: Some(at(7300)), ..row };
    store.db.run(WRITE, bind! { export: row.clone() }).await.unwrap();
    assert_eq!(unread().await, [EventBounds::after(9), of_run]);
    let skipped = Schedule { paused: Some(one.before_pause()), ..schedule(10_800, 20) };
    assert!(schedule::advance(&store, row.id, Some(&one), &skipped).await.unwrap());
    assert_eq!(unread().await, [of_run], "the run goes on in the pause");
    let end = progress(Status::Completed, 6);
    assert!(runs::step(&store, row.id, first.run.id, &end, at(10_801)).await.unwrap());
    assert_eq!(unread().await, []);
    // The next run may begin where the pause began.
    row = ExportRow { paused: false, ..row };
    store.db.run(WRITE, bind! { export: row.clone() }).await.unwrap();
    assert_eq!(unread().await, [EventBounds::after(9)]);
}

#[tokio::test]
async fn unread_is_what_backfills_will_read() {
    let store = store().await;
    let row = ExportRow { paused: true, ..export(&store).await };
    store.db.run(WRITE, bind! { export: row.clone() }).await.unwrap();
    store.db.run(POINT, bind! { export: row.clone() }).await.unwrap();
    let unread = async || unread(&store, PROJECT).await.unwrap();
    let id = started(&store, &row).await;
    let (start, end) = (at(0), at(7200));
    let time = |from: Timestamp| TimeRange { start: from.micros(), end: end.micros() };
    let early = TimeRange { start: i64::MIN, end: end.micros() };
    assert_eq!(
        unread().await,
        [EventBounds { time: early, ..UNREAD_ALL }],
        "it is not planned yet"
    );
    let plan = Plan { start, total_runs: 2, each: Some(1), after: 4, up_to: 30 };
    assert!(backfills::begin(&store, row.id, id, plan, at(1)).await.unwrap());
    let rest = EventBounds { after: 4, up_to: 30, time: time(start) };
    assert_eq!(unread().await, [rest]);

    let middle = start.plus_seconds(1800);
    let mut first = run(&row, 3600);
    first = RunRow { by_time: true, after: 4, up_to: 30, backfill: Some(id), ..first };
    (first.run.data_interval_start, first.run.data_interval_end) = (Some(start), middle);
    assert!(backfills::add_run_of(&store, &first, start, middle).await.unwrap());
    let of_run = TimeRange { start: start.micros(), end: middle.micros() };
    let (rest, of_run) =
        (EventBounds { time: time(middle), ..rest }, EventBounds { time: of_run, ..rest });
    assert_eq!(unread().await, [rest, of_run]);
    let done = progress(Status::Completed, 6);
    assert!(runs::step(&store, row.id, first.run.id, &done, at(2)).await.unwrap());
    assert_eq!(unread().await, [rest]);
    assert!(
        backfills::cancel(&store, PROJECT, row.id, id, at(3), &[]).await.unwrap(),
        "it was under way"
    );
    assert_eq!(unread().await, []);
}
