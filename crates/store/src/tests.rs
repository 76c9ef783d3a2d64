//! Tests of the statements about management data: they read key ranges, they may run
//! twice, and of concurrent callers one commits.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use surrealdb::types::{Value, Variables};
use uuid::Uuid;
use weir_model::activity::{AuditAction, Detail, Entry, Subject};
use weir_model::keys::PersonalKey;
use weir_model::organizations::Level;
use weir_model::scopes::Scope;
use weir_model::sso::OpenedBy;
use weir_model::{KeyId, MembershipId, OrganizationId, ProjectId, Timestamp, UserId};
use weir_testservers::Postgres;

use crate::activity::Verified;
use crate::instance::{NewInstance, SetUp};
use crate::keys::KeyRow;
use crate::organizations::{Added, NewOrganization, OrganizationRow};
use crate::projects::ProjectRow;
use crate::throttle::{CountResult, Rule};
use crate::users::{PasswordHash, UserRow};
use crate::{
    DatabaseSettings, Location, Settings, Store, activity, instance, keys, organizations, projects,
    sessions, throttle, users,
};

const NOW: Timestamp = Timestamp::EPOCH;

pub(crate) async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

/// What stores of tests need: a directory and a database server. Both are removed when this
/// is dropped.
pub(crate) struct Place {
    _directory: tempfile::TempDir,
    _server: Postgres,
}

/// A store of each storage, because they detect conflicts in different ways.
pub(crate) async fn stores() -> (Vec<Store>, Place) {
    let directory = tempfile::tempdir().unwrap();
    let in_files = Location::Directory(directory.path().join("files"));
    let server = Postgres::durable().await;
    let database = DatabaseSettings {
        address: server.url("postgres").parse().unwrap(),
        connections: 16,
        accepts_single_database: true,
    };
    let in_database = Location::Database { directory: directory.path().join("database"), database };
    let mut stores = vec![store().await];
    for location in [in_files, in_database] {
        stores.push(Store::open(&location, Settings::default()).await.unwrap());
    }
    (stores, Place { _directory: directory, _server: server })
}

fn user(number: u128) -> UserRow {
    UserRow {
        first_name: "Ada".to_owned(),
        email: "ada@mail.example".to_owned(),
        password: Some(PasswordHash("hash".to_owned())),
        ..UserRow::new(UserId(Uuid::from_u128(number)), i64::try_from(number).unwrap(), NOW)
    }
}

fn organization(number: u128, owner: UserId, slug: &str) -> NewOrganization {
    let id = OrganizationId(Uuid::from_u128(number));
    NewOrganization {
        row: OrganizationRow {
            name: slug.to_owned(),
            slug: slug.to_owned(),
            ..OrganizationRow::new(id, NOW)
        },
        owner,
        membership: MembershipId(Uuid::from_u128(number)),
        project: ProjectRow::new(
            ProjectId(i64::try_from(number).unwrap()),
            id,
            "Default project".to_owned(),
            format!("phc_{number}"),
            NOW,
        ),
    }
}

fn key(number: u128, owner: UserId) -> KeyRow {
    KeyRow {
        hash: format!("hash{number}"),
        user: owner,
        key: PersonalKey {
            id: KeyId(format!("key{number}")),
            label: "test".to_owned(),
            value: None,
            mask_value: None,
            created_at: NOW,
            last_used_at: None,
            last_rolled_at: None,
            user_id: 1,
            scopes: vec![Scope::All],
            scoped_teams: Vec::new(),
            scoped_organizations: Vec::new(),
            expires_at: None,
        },
        previous: None,
    }
}

/// All records of these tables, as text.
async fn dump(store: &Store) -> String {
    let mut all = String::new();
    for statement in [
        crate::db::Statement::read("dump", "SELECT * FROM instance, user, user_email, user_key;"),
        crate::db::Statement::read("dump", "SELECT * FROM organization, org_slug, org_project;"),
        crate::db::Statement::read("dump", "SELECT * FROM project, project_token, api_key;"),
        crate::db::Statement::read("dump", "SELECT * FROM membership, user_membership, session;"),
    ] {
        let mut answer = store.db.run(statement, Variables::new()).await.unwrap();
        let rows: Vec<Value> = answer.rows(0).unwrap();
        all.push_str(&format!("{rows:?}\n"));
    }
    all
}

/// The ranges that the statements of this crate's sources read, such as
/// `membership:[$organization]..=[$organization, ..]`.
fn ranges() -> BTreeSet<String> {
    const TO: &str = "]..=[";
    let mut found = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|kind| kind != "rs") || path.ends_with("tests.rs") {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            for (at, _) in source.match_indices(TO) {
                let table_end = source[..at].rfind(":[").unwrap();
                let in_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
                let start = source[..table_end].trim_end_matches(in_name).len();
                let end = at + TO.len() + source[at + TO.len()..].find(']').unwrap() + 1;
                found.insert(source[start..end].to_owned());
            }
        }
    }
    found
}

#[tokio::test]
async fn lists_read_key_ranges_and_nothing_else() {
    let store = store().await;
    let ranges = ranges();
    assert!(ranges.contains("membership:[$organization]..=[$organization, ..]"), "{ranges:?}");
    assert!(ranges.contains("mail:[0]..=[$now, ..]"), "{ranges:?}");
    for range in ranges {
        // The text is made here and not in the service. It is the query plan of a range
        // in the constant statements.
        let text: &'static str = format!("EXPLAIN SELECT VALUE id FROM {range};").leak();
        let mut vars = Variables::new();
        for part in range.split('$').skip(1) {
            let mut words = part.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            vars.insert(words.next().unwrap(), Uuid::nil());
        }
        let statement = crate::db::Statement::read("explain", text);
        let plan: String = store.db.run(statement, vars).await.unwrap().row(0).unwrap().unwrap();
        assert!(plan.contains("RecordIdScan"), "{range}: {plan}");
        assert!(!plan.contains("TableScan"), "{range}: {plan}");
    }
}

#[tokio::test]
async fn a_range_ends_with_its_owner() {
    let store = store().await;
    let owner = user(7);
    users::create(&store, &owner, "ada@mail.example").await.unwrap();
    // Neighbours in the order of the keys, with several members each.
    let ids = [1, 2, 3, u128::MAX - 1, u128::MAX].map(|n| OrganizationId(Uuid::from_u128(n)));
    for (project, id) in (1..).zip(ids) {
        let mut new = organization(project, owner.id, &format!("slug-{id}"));
        new.row.id = id;
        new.project.brief.organization = id;
        organizations::create(&store, &new, &[]).await.unwrap();
        for member in [0, 7, u128::MAX] {
            let (member, id) =
                (UserId(Uuid::from_u128(member)), MembershipId(crate::ids::time_ordered(NOW)));
            organizations::add_member(&store, new.row.id, member, id, Level::Member, NOW)
                .await
                .unwrap();
        }
    }
    let contents = organizations::contents(&store, &ids).await.unwrap();
    let counts: Vec<_> = contents.iter().map(|c| (c.member_count, c.projects.len())).collect();
    assert_eq!(counts, [(3, 1); 5]);
    for id in ids {
        let listed = projects::ordered(&store, id).await.unwrap();
        assert_eq!(projects::rows(&store, id, &listed).await.unwrap().len(), 1);
    }
    assert_eq!(organizations::of_user(&store, owner.id).await.unwrap().len(), 5);
    let first = UserId(Uuid::nil());
    assert_eq!(organizations::of_user(&store, first).await.unwrap().len(), 5);
}

#[tokio::test]
async fn every_transaction_may_run_twice() {
    let store = store().await;
    let owner = user(1);
    let new = NewInstance {
        user: owner.clone(),
        email_key: "ada@mail.example".to_owned(),
        organization: organization(1, owner.id, "acme"),
        key: Some(key(1, owner.id)),
        token: None,
        activities: Vec::new(),
    };
    assert_eq!(instance::set_up(&store, &new, NOW).await.unwrap(), SetUp::Done);
    let once = dump(&store).await;
    assert_eq!(instance::set_up(&store, &new, NOW).await.unwrap(), SetUp::Done);
    assert_eq!(dump(&store).await, once);
    let first_key = keys::by_hash(&store, "hash1").await.unwrap();
    assert_eq!(first_key.as_ref(), Some(&key(1, owner.id)));
    assert_eq!(keys::of_user(&store, owner.id).await.unwrap(), [key(1, owner.id)]);

    let eve = user(2);
    let more = organization(2, owner.id, "zebra");
    let another = {
        let mut row = more.project.clone();
        row.brief.id = ProjectId(3);
        row.brief.api_token = "phc_3".to_owned();
        row
    };
    let membership = MembershipId(Uuid::from_u128(9));
    let one_key = key(1, owner.id);
    for _ in 0..2 {
        let created = users::create(&store, &eve, "eve@mail.example").await.unwrap();
        assert_eq!(created, users::Created::Yes);
        let created = organizations::create(&store, &more, &[]).await.unwrap();
        assert_eq!(created, organizations::Created::Yes);
        assert!(projects::create(&store, &another, owner.id, &[]).await.unwrap());
        let added =
            organizations::add_member(&store, more.row.id, eve.id, membership, Level::Member, NOW)
                .await
                .unwrap();
        assert_eq!(added, Added::Yes);
        assert_eq!(keys::create(&store, &one_key, 1, &[]).await.unwrap(), keys::Created::Yes);
        let value = keys::NewValue { hash: "rolled", mask: "mask", until: None };
        assert!(keys::roll(&store, owner.id, &one_key.key.id, value, NOW, &[]).await.unwrap());
    }
    assert_eq!(projects::ordered(&store, more.row.id).await.unwrap().len(), 2);
    assert_eq!(keys::of_user(&store, owner.id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn all_organizations_are_listed_without_what_belongs_to_them() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let owner = user(7);
        users::create(&store, &owner, "ada@mail.example").await.unwrap();
        let mut ids = Vec::new();
        for number in [3, 1, 2] {
            let new = organization(number, owner.id, &format!("slug-{number}"));
            organizations::create(&store, &new, &[]).await.unwrap();
            ids.push(new.row.id);
        }
        ids.sort_unstable();
        assert_eq!(organizations::all(&store).await.unwrap(), ids);
        organizations::delete(&store, ids[1], owner.id, NOW, &[]).await.unwrap();
        let rows = organizations::rows(&store, &ids).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
    }
}

#[tokio::test]
async fn pointers_belong_to_the_first() {
    let store = store().await;
    let (ada, eve) = (user(1), user(2));
    assert_eq!(users::create(&store, &ada, "a@b.example").await.unwrap(), users::Created::Yes);
    let taken = users::create(&store, &eve, "a@b.example").await.unwrap();
    assert_eq!(taken, users::Created::EmailTaken);
    assert_eq!(users::get(&store, eve.id).await.unwrap(), None, "nothing was written");
    let first = organization(1, ada.id, "acme");
    organizations::create(&store, &first, &[]).await.unwrap();
    let second = organization(2, ada.id, "acme");
    let taken = organizations::create(&store, &second, &[]).await.unwrap();
    assert_eq!(taken, organizations::Created::SlugTaken);
    assert_eq!(organizations::get(&store, second.row.id).await.unwrap(), None);
    assert_eq!(projects::by_token(&store, "phc_2").await.unwrap(), None);
    let again = MembershipId(Uuid::from_u128(5));
    let added = organizations::add_member(&store, first.row.id, ada.id, again, Level::Member, NOW);
    assert_eq!(added.await.unwrap(), Added::AlreadyMember);
    let level = organizations::level(&store, first.row.id, ada.id).await.unwrap();
    assert_eq!(level, Some(Level::Owner));
    let nowhere = OrganizationId(Uuid::from_u128(99));
    let added = organizations::add_member(&store, nowhere, ada.id, again, Level::Member, NOW);
    assert_eq!(added.await.unwrap(), Added::NoOrganization);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_sign_ups_gets_the_address() {
    let (stores, _directory) = stores().await;
    for store in stores {
        one_of_many_concurrent_sign_ups_gets_the_address_in(store).await;
    }
}

async fn one_of_many_concurrent_sign_ups_gets_the_address_in(store: Store) {
    let calls: Vec<_> = (1..=16)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                users::create(&store, &user(number), "a@b.example").await.unwrap()
            })
        })
        .collect();
    let mut created = 0;
    for call in calls {
        created += usize::from(call.await.unwrap() == users::Created::Yes);
    }
    assert_eq!(created, 1);
    let winner = users::by_email(&store, "a@b.example").await.unwrap().unwrap();
    for number in 1..=16 {
        let row = users::get(&store, UserId(Uuid::from_u128(number))).await.unwrap();
        assert_eq!(row.is_some(), number == u128::from(winner.number.unsigned_abs()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_tried_again() {
    let (stores, _directory) = stores().await;
    for store in stores {
        conflicts_are_tried_again_in(store).await;
    }
}

async fn conflicts_are_tried_again_in(store: Store) {
    const FREE: &[u64] = &[0];
    let rule = |waits| Rule { kind: "test", key: "one".to_owned(), waits, forget_after: 60 };
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let (store, rule) = (store.clone(), rule(FREE));
            tokio::spawn(async move { throttle::count(&store, &[rule], NOW).await })
        })
        .collect();
    let mut counted = 0;
    for call in calls {
        // Some calls may use up their attempts. Then the error must be temporary.
        match call.await.unwrap() {
            Ok(answer) => {
                assert_eq!(answer, CountResult::Counted);
                counted += 1;
            }
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    }
    assert!(counted >= 8, "{counted}");
    // No count was lost: the wait that follows belongs to exactly this count.
    const STEPS: &[u64] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    throttle::count(&store, &[rule(STEPS)], NOW).await.unwrap();
    let CountResult::Wait { until } = throttle::count(&store, &[rule(STEPS)], NOW).await.unwrap()
    else {
        panic!("no wait");
    };
    assert_eq!(until, NOW.plus_seconds(counted));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_attempt_delays_no_earlier_caller() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let waits: &[u64] = &[0, 0, 900];
        let rules = [Rule { kind: "test", key: "one".to_owned(), waits, forget_after: 900 }];
        let count = async |now| throttle::count(&store, &rules, now).await.unwrap();
        let later = NOW.plus_seconds(1);
        assert_eq!(count(later).await, CountResult::Counted);
        assert_eq!(count(NOW).await, CountResult::Counted);
        // Both were counted, so a wait follows the third one.
        assert_eq!(count(later).await, CountResult::Counted);
        assert_eq!(count(later).await, CountResult::Wait { until: later.plus_seconds(900) });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_one_organization_all_succeed() {
    let (stores, _directory) = stores().await;
    for store in stores {
        concurrent_changes_of_one_organization_all_succeed_in(store).await;
    }
}

async fn concurrent_changes_of_one_organization_all_succeed_in(store: Store) {
    let ada = user(1);
    users::create(&store, &ada, "a@b.example").await.unwrap();
    let new = organization(1, ada.id, "acme");
    organizations::create(&store, &new, &[]).await.unwrap();
    let calls: Vec<_> = (2..=51)
        .map(|number| {
            let (store, ada) = (store.clone(), ada.id);
            let mut row = new.project.clone();
            row.brief.id = ProjectId(number);
            row.brief.api_token = format!("phc_{number}");
            let entry = Entry {
                id: Uuid::from_u128(number.unsigned_abs().into()),
                organization_id: new.row.id,
                team_id: Some(row.brief.id),
                user: Some(ada),
                personal_api_key: None,
                scim_token: None,
                activity: AuditAction::Created,
                scope: Subject::Project,
                item_id: number.to_string(),
                detail: Detail { name: None, changes: Vec::new() },
                created_at: NOW,
                request_id: String::new(),
            };
            tokio::spawn(async move { projects::create(&store, &row, ada, &[entry]).await })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap().unwrap());
    }
    let verified = activity::verify(&store, new.row.id).await.unwrap();
    assert_eq!(verified, Verified::Whole { entries: 50 });
    assert_eq!(projects::ordered(&store, new.row.id).await.unwrap().len(), 51);
}

#[tokio::test]
async fn keys_and_sessions_die_with_their_user() {
    let store = store().await;
    let ada = user(1);
    users::create(&store, &ada, "a@b.example").await.unwrap();
    keys::create(&store, &key(1, ada.id), 10, &[]).await.unwrap();
    let session = sessions::SessionRow {
        hash: "session".to_owned(),
        user: ada.id,
        signed_in_at: NOW,
        seen_at: NOW,
        expires_at: NOW.plus_seconds(60),
        address: None,
        agent: None,
        browser: None,
        opened_by: OpenedBy::Password,
        proves: None,
    };
    assert!(sessions::create(&store, &session, None, sessions::Proved::of(&ada)).await.unwrap());
    assert!(keys::by_hash(&store, "hash1").await.unwrap().is_some());
    let found = sessions::of_active_user(&store, "session", |_| None).await.unwrap();
    assert_eq!(found, Some((session, ada.email.clone(), None)));
    let inactive = UserRow { is_active: false, ..ada };
    users::create(&store, &inactive, "a@b.example").await.unwrap();
    assert!(keys::by_hash(&store, "hash1").await.unwrap().is_none());
    let found = sessions::of_active_user(&store, "session", |_| None).await.unwrap();
    assert!(found.is_none());
}

/// A request that was in flight while its user was deactivated.
#[tokio::test]
async fn a_deactivated_user_gets_nothing_new() {
    let store = store().await;
    let ada = user(1);
    let inactive = UserRow { is_active: false, ..ada.clone() };
    users::create(&store, &inactive, "a@b.example").await.unwrap();
    assert_eq!(keys::create(&store, &key(1, ada.id), 10, &[]).await.unwrap(), keys::Created::Void);
    let session = sessions::SessionRow {
        hash: "session".to_owned(),
        user: ada.id,
        signed_in_at: NOW,
        seen_at: NOW,
        expires_at: NOW.plus_seconds(60),
        address: None,
        agent: None,
        browser: None,
        opened_by: OpenedBy::Password,
        proves: None,
    };
    for proved in [sessions::Proved::of(&ada), sessions::Proved::default()] {
        assert!(!sessions::create(&store, &session, None, proved).await.unwrap());
    }
    let factor = Uuid::from_u128(7);
    let waiting = UserRow { second_factor: Some(factor), ..inactive };
    users::create(&store, &waiting, "a@b.example").await.unwrap();
    let new = crate::second_factor::NewPending {
        user: ada.id,
        hash: "pending",
        password: ada.password.as_ref(),
        factor,
        expires_at: NOW.plus_seconds(60),
    };
    assert!(!crate::second_factor::await_code(&store, new, NOW).await.unwrap());
    // After activation nothing is there.
    users::create(&store, &ada, "a@b.example").await.unwrap();
    assert!(keys::by_hash(&store, "hash1").await.unwrap().is_none());
    assert!(sessions::get(&store, "session").await.unwrap().is_none());
}

#[tokio::test]
async fn old_counters_are_forgotten() {
    let store = store().await;
    let rule =
        |key: &str| Rule { kind: "test", key: key.to_owned(), waits: &[900], forget_after: 900 };
    throttle::count(&store, &[rule("old")], NOW).await.unwrap();
    throttle::count(&store, &[rule("new")], NOW.plus_seconds(60)).await.unwrap();
    assert!(throttle::prune(&store, NOW.plus_seconds(30), Duration::ZERO).await.unwrap());
    let later = NOW.plus_seconds(61);
    assert_eq!(throttle::count(&store, &[rule("old")], later).await.unwrap(), CountResult::Counted);
    let answer = throttle::count(&store, &[rule("new")], later).await.unwrap();
    assert_eq!(answer, CountResult::Wait { until: NOW.plus_seconds(960) });
}

/// Anyone can add a counter for each network that they have.
#[tokio::test]
async fn all_old_counters_are_forgotten_however_many_there_are() {
    const OLD: usize = 110;
    let store = store().await;
    let rule = |key: String| Rule { kind: "test", key, waits: &[900], forget_after: 900 };
    let old: Vec<Rule> = (0..OLD).map(|n| rule(n.to_string())).collect();
    throttle::count(&store, &old, NOW).await.unwrap();
    let new = [rule("new".to_owned())];
    throttle::count(&store, &new, NOW.plus_seconds(60)).await.unwrap();
    let before = NOW.plus_seconds(30);
    let prune = async |within| throttle::prune_in_steps(&store, before, within, 30).await.unwrap();
    let are_gone = async || {
        // Counters that are gone allow an attempt.
        let answer = throttle::count(&store, &old, before).await.unwrap();
        answer == CountResult::Counted
    };
    // Without time it removes a part and says that some are left.
    assert!(!prune(Duration::ZERO).await);
    assert!(!are_gone().await);
    assert!(prune(Duration::from_secs(60)).await);
    assert!(are_gone().await);
    let answer = throttle::count(&store, &new, NOW.plus_seconds(61)).await.unwrap();
    assert!(matches!(answer, CountResult::Wait { .. }), "{answer:?}");
}

#[tokio::test]
async fn deletions_wait_until_they_are_done() {
    let store = store().await;
    let ada = user(1);
    users::create(&store, &ada, "a@b.example").await.unwrap();
    let new = organization(1, ada.id, "acme");
    organizations::create(&store, &new, &[]).await.unwrap();
    organizations::delete(&store, new.row.id, ada.id, NOW, &[]).await.unwrap();
    let later = NOW.plus_seconds(9);
    organizations::delete(&store, new.row.id, ada.id, later, &[]).await.unwrap();
    let waiting = organizations::deletions(&store).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].requested_at), (1, NOW));
    assert_eq!(waiting[0].projects, [ProjectId(1)]);
    organizations::deletion_done(&store, &waiting[0]).await.unwrap();
    assert!(organizations::deletions(&store).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_its_organization() {
    let (stores, _directory) = stores().await;
    for store in stores {
        nothing_outlives_its_organization_in(store).await;
    }
}

async fn nothing_outlives_its_organization_in(store: Store) {
    let ada = user(1);
    users::create(&store, &ada, "a@b.example").await.unwrap();
    for round in 1..=6 {
        let new = organization(round * 10, ada.id, "acme");
        organizations::create(&store, &new, &[]).await.unwrap();
        let mut calls = Vec::new();
        for number in 1..=8 {
            let (store, id, actor) = (store.clone(), new.row.id, ada.id);
            let mut row = new.project.clone();
            row.brief.id = ProjectId(row.brief.id.0 + number);
            row.brief.api_token = format!("phc_{}", row.brief.id);
            calls.push(tokio::spawn(async move {
                if number == 5 {
                    organizations::delete(&store, id, actor, NOW, &[]).await.unwrap();
                    return;
                }
                if number % 2 == 0 {
                    projects::create(&store, &row, UserId(Uuid::nil()), &[]).await.unwrap();
                    return;
                }
                let member = UserId(Uuid::from_u128(row.brief.id.0.unsigned_abs().into()));
                let membership = MembershipId(member.0);
                let added =
                    organizations::add_member(&store, id, member, membership, Level::Member, NOW);
                added.await.unwrap();
            }));
        }
        for call in calls {
            call.await.unwrap();
        }
        assert_eq!(projects::all_tokens(&store).await.unwrap(), [], "round {round}");
        assert_eq!(projects::ordered(&store, new.row.id).await.unwrap(), []);
        let left = organizations::contents(&store, &[new.row.id]).await.unwrap().remove(0);
        assert_eq!(left.member_count, 0, "round {round}");
        let late = projects::create(&store, &new.project, ada.id, &[]).await.unwrap();
        assert!(!late, "the organization is gone");
    }
}
