//! When a mail is retried, and when it is given up.

use weir_model::mail::MailContent;
use weir_store::{mail as rows, user_links};

use super::*;
use crate::identity::Peer;
use crate::test_support::{self, ada, organization};
use crate::{Services, organizations};

/// An instance with a waiting mail, as invites store them.
async fn waiting() -> Services {
    let services = test_support::set_up_with_mail().await;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let org = organizations::enter(&services.mails.core, &ada, home).await.unwrap();
    let input = weir_model::invites::InviteInput {
        target_email: "grace@mail.example".to_owned(),
        first_name: String::new(),
        level: weir_model::organizations::Level::Member,
        message: None,
        send_email: true,
    };
    services.invites.create(&org, input).await.unwrap();
    services
}

async fn due(services: &Services) -> Vec<MailRow> {
    services.mails.due().await.unwrap()
}

/// No store and no backup contains the token of an invite: it is made when the mail is
/// sent.
#[tokio::test]
async fn an_invite_gets_the_link_of_its_mail_when_that_is_sent() {
    let services = waiting().await;
    let store = services.organizations.store();
    let [row] = due(&services).await.try_into().unwrap();
    let MailContent::Invited { token: Some(token), .. } = &row.mail.news else { panic!() };
    let shown = services.identity.invite_link(None, &token.0, &Peer::default()).await.unwrap();
    assert!(matches!(shown, crate::identity::InviteLink::Open(_)));
    let [waiting] = rows::due(store, services.clock.now()).await.unwrap().try_into().unwrap();
    assert!(matches!(waiting.mail.news, MailContent::Invited { token: None, .. }));
    // A retry has its own link. The earlier link still works, in case its mail arrived
    // after all.
    let [again] = due(&services).await.try_into().unwrap();
    let MailContent::Invited { token: Some(other), .. } = &again.mail.news else { panic!() };
    assert_ne!(token, other);
    for token in [token, other] {
        let shown = services.identity.invite_link(None, &token.0, &Peer::default()).await;
        assert!(matches!(shown.unwrap(), crate::identity::InviteLink::Open(_)));
    }
}

#[tokio::test]
async fn tries_grow_apart_and_end_after_a_day() {
    let services = waiting().await;
    let mails = &services.mails;
    let began = services.clock.now();
    let unreachable = SendError::Unreachable("no answer".to_owned());
    let mut waits = Vec::new();
    while let Some(row) = due(&services).await.pop() {
        assert!(matches!(row.mail.news, MailContent::Invited { .. }));
        mails.not_sent(&row, &unreachable).await.unwrap();
        assert!(due(&services).await.is_empty(), "not at once");
        let Some(next) = rows::due(&mails.core.store, began.plus_seconds(10 * GIVE_UP_AFTER))
            .await
            .unwrap()
            .pop()
        else {
            break;
        };
        assert_eq!(next.id, row.id);
        let wait = (next.due_at.micros() - services.clock.now().micros()) / 1_000_000;
        waits.push(wait);
        services.clock.advance(wait);
    }
    assert_eq!(&waits[..7], [5, 30, 120, 600, 1800, 3600, 3600]);
    let all: i64 = waits.iter().sum();
    assert!((GIVE_UP_AFTER - 3600..=GIVE_UP_AFTER).contains(&all), "{all}");
    let given_up = mails.undelivered().await.unwrap();
    assert_eq!((given_up.len(), given_up[0].reason.as_str()), (1, "no answer"));
    assert_eq!(mails.waiting().await.unwrap(), 0);
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let services = waiting().await;
    let row = due(&services).await.pop().unwrap();
    let failure = SendError::Hopeless("no user of this name".to_owned());
    services.mails.not_sent(&row, &failure).await.unwrap();
    assert_eq!(services.mails.waiting().await.unwrap(), 0);
    assert_eq!(services.mails.undelivered().await.unwrap()[0].mail.to, "grace@mail.example");
}

#[tokio::test]
async fn mails_outlive_a_restart() {
    let services = waiting().await;
    let again = test_support::restarted(&services);
    assert_eq!(due(&again).await.len(), 1);
    let row = due(&services).await.pop().unwrap();
    services.mails.sent(&row).await.unwrap();
    assert_eq!(due(&again).await.len(), 0);
}

#[tokio::test]
async fn a_link_is_kept_nowhere_before_its_mail_is_sent() {
    let services = test_support::set_up_with_mail().await;
    let ada = ada(&services).await.user();
    let identity = &services.identity;
    identity.ask_reset("ada.l@mail.example", &Peer::default()).await.unwrap();
    identity.ask_confirmation(&ada.to_string(), &Peer::default()).await.unwrap();
    let store = &services.mails.core.store;
    let waiting = rows::due(store, services.clock.now()).await.unwrap();
    let link = |row: &MailRow| match &row.mail.news {
        MailContent::ConfirmAddress { link, .. } | MailContent::ResetPassword { link, .. } => {
            link.clone()
        }
        _ => None,
    };
    assert_eq!((waiting.len(), waiting.iter().find_map(link)), (2, None));
    assert!(user_links::links(store, ada).await.unwrap().is_empty());
    assert!(due(&services).await.iter().all(|row| link(row).is_some()));
    assert_eq!(user_links::links(store, ada).await.unwrap().len(), 2);
}
