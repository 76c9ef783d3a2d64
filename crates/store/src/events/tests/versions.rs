//! A write of a person or group names the version that it was computed from.

use uuid::Uuid;
use weir_model::PersonId;

use super::support::{PROJECT, ada, batch, events, records, store};
use crate::events::{Position, apply, position};
use crate::groups::GroupWrite;
use crate::persons::PersonWrite;
use crate::{ByteBudget, Error, persons};

/// Two hundred records, not in the order of their ids, each with another version than its
/// neighbours, and the versions after the write.
fn versions() -> impl Iterator<Item = (i64, i64)> {
    (0..200).map(|n| (n * 77 % 200, n * 31 % 17))
}

#[tokio::test]
async fn of_many_persons_one_that_is_stale_or_missing_refuses_all() {
    let store = store().await;
    let id = |n: i64| PersonId(Uuid::from_u128(u128::try_from(n).unwrap() << 100));
    let write = |(n, before): (i64, i64), expected: Option<i64>| PersonWrite {
        id: id(n),
        state: ada("{}"),
        expected,
        version: expected.map_or(before, |_| before + 1),
    };
    let at = |offset: u64, persons: Vec<PersonWrite>| {
        let mut write = batch(0, offset, offset + 1, &events(offset + 1, offset + 1, "a"));
        write.projects[0].persons = persons;
        write
    };
    let created = versions().map(|row| write(row, None)).collect();
    apply(&store, at(0, created)).await.unwrap();
    let changes = versions().map(|row| write(row, Some(row.1))).collect();
    apply(&store, at(1, changes)).await.unwrap();
    let ids: Vec<PersonId> = versions().map(|(n, _)| id(n)).collect();
    let stored = async || {
        let mut budget = ByteBudget::ALL;
        let found = persons::by_ids(&store, PROJECT, &ids, &mut budget).await.unwrap();
        let mut found: Vec<_> = found.iter().map(|row| (row.id, row.version)).collect();
        found.sort_unstable();
        found
    };
    let mut after: Vec<_> = versions().map(|(n, before)| (id(n), before + 1)).collect();
    after.sort_unstable();
    assert_eq!(stored().await, after);

    let again: Vec<_> =
        versions().map(|(n, before)| write((n, before + 1), Some(before + 1))).collect();
    let (mut stale, mut missing) = (again.clone(), again.clone());
    stale[100].expected = stale[100].expected.map(|version| version - 1);
    missing[100].id = id(200);
    for refused in [stale, missing] {
        let error = apply(&store, at(2, refused)).await.unwrap_err();
        assert!(
            matches!(&error, Error::Refused { reason, .. } if reason == "stale person"),
            "{error}"
        );
        assert_eq!(stored().await, after, "nothing was written");
        assert_eq!(position(&store, 0).await.unwrap(), Position::at(2));
    }
    apply(&store, at(2, again)).await.unwrap();
}

#[tokio::test]
async fn of_many_groups_one_that_is_stale_or_missing_refuses_all() {
    let store = store().await;
    let write = |(n, before): (i64, i64), expected: Option<i64>| GroupWrite {
        index: 0,
        key: format!("group {n}"),
        properties: "{}".to_owned(),
        created_at: 5,
        expected,
        version: expected.map_or(before, |_| before + 1),
    };
    let at = |offset: u64, groups: Vec<GroupWrite>| {
        let mut write = batch(0, offset, offset + 1, &events(offset + 1, offset + 1, "a"));
        write.projects[0].groups = groups;
        write
    };
    let created = versions().map(|row| write(row, None)).collect();
    apply(&store, at(0, created)).await.unwrap();
    let changes = versions().map(|row| write(row, Some(row.1))).collect();
    apply(&store, at(1, changes)).await.unwrap();
    let again: Vec<_> =
        versions().map(|(n, before)| write((n, before + 1), Some(before + 1))).collect();
    let (mut stale, mut missing) = (again.clone(), again.clone());
    stale[100].expected = stale[100].expected.map(|version| version - 1);
    missing[100].key = "nobody".to_owned();
    for refused in [stale, missing] {
        let error = apply(&store, at(2, refused)).await.unwrap_err();
        assert!(
            matches!(&error, Error::Refused { reason, .. } if reason == "stale group"),
            "{error}"
        );
        assert_eq!(position(&store, 0).await.unwrap(), Position::at(2));
        assert_eq!(records(&store, "event_group").await, 200);
    }
    // It finds all records unchanged: nothing was written.
    apply(&store, at(2, again)).await.unwrap();
}
