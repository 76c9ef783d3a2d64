use serde_json::json;
use uuid::Uuid;
use weir_model::dashboards::{DashboardInput, DashboardPatch};
use weir_model::insights::{Insight, InsightInput, InsightPatch};
use weir_model::mail::{Mail, MailContent};
use weir_model::subscriptions::Weekday;
use weir_model::{InsightId, Patch, ProjectId};
use weir_store::mail as mail_rows;

use super::*;
use crate::Services;
use crate::test_support::{ada, set_up, set_up_with_mail};

/// A subscription that was due every day at 08:00 since 2026-08-20.
pub(super) fn row() -> SubscriptionRow {
    SubscriptionRow {
        id: SubscriptionId(1),
        project: ProjectId(1),
        insight: Some(InsightId(1)),
        dashboard: None,
        revision: Uuid::nil(),
        title: None,
        recipients: Vec::new(),
        frequency: Frequency::Daily,
        interval: 1,
        weekdays: Vec::new(),
        place: None,
        most: None,
        start_at: Timestamp::parse("2026-08-20T08:00:00Z").unwrap(),
        until_at: None,
        deleted: false,
        deliveries: 0,
        delivered_at: None,
        tested_at: None,
        error: None,
        due_at: None,
        created_by: UserId(Uuid::nil()),
        created_at: Timestamp::EPOCH,
    }
}

async fn entered(services: &Services) -> ProjectCtx {
    let ctx = ada(services).await;
    services.projects.enter(&ctx, "@current").await.unwrap()
}

async fn insight(services: &Services, project: &ProjectCtx) -> Insight {
    let query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
    let name = Patch::Set("Payments".to_owned());
    let rest = InsightPatch { name, ..InsightPatch::default() };
    services.insights.create(project, InsightInput { query, rest }).await.unwrap()
}

/// A daily subscription of Ada from now on.
fn daily(project: &ProjectCtx, about: SubscriptionSubject) -> SubscriptionInput {
    SubscriptionInput {
        about,
        target_value: "ada.l@mail.example".to_owned(),
        frequency: Frequency::Daily,
        start_date: project.org.ctx.now,
        rest: SubscriptionPatch::default(),
    }
}

/// The mails with answers that wait.
async fn waiting(services: &Services) -> Vec<Mail> {
    let store = services.organizations.store();
    let rows = mail_rows::due(store, services.clock.now()).await.unwrap();
    let mails = rows.into_iter().map(|row| row.mail);
    mails.filter(|mail| matches!(mail.news, MailContent::Subscription { .. })).collect()
}

#[tokio::test]
async fn mails_are_stored_once_for_each_time() {
    let services = set_up_with_mail().await;
    let project = entered(&services).await;
    let insight = insight(&services, &project).await;
    let input = daily(&project, SubscriptionSubject::Insight(insight.id));
    let made = services.subscriptions.create(&project, input).await.unwrap();
    assert_eq!(made.next_delivery_date, Some(project.org.ctx.now));
    assert_eq!(made.target_value, "Ada.L@mail.example");
    services.subscriptions.deliver_due().await.unwrap();
    services.subscriptions.deliver_due().await.unwrap();
    let [mail] = waiting(&services).await.try_into().unwrap();
    assert_eq!(mail.to, "Ada.L@mail.example");
    let MailContent::Subscription { digest, is_test, .. } = mail.news else { panic!() };
    assert_eq!((digest.title.as_str(), is_test, digest.reports.len()), ("Payments", false, 1));
    assert!(digest.settings.ends_with(&format!("subscriptions?subscription={}", made.id)));
    // Three missed days are one mail.
    services.clock.advance(3 * 24 * 60 * 60 + 60);
    services.subscriptions.deliver_due().await.unwrap();
    services.subscriptions.deliver_due().await.unwrap();
    assert_eq!(waiting(&services).await.len(), 2);
    let id = made.id.to_string();
    let now = services.subscriptions.get(&project, &id).await.unwrap();
    assert_eq!(now.last_delivery_date, Some(services.clock.now()));
    assert_eq!(now.next_delivery_date, Some(made.start_date.plus_seconds(4 * 24 * 60 * 60)));
    let counted = services.subscriptions.take_deliveries();
    assert_eq!(counted, HashMap::from([(DeliveryOutcome::Sent, 2)]));
}

#[tokio::test]
async fn without_mail_a_subscription_waits() {
    let services = set_up().await;
    let project = entered(&services).await;
    let insight = insight(&services, &project).await;
    let input = daily(&project, SubscriptionSubject::Insight(insight.id));
    let made = services.subscriptions.create(&project, input).await.unwrap();
    services.clock.advance(24 * 60 * 60);
    services.subscriptions.deliver_due().await.unwrap();
    let id = made.id.to_string();
    assert_eq!(services.subscriptions.get(&project, &id).await.unwrap(), made);
    let refused = services.subscriptions.send_test(&project, &id).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn what_is_hidden_or_has_no_recipient_is_not_sent() {
    let services = set_up_with_mail().await;
    let project = entered(&services).await;
    let insight = insight(&services, &project).await;
    let input = daily(&project, SubscriptionSubject::Insight(insight.id));
    let made = services.subscriptions.create(&project, input).await.unwrap();
    let id = made.id.to_string();
    let left = services.subscriptions.unsubscribe(&project, &id).await.unwrap();
    assert_eq!(left.target_value, "");
    services.subscriptions.deliver_due().await.unwrap();
    let skipped = services.subscriptions.get(&project, &id).await.unwrap();
    assert_eq!(skipped.last_error.as_deref(), Some("No recipient is a member any more."));
    assert!(skipped.next_delivery_date > made.next_delivery_date);
    let counted = services.subscriptions.take_deliveries();
    assert_eq!(counted, HashMap::from([(DeliveryOutcome::Skipped, 1)]));

    let again = SubscriptionPatch {
        target_value: Some(" ada.l@mail.example ,, Ada.L@mail.example".to_owned()),
        ..SubscriptionPatch::default()
    };
    services.subscriptions.update(&project, &id, again).await.unwrap();
    let hidden = InsightPatch { deleted: Patch::Set(true), ..InsightPatch::default() };
    services.insights.update(&project, &insight.short_id, hidden).await.unwrap();
    services.clock.advance(24 * 60 * 60);
    services.subscriptions.deliver_due().await.unwrap();
    let skipped = services.subscriptions.get(&project, &id).await.unwrap();
    assert_eq!(skipped.last_error.as_deref(), Some("The insight is deleted."));
    assert!(waiting(&services).await.is_empty());

    // A hidden subscription is not due.
    let hidden = SubscriptionPatch { deleted: Patch::Set(true), ..SubscriptionPatch::default() };
    let hidden = services.subscriptions.update(&project, &id, hidden).await.unwrap();
    assert_eq!((hidden.deleted, hidden.next_delivery_date), (true, None));
    let page = Page { limit: 10, offset: 0 };
    assert_eq!(services.subscriptions.list(&project, None, page).await.unwrap().count, 0);
}

#[tokio::test]
async fn a_subscription_goes_away_with_what_it_is_about() {
    let services = set_up_with_mail().await;
    let project = entered(&services).await;
    let insight = insight(&services, &project).await;
    let input = DashboardInput { name: "Sales".to_owned(), rest: DashboardPatch::default() };
    let dashboard = services.dashboards.create(&project, input).await.unwrap().brief;
    let on_dashboard =
        InsightPatch { dashboards: Patch::Set(vec![dashboard.id]), ..InsightPatch::default() };
    services.insights.update(&project, &insight.short_id, on_dashboard).await.unwrap();
    let subscriptions = &services.subscriptions;
    let of = |about| subscriptions.create(&project, daily(&project, about));
    let first = of(SubscriptionSubject::Insight(insight.id)).await.unwrap();
    let second = of(SubscriptionSubject::Dashboard(dashboard.id)).await.unwrap();
    subscriptions.deliver_due().await.unwrap();
    let titles: BTreeSet<String> = waiting(&services)
        .await
        .into_iter()
        .map(|mail| match mail.news {
            MailContent::Subscription { digest, .. } => {
                assert_eq!(digest.reports[0].name, "Payments");
                digest.title
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(titles, BTreeSet::from(["Payments".to_owned(), "Sales".to_owned()]));

    services.dashboards.delete(&project, &dashboard.id.to_string()).await.unwrap();
    services.insights.delete(&project, &insight.short_id).await.unwrap();
    for id in [first.id, second.id] {
        let gone = subscriptions.get(&project, &id.to_string()).await;
        assert!(matches!(gone, Err(Error::NotFound(_))));
    }
    let store = services.organizations.store();
    let late = SubscriptionRow { project: project.project, insight: Some(insight.id), ..row() };
    let refused = rows::create(store, project.org.organization, &late, &[]).await.unwrap();
    assert_eq!(refused, Created::Refused(NO_SUBJECT.to_owned()));
    services.clock.advance(2 * 24 * 60 * 60);
    subscriptions.deliver_due().await.unwrap();
    let left = rows::due(store, Timestamp::from_micros(i64::MAX / 2), 10).await.unwrap();
    assert!(left.is_empty());
}

#[test]
fn times_that_cannot_be_are_refused() {
    let fault = |change: fn(&mut SubscriptionRow)| {
        let mut row = row();
        change(&mut row);
        check_times(&row).err().and_then(|fault| fault.attr)
    };
    let at = |attr: &str| Some(attr.to_owned());
    assert_eq!(fault(|_| {}), None);
    assert_eq!(fault(|row| row.weekdays = vec![Weekday::Monday]), at("byweekday"));
    assert_eq!(fault(|row| row.place = Some(1)), at("bysetpos"));
    let monthly = |row: &mut SubscriptionRow, weekdays: &[Weekday], place: Option<i64>| {
        row.frequency = Frequency::Monthly;
        (row.weekdays, row.place) = (weekdays.to_vec(), place);
    };
    let fault = |weekdays: &[Weekday], place| {
        let mut row = row();
        monthly(&mut row, weekdays, place);
        check_times(&row).err().and_then(|fault| fault.attr)
    };
    assert_eq!(fault(&[], None), None);
    assert_eq!(fault(&[], Some(1)), at("byweekday"));
    assert_eq!(fault(&[Weekday::Monday], None), at("bysetpos"));
    assert_eq!(fault(&[Weekday::Monday], Some(-1)), None);
    assert_eq!(fault(&[Weekday::Monday], Some(5)), at("bysetpos"));
    let ended = SubscriptionRow { until_at: Some(row().start_at), ..row() };
    assert_eq!(check_times(&ended).err().and_then(|fault| fault.attr), at("until_date"));
}

#[test]
fn a_summary_says_when_mails_are_sent() {
    let of = |frequency, interval, weekdays: &[Weekday], place| {
        let weekdays = weekdays.to_vec();
        words::summary(&SubscriptionRow { frequency, interval, weekdays, place, ..row() })
    };
    let days = [Weekday::Monday, Weekday::Wednesday, Weekday::Friday];
    assert_eq!(of(Frequency::Daily, 1, &[], None), "sent every day");
    assert_eq!(of(Frequency::Monthly, 3, &[], None), "sent every 3 months");
    assert_eq!(
        of(Frequency::Weekly, 2, &days, None),
        "sent every 2 weeks on Monday, Wednesday and Friday"
    );
    assert_eq!(
        of(Frequency::Monthly, 1, &days[..1], Some(-1)),
        "sent every month on the last Monday"
    );
    assert_eq!(
        of(Frequency::Monthly, 1, &days[1..], Some(1)),
        "sent every month on the first Wednesday or Friday"
    );
}
