//! Organizations on a store in memory: operations, permissions, visibility.

use std::collections::HashSet;

use weir_model::Patch;
use weir_model::keys::PersonalKeyInput;
use weir_model::scopes::Scope;
use weir_store::sessions::{self, Proved, SessionRow};

use super::*;
use crate::Actor;
use crate::test_support::{self, ada, join, key, key_input, organization, outsider};

fn named(name: &str) -> OrganizationPatch {
    OrganizationPatch::named("name", name).unwrap()
}

fn not_found(error: &Error) -> bool {
    matches!(error, Error::NotFound(NOT_FOUND))
}

#[tokio::test]
async fn creating_one() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let made = services.organizations.create(&ctx, named("Müller & Söhne")).await.unwrap();
    assert_eq!(made.row.slug, "muller-sohne");
    assert_eq!((made.row.created_at, made.row.updated_at), (ctx.now, ctx.now));
    assert_eq!(made.membership_level, Level::Owner);
    assert_eq!(made.member_count, "1");
    assert_eq!(made.row.plugins_access_level, PluginsAccess::Root);
    assert_eq!(made.metadata, r#"{"instance_tag":"none"}"#);
    assert!(made.row.is_member_join_email_enabled && !made.row.enforce_2fa);
    let [project] = made.teams.as_slice() else { panic!("{:?}", made.teams) };
    assert_eq!(project.name, "Default project");
    assert_eq!((project.organization, project.id.0), (made.row.id, 2));
    assert!(made.available_product_features.iter().any(|feature| feature.key == "group_analytics"));

    let current = services.organizations.enter(&ctx, "@current").await.unwrap();
    assert_eq!((current.organization, current.level), (made.row.id, Level::Owner));
    assert_eq!(services.organizations.get(&current).await.unwrap(), made);
    let project_now = services.projects.enter(&ctx, "@current").await.unwrap();
    assert_eq!(project_now.project, project.id);
}

#[tokio::test]
async fn listing_is_oldest_first_and_paged() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    for name in ["Zebra", "Aardvark", "Mole"] {
        services.clock.advance(1);
        organization(&services, &ada(&services).await, name).await;
    }
    let names = async |limit, offset| {
        let page = services.organizations.list(&ctx, Page { limit, offset }).await.unwrap();
        let names: Vec<String> = page.results.into_iter().map(|found| found.row.name).collect();
        (page.count, names.join(" "))
    };
    assert_eq!(names(100, 0).await, (4, "Acme Tea Zebra Aardvark Mole".to_owned()));
    assert_eq!(names(2, 1).await, (4, "Zebra Aardvark".to_owned()));
    assert_eq!(names(2, 9).await, (4, String::new()));
    let alone = outsider(&services, "eve").await;
    let page = services.organizations.list(&alone, Page::default()).await.unwrap();
    assert_eq!((page.count, page.results), (0, Vec::new()));
    let none = services.organizations.enter(&alone, "@current").await;
    assert!(matches!(none, Err(Error::NotFound(NO_CURRENT))));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_slugs_are_unique() {
    let services = test_support::set_up().await;
    let mut calls = Vec::new();
    for number in 0..12 {
        let ctx = outsider(&services, &format!("user{number}")).await;
        let organizations = services.organizations.clone();
        calls
            .push(tokio::spawn(async move { organizations.create(&ctx, named("Acme Tea")).await }));
    }
    let mut slugs = HashSet::from(["acme-tea".to_owned()]);
    let mut projects = HashSet::new();
    for call in calls {
        let made = call.await.unwrap().unwrap();
        assert!(
            made.row.slug.starts_with("acme-tea-") && made.row.slug.len() == 13,
            "{}",
            made.row.slug
        );
        assert!(slugs.insert(made.row.slug));
        assert!(projects.insert(made.teams[0].id));
    }
    let ctx = ada(&services).await;
    let long = named(&"x".repeat(64));
    let first = services.organizations.create(&ctx, long.clone()).await.unwrap();
    assert_eq!(first.row.slug, "x".repeat(48));
    let slug = services.organizations.create(&ctx, long).await.unwrap().row.slug;
    assert!(slug.starts_with(&format!("{}-", "x".repeat(43))) && slug.len() == 48, "{slug}");
}

#[tokio::test]
async fn levels() {
    let services = test_support::set_up().await;
    let owner = ada(&services).await;
    let id = organization(&services, &owner, "Zebra").await;
    let insufficient = "forbidden: Your organization access level is insufficient.";
    // level, may change settings, may add projects, may delete
    let cases = [
        (Level::Member, false, false, false),
        (Level::Administrator, true, true, false),
        (Level::Owner, true, true, true),
    ];
    for (level, may_update, may_create, may_delete) in cases {
        let ctx = outsider(&services, &format!("{level:?}").to_lowercase()).await;
        join(&services, id, &ctx, level).await;
        for ctx in [ctx.clone(), key(&services, &ctx, key_input()).await] {
            let org = services.organizations.enter(&ctx, &id.to_string()).await.unwrap();
            assert_eq!(org.level, level);
            assert_eq!(services.organizations.get(&org).await.unwrap().membership_level, level);
            let check = |allowed: bool, outcome: Result<()>, what: &str| match outcome {
                Ok(()) => assert!(allowed, "{level:?} {what}"),
                Err(error) => {
                    assert!(!allowed, "{level:?} {what} {error}");
                    assert_eq!(error.to_string(), insufficient);
                }
            };
            let patch = OrganizationPatch::default();
            let updated = services.organizations.update(&org, patch).await.map(drop);
            check(may_update, updated, "update");
            let settings = weir_model::projects::ProjectPatch::default();
            let created = services.projects.create(&org, settings).await.map(drop);
            check(may_create, created, "create project");
            if !may_delete {
                check(false, services.organizations.delete(&org).await, "delete");
            }
        }
    }
    let org = services.organizations.enter(&owner, &id.to_string()).await.unwrap();
    services.organizations.delete(&org).await.unwrap();
}

#[tokio::test]
async fn scopes_count_beside_levels() {
    let services = test_support::set_up().await;
    let owner = ada(&services).await;
    let id = organization(&services, &owner, "Zebra").await.to_string();
    let read =
        PersonalKeyInput { scopes: vec!["organization:read".parse().unwrap()], ..key_input() };
    let reader = key(&services, &owner, read).await;
    let org = services.organizations.enter(&reader, &id).await.unwrap();
    services.organizations.get(&org).await.unwrap();
    let write: Scope = "organization:write".parse().unwrap();
    let missing = |error: Error| matches!(error, Error::MissingScope(scope) if scope == write);
    let patch = OrganizationPatch::default();
    assert!(missing(services.organizations.update(&org, patch).await.unwrap_err()));
    assert!(missing(services.organizations.delete(&org).await.unwrap_err()));
    assert!(missing(services.organizations.create(&reader, named("More")).await.unwrap_err()));
    let other = PersonalKeyInput { scopes: vec![write], ..key_input() };
    let writer = key(&services, &owner, other).await;
    services.organizations.list(&writer, Page::default()).await.unwrap();
    assert!(services.projects.list(&writer, Page::default()).await.is_err());
}

#[tokio::test]
async fn what_is_not_mine_is_not_there() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let eve = outsider(&services, "eve").await;
    let hers = organization(&services, &ada, "Zebra").await;
    let mine = organization(&services, &eve, "Mole").await;
    for ctx in [eve.clone(), key(&services, &eve, key_input()).await] {
        for id in [
            hers.to_string().as_str(),
            &uuid::Uuid::from_u128(99).to_string(),
            "00000000-0000-0000-0000-000000000000",
            "not-a-uuid",
            "",
            &mine.0.simple().to_string(),
            &format!("{{{mine}}}"),
            &format!("organization:{mine}"),
            "..",
        ] {
            let error = services.organizations.enter(&ctx, id).await.unwrap_err();
            assert!(not_found(&error), "{id} {error}");
        }
        let listed = services.organizations.list(&ctx, Page::default()).await.unwrap();
        assert!(listed.results.iter().all(|found| found.row.id == mine));
        for project in services.projects.list(&ada, Page::default()).await.unwrap().results {
            let error = services.projects.enter(&ctx, &project.id.to_string()).await.unwrap_err();
            assert!(not_found(&error), "{error}");
        }
        let upper = mine.to_string().to_uppercase();
        assert_eq!(services.organizations.enter(&ctx, &upper).await.unwrap().organization, mine);
    }
    // The level of a member is not visible through a membership of another
    // organization.
    join(&services, hers, &eve, Level::Member).await;
    let org = services.organizations.enter(&eve, &hers.to_string()).await.unwrap();
    assert_eq!(org.level, Level::Member);
    assert_eq!(services.organizations.get(&org).await.unwrap().member_count, "2");
}

#[tokio::test]
async fn limited_keys() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let zebra = organization(&services, &ada, "Zebra").await;
    let mole = organization(&services, &ada, "Mole").await;
    let one = PersonalKeyInput { scoped_organizations: vec![zebra], ..key_input() };
    let limited = key(&services, &ada, one).await;
    let listed = services.organizations.list(&limited, Page::default()).await.unwrap();
    assert_eq!((listed.count, listed.results[0].row.id), (1, zebra));
    services.organizations.enter(&limited, &zebra.to_string()).await.unwrap();
    let error = services.organizations.enter(&limited, &mole.to_string()).await.unwrap_err();
    assert!(not_found(&error));
    let error = services.organizations.enter(&limited, "@current").await.unwrap_err();
    assert!(not_found(&error), "the current organization is beyond the limit");
    let error = services.organizations.create(&limited, named("More")).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden(_)));
    let projects = services.projects.list(&limited, Page::default()).await.unwrap();
    assert!(projects.results.iter().all(|project| project.organization == zebra));

    let project = projects.results[0].id;
    let one = PersonalKeyInput { scoped_teams: vec![project], ..key_input() };
    let limited = key(&services, &ada, one).await;
    let only = |error: Error| error.to_string().contains("only supported on project-based");
    assert!(only(services.organizations.list(&limited, Page::default()).await.unwrap_err()));
    for id in [zebra.to_string().as_str(), "@current", "nonsense"] {
        assert!(only(services.organizations.enter(&limited, id).await.unwrap_err()));
    }
    assert!(only(services.projects.list(&limited, Page::default()).await.unwrap_err()));
    services.projects.enter(&limited, &project.to_string()).await.unwrap();
    assert!(not_found(&services.projects.enter(&limited, "1").await.unwrap_err()));
    services.users.me(&limited).await.unwrap();
}

#[tokio::test]
async fn changing_settings() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    organization(&services, &ctx, "Zebra").await;
    services.clock.advance(60);
    let ctx = ada(&services).await;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    let before = services.organizations.get(&org).await.unwrap();
    let patch = OrganizationPatch {
        name: Patch::Set("  Quagga ".to_owned()),
        is_member_join_email_enabled: Patch::Set(false),
        enforce_2fa: Patch::Set(true),
    };
    let after = services.organizations.update(&org, patch).await.unwrap();
    assert_eq!((after.row.name.as_str(), after.row.slug.as_str()), ("Quagga", "zebra"));
    assert!(!after.row.is_member_join_email_enabled && after.row.enforce_2fa);
    assert_eq!((after.row.created_at, after.row.updated_at), (before.row.created_at, ctx.now));
    services.clock.advance(9);
    // Without a second factor she would lock herself out.
    let later = ada(&services).await;
    let refused = services.organizations.enter(&later, "@current").await.unwrap_err();
    assert!(matches!(refused, Error::SecondFactorMissing), "{refused}");
    let org = OrgCtx { ctx: later, ..org };
    let kept = services.organizations.update(&org, OrganizationPatch::default()).await.unwrap();
    assert_eq!(kept, after, "nothing changed, the time of the last change neither");
    let patch = OrganizationPatch { enforce_2fa: Patch::Clear, ..OrganizationPatch::default() };
    let cleared = services.organizations.update(&org, patch).await.unwrap();
    assert!(!cleared.row.enforce_2fa && !cleared.row.is_member_join_email_enabled);
    assert_eq!(cleared.row.name, "Quagga");

    let bad = [
        (OrganizationPatch { name: Patch::Clear, ..Default::default() }, "name", "null"),
        (OrganizationPatch { name: Patch::Set(" ".into()), ..Default::default() }, "name", "blank"),
        (
            OrganizationPatch { name: Patch::Set("x".repeat(65)), ..Default::default() },
            "name",
            "max_length",
        ),
        (
            OrganizationPatch { is_member_join_email_enabled: Patch::Clear, ..Default::default() },
            "is_member_join_email_enabled",
            "null",
        ),
    ];
    for (patch, attr, code) in bad {
        let Err(Error::Invalid(field)) = services.organizations.update(&org, patch).await else {
            panic!("{attr} {code}");
        };
        assert_eq!((field.attr.as_deref(), field.code.as_str()), (Some(attr), code));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_of_concurrent_renames_form_a_chain() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    organization(&services, &ctx, "before").await;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    let rename = |name: String| {
        let (organizations, org) = (services.organizations.clone(), org.clone());
        let patch = OrganizationPatch { name: Patch::Set(name), ..OrganizationPatch::default() };
        tokio::spawn(async move { organizations.update(&org, patch).await.unwrap() })
    };
    let renames: Vec<_> = (0..16).map(|number| rename(format!("name {number}"))).collect();
    for rename in renames {
        rename.await.unwrap();
    }
    let last = services.organizations.get(&org).await.unwrap().row.name;
    test_support::assert_chain(&services, &org, "name", "before", &last, 16).await;
}

#[tokio::test]
async fn deleting_removes_what_makes_it_reachable() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let eve = outsider(&services, "eve").await;
    let id = organization(&services, &ada, "Zebra").await;
    join(&services, id, &eve, Level::Member).await;
    services.users.set_current(&eve, Some(id), None).await.unwrap();
    let limited = PersonalKeyInput { scoped_organizations: vec![id], ..key_input() };
    let limited = key(&services, &ada, limited).await;
    let org = services.organizations.enter(&ada, &id.to_string()).await.unwrap();
    let project = services.organizations.get(&org).await.unwrap().teams.remove(0);
    assert!(services.projects.by_token(&project.api_token).await.unwrap().is_some());

    services.organizations.delete(&org).await.unwrap();
    assert!(services.projects.by_token(&project.api_token).await.unwrap().is_none());
    assert_eq!(services.projects.all_tokens().await.unwrap().len(), 1);
    for ctx in [&ada, &eve, &limited] {
        let error = services.organizations.enter(ctx, &id.to_string()).await.unwrap_err();
        assert!(not_found(&error));
        assert!(services.projects.enter(ctx, &project.id.to_string()).await.is_err());
    }
    // An operation that began before the deletion finds nothing either.
    assert!(not_found(&services.organizations.get(&org).await.unwrap_err()));
    let patch = OrganizationPatch::default();
    assert!(not_found(&services.organizations.update(&org, patch).await.unwrap_err()));
    services.organizations.delete(&org).await.unwrap();
    // The current organization changes.
    let me = services.users.me(&ada).await.unwrap();
    assert_eq!(me.organization.unwrap().row.name, "Acme Tea");
    assert_eq!(me.team.unwrap().name, "Shop");
    let me = services.users.me(&eve).await.unwrap();
    assert_eq!((me.organization, me.team), (None, None));
    assert!(me.organizations.is_empty());
    // The events wait to be removed; the slug is free again.
    let waiting = rows::deletions(services.organizations.store()).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].of, &waiting[0].projects), (id.0, &vec![project.id]));
    let again = services.organizations.create(&ada, named("Zebra")).await.unwrap();
    assert_eq!(again.row.slug, "zebra");
    let left = async |before| {
        services.organizations.purge_deleted(before).await.unwrap();
        rows::deletions(services.organizations.store()).await.unwrap().len()
    };
    let now = services.clock.now();
    assert_eq!(left(now).await, 1, "too early");
    assert_eq!(left(now.plus_seconds(1)).await, 0);
}

#[tokio::test]
async fn a_user_without_organization_is_signed_out() {
    let services = test_support::set_up().await;
    let store = services.organizations.store();
    let ada = ada(&services).await;
    let zebra = organization(&services, &ada, "Zebra").await;
    let (eve, linus) = (outsider(&services, "eve").await, outsider(&services, "linus").await);
    let mole = organization(&services, &linus, "Mole").await;
    for ctx in [&eve, &linus] {
        join(&services, zebra, ctx, Level::Member).await;
        let row = SessionRow {
            hash: format!("session of {}", ctx.user()),
            user: ctx.user(),
            signed_in_at: ctx.now,
            seen_at: ctx.now,
            expires_at: ctx.now.plus_seconds(60),
            address: None,
            agent: None,
            browser: None,
            opened_by: weir_model::sso::OpenedBy::Password,
            proves: None,
        };
        assert!(sessions::create(store, &row, None, Proved::default()).await.unwrap());
    }
    let open = async |ctx: &Ctx| sessions::of_user(store, ctx.user()).await.unwrap().len();
    assert_eq!((open(&eve).await, open(&linus).await), (1, 1));
    let org = services.organizations.enter(&ada, &zebra.to_string()).await.unwrap();
    services.organizations.delete(&org).await.unwrap();
    assert_eq!((open(&eve).await, open(&linus).await), (0, 1), "Linus has another");
    // A user who deletes their own last organization stays signed in.
    let org = services.organizations.enter(&linus, &mole.to_string()).await.unwrap();
    services.organizations.delete(&org).await.unwrap();
    assert_eq!(open(&linus).await, 1);
}

#[tokio::test]
async fn a_context_says_who_acts() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let ctx = key(&services, &ada, key_input()).await;
    assert!(matches!(ctx.actor, Actor::Key { user, .. } if user == ada.user()));
}

#[tokio::test]
async fn what_goes_with_an_organization_is_counted() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let home = organization(&services, &ctx, "Home").await;
    let org = enter(&services.organizations.core, &ctx, home).await.unwrap();
    assert_eq!(
        services.organizations.deletion_impact(&org).await.unwrap(),
        DeletionImpact::default()
    );
    let people = "grace@mail.example, linus@mail.example";
    services.invites.create_listed(&org, people, Level::Member, "").await.unwrap();
    let stake = services.organizations.deletion_impact(&org).await.unwrap();
    assert_eq!(stake, DeletionImpact { invites: 2, ..DeletionImpact::default() });
}
