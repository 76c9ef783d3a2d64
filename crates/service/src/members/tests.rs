//! Two owners at once, and how searches meet members.

use weir_model::members::{MemberPatch, MemberQuery};
use weir_model::organizations::Level;
use weir_model::pagination::Page;

use super::*;
use crate::ctx::Ctx;
use crate::organizations::enter;
use crate::test_support::{self, ada, join, organization, person, stranger};
use crate::{Actor, Services};

async fn org(services: &Services, ctx: &Ctx, organization: OrganizationId) -> OrgCtx {
    enter(&services.members.core, ctx, organization).await.unwrap()
}

const DEMOTE: MemberPatch = MemberPatch { level: Some(Level::Member) };

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_was_overtaken_is_made_anew() {
    let services = test_support::set_up().await;
    let members = &services.members;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let linus = stranger(&services, "linus").await;
    join(&services, home, &linus, Level::Owner).await;
    let (of_ada, of_linus) = (org(&services, &ada, home).await, org(&services, &linus, home).await);
    // Both find out at the same time that they may change the other.
    let other = members.changeable(&of_ada, &linus.user().to_string()).await.unwrap();
    let self_of_ada = members.changeable(&of_linus, &ada.user().to_string()).await.unwrap();
    assert_eq!(members.update(&of_ada, other, DEMOTE).await.unwrap().level, Level::Member);
    // Linus' level is not what he thinks any more.
    let refused = members.update(&of_linus, self_of_ada, DEMOTE).await.unwrap_err();
    assert!(matches!(&refused, Error::Forbidden(why) if why == NOT_AN_ADMIN), "{refused}");
}

#[tokio::test]
async fn who_was_removed_meanwhile_decides_nothing() {
    let services = test_support::set_up().await;
    let members = &services.members;
    let ada = ada(&services).await;
    let home = organization(&services, &ada, "Home").await;
    let (grace, linus) = (stranger(&services, "grace").await, stranger(&services, "linus").await);
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
