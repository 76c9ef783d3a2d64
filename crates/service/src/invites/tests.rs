//! Facts about invites that HTTP does not show: the activity log, and who gets which
//! mail.

use weir_model::organizations::Level;
use weir_store::activity::{Of, page as activities};

use super::*;
use crate::Services;
use crate::organizations::enter;
use crate::test_support::{self, ada, organization, outsider};

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
async fn the_activity_log_records_invites_and_joins() {
    let (services, org) = setting().await;
    let grace = outsider(&services, "grace").await;
    let made = services.invites.create(&org, input("GRACE@mail.example")).await.unwrap();
    let dropped = services.invites.create(&org, input("linus@mail.example")).await.unwrap();
    services.invites.delete(&org, &dropped.id.to_string()).await.unwrap();
    let peer = crate::identity::Peer::default();
    services.identity.join(&grace, &made.token.unwrap().0, &peer).await.unwrap();
    let of = Of::Organization(org.organization);
    let (_, entries) =
        activities(services.organizations.store(), of, Page::default()).await.unwrap();
    let audit_entries: Vec<(&str, &str, Option<&str>)> = entries
        .iter()
        .map(|entry| (entry.scope.text(), entry.activity.text(), entry.detail.name.as_deref()))
        .filter(|(scope, ..)| {
            scope.starts_with("OrganizationI") || scope.starts_with("OrganizationM")
        })
        .collect();
    assert_eq!(
        audit_entries,
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
async fn mails_are_stored_only_if_mail_is_set_up() {
    let (services, org) = setting().await;
    services.invites.create(&org, input("a@mail.example")).await.unwrap();
    assert_eq!(services.mails.waiting().await.unwrap(), 0);
    let services = test_support::restarted_with_mail(&services);
    services.invites.create(&org, input("b@mail.example")).await.unwrap();
    let declined = InviteInput { send_email: false, ..input("c@mail.example") };
    services.invites.create(&org, declined).await.unwrap();
    let due = services.mails.due().await.unwrap();
    assert_eq!(due.iter().map(|row| row.mail.to.as_str()).collect::<Vec<_>>(), ["b@mail.example"]);
    // The notification of a waiting mail is already there.
    services.mails.arrived().await;
}

#[tokio::test]
async fn a_list_is_checked_before_any_invite_is_made() {
    let (services, org) = setting().await;
    services.invites.create(&org, input("grace@mail.example")).await.unwrap();
    let text = "Linus T <linus@mail.example>\ngrace@mail.example, LINUS@mail.example\n\
                ada.l@mail.example\nnobody";
    let listed = services.invites.preview(&org, text).await.unwrap();
    let verdicts: Vec<&Verdict> = listed.iter().map(|one| &one.verdict).collect();
    assert!(matches!(
        verdicts[..],
        [Verdict::Ready, Verdict::Again, Verdict::Duplicate, Verdict::Member, Verdict::Wrong(_),]
    ));
    let message = " Have a look. ";
    let made = services.invites.create_listed(&org, text, Level::Member, message).await.unwrap();
    let made: Vec<_> = made
        .iter()
        .map(|one| (one.target_email.as_str(), one.first_name.as_str(), one.message.as_deref()))
        .collect();
    let message = Some("Have a look.");
    assert_eq!(
        made,
        [("linus@mail.example", "Linus", message), ("grace@mail.example", "", message)]
    );
    let nobody = services.invites.create_listed(&org, "nobody", Level::Member, "").await;
    assert!(matches!(nobody.unwrap_err(), Error::Invalid(fault) if fault.code == "required"));
    let many: String = (0..25).map(|at| format!("p{at}@mail.example\n")).collect();
    let listed = services.invites.preview(&org, &many).await.unwrap();
    assert_eq!(listed.iter().filter(|one| one.verdict.is_invited()).count(), BULK_MAX);
    assert_eq!(listed[24].verdict, Verdict::TooMany);
}

#[tokio::test]
async fn an_invite_is_renewed_and_deleted_by_members_who_could_make_it() {
    let (services, org) = setting().await;
    let owners = InviteInput { level: Level::Owner, ..input("grace@mail.example") };
    let made = services.invites.create(&org, owners).await.unwrap();
    let plain = OrgCtx { level: Level::Member, ..org.clone() };
    assert!(Invites::may_hold(&org, &made) && !Invites::may_hold(&plain, &made));
    let id = made.id.to_string();
    let refused = services.invites.renew(&plain, &id).await.unwrap_err();
    assert!(matches!(&refused, Error::Forbidden(why) if why == LEVEL_ABOVE), "{refused}");
    let refused = services.invites.delete(&plain, &id).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(_)), "{refused}");
    // Nor is it replaced by an invite of a lower level.
    let refused = services.invites.create(&plain, input("Grace@mail.example")).await.unwrap_err();
    let why = matches!(&refused, Error::Invalid(field) if field.detail == INVITED_ABOVE);
    assert!(why, "{refused}");
    let again = services.invites.renew(&org, &id).await.unwrap();
    assert_ne!((again.id, again.token), (made.id, made.token));
    assert_eq!((again.target_email, again.level), (made.target_email, made.level));
    // The earlier link does not work any more.
    let gone = services.invites.renew(&org, &id).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound(_)), "{gone}");
    assert_eq!(services.invites.list(&org, Page::default()).await.unwrap().count, 1);
}

/// Stores invites of this organization that were created at this time.
async fn put(services: &Services, org: &OrgCtx, count: usize, created_at: Timestamp) {
    let ctx = Ctx { now: created_at, ..org.ctx.clone() };
    let org = OrgCtx { ctx, ..org.clone() };
    let invite = |number: usize| {
        let email = format!("{number}-{}@mail.example", created_at.micros());
        draft(&org, input(&email), email.clone(), format!("hash {email}")).0
    };
    let rows: Vec<InviteRow> = (0..count).map(invite).collect();
    let store = services.organizations.store();
    // Each statement has to end within the time of a statement.
    for part in rows.chunks(100) {
        let bounds = InviteBounds::of(INVITES_MAX);
        let outcome = rows::create(store, org.organization, part, bounds, &[], &[]).await;
        assert_eq!(outcome.unwrap(), Created::Yes);
    }
}

#[tokio::test]
async fn an_organization_has_a_maximum_of_invites() {
    let (services, org) = setting().await;
    services.invites.create(&org, input("grace@mail.example")).await.unwrap();
    put(&services, &org, INVITES_MAX - 1, org.ctx.now).await;
    let refused = services.invites.create(&org, input("linus@mail.example")).await.unwrap_err();
    let Error::Invalid(fault) = refused else { panic!("{refused}") };
    assert!(fault.detail.starts_with("An organization may have at most 500 invites"), "{fault:?}");
    // An invite that replaces another one adds none.
    let both = vec![input("grace@mail.example"), input("linus@mail.example")];
    assert!(services.invites.create_all(&org, both).await.is_err());
    assert!(services.invites.create(&org, input("Grace@mail.example")).await.is_ok());
    let listed = services.invites.list(&org, Page::default()).await.unwrap();
    assert_eq!(usize::try_from(listed.count).unwrap(), INVITES_MAX);
}

#[tokio::test]
async fn invites_that_expired_long_ago_are_removed() {
    let (services, org) = setting().await;
    let days = |days: i64| services.clock.now().plus_seconds(-days * 24 * 60 * 60);
    for age in [0, 10, 32, 34, 400] {
        put(&services, &org, 1, days(age)).await;
    }
    services.invites.prune().await.unwrap();
    let listed = services.invites.list(&org, Page::default()).await.unwrap();
    let left: Vec<Timestamp> = listed.results.iter().map(|invite| invite.created_at).collect();
    assert_eq!(left, [days(0), days(10), days(32)]);
    // Their addresses are free again.
    let old = format!("0-{}@mail.example", days(34).micros());
    let listed = services.invites.preview(&org, &old).await.unwrap();
    assert_eq!(listed[0].verdict, Verdict::Ready);
}
