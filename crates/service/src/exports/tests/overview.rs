//! The list of exports for pages, and previews of backfills.

use weir_model::exports::RECENT_RUNS;

use super::*;

async fn names(services: &Services, org: &OrgCtx, query: OverviewQuery) -> (u64, Vec<String>) {
    let found = services.exports.overview(org.into(), &query, Page::default()).await.unwrap();
    let names = found.found.results.iter().map(|one| one.export.name.clone()).collect();
    (found.all, names)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_comes_first() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let mut org = org(&services, &ctx).await;
    let mut made = Vec::new();
    for (name, paused) in [("Oldest", false), ("Middle", true), ("Newest", false)] {
        let input = BatchExportInput { name: name.to_owned(), paused, ..input(postgres()) };
        // Records of the same microsecond have no defined order.
        org.ctx.now = org.ctx.now.plus_seconds(1);
        made.push(services.exports.create((&org).into(), input).await.unwrap());
    }
    let all = |query| names(&services, &org, query);
    let expected = (3, ["Newest", "Middle", "Oldest"].map(str::to_owned).to_vec());
    assert_eq!(all(OverviewQuery::default()).await, expected);

    // An active or cancelled run does not change the result of the run before.
    for (number, status) in [
        (0, Status::Completed),
        (1, Status::FailedRetryable),
        (2, Status::Cancelled),
        (3, Status::Running),
    ] {
        let finished_at = (!status.is_active()).then(|| Timestamp::from_micros(2));
        let run = Run { status, finished_at, ..run(&made[0], number) };
        assert!(create_run(&services, &run).await);
    }
    let (_, found) = all(OverviewQuery::default()).await;
    assert_eq!(found, ["Oldest", "Newest", "Middle"]);
    let in_condition =
        |condition| OverviewQuery { condition: Some(condition), ..OverviewQuery::default() };
    for (condition, expected) in [
        (Condition::Failing, "Oldest"),
        (Condition::Active, "Newest"),
        (Condition::Paused, "Middle"),
    ] {
        assert_eq!(all(in_condition(condition)).await, (3, vec![expected.to_owned()]));
    }
    let called = OverviewQuery { name: Some("NEW".to_owned()), ..OverviewQuery::default() };
    assert_eq!(all(called).await.1, ["Newest"]);
    let elsewhere = OverviewQuery { kind: Some("S3".to_owned()), ..OverviewQuery::default() };
    assert_eq!(all(elsewhere).await, (3, Vec::new()));
    let of_project = |project| OverviewQuery { project: Some(project), ..OverviewQuery::default() };
    assert_eq!(all(of_project(made[0].team_id)).await.1.len(), 3);
    assert_eq!(
        all(of_project(weir_model::ProjectId(made[0].team_id.0 + 1))).await,
        (3, Vec::new())
    );

    let page = Page { limit: 1, offset: 0 };
    let query = OverviewQuery::default();
    let found = services.exports.overview((&org).into(), &query, page).await.unwrap().found;
    assert_eq!((found.count, found.results.len()), (3, 1));
    let statuses: Vec<Status> = found.results[0].recent.iter().map(|run| run.status).collect();
    assert_eq!(statuses[..2], [Status::Running, Status::Cancelled]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_fails_as_long_as_an_old_run_is_retried() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let (since, next_try) = (Timestamp::from_micros(5), Timestamp::from_micros(6));
    let retried = Run {
        status: Status::Running,
        finished_at: None,
        latest_error: Some("TimedOut: No answer.".to_owned()),
        failing_since: Some(since),
        next_try_at: Some(next_try),
        ..run(&made, 0)
    };
    assert!(create_run(&services, &retried).await);
    // More later runs are completed than are kept as the newest ones.
    for number in 1..=i64::try_from(RECENT_RUNS).unwrap() + 1 {
        assert!(create_run(&services, &run(&made, number)).await);
    }
    let id = made.id.to_string();
    let of = |export: &BatchExport| {
        (export.failing_since, export.next_try_at, export.latest_error.clone())
    };
    let expected = (Some(since), Some(next_try), retried.latest_error.clone());

    let shown = services.exports.get((&org).into(), &id).await.unwrap();
    assert_eq!(of(&shown), expected);
    assert_eq!(shown.latest_runs.len(), 10);
    assert!(shown.latest_runs.iter().all(|run| run.status == Status::Completed));
    let query = OverviewQuery::default();
    let page = Page::default();
    let listed = services.exports.overview((&org).into(), &query, page).await.unwrap().found;
    assert_eq!(listed.results[0].condition, Condition::Failing);
    assert_eq!(of(&listed.results[0].export), expected);
    let failing = services.exports.failing((&org).into()).await.unwrap();
    assert_eq!(failing.len(), 1);
    assert_eq!((failing[0].name.as_str(), failing[0].failing.since), ("Warehouse", since));

    // The run has ended.
    let run = retried.id.to_string();
    services.exports.cancel_run((&org).into(), &id, &run).await.unwrap();
    let shown = services.exports.get((&org).into(), &id).await.unwrap();
    assert_eq!(of(&shown), (None, None, None));
    assert_eq!(services.exports.failing((&org).into()).await.unwrap(), Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_is_previewed_before_it_is_started() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let org = org(&services, &ctx).await;
    let made = services.exports.create((&org).into(), input(postgres())).await.unwrap();
    let id = made.id.to_string();
    let look = |start: &str, end: &str| {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let input =
            BackfillInput { start_at: text(start), end_at: text(end), has_export_fields: false };
        let (services, org, id) = (services.clone(), org.clone(), id.clone());
        async move { services.exports.preview_backfill((&org).into(), &id, &input).await }
    };
    // No event is stored.
    let nothing = look("2025-01-01", "2025-01-02").await.unwrap();
    assert_eq!((nothing.start_at, nothing.runs, nothing.events), (None, 0, Some(0)));
    assert!(!nothing.may_repeat && !nothing.overlaps_active && !nothing.has_condition);
    let Err(Error::Invalid(fault)) = look("2999-01-01", "").await else { panic!("no fault") };
    assert_eq!(fault.detail, "The start of a backfill must be before its end.");
    let range = BackfillInput::default();
    let unknown = "00000000-0000-4000-8000-000000000000";
    let missing = services.exports.preview_backfill((&org).into(), unknown, &range);
    assert!(matches!(missing.await, Err(Error::NotFound(_))));
}
