mod directories;
mod overview;

use serde_json::{Map, Value, json};
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{BACKFILLS_MAX, Interval, SentConfig, Status};
use weir_model::organizations::Level;
use weir_model::pagination::Page;
use weir_model::{RunId, Timestamp, UserId};
use weir_store::exports::backfills;
use weir_store::exports::runs::RunRow;
use weir_store::exports::schedule::{self, Schedule};

use super::*;
use crate::sealing::{MasterKey, SealedField, rotate};
use crate::test_support::{ada, join, outsider, person, set_up, set_up_with_mail};
use crate::{Ctx, Services};

fn config(value: Value) -> SentConfig {
    match value {
        Value::Object(config) => SentConfig(config),
        other => panic!("no object: {other}"),
    }
}

fn input(config_json: Value) -> BatchExportInput {
    BatchExportInput {
        team_id: None,
        name: "Warehouse".to_owned(),
        destination: DestinationType::of("Postgres").unwrap(),
        config: config(config_json),
        model: ExportModel::Events,
        interval: Interval::Hour,
        timezone: None,
        offset_day: None,
        offset_hour: None,
        paused: false,
        last_paused_at: None,
        start_at: None,
        end_at: None,
        hogql_query: None,
    }
}

fn postgres() -> Value {
    json!({"host": "db.example", "database": "d", "user": "weir-user", "password": "hunter2-canary"})
}

async fn org(services: &Services, ctx: &Ctx) -> OrgCtx {
    services.organizations.enter(ctx, "@current").await.unwrap()
}

fn store(services: &Services) -> &weir_store::Store {
    services.organizations.store()
}

async fn stored(services: &Services, org: &OrgCtx, export: &BatchExport) -> ExportRow {
    let found = rows::rows(store(services), org.organization, &[export.id]).await.unwrap();
    found.into_iter().next().unwrap()
}

async fn password(services: &Services, row: &ExportRow) -> String {
    let whole = super::config::open(&services.exports.core.sealer, row).unwrap();
    whole["password"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_sealed_and_kept() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let text = serde_json::to_string(&made).unwrap();
    assert!(!text.contains("hunter2-canary") && !text.contains("weir-user"), "{text}");
    let row = stored(&services, &org, &made).await;
    assert!(!format!("{row:?}").contains("hunter2-canary"));
    assert!(row.secrets.as_ref().unwrap().starts_with("w1."));
    assert_eq!(password(&services, &row).await, "hunter2-canary");

    let id = made.id.to_string();
    let set = services.exports.secrets_set((&org).into(), &id).await.unwrap();
    assert_eq!(set, ["user", "password"]);

    // A change of another field keeps the secrets, without sealing them again.
    let patch = BatchExportPatch {
        config: Some(config(json!({"table_name": "t"}))),
        ..BatchExportPatch::default()
    };
    let changed = services.exports.update((&org).into(), &id, patch).await.unwrap();
    assert_eq!(changed.destination.config["table_name"], "t");
    assert_eq!(password(&services, &stored(&services, &org, &made).await).await, "hunter2-canary");
    // The audit entry names the changed fields, and no value of a secret.
    let patch = BatchExportPatch {
        config: Some(config(json!({"password": "hunter3-canary"}))),
        ..BatchExportPatch::default()
    };
    services.exports.update((&org).into(), &id, patch).await.unwrap();
    let log = services
        .activity
        .of_organization(&org, &Default::default(), Page::default())
        .await
        .unwrap();
    let log = serde_json::to_string(&log.results).unwrap();
    assert!(log.contains("destination__config__password"), "{log}");
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_other_keys_are_found_and_replaced() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(services.exports.create((&org).into(), input(postgres())).await.unwrap());
    }
    // Without secrets nothing is sealed.
    let no_op =
        BatchExportInput { destination: DestinationType::of("NoOp").unwrap(), ..input(json!({})) };
    let no_op = services.exports.create((&org).into(), no_op).await.unwrap();
    assert_eq!(stored(&services, &org, &no_op).await.secrets, None);

    let store = store(&services);
    let before = rows::rows(store, org.organization, &[made[0].id]).await.unwrap();
    let old_id = before[0].secrets.as_ref().unwrap()[3..19].to_owned();
    let next = MasterKey::new([5; 32]);
    let wrong = rotate(store, Some(MasterKey::new([6; 32])), "x".to_owned(), next.clone()).await;
    assert!(wrong.unwrap_err().to_string().contains(&old_id));
    let all = weir_store::sealing::with_other_keys(
        store,
        SealedField::BatchExportSecrets,
        &format!("w1.{}.", next.id()),
        10,
    )
    .await
    .unwrap();
    assert_eq!(all.len(), 3);
    let mut found: Vec<&str> = all.iter().map(|row| row.record.as_str()).collect();
    found.sort_unstable();
    let mut expected: Vec<String> = made.iter().map(|export| export.id.to_string()).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(all.iter().all(|row| row.organization == org.organization));
    let replaced = all.into_iter().map(|row| (row, format!("w1.{}.x", next.id()))).collect();
    weir_store::sealing::replace(store, SealedField::BatchExportSecrets, replaced).await.unwrap();
    let after = stored(&services, &org, &made[2]).await;
    assert_eq!(after.secrets, Some(format!("w1.{}.x", next.id())));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_changes_are_both_stored() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let id = made.id.to_string();
    let patch = |config_json| BatchExportPatch {
        config: Some(config(config_json)),
        ..BatchExportPatch::default()
    };
    let (first, second) = tokio::join!(
        services.exports.update((&org).into(), &id, patch(json!({"table_name": "one"}))),
        services.exports.update((&org).into(), &id, patch(json!({"schema": "two"}))),
    );
    first.unwrap();
    second.unwrap();
    let config = services.exports.get((&org).into(), &id).await.unwrap().destination.config;
    assert_eq!((&config["table_name"], &config["schema"]), (&json!("one"), &json!("two")));
}

fn run(export: &BatchExport, number: i64) -> Run {
    let at = |seconds: i64| Timestamp::from_micros((number * 3600 + seconds) * 1_000_000);
    Run {
        id: RunId(ids::time_ordered(at(0))),
        status: Status::Completed,
        records_completed: Some(7),
        latest_error: None,
        data_interval_start: (number > 0).then(|| at(-3600)),
        data_interval_end: at(0),
        cursor: None,
        created_at: at(1),
        finished_at: Some(at(2)),
        last_updated_at: at(2),
        records_total_count: Some(7),
        batch_export: export.id,
        failing_since: None,
        next_try_at: None,
    }
}

/// Creates a run as the schedule does, from the beginning of its interval on. `false`:
/// the export is deleted.
async fn create_run(services: &Services, run: &Run) -> bool {
    let (store, export, end) = (store(services), run.batch_export, run.data_interval_end);
    let row = RunRow::new(run.clone());
    let at = |last_end| Schedule::new(last_end, 0, "hour".to_owned());
    let (before, after) = (at(run.data_interval_start.unwrap_or(end)), at(end));
    let present = schedule::all(store).await.unwrap().remove(&export);
    schedule::advance(store, export, present.as_ref(), &before).await.unwrap()
        && rows::runs::create(store, &row, &before, &after).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ten_newest_runs_are_shown() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    assert_eq!(made.latest_runs, Vec::new());
    let runs: Vec<Run> = (0..12).map(|number| run(&made, number)).collect();
    for run in &runs {
        assert!(create_run(&services, run).await);
    }
    // Creating it again changes nothing.
    assert!(create_run(&services, &runs[11]).await);
    let shown = services.exports.get((&org).into(), &made.id.to_string()).await.unwrap();
    let expected: Vec<Run> = runs.into_iter().rev().take(10).collect();
    assert_eq!(shown.latest_runs, expected);
    // A change keeps the newest runs.
    let paused = services.exports.pause((&org).into(), &made.id.to_string()).await.unwrap();
    assert_eq!(paused.latest_runs, expected);
    services.exports.delete((&org).into(), &made.id.to_string()).await.unwrap();
    assert!(!create_run(&services, &expected[0]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn five_backfills_of_a_project_run_at_a_time() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let mut exports = Vec::new();
    for _ in 0..2 {
        exports.push(services.exports.create((&org).into(), input(postgres())).await.unwrap());
    }
    let wanted =
        || BackfillInput { start_at: Some("2025-01-01".to_owned()), ..BackfillInput::default() };
    let tries = (0..8).map(|number: usize| {
        let id = exports[number % 2].id.to_string();
        let (services, org) = (services.clone(), org.clone());
        tokio::spawn(async move {
            services
                .exports
                .backfill((&org).into(), &id, wanted())
                .await
                .map(|made| made.backfill_id)
        })
    });
    let tries: Vec<_> = tries.collect();
    let (mut started, mut refused) = (0, 0);
    for outcome in tries {
        match outcome.await.unwrap() {
            Ok(id) => started += usize::from(id.is_some()),
            Err(Error::TooMany { code, .. }) => {
                assert_eq!(code, "too_many_concurrent_backfills");
                refused += 1;
            }
            // Eight concurrent changes collide often.
            Err(Error::Store(error)) if error.is_temporary() => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(started <= BACKFILLS_MAX && started + refused == 8, "{started}");
    // Deleting an export ends its backfills.
    services.exports.delete((&org).into(), &exports[0].id.to_string()).await.unwrap();
    rows::sweep(store(&services), services.clock.now()).await.unwrap();
    let project = exports[0].team_id;
    let left = backfills::page(store(&services), project, exports[0].id, None, 10).await.unwrap();
    assert_eq!(left, Vec::new());
    let other = exports[1].id.to_string();
    let more = services.exports.backfill((&org).into(), &other, wanted());
    assert!(more.await.unwrap().backfill_id.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_project_is_the_current_one_of_the_caller() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let first = services.projects.list_in(&org, Page::default()).await.unwrap().results[0].id;
    let second = services.projects.create(&org, Default::default()).await.unwrap().brief.id;
    // Creating the project made it the current one.
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    assert_eq!(made.team_id, second);
    let chosen = BatchExportInput { team_id: Some(first), ..input(postgres()) };
    assert_eq!(services.exports.create((&org).into(), chosen).await.unwrap().team_id, first);
    // The current project of Grace is in another organization, so the oldest one is
    // used.
    let grace = outsider(&services, "grace").await;
    join(&services, org.organization, &grace, Level::Member).await;
    let hers = OrgCtx { ctx: grace.clone(), level: Level::Member, ..org.clone() };
    crate::test_support::organization(&services, &grace, "Elsewhere").await;
    let made = services.exports.create((&hers).into(), input(postgres())).await.unwrap();
    assert_eq!(made.team_id, first);
    let unknown = BatchExportInput { team_id: Some(ProjectId(999)), ..input(postgres()) };
    let outcome = services.exports.create((&org).into(), unknown).await;
    assert!(
        matches!(outcome, Err(Error::Invalid(fault)) if fault.attr.as_deref() == Some("team_id"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_want_a_recent_sign_in() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let old = |user: UserId| {
        let mut ctx = person(&services, user);
        ctx.now = ctx.now.plus_seconds(3600);
        OrgCtx { ctx, ..org.clone() }
    };
    let later = old(ctx.user());
    let outcome = services.exports.create((&later).into(), input(postgres())).await;
    assert!(matches!(outcome, Err(Error::SignInAgain)), "{outcome:?}");
    let patch =
        BatchExportPatch { config: Some(SentConfig(Map::new())), ..BatchExportPatch::default() };
    let id = made.id.to_string();
    let outcome = services.exports.update((&later).into(), &id, patch).await;
    assert!(matches!(outcome, Err(Error::SignInAgain)), "{outcome:?}");
    assert!(services.exports.pause((&later).into(), &id).await.unwrap().paused);
}

#[tokio::test(flavor = "multi_thread")]
async fn trying_a_destination_is_like_entering_it() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let id = made.id.to_string();
    let kind = DestinationType::of("Postgres").unwrap();
    let sent = |value| SentDestination { kind: None, config: Some(config(value)) };
    let trial = services.exports.trial_of_stored((&org).into(), &id, sent(json!({}))).await;
    let trial = trial.unwrap();
    assert_eq!((trial.kind, &trial.config.0["password"]), (kind, &json!("hunter2-canary")));
    assert_eq!(trial.model, ExportModel::Events);
    assert!(!format!("{trial:?}").contains("canary"));
    let table = sent(json!({"table_name": "t"}));
    let trial = services.exports.trial_of_stored((&org).into(), &id, table).await.unwrap();
    assert_eq!(trial.config.0["password"], "hunter2-canary");
    // Another host or another user: the secrets are not kept.
    for (changed, missing) in [
        (json!({"host": "evil.example"}), "destination__config__user"),
        (json!({"host": "evil.example", "user": "u"}), "destination__config__password"),
        (json!({"user": "u"}), "destination__config__password"),
        (json!({"has_self_signed_cert": true}), "destination__config__user"),
    ] {
        let outcome = services.exports.trial_of_stored((&org).into(), &id, sent(changed)).await;
        assert!(
            matches!(&outcome, Err(Error::Invalid(fault)) if fault.attr.as_deref() == Some(missing)),
            "{outcome:?}"
        );
    }
    // Another kind of destination keeps no settings.
    let redshift = SentDestination {
        kind: DestinationType::of("Redshift"),
        config: Some(config(json!({"host": "db.example", "database": "d", "user": "u"}))),
    };
    let outcome = services.exports.trial_of_stored((&org).into(), &id, redshift).await;
    assert!(matches!(outcome, Err(Error::Invalid(_))), "{outcome:?}");

    let mut later = ctx.clone();
    later.now = later.now.plus_seconds(3600);
    let later = OrgCtx { ctx: later, ..org.clone() };
    let outcome = services.exports.trial_of_stored((&later).into(), &id, sent(json!({}))).await;
    assert!(matches!(outcome, Err(Error::SignInAgain)), "{outcome:?}");
    let model = ExportModel::Persons;
    let new = || NewTrial { kind, config: config(postgres()), model };
    let outcome = services.exports.trial_of_new((&later).into(), new());
    assert!(matches!(outcome, Err(Error::SignInAgain)), "{outcome:?}");
    let trial = services.exports.trial_of_new((&org).into(), new());
    assert_eq!(trial.unwrap().model, model);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_export_is_paused_and_administrators_get_mail() {
    let services = set_up_with_mail().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    for (name, level) in [("grace", Level::Administrator), ("linus", Level::Member)] {
        let person = outsider(&services, name).await;
        join(&services, org.organization, &person, level).await;
    }
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let id = made.id.to_string();
    let wanted =
        BackfillInput { start_at: Some("2025-01-01".to_owned()), ..BackfillInput::default() };
    services.exports.backfill((&org).into(), &id, wanted).await.unwrap();
    let row = stored(&services, &org, &made).await;
    let (kind, whole) = services.exports.whole_config(&row).unwrap();
    assert_eq!((kind.name, &whole.0["password"]), ("Postgres", &json!("hunter2-canary")));

    let paused = services.exports.pause_failing(&row, 10, 12, Some("TimedOut: No answer."));
    assert!(paused.await.unwrap());
    let shown = services.exports.get((&org).into(), &id).await.unwrap();
    assert_eq!((shown.paused, shown.last_paused_at), (true, Some(services.clock.now())));
    let backfills = services
        .exports
        .backfills((&org).into(), &id, None, Page::default())
        .await
        .unwrap()
        .backfills;
    assert_eq!((backfills.len(), backfills[0].status), (1, Status::Cancelled));
    let log = services
        .activity
        .of_organization(&org, &Default::default(), Page::default())
        .await
        .unwrap();
    assert!(log.results[0].is_system && log.results[0].activity == AuditAction::Updated);
    let mut to: Vec<String> =
        services.mails.due().await.unwrap().iter().map(|row| row.mail.to.to_lowercase()).collect();
    to.sort_unstable();
    assert_eq!(to, ["ada.l@mail.example", "grace@mail.example"]);
    // A paused export is not paused again, and sends no second mail.
    assert!(!services.exports.pause_failing(&row, 10, 12, None).await.unwrap());
    assert_eq!(services.mails.waiting().await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_series_of_failed_runs_sends_one_mail() {
    let services = set_up_with_mail().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let row = stored(&services, &org, &made).await;
    let mut audit_entries = Vec::new();
    for (number, status) in (0..).zip([
        Status::Failed,
        Status::FailedRetryable,
        Status::Cancelled,
        Status::Failed,
        Status::Completed,
        Status::TimedOut,
    ]) {
        let run = Run { status, ..run(&made, number) };
        assert!(create_run(&services, &run).await);
        if !matches!(status, Status::Completed | Status::Cancelled) {
            services.exports.notify_failed(&row, &run).await.unwrap();
        }
        audit_entries.push(services.mails.waiting().await.unwrap());
    }
    assert_eq!(audit_entries, [1, 1, 1, 1, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_that_fail_are_counted() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let failing = async || services.exports.failing((&org).into()).await.unwrap().len();
    assert_eq!(failing().await, 0);
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    for (number, (status, expected)) in (0..).zip([
        (Status::Completed, 0),
        (Status::Failed, 1),
        // It counts as failing until a run has succeeded.
        (Status::Running, 1),
        (Status::Completed, 0),
        (Status::TimedOut, 1),
        // A cancelled run does not change the result of the run before.
        (Status::Cancelled, 1),
        (Status::FailedRetryable, 1),
    ]) {
        assert!(create_run(&services, &Run { status, ..run(&made, number) }).await);
        assert_eq!(failing().await, expected, "{status:?}");
    }
    services.exports.pause((&org).into(), &made.id.to_string()).await.unwrap();
    assert_eq!(failing().await, 0);
}

/// Stores an export like this one.
async fn put(services: &Services, like: &ExportRow, change: impl FnOnce(&mut ExportRow)) {
    let mut row = like.clone();
    row.id = BatchExportId(ids::time_ordered(row.created_at));
    change(&mut row);
    let outcome = rows::create(store(services), &row, EXPORTS_MAX, None, &[]).await.unwrap();
    assert_eq!(outcome, Created::Yes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_a_maximum_of_exports() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let row = stored(&services, &org, &made).await;
    for _ in 1..EXPORTS_MAX {
        put(&services, &row, |_| {}).await;
    }
    let refused = services.exports.create((&org).into(), input(postgres())).await.unwrap_err();
    let Error::Invalid(fault) = refused else { panic!("{refused}") };
    assert_eq!(fault.detail, "A project may have at most 500 exports. Delete one first.");
    services.exports.delete((&org).into(), &made.id.to_string()).await.unwrap();
    assert!(services.exports.create((&org).into(), input(postgres())).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_large_exports_are_listed_where_whole_exports_are_too_large() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let row = stored(&services, &org, &made).await;
    // As before there was a limit: each number needs two bytes here, and more in memory.
    let config = format!("{{\"path\":\"a\",\"n\":[{}0]}}", "0,".repeat(300_000));
    for name in ["Night", "Day"] {
        put(&services, &row, |row| {
            row.name = name.to_owned();
            row.kind = "LocalDirectory".to_owned();
            row.config = config.clone();
        })
        .await;
    }
    let exports = &services.exports;
    let within = ExportScope::from(&org);
    let refused = exports.list(within, Page::default()).await.unwrap_err();
    let Error::Invalid(fault) = refused else { panic!("{refused}") };
    assert_eq!(fault.attr.as_deref(), Some("limit"));
    for offset in 0..3 {
        let page = exports.list(within, Page { limit: 1, offset }).await.unwrap();
        assert_eq!((page.count, page.results.len()), (3, 1));
    }
    assert!(exports.failing(within).await.unwrap().is_empty());
    let query = OverviewQuery { name: Some("night".to_owned()), ..OverviewQuery::default() };
    let overview = exports.overview(within, &query, Page::default()).await.unwrap();
    assert_eq!((overview.all, overview.found.count), (3, 1));
    assert_eq!(overview.found.results[0].export.name, "Night");
    let found = services.search.find(&ctx, &crate::search::SearchWords::new("day")).await.unwrap();
    assert_eq!(found[0].name, "Day");
    let kind = DestinationType::of("LocalDirectory").unwrap();
    let elsewhere = weir_model::OrganizationId(uuid::Uuid::nil());
    let path = config_of("a");
    assert!(!exports.has_own_directory(elsewhere, None, kind, &path).await.unwrap());
    assert!(exports.has_own_directory(org.organization, None, kind, &path).await.unwrap());
}

fn config_of(path: &str) -> Map<String, Value> {
    config(json!({"path": path})).0
}
