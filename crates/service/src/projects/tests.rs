//! Projects on a store in memory.

use std::collections::HashSet;

use serde_json::Value;
use weir_model::Patch;
use weir_model::activity::ActivityQuery;
use weir_model::keys::{Overlap, PersonalKeyInput};
use weir_model::organizations::Level;
use weir_model::traffic::UnknownKey;

use super::*;
use crate::error::LEVEL;
use crate::test_support::{self, ada, join, organization, outsider};

fn input(name: &str, timezone: &str) -> ProjectPatch {
    ProjectPatch {
        name: Patch::Set(name.to_owned()),
        timezone: Patch::Set(timezone.to_owned()),
        ..ProjectPatch::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_of_concurrent_renames_form_a_chain() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    let rename = |name: String| {
        let (projects, project) = (services.projects.clone(), project.clone());
        let patch = ProjectPatch { name: Patch::Set(name), ..ProjectPatch::default() };
        tokio::spawn(async move { projects.update(&project, patch).await.unwrap() })
    };
    let renames: Vec<_> = (0..16).map(|number| rename(format!("name {number}"))).collect();
    for rename in renames {
        rename.await.unwrap();
    }
    let last = services.projects.get(&project).await.unwrap().brief.name;
    test_support::assert_chain(&services, &project.org, "name", "Shop", &last, 16).await;
}

/// A value for every setting.
fn every_setting() -> ProjectPatch {
    ProjectPatch {
        name: Patch::Set("Shop 2".to_owned()),
        completed_snippet_onboarding: Patch::Set(true),
        timezone: Patch::Set("Asia/Tokyo".to_owned()),
        app_urls: Patch::Set(vec!["https://shop.example".to_owned()]),
        anonymize_ips: Patch::Set(true),
        person_processing_opt_out: Patch::Set(true),
        person_display_name_properties: Patch::Set(vec!["email".to_owned()]),
        week_start_day: Patch::Set(1),
        event_retention_days: Patch::Set(30),
        product_description: Patch::Set("Sells tea.".to_owned()),
    }
}

/// A change of how long events are kept.
fn keeping(days: Patch<i64>) -> ProjectPatch {
    ProjectPatch { event_retention_days: days, ..ProjectPatch::default() }
}

fn has_every_setting(project: &Project) {
    assert_eq!(
        (project.brief.name.as_str(), project.brief.timezone.as_str()),
        ("Shop 2", "Asia/Tokyo")
    );
    assert!(project.anonymize_ips && project.brief.completed_snippet_onboarding);
    assert!(project.person_processing_opt_out);
    assert_eq!(project.app_urls, ["https://shop.example"]);
    assert_eq!(
        (project.week_start_day, project.product_description.as_deref()),
        (Some(1), Some("Sells tea."))
    );
    assert_eq!(project.event_retention_days, Some(30));
    assert_eq!(project.person_display_name_properties, Some(vec!["email".to_owned()]));
}

#[tokio::test]
async fn creating_and_entering() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    let made = services.projects.create(&org, input(" Docs ", "Europe/Berlin")).await.unwrap();
    assert_eq!((made.brief.name.as_str(), made.brief.timezone.as_str()), ("Docs", "Europe/Berlin"));
    assert_eq!((made.project_id, made.brief.organization), (ProjectId(2), org.organization));
    assert_eq!(made.effective_membership_level, Some(Level::Owner));
    let entered = services.projects.enter(&ctx, "2").await.unwrap();
    assert_eq!(services.projects.get(&entered).await.unwrap(), made);
    let current = services.projects.enter(&ctx, "@current").await.unwrap();
    assert_eq!(current.project, made.brief.id);
    let rules = services.projects.by_token(&made.brief.api_token).await.unwrap().unwrap();
    let expected = ProjectRules {
        id: made.brief.id,
        organization: made.brief.organization,
        anonymize_ips: false,
        person_processing_opt_out: false,
        ends_at: None,
    };
    assert_eq!(rules, expected);
    for token in ["", "phc_unknown", "phc_x'; RETURN 1", "phc_\0", "⟨x⟩`", "7", &"x".repeat(10_000)]
    {
        assert_eq!(services.projects.by_token(token).await.unwrap(), None);
    }
    for (bad, attr) in [
        (input("", "nowhere"), "name"),
        (input("a", "Mars/Phobos"), "timezone"),
        (ProjectPatch { name: Patch::Clear, ..Default::default() }, "name"),
        (ProjectPatch { week_start_day: Patch::Set(7), ..Default::default() }, "week_start_day"),
        (
            ProjectPatch { event_retention_days: Patch::Set(0), ..Default::default() },
            "event_retention_days",
        ),
        (
            ProjectPatch { event_retention_days: Patch::Set(3651), ..Default::default() },
            "event_retention_days",
        ),
    ] {
        let Err(Error::Invalid(field)) = services.projects.create(&org, bad).await else {
            panic!("{attr}");
        };
        assert_eq!(field.attr.as_deref(), Some(attr));
    }
    for bad in ["", "0", "-2", "02", "2.0", "two", "3000000000", "99999999999999999999"] {
        let error = services.projects.enter(&ctx, bad).await.unwrap_err();
        assert!(matches!(error, Error::NotFound(NOT_FOUND)), "{bad}");
    }
}

#[tokio::test]
async fn creating_with_settings() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    let made = services.projects.create(&org, every_setting()).await.unwrap();
    has_every_setting(&made);
    let entered = services.projects.enter(&ctx, &made.brief.id.to_string()).await.unwrap();
    assert_eq!(services.projects.get(&entered).await.unwrap(), made);
    let rules = services.projects.by_token(&made.brief.api_token).await.unwrap().unwrap();
    assert!(rules.anonymize_ips, "capture knows at once");
    // A setting that is missing or cleared has its default.
    let cleared = ProjectPatch {
        week_start_day: Patch::Clear,
        product_description: Patch::Clear,
        ..ProjectPatch::default()
    };
    let made = services.projects.create(&org, cleared).await.unwrap();
    assert_eq!((made.brief.name.as_str(), made.brief.timezone.as_str()), (DEFAULT_NAME, "UTC"));
    assert_eq!((made.week_start_day, made.product_description), (None, None));
    assert!(made.app_urls.is_empty() && !made.anonymize_ips);
}

#[tokio::test]
async fn lists_are_ordered_by_number() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let first = services.organizations.enter(&ctx, "@current").await.unwrap();
    let zebra = organization(&services, &ctx, "Zebra").await;
    services.projects.create(&first, input("Third", "UTC")).await.unwrap();
    let eve = outsider(&services, "eve").await;
    organization(&services, &eve, "Mole").await;
    for _ in 0..8 {
        services.projects.create(&first, input("More", "UTC")).await.unwrap();
    }
    let ids = |page: Paged<ProjectBrief>| {
        (page.count, page.results.iter().map(|project| project.id.0).collect::<Vec<_>>())
    };
    let all = services.projects.list(&ctx, Page::default()).await.unwrap();
    assert_eq!(ids(all), (11, vec![1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]));
    let page = services.projects.list(&ctx, Page { limit: 2, offset: 2 }).await.unwrap();
    assert_eq!(ids(page), (11, vec![3, 5]));
    let inside = services.projects.list_in(&first, Page { limit: 3, offset: 0 }).await.unwrap();
    assert_eq!(ids(inside), (10, vec![1, 3, 5]));
    let org = services.organizations.enter(&ctx, &zebra.to_string()).await.unwrap();
    let teams = services.organizations.get(&org).await.unwrap().teams;
    assert_eq!(teams.len(), 1);
    let hers = services.projects.list(&eve, Page::default()).await.unwrap();
    assert_eq!(ids(hers), (1, vec![4]));
}

#[tokio::test]
async fn changing_settings() {
    let services = test_support::set_up().await;
    let owner = ada(&services).await;
    let org = services.organizations.enter(&owner, "@current").await.unwrap();
    let member = outsider(&services, "eve").await;
    join(&services, org.organization, &member, Level::Member).await;
    let hers = services.projects.enter(&owner, "1").await.unwrap();
    services.projects.update(&hers, keeping(Patch::Set(30))).await.unwrap();
    let project = services.projects.enter(&member, "1").await.unwrap();
    services.clock.advance(9);
    let after = services.projects.update(&project, every_setting()).await.unwrap();
    has_every_setting(&after);
    services.clock.advance(9);
    let later = Ctx { now: services.clock.now(), ..member.clone() };
    let project = services.projects.enter(&later, "1").await.unwrap();
    let kept = services.projects.update(&project, ProjectPatch::default()).await.unwrap();
    assert_eq!(kept, after, "nothing changed, the time of the last change neither");
    let rules = services.projects.all_tokens().await.unwrap().remove(0).1;
    assert!(rules.anonymize_ips && rules.person_processing_opt_out);
    let patch = ProjectPatch {
        week_start_day: Patch::Clear,
        product_description: Patch::Clear,
        person_display_name_properties: Patch::Clear,
        ..ProjectPatch::default()
    };
    let cleared = services.projects.update(&project, patch).await.unwrap();
    assert_eq!((cleared.week_start_day, &cleared.product_description), (None, &None));
    assert_eq!(cleared.person_display_name_properties, None);

    let bad = [
        (ProjectPatch { name: Patch::Clear, ..Default::default() }, "name"),
        (ProjectPatch { timezone: Patch::Set("a b".into()), ..Default::default() }, "timezone"),
        (ProjectPatch { week_start_day: Patch::Set(2), ..Default::default() }, "week_start_day"),
        (
            ProjectPatch {
                app_urls: Patch::Set(vec!["x".into(), " ".into()]),
                ..Default::default()
            },
            "app_urls__1",
        ),
        (ProjectPatch { anonymize_ips: Patch::Clear, ..Default::default() }, "anonymize_ips"),
        (
            ProjectPatch { person_processing_opt_out: Patch::Clear, ..Default::default() },
            "person_processing_opt_out",
        ),
    ];
    for (patch, attr) in bad {
        let Err(Error::Invalid(field)) = services.projects.update(&project, patch).await else {
            panic!("{attr}");
        };
        assert_eq!(field.attr.as_deref(), Some(attr));
    }
    // A context of another organization does not reach it.
    let other = organization(&services, &owner, "Zebra").await;
    let foreign = services.organizations.enter(&owner, &other.to_string()).await.unwrap();
    let forged = ProjectCtx { org: foreign, project: ProjectId(1) };
    for outcome in [
        services.projects.get(&forged).await,
        services.projects.update(&forged, ProjectPatch::default()).await,
    ] {
        assert!(matches!(outcome, Err(Error::NotFound(NOT_FOUND))));
    }
}

#[tokio::test]
async fn administrators_decide_how_long_events_are_kept() {
    let services = test_support::set_up().await;
    let owner = ada(&services).await;
    let org = services.organizations.enter(&owner, "@current").await.unwrap();
    let (grace, eve) = (outsider(&services, "grace").await, outsider(&services, "eve").await);
    join(&services, org.organization, &grace, Level::Administrator).await;
    join(&services, org.organization, &eve, Level::Member).await;
    let admin = services.projects.enter(&grace, "1").await.unwrap();
    let member = services.projects.enter(&eve, "1").await.unwrap();
    let script = test_support::key(&services, &eve, test_support::key_input()).await;
    let script = services.projects.enter(&script, "1").await.unwrap();
    let update = async |project: &ProjectCtx, patch| services.projects.update(project, patch).await;
    let days = async || services.projects.get(&member).await.unwrap().event_retention_days;
    let is_refused = |outcome: Result<Project>| {
        assert!(matches!(&outcome, Err(Error::Forbidden(why)) if why == LEVEL), "{outcome:?}");
    };

    is_refused(update(&member, keeping(Patch::Set(30))).await);
    assert_eq!(days().await, None);
    assert!(update(&member, keeping(Patch::Clear)).await.is_ok(), "it is no change");
    assert!(update(&admin, keeping(Patch::Set(30))).await.is_ok());
    for change in [Patch::Set(1), Patch::Set(31), Patch::Clear] {
        is_refused(update(&script, keeping(change.clone())).await);
        let name = Patch::Set("Other".to_owned());
        is_refused(update(&member, ProjectPatch { name, ..keeping(change) }).await);
    }
    let after = update(&member, keeping(Patch::Set(30))).await.unwrap();
    assert_eq!((after.event_retention_days, after.brief.name.as_str()), (Some(30), "Shop"));
    assert!(update(&admin, keeping(Patch::Clear)).await.is_ok());
    assert_eq!(days().await, None);

    let member = services.organizations.enter(&eve, "@current").await.unwrap();
    is_refused(services.projects.create(&member, keeping(Patch::Set(30))).await);

    let all = ActivityQuery::default();
    let log = services.activity.of_organization(&org, &all, Page::default()).await.unwrap();
    let changes = log.results.into_iter().flat_map(|entry| entry.detail.changes);
    let changes = changes.filter(|change| change.field == "event_retention_days");
    let changes: Vec<_> = changes.map(|change| (change.before, change.after)).collect();
    assert_eq!(changes, [(30.into(), Value::Null), (Value::Null, 30.into())]);
}

/// The project is renamed at the same time, so the typed name may be that of before.
#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_time_needs_the_name_that_the_project_has_then() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    let refused = services.projects.set_retention(&project, Some(30), "Other").await.unwrap_err();
    let Error::Invalid(fault) = &refused else { panic!("{refused:?}") };
    assert_eq!((fault.attr.as_deref(), fault.code.as_str()), (Some("typed_name"), "mismatch"));
    services.projects.set_retention(&project, Some(300), " Shop ").await.unwrap();
    services.projects.set_retention(&project, Some(301), "").await.unwrap();
    services.projects.set_retention(&project, None, "").await.unwrap();

    let name = |round: i64| if round == 0 { "Shop".to_owned() } else { format!("Shop {round}") };
    let mut kept = None;
    for round in 0..16 {
        let (days, next) = (300 - round, name(round + 1));
        let patch = ProjectPatch { name: Patch::Set(next.clone()), ..ProjectPatch::default() };
        let typed = name(round);
        let (shorter, renamed) = tokio::join!(
            services.projects.set_retention(&project, Some(days), &typed),
            services.projects.update(&project, patch),
        );
        renamed.unwrap();
        match shorter {
            Ok(changed) => kept = changed.event_retention_days,
            Err(Error::Invalid(fault)) => {
                assert_eq!(fault.detail, format!("Type the name exactly: {next}"));
            }
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(services.projects.get(&project).await.unwrap().event_retention_days, kept);
    }
    // In the order of the changes each shorter time comes before the next name.
    let all = ActivityQuery::default();
    let log = services.activity.of_organization(&project.org, &all, Page::default()).await.unwrap();
    let mut present = name(0);
    for change in log.results.into_iter().rev().flat_map(|entry| entry.detail.changes) {
        match change.field.as_str() {
            "name" if change.before == present => present = change.after.as_str().unwrap().into(),
            "event_retention_days" if change.after.as_i64().is_some_and(|days| days < 300) => {
                let round = 300 - change.after.as_i64().unwrap();
                assert_eq!(present, name(round));
            }
            _ => {}
        }
    }
    assert_eq!(present, name(16));
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_tokens_are_unique() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let (projects, org) = (services.projects.clone(), org.clone());
            tokio::spawn(async move { projects.create(&org, input("Same", "UTC")).await })
        })
        .collect();
    let (mut numbers, mut tokens) = (HashSet::new(), HashSet::new());
    for call in calls {
        let made = call.await.unwrap().unwrap().brief;
        assert!(numbers.insert(made.id) && tokens.insert(made.api_token));
    }
    assert_eq!(services.projects.all_tokens().await.unwrap().len(), 13);
}

#[test]
fn ids_have_one_form() {
    assert_eq!(ProjectId::in_path("7").map(|id| id.0), Some(7));
    for bad in ["", "0", "-1", "+7", "07", "7 ", "seven", "99999999999999999999"] {
        assert_eq!(ProjectId::in_path(bad), None, "{bad}");
    }
}

#[test]
fn time_zones_have_an_iana_name() {
    for good in [
        "UTC",
        "Europe/Berlin",
        "America/Argentina/Buenos_Aires",
        "Etc/GMT+3",
        // Old names of time zones, which client libraries still send.
        "Asia/Calcutta",
        "US/Pacific",
    ] {
        assert!(timezone(good.to_owned()).is_ok(), "{good}");
    }
    for bad in [
        "",
        "utc",
        "europe/berlin",
        "Mars/Phobos",
        "Europe/",
        "Europe//Berlin",
        "../etc",
        "A b",
        "UTC+1",
        "X<script>",
    ] {
        let error = timezone(bad.to_owned()).unwrap_err();
        assert_eq!(error.code, "invalid_choice");
        assert_eq!(error.detail, format!("\"{bad}\" is not a valid choice."));
    }
}

#[tokio::test]
async fn an_old_key_works_on_for_a_while() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    let known = async |token: &str| services.projects.by_token(token).await.unwrap().is_some();
    let listed = async || services.projects.all_tokens().await.unwrap().len();
    let first = services.projects.get(&project).await.unwrap().brief.api_token;
    let rotated = services.projects.rotate_token(&project, Overlap::Day).await.unwrap();
    let second = rotated.brief.api_token;
    assert_ne!(first, second);
    assert!(known(&first).await && known(&second).await);
    assert_eq!(listed().await, 2);
    let keys = services.projects.keys(&project).await.unwrap();
    let until = project.org.ctx.now.plus_seconds(24 * 60 * 60);
    assert_eq!(keys.previous, Some(PreviousKey { token: first.clone(), until }));

    services.clock.advance(24 * 60 * 60);
    assert!(!known(&first).await && known(&second).await);
    assert_eq!(listed().await, 1);
    let ctx = ada(&services).await;
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    assert_eq!(services.projects.keys(&project).await.unwrap().previous, None);

    // The value before the previous one ends with a further rotation.
    let rotate = async || {
        let rotated = services.projects.rotate_token(&project, Overlap::Week).await.unwrap();
        rotated.brief.api_token
    };
    let third = rotate().await;
    let fourth = rotate().await;
    assert!(!known(&second).await && known(&third).await && known(&fourth).await);
    services.projects.end_previous_token(&project).await.unwrap();
    assert!(!known(&third).await && known(&fourth).await);
    services.projects.end_previous_token(&project).await.unwrap();
    let fifth = rotate().await;
    assert!(known(&fourth).await);
    services.projects.delete(&project).await.unwrap();
    assert!(!known(&fourth).await && !known(&fifth).await, "both go with the project");
}

#[tokio::test]
async fn a_secret_key_wants_a_recent_sign_in() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let script = test_support::key(&services, &ctx, test_support::key_input()).await;
    let later =
        |ctx: &Ctx| Ctx { now: ctx.now.plus_seconds(policy::RECENT_SECONDS + 1), ..ctx.clone() };
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    let first = services.projects.rotate_secret_token(&project).await.unwrap().secret_api_token;
    assert!(first.is_some());

    let old = services.projects.enter(&later(&ctx), "@current").await.unwrap();
    let refused = services.projects.rotate_secret_token(&old).await;
    assert!(matches!(refused, Err(Error::SignInAgain)), "{refused:?}");
    assert_eq!(services.projects.get(&project).await.unwrap().secret_api_token, first);
    // Ending a key, or replacing the public one, needs no recent sign-in.
    assert!(services.projects.delete_secret_backup(&old).await.is_ok());
    assert!(services.projects.rotate_token(&old, Overlap::Day).await.is_ok());

    // An insufficient level is reported first, because another sign-in would not help.
    let grace = outsider(&services, "grace").await;
    join(&services, project.org.organization, &grace, Level::Member).await;
    let hers = services.projects.enter(&later(&grace), &project.project.to_string()).await.unwrap();
    let refused = services.projects.rotate_secret_token(&hers).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");

    // A key has a scope for this.
    let scripted = services.projects.enter(&later(&script), "@current").await.unwrap();
    let second = services.projects.rotate_secret_token(&scripted).await.unwrap();
    assert_eq!(second.secret_api_token_backup, first);
}

#[tokio::test]
async fn traffic_is_counted_by_key() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    let (id, now) = (project.project, ctx.now);
    let token = services.projects.get(&project).await.unwrap().brief.api_token;
    services.projects.count_events(id, &token, 2, now);
    services.projects.write_traffic().await.unwrap();
    services.projects.count_events(id, &token, 3, now.plus_seconds(1));
    services.projects.count_events(id, &token, 1, now.plus_seconds(-8 * 24 * 60 * 60));
    services.projects.count_events(ProjectId(99), "phc_gone", 5, now);
    let traffic = services.projects.keys(&project).await.unwrap().traffic;
    let [shown] = traffic.as_slice() else { panic!("{traffic:?}") };
    assert_eq!((shown.token.as_str(), shown.day(), shown.week()), (token.as_str(), 5, 5));
    assert_eq!((shown.steps.last(), shown.last_at), (Some(&5), Some(now.plus_seconds(1))));
}

#[tokio::test]
async fn misdirected_requests_are_shown_to_their_project() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    let token = services.projects.get(&project).await.unwrap().brief.api_token;
    let (here, there) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
    let note = |start: &str, caller: &str, age: i64| {
        let at = ctx.now.plus_seconds(-age);
        let (mask, caller) = (format!("{start}..."), caller.to_owned());
        let seen = UnknownKey { mask, caller, count: 1, first_at: at, last_at: at };
        services.organizations.store().traffic().unknown_key(seen);
    };
    note(&token[..8], "192.0.2.2", 1);
    note("phc_some", "192.0.2.2", 0);
    note("phx_secr", "192.0.2.1", 0);
    note(&token[..8], "192.0.2.3", 3601);
    let audit_entry = services.projects.strays(&project, here).await.unwrap();
    let audit_entry: Vec<_> =
        audit_entry.iter().map(|stray| (stray.likeness, stray.address)).collect();
    assert_eq!(audit_entry, [(LikelyOrigin::Personal, here), (LikelyOrigin::Damaged, there)]);
    assert_eq!(services.projects.strays(&project, None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_checklist_is_ticked_by_fact() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let project = services.projects.enter(&ctx, "@current").await.unwrap();
    let found = services.projects.checklist(&project).await.unwrap();
    assert!(!found.teammate && !found.read_only_key && !found.export && !found.hidden);
    services.keys.create(&ctx, test_support::key_input()).await.unwrap();
    assert!(!services.projects.checklist(&project).await.unwrap().read_only_key);
    let reads = vec!["event:read".parse().unwrap()];
    let input = weir_model::keys::PersonalKeyInput { scopes: reads, ..test_support::key_input() };
    services.keys.create(&ctx, input).await.unwrap();
    let eve = outsider(&services, "eve").await;
    join(&services, project.org.organization, &eve, Level::Member).await;
    services.projects.set_checklist_hidden(&project, true).await.unwrap();
    let found = services.projects.checklist(&project).await.unwrap();
    assert!(found.teammate && found.read_only_key && found.hidden);
    let hers = services.projects.enter(&eve, &project.project.to_string()).await.unwrap();
    assert!(!services.projects.checklist(&hers).await.unwrap().hidden, "each for themselves");
    services.projects.set_checklist_hidden(&project, false).await.unwrap();
    assert!(!services.projects.checklist(&project).await.unwrap().hidden);
    assert_eq!(services.projects.facts(&project).await.unwrap(), ProjectFacts::default());
}

#[tokio::test]
async fn the_only_project_of_a_key_is_within_its_limits() {
    let services = test_support::set_up().await;
    let owner = ada(&services).await;
    let number = async |ctx: &Ctx| {
        let only = services.projects.only(ctx).await.unwrap();
        only.map(|only| only.project)
    };
    let shop = services.projects.enter(&owner, "1").await.unwrap();
    let all = test_support::key(&services, &owner, test_support::key_input()).await;
    assert_eq!(number(&all).await, Some(shop.project));
    let blog = services.projects.create(&shop.org, input("Blog", "UTC")).await.unwrap();
    assert_eq!(number(&all).await, None, "there are two");
    let limits =
        PersonalKeyInput { scoped_teams: vec![blog.brief.id], ..test_support::key_input() };
    let limited = test_support::key(&services, &owner, limits).await;
    assert_eq!(number(&limited).await, Some(blog.brief.id));
    let listed = services.projects.list_within_limits(&limited, Page::default()).await.unwrap();
    assert_eq!((listed.count, listed.results[0].id), (1, blog.brief.id));
    assert!(matches!(
        services.projects.list(&limited, Page::default()).await,
        Err(Error::Forbidden(_))
    ));
    assert_eq!(number(&outsider(&services, "eve").await).await, None, "there is none");
}
