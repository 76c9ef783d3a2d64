use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Handle;
use tokio::task::block_in_place;
use uuid::Uuid;
use weir_model::OrganizationId;
use weir_model::organizations::OrganizationRow;
use weir_model::plugins::PluginsAccess;

use super::*;
use crate::{Location, Settings};

const HOME: OrganizationId = OrganizationId(Uuid::from_u128(1));

const PUT: Statement = Statement::write(
    "test organization",
    "UPSERT type::record('organization', $row.uuid) CONTENT $row RETURN NONE;",
);

const PUT_OLDER: Statement = Statement::write(
    "test older organization",
    "UPSERT type::record('organization', $row.uuid)
         CONTENT object::extend($row, { plugins_access: NONE, additions: 3 }) RETURN NONE;",
);

const RENAME: Statement = Statement::write(
    "test rename",
    "UPDATE type::record('organization', $id) SET name = $name RETURN NONE;",
);

const ADDITIONS: Statement = Statement::read(
    "test additions",
    "SELECT VALUE additions FROM type::record('organization', $id);",
);

async fn store(put: Statement) -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let row = OrganizationRow::new(HOME, Timestamp::EPOCH);
    store.db.run(put, bind! { row: row }).await.unwrap();
    store
}

/// Replaces the row with this id.
pub(crate) async fn replace<R: Row>(store: &Store, id: R::Id, row: &R, with: R::With)
where
    R::With: Clone,
{
    let change = |_: R| {
        let (row, with) = (row.clone(), with.clone());
        std::future::ready(Ok::<_, Error>((Change { row, entries: Vec::new(), with }, ())))
    };
    update_with(store, id, (), change).await.unwrap().stored().unwrap();
}

async fn change(
    store: &Store,
    change: impl Fn(OrganizationRow) -> OrganizationRow,
) -> Updated<OrganizationRow> {
    let changed = |row: &OrganizationRow| {
        let after = change(row.clone());
        Ok::<_, Error>((after != *row).then(|| (after, Vec::new())))
    };
    update(store, HOME, (), changed).await.unwrap()
}

#[tokio::test]
async fn a_field_that_an_older_record_lacks_is_changed_and_other_fields_stay() {
    let store = store(PUT_OLDER).await;
    let access = PluginsAccess::None;
    let updated =
        change(&store, |row| OrganizationRow { plugins_access_level: access, ..row }).await;
    assert_eq!(updated.stored().unwrap().plugins_access_level, access);
    let stored = crate::organizations::get(&store, HOME).await.unwrap().unwrap();
    assert_eq!(stored.plugins_access_level, access);
    let mut answer = store.db.run(ADDITIONS, bind! { id: HOME }).await.unwrap();
    assert_eq!(answer.row::<i64>(0).unwrap(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_begins_again_with_what_another_writer_stored() {
    let store = store(PUT).await;
    let tries = AtomicU32::new(0);
    let writer = store.clone();
    let changed = |row: &OrganizationRow| {
        // The writer does not take the lock of the record.
        if tries.fetch_add(1, Ordering::Relaxed) == 0 {
            let vars = bind! { id: HOME, name: "other" };
            let write = writer.db.run(RENAME, vars);
            block_in_place(|| Handle::current().block_on(write)).unwrap();
        }
        let name = format!("{}!", row.name);
        Ok::<_, Error>(Some((OrganizationRow { name, ..row.clone() }, Vec::new())))
    };
    let updated = update(&store, HOME, (), changed).await.unwrap();
    assert_eq!(updated.stored().unwrap().name, "other!");
    assert_eq!(tries.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_deleted_record_is_gone_and_an_equal_row_writes_nothing() {
    let store = store(PUT).await;
    let same = change(&store, |row| row).await.stored().unwrap();
    assert_eq!(same, OrganizationRow::new(HOME, Timestamp::EPOCH));
    let other = OrganizationId(Uuid::from_u128(2));
    let changed = |row: &OrganizationRow| Ok::<_, Error>(Some((row.clone(), Vec::new())));
    assert_eq!(update(&store, other, (), changed).await.unwrap(), Updated::Gone);
}
