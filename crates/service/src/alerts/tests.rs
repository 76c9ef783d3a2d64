use serde_json::json;
use uuid::Uuid;
use weir_model::alerts::{CalculationInterval, ThresholdKind};
use weir_model::insights::{InsightInput, InsightPatch};

use super::*;
use crate::Services;
use crate::test_support::{ada, set_up};

/// An alert as it is before its first check.
pub(super) fn row() -> AlertRow {
    let (id, by) = ((ProjectId(1), AlertId(1)), UserId(Uuid::nil()));
    AlertRow {
        name: "Payments".to_owned(),
        upper: Some(10.0),
        ..AlertRow::new(id, InsightId(1), Uuid::nil(), by, Timestamp::EPOCH)
    }
}

async fn entered(services: &Services) -> ProjectCtx {
    let ctx = ada(services).await;
    services.projects.enter(&ctx, "@current").await.unwrap()
}

/// An alert on a new insight, which fires below 1.
async fn made(services: &Services, project: &ProjectCtx) -> Alert {
    let query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
    let insight = InsightInput { query, rest: InsightPatch::default() };
    let insight = services.insights.create(project, insight).await.unwrap();
    let bounds = AlertBounds { lower: Some(1.0), upper: None };
    let input = AlertInput {
        insight: insight.id,
        name: "Payments".to_owned(),
        threshold: ThresholdConfiguration { kind: ThresholdKind::Absolute, bounds },
        rest: AlertPatch::default(),
    };
    services.alerts.create(project, input).await.unwrap()
}

#[test]
fn a_change_of_the_rule_begins_again_and_a_snooze_waits() {
    let now = Timestamp::from_micros(1_000_000);
    let later = now.plus_seconds(3_600);
    let changed = |patch: AlertPatch| {
        let before =
            AlertRow { is_firing: true, failures: 2, due_at: Some(later.plus_seconds(1)), ..row() };
        let mut after = before.clone();
        apply(&patch, &mut after, now).unwrap();
        reschedule(&before, &mut after, now);
        (after.is_firing, after.failures, after.due_at)
    };
    let name = AlertPatch { name: Patch::Set("Sales".to_owned()), ..AlertPatch::default() };
    assert_eq!(changed(name), (true, 2, Some(later.plus_seconds(1))));
    let relative =
        AlertPatch { condition: Some(ConditionKind::RelativeIncrease), ..AlertPatch::default() };
    assert_eq!(changed(relative), (false, 0, Some(now)));
    let weekly = AlertPatch {
        calculation_interval: Some(CalculationInterval::Weekly),
        ..AlertPatch::default()
    };
    assert_eq!(changed(weekly), (true, 2, Some(now)));
    let snoozed = AlertPatch { snoozed_until: Patch::Set(later), ..AlertPatch::default() };
    assert_eq!(changed(snoozed), (false, 0, Some(later)));
    let off = AlertPatch { enabled: Patch::Set(false), ..AlertPatch::default() };
    assert_eq!(changed(off), (false, 0, None));
    let past = AlertPatch { snoozed_until: Patch::Set(now), ..AlertPatch::default() };
    assert!(matches!(apply(&past, &mut row(), now), Err(Error::Invalid(_))));
}

#[tokio::test]
async fn an_alert_is_checked_when_it_is_due_and_goes_away_with_its_insight() {
    let services = set_up().await;
    let project = entered(&services).await;
    let alert = made(&services, &project).await;
    assert_eq!(
        (alert.state, alert.next_check_at),
        (AlertState::NotFiring, Some(project.org.ctx.now))
    );
    services.alerts.check_due().await.unwrap();
    let id = alert.id.to_string();
    let fired = services.alerts.get(&project, &id).await.unwrap();
    assert_eq!((fired.state, fired.last_value), (AlertState::Firing, Some(0.0)));
    let next = fired.next_check_at.unwrap();
    assert!(next > project.org.ctx.now);
    // It is not due again before that time.
    services.alerts.check_due().await.unwrap();
    assert_eq!(services.alerts.get(&project, &id).await.unwrap(), fired);
    assert_eq!(services.alerts.take_checks(), HashMap::from([(CheckOutcome::Firing, 1)]));
    services.clock.advance(2 * 24 * 60 * 60);
    services.alerts.check_due().await.unwrap();
    let again = services.alerts.get(&project, &id).await.unwrap();
    assert_eq!((again.checks.len(), again.checks[0].targets_notified), (2, false));

    services.insights.delete(&project, &again.insight.short_id).await.unwrap();
    assert!(matches!(services.alerts.get(&project, &id).await, Err(Error::NotFound(_))));
    let store = services.organizations.store();
    let late = AlertRow { project: project.project, insight: again.insight.id, ..row() };
    let refused = rows::create(store, project.org.organization, &late, &[]).await.unwrap();
    assert_eq!(refused, Created::Refused(NO_INSIGHT.to_owned()));
    services.clock.advance(2 * 24 * 60 * 60);
    services.alerts.check_due().await.unwrap();
    let left = rows::due(store, Timestamp::from_micros(i64::MAX / 2), 10).await.unwrap();
    assert!(left.is_empty());
}

#[tokio::test]
async fn a_hidden_insight_is_not_checked_and_one_of_another_kind_fails() {
    let services = set_up().await;
    let project = entered(&services).await;
    let alert = made(&services, &project).await;
    let (id, insight) = (alert.id.to_string(), alert.insight.short_id.clone());
    let hidden = InsightPatch { deleted: Patch::Set(true), ..InsightPatch::default() };
    services.insights.update(&project, &insight, hidden).await.unwrap();
    services.alerts.check_due().await.unwrap();
    let skipped = services.alerts.get(&project, &id).await.unwrap();
    assert_eq!((skipped.last_checked_at, skipped.checks.len()), (None, 0));
    assert_eq!(services.alerts.take_checks(), HashMap::new());

    let lifecycle = json!({"kind": "LifecycleQuery", "series": [{"event": "paid"}]});
    let other = InsightPatch {
        deleted: Patch::Set(false),
        query: Patch::Set(lifecycle),
        ..InsightPatch::default()
    };
    services.insights.update(&project, &insight, other).await.unwrap();
    services.clock.advance(2 * 24 * 60 * 60);
    services.alerts.check_due().await.unwrap();
    let failed = services.alerts.get(&project, &id).await.unwrap();
    assert_eq!(failed.state, AlertState::Errored);
    assert_eq!(services.alerts.take_checks(), HashMap::from([(CheckOutcome::Failed, 1)]));
    assert_eq!(failed.last_error.as_deref(), Some("Alerts are about insights with trends."));
    let ctx = entered(&services).await;
    let name = AlertPatch { name: Patch::Set("Sales".to_owned()), ..AlertPatch::default() };
    assert_eq!(services.alerts.update(&ctx, &id, name).await.unwrap().name, "Sales");
}

#[tokio::test]
async fn firing_alerts_are_those_of_shown_insights_until_they_are_snoozed() {
    let services = set_up().await;
    let project = entered(&services).await;
    let alert = made(&services, &project).await;
    let firing = || services.alerts.firing(&project);
    assert!(firing().await.unwrap().is_empty());
    services.alerts.check_due().await.unwrap();
    let expected = FiringAlert { name: "Payments".to_owned(), insight: alert.insight.id };
    assert_eq!(firing().await.unwrap(), [expected]);

    let short_id = alert.insight.short_id.clone();
    for (deleted, count) in [(true, 0), (false, 1)] {
        let patch = InsightPatch { deleted: Patch::Set(deleted), ..InsightPatch::default() };
        services.insights.update(&project, &short_id, patch).await.unwrap();
        assert_eq!(firing().await.unwrap().len(), count);
    }
    let until = project.org.ctx.now.plus_seconds(3_600);
    let snooze = AlertPatch { snoozed_until: Patch::Set(until), ..AlertPatch::default() };
    services.alerts.update(&project, &alert.id.to_string(), snooze).await.unwrap();
    assert!(firing().await.unwrap().is_empty());
}
