use weir_model::Patch;
use weir_model::activity::ActivityQuery;
use weir_model::invites::InviteInput;
use weir_model::keys::PersonalKeyInput;
use weir_model::limits::{LimitAction, LimitPatch};
use weir_model::mail::MailContent;
use weir_model::organizations::Level;
use weir_model::scopes::{Scope, ScopeObject};

use super::*;
use crate::test_support::{
    ada, join, key, key_input, organization, outsider, restarted, restarted_with_mail, set_up,
    set_up_with_mail,
};
use crate::{Error, Services};

fn limit(most: i64, action: &str) -> LimitPatch {
    LimitPatch { limit: Patch::Set(most), action: Some(action.to_owned()) }
}

async fn home(services: &Services) -> (Ctx, OrgCtx) {
    let ada = ada(services).await;
    let org = services.organizations.enter(&ada, "@current").await.unwrap();
    (ada, org)
}

async fn set(services: &Services, ctx: &Ctx, org: &OrgCtx, patch: LimitsPatch) {
    let id = org.organization.to_string();
    services.limits.set(ctx, &id, patch).await.unwrap();
}

#[tokio::test]
async fn members_see_what_staff_chooses() {
    let services = set_up().await;
    let (ada, org) = home(&services).await;
    let before = services.limits.of(&org).await.unwrap();
    for name in LimitName::ALL {
        let usage = u64::from(name == LimitName::Members);
        let open =
            LimitState { limit: None, action: None, is_default: true, usage, measured_at: None };
        assert_eq!(before.get(name), &open, "{name:?}");
    }
    assert_eq!(before.resets_at.to_string(), "2025-11-01T00:00:00Z");
    let patch = LimitsPatch {
        events_per_month: limit(10, "reject"),
        exports: LimitPatch { action: Some("none".to_owned()), ..LimitPatch::default() },
        ..LimitsPatch::default()
    };
    set(&services, &ada, &org, patch.clone()).await;
    // The same again changes nothing.
    set(&services, &ada, &org, patch).await;
    services.limits.limiter().count(org.organization, 4);
    let grace = outsider(&services, "grace").await;
    join(&services, org.organization, &grace, Level::Member).await;
    let id = org.organization.to_string();
    let member = services.organizations.enter(&grace, &id).await.unwrap();
    let after = services.limits.of(&member).await.unwrap();
    let expected = LimitState {
        limit: Some(10),
        action: Some(LimitAction::Reject),
        is_default: false,
        usage: 4,
        measured_at: None,
    };
    assert_eq!(after.events_per_month, expected);
    assert_eq!((after.exports.limit, after.exports.is_default), (None, false));
    assert_eq!((after.members.usage, after.members.is_default), (2, true));

    let query = ActivityQuery::default();
    let log = services.activity.of_organization(&org, &query, Page::default()).await.unwrap();
    let changes: Vec<_> = log
        .results
        .iter()
        .flat_map(|entry| &entry.detail.changes)
        .filter(|change| change.field.ends_with("_limit"))
        .map(|change| {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            (change.field.clone(), text(&change.before), text(&change.after))
        })
        .collect();
    let change =
        |field: &str, after: &str| (field.to_owned(), "default".to_owned(), after.to_owned());
    assert_eq!(
        changes,
        [change("events_per_month_limit", "10 reject"), change("exports_limit", "none")]
    );
}

#[tokio::test]
async fn limits_are_for_staff_to_choose() {
    let services = set_up().await;
    let (ada, org) = home(&services).await;
    let id = org.organization.to_string();
    services.clock.advance(1);
    let eve = outsider(&services, "eve").await;
    let second = organization(&services, &eve, "Second House").await;
    let limited = PersonalKeyInput { scoped_organizations: vec![org.organization], ..key_input() };
    for caller in [eve, key(&services, &ada, limited).await] {
        // Before the values are checked.
        let wrong = || Unchecked::<LimitsPatch>::new(|| Err(FieldError::body("invalid", "wrong")));
        for id in [id.clone(), second.to_string()] {
            let refused = services.limits.set(&caller, &id, wrong()).await.unwrap_err();
            assert!(matches!(refused, Error::NotFound(_)), "{refused}");
        }
        let refused = services.limits.organizations(&caller, Page::default()).await.unwrap_err();
        assert!(matches!(refused, Error::NotFound(_)), "{refused}");
    }
    let scopes = vec![Scope::write(ScopeObject::Organization)];
    let narrow = key(&services, &ada, PersonalKeyInput { scopes, ..key_input() }).await;
    let refused = services.limits.set(&narrow, &id, LimitsPatch::default()).await.unwrap_err();
    assert!(matches!(refused, Error::MissingScope(Scope::All)), "{refused}");
    let refused = services.limits.organizations(&narrow, Page::default()).await.unwrap_err();
    assert!(matches!(refused, Error::MissingScope(Scope::All)), "{refused}");
    let whole = key(&services, &ada, key_input()).await;
    services.limits.set(&whole, &id, LimitsPatch::default()).await.unwrap();
    let late = Ctx { now: ada.now.plus_seconds(policy::RECENT_SECONDS + 2), ..ada.clone() };
    let refused = services.limits.set(&late, &id, LimitsPatch::default()).await.unwrap_err();
    assert!(matches!(refused, Error::SignInAgain), "{refused}");
    let all = services.limits.organizations(&late, Page::default()).await.unwrap();
    let names: Vec<_> = all.results.iter().map(|found| found.name.as_str()).collect();
    assert_eq!((all.count, names), (2, vec!["Acme Tea", "Second House"]));
    for id in ["7", &weir_store::ids::time_ordered(ada.now).to_string()] {
        let refused = services.limits.set(&ada, id, LimitsPatch::default()).await.unwrap_err();
        assert!(matches!(refused, Error::NotFound(_)), "{id} {refused}");
    }
    let found = services.limits.organization(&ada, &second.to_string()).await.unwrap();
    assert_eq!((found.0.id, found.1.organization_id, found.1.members.usage), (second, second, 1));
}

#[tokio::test]
async fn counts_and_choices_survive_a_restart_until_the_month_ends() {
    let services = set_up().await;
    let (ada, org) = home(&services).await;
    let id = org.organization;
    let patch = LimitsPatch { events_per_month: limit(10, "drop"), ..LimitsPatch::default() };
    set(&services, &ada, &org, patch).await;
    services.limits.limiter().count(id, 9);
    services.limits.write().await.unwrap();
    services.limits.limiter().count(id, 2);
    services.limits.write().await.unwrap();
    services.limits.measure().await.unwrap();

    let after = restarted(&services);
    after.limits.load().await.unwrap();
    let limiter = after.limits.limiter();
    assert_eq!(limiter.admit(id, 1), Admission::Drop(LimitName::EventsPerMonth));
    let shown = after.limits.of(&org).await.unwrap();
    assert_eq!(shown.events_per_month.usage, 11);
    assert_eq!(shown.disk_bytes.measured_at, Some(services.clock.now()));
    services.clock.advance(30 * 86_400);
    assert_eq!(limiter.admit(id, 1), Admission::Take);
    assert_eq!(after.limits.of(&org).await.unwrap().events_per_month.usage, 0);

    let next = restarted(&services);
    next.limits.load().await.unwrap();
    assert_eq!(next.limits.of(&org).await.unwrap().events_per_month.usage, 0);
}

#[tokio::test]
async fn a_clock_that_jumps_and_returns_loses_no_count_of_the_month() {
    let services = set_up().await;
    let (_, org) = home(&services).await;
    let limiter = services.limits.limiter();
    let used = async || services.limits.of(&org).await.unwrap().events_per_month.usage;
    limiter.count(org.organization, 9);
    services.limits.write().await.unwrap();
    limiter.count(org.organization, 2);
    services.clock.advance(-400 * 86_400);
    assert_eq!(used().await, 0);
    services.clock.advance(400 * 86_400);
    assert_eq!(used().await, 2, "what is not written yet");
    for _ in 0..2 {
        services.limits.write().await.unwrap();
        assert_eq!(used().await, 11);
    }
}

/// The mails about limits that wait to be sent: address, limit, share and use.
async fn mails(services: &Services) -> Vec<(String, LimitName, u64, u64)> {
    let about_limit = |mail: &weir_model::mail::Mail| match &mail.news {
        MailContent::LimitReached { limit, percent, used, .. } => {
            Some((mail.to.to_lowercase(), *limit, *percent, *used))
        }
        _ => None,
    };
    let due = services.mails.due().await.unwrap();
    let mut found: Vec<_> = due.iter().filter_map(|row| about_limit(&row.mail)).collect();
    found.sort();
    found
}

#[tokio::test]
async fn owners_get_one_mail_at_80_and_one_at_100_percent() {
    let services = set_up_with_mail().await;
    let (ada, org) = home(&services).await;
    let grace = outsider(&services, "grace").await;
    join(&services, org.organization, &grace, Level::Administrator).await;
    let patch = LimitsPatch {
        events_per_month: limit(100, "reject"),
        members: limit(2, "warn"),
        ..LimitsPatch::default()
    };
    set(&services, &ada, &org, patch).await;
    let limiter = services.limits.limiter();
    let owner = "ada.l@mail.example".to_owned();
    let mut expected = Vec::new();
    for (events, percent) in [(79, None), (1, Some(80)), (5, None), (15, Some(100)), (9, None)] {
        limiter.count(org.organization, events);
        services.limits.warn_events().await.unwrap();
        if let Some(percent) = percent {
            expected.push((owner.clone(), LimitName::EventsPerMonth, percent, percent));
        }
        assert_eq!(mails(&services).await, expected);
    }
    services.limits.measure().await.unwrap();
    services.limits.measure().await.unwrap();
    expected.push((owner.clone(), LimitName::Members, 100, 2));
    assert_eq!(mails(&services).await, expected);
    // A restart sends none of them again, and the next month does.
    services.limits.write().await.unwrap();
    let after = restarted_with_mail(&services);
    after.limits.load().await.unwrap();
    after.limits.warn_events().await.unwrap();
    after.limits.measure().await.unwrap();
    assert_eq!(mails(&after).await, expected);
    for row in after.mails.due().await.unwrap() {
        after.mails.sent(&row).await.unwrap();
    }
    services.clock.advance(30 * 86_400);
    after.limits.warn_events().await.unwrap();
    after.limits.measure().await.unwrap();
    assert_eq!(mails(&after).await, [(owner, LimitName::Members, 100, 2)]);
}

#[tokio::test]
async fn a_deleted_organization_is_forgotten() {
    let services = set_up().await;
    let (ada, org) = home(&services).await;
    let second = organization(&services, &ada, "Second House").await;
    let limiter = services.limits.limiter();
    for id in [org.organization, second] {
        limiter.count(id, 1);
    }
    let gone = services.organizations.enter(&ada, &second.to_string()).await.unwrap();
    services.organizations.delete(&gone).await.unwrap();
    services.limits.write().await.unwrap();
    services.limits.measure().await.unwrap();
    assert_eq!(limiter.organizations(), [org.organization]);
}

#[tokio::test]
async fn no_more_are_invited_than_may_be_members() {
    let services = set_up().await;
    let (ada, org) = home(&services).await;
    let patch = LimitsPatch { members: limit(3, "reject"), ..LimitsPatch::default() };
    set(&services, &ada, &org, patch).await;
    let invite = async |name: &str| {
        let input = InviteInput {
            target_email: format!("{name}@mail.example"),
            first_name: String::new(),
            level: Level::Member,
            message: None,
            send_email: false,
        };
        services.invites.create(&org, input).await
    };
    for name in ["b", "c", "b"] {
        invite(name).await.unwrap();
    }
    let Err(Error::Invalid(fault)) = invite("d").await else { panic!("it was accepted") };
    let expected = FieldError::new("target_email", LIMIT_REACHED, INVITES_FULL);
    assert_eq!(fault, expected);
    let warn = LimitsPatch { members: limit(1, "warn"), ..LimitsPatch::default() };
    set(&services, &ada, &org, warn).await;
    invite("d").await.unwrap();
}
