//! The chain of entries, on a store in memory.

use weir_model::activity::{AuditAction, Detail, FieldChange, Subject};
use weir_model::{Timestamp, UserId};

use super::*;
use crate::{Location, Settings};

const ORGANIZATION: OrganizationId = OrganizationId(Uuid::from_u128(1));
const PROJECT: ProjectId = ProjectId(7);

fn entry(number: u128) -> Entry {
    Entry {
        id: Uuid::from_u128(number),
        organization_id: ORGANIZATION,
        team_id: number.is_multiple_of(2).then_some(PROJECT),
        user: Some(UserId(Uuid::nil())),
        personal_api_key: None,
        scim_token: None,
        activity: AuditAction::Updated,
        scope: Subject::Project,
        item_id: number.to_string(),
        detail: Detail { name: None, changes: Vec::new() },
        created_at: Timestamp::from_micros(1),
        request_id: String::new(),
    }
}

/// A store with six entries.
async fn six() -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    for number in 1..=6 {
        write(&store, &[entry(number)]).await.unwrap();
    }
    store
}

async fn tampered(text: &'static str) -> Verified {
    let store = six().await;
    let vars = bind! { organization: ORGANIZATION.0 };
    store.db.run(Statement::write("tamper", text), vars).await.unwrap();
    verify(&store, ORGANIZATION).await.unwrap()
}

#[tokio::test]
async fn a_whole_chain_is_whole() {
    let store = six().await;
    let verified = verify(&store, ORGANIZATION).await.unwrap();
    assert_eq!(verified, Verified::Whole { entries: 6 });
    let nothing = verify(&store, OrganizationId(Uuid::nil())).await.unwrap();
    assert_eq!(nothing, Verified::Whole { entries: 0 });
}

#[tokio::test]
async fn the_same_entry_is_written_once() {
    let store = six().await;
    write(&store, &[entry(6)]).await.unwrap();
    let (count, _) = page(&store, Of::Organization(ORGANIZATION), Page::default()).await.unwrap();
    assert_eq!(count, 6);
}

#[tokio::test]
async fn what_was_changed_or_removed_is_found() {
    for (text, number) in [
        ("UPDATE type::record('activity', [$organization, 3]) SET text = '{}';", 3),
        // A hash that fits the changed text is noticed too: the next entry does not
        // follow it.
        (
            "UPDATE type::record('activity', [$organization, 3])
                 SET text = '{}', hash = crypto::sha256('{}');",
            3,
        ),
        ("DELETE type::record('activity', [$organization, 1]);", 1),
        ("DELETE type::record('activity', [$organization, 4]);", 4),
        ("DELETE type::record('activity', [$organization, 6]);", 6),
        (
            "DELETE type::record('activity', [$organization, 6]);
             UPDATE type::record('activity_head', $organization) SET number = 5;",
            5,
        ),
    ] {
        assert_eq!(tampered(text).await, Verified::BrokenAt { number }, "{text}");
    }
}

#[tokio::test]
async fn a_project_has_its_own_of_one_organization() {
    let store = six().await;
    let of = Of::Project(ORGANIZATION, PROJECT);
    let (count, entries) = page(&store, of, Page::default()).await.unwrap();
    assert_eq!((count, entries), (3, [6, 4, 2].map(entry).to_vec()));
    let elsewhere = Of::Project(OrganizationId(Uuid::nil()), PROJECT);
    assert_eq!(page(&store, elsewhere, Page::default()).await.unwrap(), (0, Vec::new()));
}

#[tokio::test]
async fn a_search_counts_all_and_keeps_the_page() {
    let store = six().await;
    let of = Of::Organization(ORGANIZATION);
    let even = |entry: &Entry| entry.team_id.is_some();
    for (limit, offset, expected) in
        [(10, 0, vec![6, 4, 2]), (1, 1, vec![4]), (2, 2, vec![2]), (1, 9, vec![])]
    {
        let (count, found) = search(&store, of, Page { limit, offset }, even).await.unwrap();
        let expected: Vec<Entry> = expected.into_iter().map(entry).collect();
        assert_eq!((count, found), (3, expected));
    }
}

#[tokio::test]
async fn what_cannot_be_read_back_is_not_written() {
    let store = six().await;
    let nested = |depth: usize| {
        (0..depth).fold(serde_json::Value::Null, |inner, _| serde_json::Value::Array(vec![inner]))
    };
    let with = |depth: usize| {
        let change = FieldChange {
            subject: Subject::Project,
            action: "created".to_owned(),
            field: "rules".to_owned(),
            before: serde_json::Value::Null,
            after: nested(depth),
        };
        let detail = Detail { name: None, changes: vec![change] };
        Entry { detail, ..entry(7) }
    };
    assert!(matches!(write(&store, &[with(127)]).await, Err(Error::Shape { .. })));
    write(&store, &[with(64)]).await.unwrap();
    let of = Of::Organization(ORGANIZATION);
    let (count, entries) = page(&store, of, Page::default()).await.unwrap();
    assert_eq!((count, entries.len()), (7, 7));
}

#[tokio::test]
async fn batches_continue_to_the_oldest_entry() {
    let store = six().await;
    let of = Of::Organization(ORGANIZATION);
    let numbers = |entries: &[Entry]| -> Vec<String> {
        entries.iter().map(|entry| entry.item_id.clone()).collect()
    };
    let (newest, next) = batch(&store, of, None, |entry| entry.team_id.is_some()).await.unwrap();
    assert_eq!((numbers(&newest), next), (["6", "4", "2"].map(str::to_owned).to_vec(), None));
    let (older, next) = batch(&store, of, Some(3), |_| true).await.unwrap();
    assert_eq!((numbers(&older), next), (["2", "1"].map(str::to_owned).to_vec(), None));
    assert_eq!(batch(&store, of, Some(1), |_| true).await.unwrap(), (Vec::new(), None));
}
