//! Concurrent changes by two owners, and searching members.

use weir_model::members::{MemberPatch, MemberQuery};
use weir_model::organizations::Level;
use weir_model::pagination::Page;

use super::*;
use crate::ctx::Ctx;
use crate::organizations::enter;
use crate::test_support::{self, ada, join, organization, outsider, person};
use crate::{Actor, Services};

async fn org(services: &Services, ctx: &Ctx, organization: OrganizationId) -> OrgCtx {
    enter(&services.members.core, ctx, organization).await.unwrap()
}

const DEMOTE: MemberPatch = MemberPatch { level: Some(Level::Member) };

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_on_stale_data_is_repeated() {
    let services = test_support::set_up().await;
    let members = &services.members;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let linus = outsider(&services, "linus").await;
    join(&services, home, &linus, Level::Owner).await;
    let (of_ada, of_linus) = (org(&services, &ada, home).await, org(&services, &linus, home).await);
    // Both are allowed to change the other at the same time.
    let other = members.changeable(&of_ada, &linus.user().to_string()).await.unwrap();
    let self_of_ada = members.changeable(&of_linus, &ada.user().to_string()).await.unwrap();
    assert_eq!(members.update(&of_ada, other, DEMOTE).await.unwrap().level, Level::Member);
    // The level of Linus has changed since he was checked.
    let refused = members.update(&of_linus, self_of_ada, DEMOTE).await.unwrap_err();
    assert!(matches!(&refused, Error::Forbidden(why) if why == NOT_AN_ADMIN), "{refused}");
}

#[tokio::test]
async fn a_removed_member_changes_nothing() {
    let services = test_support::set_up().await;
    let members = &services.members;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let (grace, linus) = (outsider(&services, "grace").await, outsider(&services, "linus").await);
    join(&services, home, &grace, Level::Administrator).await;
    join(&services, home, &linus, Level::Member).await;
    let (of_ada, of_grace) = (org(&services, &ada, home).await, org(&services, &grace, home).await);
    let target = members.changeable(&of_grace, &linus.user().to_string()).await.unwrap();
    let herself = members.changeable(&of_ada, &grace.user().to_string()).await.unwrap();
    members.remove(&of_ada, herself).await.unwrap();
    let refused = members.remove(&of_grace, target).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(_)), "{refused}");
    let all = members.list(&of_ada, &MemberQuery::default(), Page::default()).await.unwrap();
    assert_eq!(all.count, 2);
}

#[tokio::test]
async fn a_person_who_signed_in_long_ago_changes_no_level() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let mut old = person(&services, ada.user());
    old.now = old.now.plus_seconds(policy::RECENT_SECONDS + 1);
    assert!(matches!(old.actor, Actor::Session { .. }));
    let of_old = org(&services, &old, home).await;
    let refused = services.members.changeable(&of_old, "@me").await.unwrap_err();
    assert!(matches!(refused, Error::SignInAgain), "{refused}");
}

#[tokio::test]
async fn leeway_is_what_the_rules_allow() {
    let services = test_support::set_up().await;
    let members = &services.members;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let (grace, linus) = (outsider(&services, "grace").await, outsider(&services, "linus").await);
    join(&services, home, &grace, Level::Administrator).await;
    join(&services, home, &linus, Level::Member).await;
    let all = [Level::Member, Level::Administrator, Level::Owner];
    let why = |text: &str| Err(text.to_owned());
    // Ada, Grace, Linus.
    for (actor, expected) in [
        (&ada, [why(OWN_LEVEL), Ok(all.to_vec()), Ok(all.to_vec())]),
        (&grace, [why(TARGET_ABOVE), why(OWN_LEVEL), Ok(all[..2].to_vec())]),
        (&linus, [why(NOT_AN_ADMIN), why(NOT_AN_ADMIN), why(OWN_LEVEL)]),
    ] {
        let org = org(&services, actor, home).await;
        let found = members.list(&org, &MemberQuery::default(), Page::default()).await.unwrap();
        let mut found = found.results;
        found.sort_by(|one, other| one.user.email.cmp(&other.user.email));
        let levels: Vec<_> = found.iter().map(|one| members.leeway(&org, one).levels).collect();
        assert_eq!(levels, expected);
        for member in &found {
            let stays = members.leeway(&org, member).stays;
            let id = member.user.uuid.to_string();
            let removed = match members.changeable(&org, &id).await {
                Ok(_) => member.level != Level::Owner,
                Err(_) => false,
            };
            assert_eq!(stays.is_none(), removed, "{id}");
        }
    }
}

#[tokio::test]
async fn leaving_removes_the_keys_of_the_organization() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let of_ada = org(&services, &ada, home).await;
    let input =
        |label: &str, organizations: Vec<OrganizationId>| weir_model::keys::PersonalKeyInput {
            label: label.to_owned(),
            scoped_organizations: organizations,
            ..test_support::key_input()
        };
    services.keys.create(&ada, input("everywhere", Vec::new())).await.unwrap();
    services.keys.create(&ada, input("here", vec![home])).await.unwrap();
    let elsewhere = organization(&services, &ada, "Elsewhere").await;
    services.keys.create(&ada, input("there", vec![elsewhere])).await.unwrap();
    let losses = services.members.losses(&of_ada, &[ada.user()]).await.unwrap();
    let mut keys = losses[0].keys.clone();
    keys.sort();
    assert_eq!((losses.len(), keys), (1, vec!["everywhere".to_owned(), "here".to_owned()]));
}

#[tokio::test]
async fn members_without_a_second_factor_are_named() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let of_ada = org(&services, &ada, home).await;
    let without = services.members.without_second_factor(&of_ada).await.unwrap();
    assert_eq!(without.iter().map(|one| one.user.uuid).collect::<Vec<_>>(), [ada.user()]);
}
