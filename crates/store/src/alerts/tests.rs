use weir_model::MailId;
use weir_model::mail::{AlertNews, Mail, MailContent};

use super::*;
use crate::{Location, Settings, activity};

const SHOP: ProjectId = ProjectId(7);
const NOW: Timestamp = Timestamp::EPOCH;

const PUT: Statement = Statement::write(
    "test alert",
    "UPSERT type::record('alert', [$row.project, $row.number]) CONTENT $row RETURN NONE;",
);

fn alert() -> AlertRow {
    let (id, revision) = ((SHOP, AlertId(1)), Uuid::from_u128(1));
    AlertRow {
        name: "Payments".to_owned(),
        lower: Some(1.0),
        ..AlertRow::new(id, InsightId(1), revision, UserId(Uuid::nil()), NOW)
    }
}

#[tokio::test]
async fn a_check_whose_commit_was_unknown_notifies_once() {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let before = alert();
    store.db.run(PUT, bind! { row: before.clone() }).await.unwrap();
    let after = AlertRow { revision: Uuid::from_u128(2), is_firing: true, ..before.clone() };
    let content = MailContent::Alert {
        first_name: String::new(),
        alert: after.name.clone(),
        project: "Shop".to_owned(),
        news: AlertNews::Fires("Too few.".to_owned()),
        path: "/".to_owned(),
    };
    let mail = MailRow {
        id: MailId(Uuid::from_u128(3)),
        due_at: NOW,
        created_at: NOW,
        tries: 0,
        mail: Mail { to: "ada@mail.example".to_owned(), news: content },
    };
    let webhook = WebhookRow {
        id: Uuid::from_u128(4),
        project: SHOP,
        alert: after.id,
        due_at: NOW,
        created_at: NOW,
        tries: 0,
        path: "/".to_owned(),
        body: "{}".to_owned(),
    };
    let with = Notifications { mails: vec![mail.clone()], webhook: Some(webhook.clone()) };
    let fields = vec!["revision".to_owned(), "is_firing".to_owned()];
    let mut vars = bind! {
        table: AlertRow::TABLE,
        id: key(SHOP, after.id),
        before: before,
        after: after.clone(),
        fields: fields,
    };
    after.bind(with, &mut vars).unwrap();
    let waiting = async || {
        let mails = mail::due(&store, NOW).await.unwrap();
        (mails, due_webhooks(&store, NOW, 10).await.unwrap())
    };
    let change = Statement::write(AlertRow::UPDATE, AlertRow::TEXT);
    activity::change(&store, change, vars.clone(), &[]).await.unwrap();
    assert_eq!(waiting().await, (vec![mail.clone()], vec![webhook.clone()]));
    // Both are sent before the transaction runs again.
    mail::forget(&store, &mail).await.unwrap();
    forget_webhook(&store, &webhook).await.unwrap();
    activity::change(&store, change, vars, &[]).await.unwrap();
    assert_eq!(waiting().await, (Vec::new(), Vec::new()));
    assert!(find(&store, SHOP, after.id).await.unwrap().unwrap().is_firing);
}
