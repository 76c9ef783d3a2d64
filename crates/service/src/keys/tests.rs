//! Personal API keys on a store in memory.

use weir_model::keys::{KeyCall, Overlap, PersonalKeyPatch};

use super::*;
use crate::Services;
use crate::test_support::{self, ada, key, key_input, organization, outsider, person};

const SEALED_LOCATION: &str = "Authorization header";

async fn works(services: &Services, value: &str) -> bool {
    match services.keys.authenticate(value, SEALED_LOCATION, "request".to_owned()).await {
        Ok(_) => true,
        Err(Error::BadCredential(place)) => {
            assert_eq!(place, SEALED_LOCATION);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn field(error: &Error) -> (Option<&str>, &str, &str) {
    match error {
        Error::Invalid(field) => (field.attr.as_deref(), &field.code, &field.detail),
        _ => (None, "other", ""),
    }
}

#[tokio::test]
async fn a_life() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let made = services.keys.create(&ctx, key_input()).await.unwrap();
    let value = made.value.clone().unwrap();
    assert!(value.starts_with("phx_"));
    let mask = format!("phx_...{}", &value[value.len() - 4..]);
    assert_eq!(made.mask_value.as_deref(), Some(mask.as_str()));
    assert_eq!((made.user_id, made.last_used_at, made.last_rolled_at), (1, None, None));
    assert!(works(&services, &value).await);

    let listed = services.keys.list(&ctx).await.unwrap();
    let [shown] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((&shown.id, &shown.value), (&made.id, &None));
    assert_eq!(shown.last_used_at, Some(ctx.now));
    assert!(!format!("{shown:?}").contains(&value[4..]));

    services.clock.advance(5);
    let rolled = services.keys.roll(&ctx, &made.id).await.unwrap();
    let next = rolled.value.clone().unwrap();
    assert_eq!((&rolled.id, &rolled.label, &rolled.scopes), (&made.id, &made.label, &made.scopes));
    assert_eq!((rolled.created_at, rolled.last_rolled_at), (made.created_at, Some(ctx.now)));
    assert_ne!((&next, &rolled.mask_value), (&value, &made.mask_value));
    assert!(!works(&services, &value).await, "the old value is dead at once");
    assert!(works(&services, &next).await);

    services.keys.delete(&ctx, &made.id).await.unwrap();
    assert!(!works(&services, &next).await);
    for outcome in [
        services.keys.delete(&ctx, &made.id).await,
        services.keys.roll(&ctx, &made.id).await.map(drop),
        services.keys.get(&ctx, &made.id).await.map(drop),
    ] {
        assert!(matches!(outcome, Err(Error::NotFound(NOT_FOUND))));
    }
    assert!(services.keys.list(&ctx).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_key() {
    let services = test_support::set_up().await;
    let project = services.projects.all_tokens().await.unwrap().remove(0).0;
    for value in [
        "",
        "phx_",
        "phx_wrong",
        "nonsense",
        &project,
        &format!("phx_{}", "x".repeat(9999)),
        "phx_ü\0'",
    ] {
        assert!(!works(&services, value).await, "{value}");
    }
}

#[tokio::test]
async fn keys_expire() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let input = PersonalKeyInput { expires_at: Some(ctx.now.plus_seconds(60)), ..key_input() };
    let value = services.keys.create(&ctx, input).await.unwrap().value.unwrap();
    services.clock.advance(59);
    assert!(works(&services, &value).await);
    services.clock.advance(1);
    assert!(!works(&services, &value).await);
    let ctx = ada(&services).await;
    let past = PersonalKeyInput { expires_at: Some(ctx.now), ..key_input() };
    let error = services.keys.create(&ctx, past).await.unwrap_err();
    assert_eq!(field(&error).0, Some("expires_at"));
}

#[tokio::test]
async fn use_is_noted_hourly() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let value = services.keys.create(&ctx, key_input()).await.unwrap().value.unwrap();
    // Seconds to advance the clock, and whether that use is stored.
    for (seconds, noted) in [(0, true), (3599, false), (1, true), (7200, true), (10, false)] {
        services.clock.advance(seconds);
        assert!(works(&services, &value).await);
        let used = services.keys.list(&ctx).await.unwrap()[0].last_used_at.unwrap();
        assert_eq!(used == services.clock.now(), noted, "{seconds}");
    }
}

#[tokio::test]
async fn keys_see_themselves_only() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let eve = outsider(&services, "eve").await;
    let narrow = PersonalKeyInput {
        scopes: vec!["event:read".parse().unwrap()],
        label: "narrow".to_owned(),
        ..key_input()
    };
    let mine = key(&services, &ada, narrow).await;
    let other = services.keys.create(&ada, key_input()).await.unwrap();
    let hers = services.keys.create(&eve, key_input()).await.unwrap();

    let current = services.keys.current(&mine).await.unwrap();
    assert_eq!((current.label.as_str(), current.value.as_ref()), ("narrow", None));
    assert_eq!(services.keys.get(&mine, &current.id).await.unwrap(), current);
    let refused = |outcome: Result<()>| {
        assert!(matches!(outcome, Err(Error::Forbidden(text)) if text == NO_KEYS));
    };
    refused(services.keys.get(&mine, &other.id).await.map(drop));
    refused(services.keys.list(&mine).await.map(drop));
    refused(services.keys.create(&mine, key_input()).await.map(drop));
    refused(services.keys.roll(&mine, &current.id).await.map(drop));
    refused(services.keys.delete(&mine, &current.id).await);
    for id in ["", "\0", "⟨x⟩`", "7", &"x".repeat(10_000)] {
        let outcome = services.keys.get(&ada, &KeyId(id.to_owned())).await;
        assert!(matches!(outcome, Err(Error::NotFound(NOT_FOUND))), "{id}");
    }
    // Another user's key is not found, by keys and users alike.
    for ctx in [&mine, &ada] {
        let outcome = services.keys.get(ctx, &hers.id).await;
        assert!(matches!(outcome, Err(Error::NotFound(NOT_FOUND))));
    }
    for outcome in [
        services.keys.delete(&ada, &hers.id).await,
        services.keys.roll(&ada, &hers.id).await.map(drop),
        services.keys.current(&ada).await.map(drop),
    ] {
        assert!(matches!(outcome, Err(Error::NotFound(NOT_FOUND))));
    }
    assert!(works(&services, &hers.value.unwrap()).await);
}

#[tokio::test]
async fn a_new_value_needs_a_recent_sign_in() {
    let services = test_support::set_up().await;
    let before = ada(&services).await;
    let made = services.keys.create(&before, key_input()).await.unwrap();
    let at = |seconds: i64| Ctx { now: before.now.plus_seconds(seconds), ..before.clone() };
    services.keys.create(&at(15 * 60), key_input()).await.unwrap();
    let late = at(15 * 60 + 1);
    let error = services.keys.create(&late, key_input()).await.unwrap_err();
    assert!(matches!(error, Error::SignInAgain));
    let error = services.keys.roll(&late, &made.id).await.unwrap_err();
    assert!(matches!(error, Error::SignInAgain));
    // A leaked key can be deleted without a password.
    let value = made.value.unwrap();
    assert!(works(&services, &value).await);
    services.keys.delete(&late, &made.id).await.unwrap();
    assert!(!works(&services, &value).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_keys_also_when_created_concurrently() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let calls: Vec<_> = (0..14)
        .map(|_| {
            let (keys, ctx) = (services.keys.clone(), ctx.clone());
            tokio::spawn(async move { keys.create(&ctx, key_input()).await })
        })
        .collect();
    let mut made = Vec::new();
    for call in calls {
        match call.await.unwrap() {
            Ok(key) => made.push(key),
            Err(error) => assert_eq!(
                field(&error),
                (
                    None,
                    "invalid_input",
                    "You can only have 10 personal API keys. Remove an existing key before \
                     creating a new one."
                )
            ),
        }
    }
    assert_eq!((made.len(), services.keys.list(&ctx).await.unwrap().len()), (10, 10));
    services.keys.delete(&ctx, &made[0].id).await.unwrap();
    services.keys.create(&ctx, key_input()).await.unwrap();
    // Keys of other users do not count.
    let eve = outsider(&services, "eve").await;
    services.keys.create(&eve, key_input()).await.unwrap();
}

#[tokio::test]
async fn limits_name_only_what_is_mine() {
    let services = test_support::set_up().await;
    let ada = ada(&services).await;
    let eve = outsider(&services, "eve").await;
    let hers = organization(&services, &eve, "Mole").await;
    let own = organization(&services, &ada, "Zebra").await;
    let project = services.projects.enter(&eve, "@current").await.unwrap().project;
    let mine = services.projects.enter(&ada, "@current").await.unwrap().project;
    let input = |organizations: &[OrganizationId], projects: &[ProjectId]| PersonalKeyInput {
        scoped_organizations: organizations.to_vec(),
        scoped_teams: projects.to_vec(),
        ..key_input()
    };
    let cases = [
        (input(&[own], &[mine]), None),
        (input(&[own, hers], &[]), Some("scoped_organizations")),
        (input(&[OrganizationId(uuid::Uuid::from_u128(99))], &[]), Some("scoped_organizations")),
        (input(&[], &[mine, project]), Some("scoped_teams")),
        (input(&[], &[ProjectId(999)]), Some("scoped_teams")),
        (input(&[], &[ProjectId(-1)]), Some("scoped_teams")),
    ];
    for (input, expected) in cases {
        match services.keys.create(&ada, input).await {
            Ok(key) => {
                assert_eq!(expected, None);
                assert_eq!((key.scoped_organizations, key.scoped_teams), (vec![own], vec![mine]));
            }
            Err(error) => assert_eq!(field(&error).0, expected, "{error}"),
        }
    }
}

#[tokio::test]
async fn a_key_without_a_user() {
    let services = test_support::set_up().await;
    let no_user = person(&services, UserId(uuid::Uuid::from_u128(99)));
    let outcome = services.keys.create(&no_user, key_input()).await;
    assert!(matches!(outcome, Err(Error::NotFound(_))));
}

#[test]
fn checking_input() {
    let uuid = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    let scopes = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let input = check_input(" CI ", &scopes(&["*", "event:read", "*"]), &[3], &[uuid], None);
    let input = input.unwrap();
    assert_eq!((input.label.as_str(), input.scopes.len()), ("CI", 2));
    assert_eq!((input.scoped_teams[0].0, input.scoped_organizations.len()), (3, 1));

    let long = "x".repeat(41);
    let many: Vec<i64> = (0..101).collect();
    let good = scopes(&["*"]);
    let bad_organization = scopes(&["nonsense"]);
    type Case<'a> = (&'a str, &'a [String], &'a [i64], &'a [String], (&'a str, &'a str));
    let cases: [Case<'_>; 8] = [
        ("", &good, &[], &[], ("label", "blank")),
        (&long, &good, &[], &[], ("label", "max_length")),
        ("a", &[], &[], &[], ("scopes", "required")),
        ("a", &scopes(&["event:delete"]), &[], &[], ("scopes", "invalid_input")),
        ("a", &scopes(&["*", "nothing:read"]), &[], &[], ("scopes", "invalid_input")),
        ("a", &good, &many, &[], ("scoped_teams", "max_length")),
        ("a", &good, &[], &bad_organization, ("scoped_organizations", "invalid_input")),
        ("a\0", &good, &[], &[], ("label", "null_characters_not_allowed")),
    ];
    for (label, scopes, projects, organizations, expected) in cases {
        let error = check_input(label, scopes, projects, organizations, None).unwrap_err();
        assert_eq!((error.attr.as_deref().unwrap(), error.code.as_str()), expected);
    }
    let error = check_input("a", &scopes(&["nothing:read"]), &[], &[], None).unwrap_err();
    assert_eq!(error.detail, "Invalid scope: nothing:read");
}

#[tokio::test]
async fn an_old_value_works_on_for_a_while() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let made = services.keys.create(&ctx, key_input()).await.unwrap();
    let first = made.value.unwrap();
    let second = services.keys.rotate(&ctx, &made.id, Overlap::Hour).await.unwrap().value.unwrap();
    assert!(works(&services, &first).await && works(&services, &second).await);
    let shown = services.keys.overview_of(&ctx, &made.id).await.unwrap();
    let previous = shown.previous.unwrap();
    assert_eq!(previous.until, ctx.now.plus_seconds(3600));
    assert_eq!(previous.used_at, Some(ctx.now));
    assert_eq!(Some(previous.mask), made.mask_value);

    services.clock.advance(3599);
    assert!(works(&services, &first).await);
    services.clock.advance(1);
    assert!(!works(&services, &first).await, "its time is over");
    assert!(works(&services, &second).await);
    let ctx = ada(&services).await;
    assert_eq!(services.keys.overview(&ctx).await.unwrap()[0].previous, None);

    // The value before the previous one ends with a further rotation.
    let third = services.keys.rotate(&ctx, &made.id, Overlap::Week).await.unwrap().value.unwrap();
    let fourth = services.keys.rotate(&ctx, &made.id, Overlap::Day).await.unwrap().value.unwrap();
    for (value, expected) in [(&first, false), (&second, false), (&third, true), (&fourth, true)] {
        assert_eq!(works(&services, value).await, expected);
    }
    services.keys.end_previous(&ctx, &made.id).await.unwrap();
    assert!(!works(&services, &third).await && works(&services, &fourth).await);
    services.keys.end_previous(&ctx, &made.id).await.unwrap();

    // The previous value is deleted with the key.
    let fifth = services.keys.rotate(&ctx, &made.id, Overlap::Week).await.unwrap().value.unwrap();
    let eve = outsider(&services, "eve").await;
    let outcome = services.keys.end_previous(&eve, &made.id).await;
    assert!(matches!(outcome, Err(Error::NotFound(NOT_FOUND))));
    services.keys.delete(&ctx, &made.id).await.unwrap();
    assert!(!works(&services, &fourth).await && !works(&services, &fifth).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_a_key_keep_each_other_and_form_a_chain() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let made = services.keys.create(&ctx, key_input()).await.unwrap();
    let update = |patch: PersonalKeyPatch| {
        let (keys, ctx, id) = (services.keys.clone(), ctx.clone(), made.id.clone());
        tokio::spawn(async move { keys.update(&ctx, &id, patch).await.unwrap() })
    };
    let rename = |number: i32| PersonalKeyPatch {
        label: Some(format!("key {number}")),
        ..PersonalKeyPatch::default()
    };
    let mut updates: Vec<_> = (0..16).map(|number| update(rename(number))).collect();
    let scopes: Vec<Scope> = vec!["event:read".parse().unwrap()];
    let narrow = PersonalKeyPatch { scopes: Some(scopes.clone()), ..PersonalKeyPatch::default() };
    updates.insert(8, update(narrow));
    for update in updates {
        update.await.unwrap();
    }
    let last = services.keys.get(&ctx, &made.id).await.unwrap();
    assert_eq!(last.scopes, scopes, "no rename stores the scopes that it read");
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    test_support::assert_chain(&services, &org, "label", "test", &last.label, 16).await;
}

#[tokio::test]
async fn scopes_change_with_a_recent_sign_in() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let narrow = PersonalKeyInput {
        scopes: vec!["plugin:read".parse().unwrap(), "event:read".parse().unwrap()],
        ..key_input()
    };
    let made = services.keys.create(&ctx, narrow).await.unwrap();
    let wider = services.keys.add_scope(&ctx, &made.id, "plugin:write".parse().unwrap()).await;
    let texts: Vec<String> = wider.unwrap().scopes.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["event:read", "plugin:write"]);
    let same = services.keys.add_scope(&ctx, &made.id, "plugin:read".parse().unwrap()).await;
    assert_eq!(same.unwrap().scopes.len(), 2);
    let patch = PersonalKeyPatch { label: Some("new".to_owned()), ..PersonalKeyPatch::default() };
    let renamed = services.keys.update(&ctx, &made.id, patch.clone()).await.unwrap();
    assert_eq!((renamed.label.as_str(), renamed.scopes.len()), ("new", 2));
    assert_eq!(services.keys.list(&ctx).await.unwrap()[0].label, "new");
    assert!(works(&services, &made.value.unwrap()).await);

    let none = PersonalKeyPatch { scopes: Some(Vec::new()), ..PersonalKeyPatch::default() };
    let error = services.keys.update(&ctx, &made.id, none).await.unwrap_err();
    assert_eq!(field(&error).0, Some("scopes"));
    let late = Ctx { now: ctx.now.plus_seconds(15 * 60 + 1), ..ctx.clone() };
    let error = services.keys.update(&late, &made.id, patch.clone()).await.unwrap_err();
    assert!(matches!(error, Error::SignInAgain));
    let eve = outsider(&services, "eve").await;
    let error = services.keys.update(&eve, &made.id, patch).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(NOT_FOUND)));
}

#[tokio::test]
async fn use_is_kept() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let made = services.keys.create(&ctx, key_input()).await.unwrap();
    let call = |route: &str| KeyCall {
        at: ctx.now,
        address: Some("192.0.2.1".to_owned()),
        method: "POST".to_owned(),
        route: route.to_owned(),
    };
    let lacked: Scope = "plugin:write".parse().unwrap();
    services.keys.note_call(ctx.user(), &made.id, call("/api/a/"), Some(lacked));
    services.keys.write_uses().await.unwrap();
    services.keys.note_call(ctx.user(), &made.id, call("/api/b/"), None);
    let usage = services.keys.overview_of(&ctx, &made.id).await.unwrap().usage;
    assert_eq!(usage.last, Some(call("/api/b/")));
    assert_eq!((usage.refused.len(), usage.refused_lately(ctx.now)), (1, 1));
    assert_eq!((&usage.refused[0].call, usage.refused[0].scope), (&call("/api/a/"), lacked));
    // A caller without this key learns nothing of it.
    let eve = outsider(&services, "eve").await;
    assert!(services.keys.overview(&eve).await.unwrap().is_empty());
    let again = test_support::restarted(&services);
    assert_eq!(again.keys.overview_of(&ctx, &made.id).await.unwrap().usage, usage);
}
