//! The caller as a user, on a store in memory.

use weir_model::keys::PersonalKeyInput;
use weir_model::projects::ProjectPatch;

use super::*;
use crate::identity::Peer;
use crate::test_support::{self, PASSWORD, ada, key, key_input, organization, outsider};

#[tokio::test]
async fn me() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let me = services.users.me(&ctx).await.unwrap();
    assert_eq!(
        (me.id, me.email.as_str(), me.first_name.as_str()),
        (1, "Ada.L@mail.example", "Ada")
    );
    assert!(me.is_staff && me.has_password && !me.is_email_verified);
    assert_eq!(me.team.unwrap().name, "Shop");
    assert_eq!(me.organization.unwrap().row.name, "Acme Tea");
    let [only] = me.organizations.as_slice() else { panic!("{:?}", me.organizations) };
    assert_eq!((only.slug.as_str(), i64::from(only.membership_level)), ("acme-tea", 15));

    let narrow = PersonalKeyInput { scopes: vec!["event:read".parse().unwrap()], ..key_input() };
    let narrow = key(&services, &ctx, narrow).await;
    assert!(matches!(services.users.me(&narrow).await, Err(Error::MissingScope(_))));
}

#[tokio::test]
async fn users_cannot_reach_each_other() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let eve = outsider(&services, "eve").await;
    let (hers, mine) = (eve.user().to_string(), ada.user().to_string());
    let missing = uuid::Uuid::from_u128(7).to_string();
    let enter = async |ctx: &Ctx, id: &str| services.users.enter(ctx, id).await;
    for id in ["@me", &mine, &mine.to_uppercase()] {
        enter(&ada, id).await.unwrap();
    }
    for id in [hers.as_str(), &missing, "1", "@ME", ""] {
        let error = enter(&ada, id).await.unwrap_err();
        assert!(matches!(error, Error::NotFound(NOT_FOUND)), "{id}");
    }
    enter(&eve, "@me").await.unwrap();
    for id in [hers.as_str(), &mine, &missing, "1"] {
        let error = enter(&eve, id).await.unwrap_err();
        assert!(matches!(error, Error::Forbidden(text) if text == ONLY_ME), "{id}");
    }
}

#[tokio::test]
async fn the_current_organization_and_project() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let first = services.organizations.enter(&ctx, "@current").await.unwrap().organization;
    let zebra = organization(&services, &ctx, "Zebra").await;
    let eve = outsider(&services, "eve").await;
    let hers = organization(&services, &eve, "Mole").await;
    let now = async || {
        let me = services.users.me(&ctx).await.unwrap();
        (me.organization.unwrap().row.id, me.team.unwrap().id.0)
    };
    let set = async |organization, project: Option<i64>| {
        services.users.set_current(&ctx, organization, project.map(ProjectId)).await
    };
    assert_eq!(now().await, (zebra, 2));
    set(Some(first), None).await.unwrap();
    assert_eq!(now().await, (first, 1));
    set(None, Some(2)).await.unwrap();
    assert_eq!(now().await, (zebra, 2));
    set(None, None).await.unwrap();
    assert_eq!(now().await, (zebra, 2));
    let unknown = OrganizationId(uuid::Uuid::nil());
    for (organization, project, attr) in [
        (Some(hers), None, "set_current_organization"),
        (Some(unknown), None, "set_current_organization"),
        (None, Some(3), "set_current_team"),
        (None, Some(99), "set_current_team"),
        (Some(first), Some(2), "set_current_team"),
    ] {
        let Err(Error::Invalid(field)) = set(organization, project).await else { panic!("{attr}") };
        assert_eq!((field.attr.as_deref(), field.code.as_str()), (Some(attr), "does_not_exist"));
    }
    assert_eq!(now().await, (zebra, 2));
}

#[tokio::test]
async fn a_session_stays_where_it_is_when_a_key_goes_elsewhere() {
    let services = test_support::set_up().await;
    let browser = ada(&services).await;
    let script = key(&services, &browser, key_input()).await;
    let now = async |ctx: &Ctx| services.users.me(ctx).await.unwrap().team.unwrap().id.0;
    assert_eq!((now(&browser).await, now(&script).await), (1, 1));

    // Creating a project or an organization with a key, and choosing with one.
    let org = services.organizations.enter(&script, "@current").await.unwrap();
    services.projects.create(&org, ProjectPatch::default()).await.unwrap();
    assert_eq!((now(&browser).await, now(&script).await), (1, 2));
    organization(&services, &script, "Zebra").await;
    assert_eq!((now(&browser).await, now(&script).await), (1, 3));
    services.users.set_current(&script, None, Some(ProjectId(2))).await.unwrap();
    assert_eq!((now(&browser).await, now(&script).await), (1, 2));
    let entered = services.projects.enter(&browser, "@current").await.unwrap();
    assert_eq!(entered.project, ProjectId(1));

    // Another browser begins with the user's choice, and two sessions do not change
    // each other.
    let other = ada(&services).await;
    assert_eq!(now(&other).await, 2);
    services.users.set_current(&browser, None, Some(ProjectId(3))).await.unwrap();
    assert_eq!((now(&browser).await, now(&other).await, now(&script).await), (3, 2, 3));

    // Proving the password again opens another session, which keeps the current
    // project.
    let again = services.identity.sign_in_again(&other, PASSWORD, &Peer::default()).await.unwrap();
    let opened = services.identity.session(&again.token, "request".to_owned()).await.unwrap();
    assert_eq!(now(&opened.unwrap()).await, 2);

    // A deleted project cannot be the current one.
    let gone = services.projects.enter(&browser, "3").await.unwrap();
    services.projects.delete(&gone).await.unwrap();
    assert_eq!(services.users.me(&browser).await.unwrap().team, None);
    services.users.set_current(&browser, None, Some(ProjectId(1))).await.unwrap();
    assert_eq!(now(&browser).await, 1);
}

#[tokio::test]
async fn changing_oneself() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let set = |text: &str| Patch::Set(text.to_owned());
    let patch =
        MePatch { first_name: set(" Augusta "), last_name: set("King"), theme_mode: set("dark") };
    let me = services.users.update_me(&ctx, patch).await.unwrap();
    assert_eq!((me.first_name.as_str(), me.last_name.as_str()), ("Augusta", "King"));
    assert_eq!(me.theme_mode.as_deref(), Some("dark"));
    let me = services.users.update_me(&ctx, MePatch::default()).await.unwrap();
    assert_eq!((me.first_name.as_str(), me.theme_mode.as_deref()), ("Augusta", Some("dark")));
    let changed_at = async || {
        let store = services.organizations.store();
        rows::get(store, ctx.user()).await.unwrap().unwrap().updated_at
    };
    let before = changed_at().await;
    let later = Ctx { now: ctx.now.plus_seconds(9), ..ctx.clone() };
    services.users.update_me(&later, MePatch::default()).await.unwrap();
    assert_eq!(changed_at().await, before, "nothing changed");
    services
        .users
        .update_me(&later, MePatch { last_name: set("K"), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(changed_at().await, later.now);
    let patch = MePatch { theme_mode: Patch::Clear, last_name: set(""), ..MePatch::default() };
    let me = services.users.update_me(&ctx, patch).await.unwrap();
    assert_eq!((me.theme_mode, me.last_name.as_str()), (None, ""));
    for (patch, attr) in [
        (MePatch { first_name: set(" "), ..Default::default() }, "first_name"),
        (MePatch { first_name: Patch::Clear, ..Default::default() }, "first_name"),
        (MePatch { last_name: set(&"x".repeat(151)), ..Default::default() }, "last_name"),
        (MePatch { theme_mode: set("pink"), ..Default::default() }, "theme_mode"),
    ] {
        let Err(Error::Invalid(field)) = services.users.update_me(&ctx, patch).await else {
            panic!("{attr}");
        };
        assert_eq!(field.attr.as_deref(), Some(attr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_of_concurrent_renames_form_a_chain() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let rename = |name: String| {
        let (users, ctx) = (services.users.clone(), ctx.clone());
        let patch = MePatch { first_name: Patch::Set(name), ..MePatch::default() };
        tokio::spawn(async move { users.update_me(&ctx, patch).await.unwrap() })
    };
    let renames: Vec<_> = (0..16).map(|number| rename(format!("name {number}"))).collect();
    for rename in renames {
        rename.await.unwrap();
    }
    let last = services.users.me(&ctx).await.unwrap().first_name;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    test_support::assert_chain(&services, &org, "first_name", "Ada", &last, 16).await;
}

#[tokio::test]
async fn users_delete_themselves_once_they_have_no_organization() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let by_key = key(&services, &ada, key_input()).await;
    let error = services.users.delete_me(&by_key).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden(text) if text == crate::error::NO_KEYS));
    let error = services.users.delete_me(&ada).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Conflict { code: "conflict", detail } if detail == HAS_MEMBERSHIPS
    ));
    services.users.me(&ada).await.unwrap();

    let eve = outsider(&services, "eve").await;
    let value = services.keys.create(&eve, key_input()).await.unwrap().value.unwrap();
    services.users.delete_me(&eve).await.unwrap();
    services.users.delete_me(&eve).await.unwrap();
    assert!(matches!(services.users.me(&eve).await, Err(Error::NotAuthenticated)));
    let by_key = services.keys.authenticate(&value, "body", String::new()).await;
    assert!(matches!(by_key, Err(Error::BadCredential(_))));
    // The address is free again.
    let again = outsider(&services, "eve").await;
    assert_ne!(again.user(), eve.user());
}
