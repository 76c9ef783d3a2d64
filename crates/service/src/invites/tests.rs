//! What of invites does not show over HTTP: the activity log, and who hears of
//! what where mail is sent.

use weir_model::organizations::Level;
use weir_store::activity::{Of, page as activities};

use super::*;
use crate::Services;
use crate::organizations::enter;
use crate::test_support::{self, ada, organization, stranger};

async fn setting() -> (Services, OrgCtx) {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let org = enter(&services.invites.core, &ada, home).await.unwrap();
    (services, org)
}

fn input(email: &str) -> InviteInput {
    InviteInput {
        target_email: email.to_owned(),
        first_name: String::new(),
        level: Level::Member,
        message: None,
        send_email: true,
    }
}

#[tokio::test]
async fn the_log_tells_who_was_invited_and_that_they_came() {
    let (services, org) = setting().await;
    let grace = stranger(&services, "grace").await;
    let made = services.invites.create(&org, input("GRACE@mail.example")).await.unwrap();
    let dropped = services.invites.create(&org, input("linus@mail.example")).await.unwrap();
    services.invites.delete(&org, &dropped.id.to_string()).await.unwrap();
    let peer = crate::identity::Peer::default();
    services.identity.join(&grace, &made.id.to_string(), &peer).await.unwrap();
    let of = Of::Organization(org.organization);
    let (_, entries) =
        activities(services.organizations.store(), of, Page::default()).await.unwrap();
    let told: Vec<(&str, &str, Option<&str>)> = entries
        .iter()
        .map(|entry| (entry.scope.text(), entry.activity.text(), entry.detail.name.as_deref()))
        .filter(|(scope, ..)| {
            scope.starts_with("OrganizationI") || scope.starts_with("OrganizationM")
        })
        .collect();
    assert_eq!(
        told,
        [
            ("OrganizationMembership", "created", Some("grace@mail.example")),
            ("OrganizationInvite", "accepted", Some("GRACE@mail.example")),
            ("OrganizationInvite", "deleted", Some("linus@mail.example")),
            ("OrganizationInvite", "created", Some("linus@mail.example")),
            ("OrganizationInvite", "created", Some("GRACE@mail.example")),
        ]
    );
}

#[tokio::test]
async fn mails_are_written_only_where_somebody_sends_them() {
    let (services, org) = setting().await;
    services.invites.create(&org, input("a@mail.example")).await.unwrap();
    assert_eq!(services.mails.waiting().await.unwrap(), 0);
    services.mails.open();
    services.invites.create(&org, input("b@mail.example")).await.unwrap();
    let declined = InviteInput { send_email: false, ..input("c@mail.example") };
    services.invites.create(&org, declined).await.unwrap();
    let due = services.mails.due().await.unwrap();
    assert_eq!(due.iter().map(|row| row.mail.to.as_str()).collect::<Vec<_>>(), ["b@mail.example"]);
    // The sign that something waits is there already.
    services.mails.arrived().await;
}
