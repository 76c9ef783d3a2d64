//! The providers of single sign-on that staff added on the page of the instance.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::activity::Entry;

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::mail::{self, MailRow, write_mails};
use crate::{Result, Store};

/// A provider as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct ProviderRow {
    /// Its name, which is the id of the record.
    pub name: String,
    /// The name that people read.
    pub label: String,
    /// The issuer; for GitHub the address of its server.
    pub issuer: String,
    /// The client id that the provider gave to this instance.
    pub client_id: String,
    /// The client secret, sealed.
    pub secret: String,
    /// Always nil: the provider belongs to no organization. Sealed fields need it.
    pub organization: Uuid,
    /// When it was added or last changed.
    pub updated_at: Timestamp,
}

const ALL: Statement =
    Statement::read("sign-in providers", "SELECT * FROM sign_in_provider ORDER BY name;");

/// All of them, by name: at most as many as an instance may have.
///
/// # Errors
/// Any failure of the store.
pub async fn all(store: &Store) -> Result<Vec<ProviderRow>> {
    store.db.run(ALL, bind! {}).await?.rows(0)
}

const GET: Statement = Statement::read(
    "sign-in providers get",
    "SELECT * FROM type::record('sign_in_provider', $name);",
);

/// The provider with this name.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, name: &str) -> Result<Option<ProviderRow>> {
    store.db.run(GET, bind! { name: name }).await?.row(0)
}

const PUT: Statement = Statement::write(
    "sign-in providers put",
    concat!(
        "BEGIN;
         LET $all = (SELECT VALUE name FROM sign_in_provider);
         IF $row.name NOT IN $all AND array::len($all) >= $most { THROW 'full' };
         UPSERT type::record('sign_in_provider', $row.name) CONTENT $row RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Adds or replaces a provider. `false`: there are as many as allowed, and nothing was
/// written.
///
/// # Errors
/// Any failure of the store.
pub async fn put(
    store: &Store,
    row: &ProviderRow,
    most: usize,
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! {
        row: row.clone(),
        most: i64::try_from(most).unwrap_or(i64::MAX),
        mails: mail::stored(mails)?,
    };
    is_done(activity::change(store, PUT, vars, activities).await)
}

const DELETE: Statement = Statement::delete(
    "sign-in providers delete",
    concat!(
        "BEGIN;
         LET $present = (SELECT VALUE name FROM ONLY type::record('sign_in_provider', $name));
         IF $present != NONE {
             DELETE type::record('sign_in_provider', $name) RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Removes a provider. Does nothing when it is already removed.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    name: &str,
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { name: name, mails: mail::stored(mails)? };
    activity::change(store, DELETE, vars, activities).await.map(drop)
}
