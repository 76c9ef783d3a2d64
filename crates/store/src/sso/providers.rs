//! The providers of single sign-on that staff added on the page of the instance.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::Timestamp;

use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
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
    "BEGIN;
     LET $all = (SELECT VALUE name FROM sign_in_provider);
     IF $row.name NOT IN $all AND array::len($all) >= $most { THROW 'full' };
     UPSERT type::record('sign_in_provider', $row.name) CONTENT $row RETURN NONE;
     COMMIT;",
);

/// Adds or replaces a provider. `false`: there are as many as allowed, and nothing was
/// written.
///
/// # Errors
/// Any failure of the store.
pub async fn put(store: &Store, row: &ProviderRow, most: usize) -> Result<bool> {
    let vars = bind! { row: row.clone(), most: i64::try_from(most).unwrap_or(i64::MAX) };
    is_done(store.db.run(PUT, vars).await)
}

const DELETE: Statement = Statement::delete(
    "sign-in providers delete",
    "DELETE type::record('sign_in_provider', $name) RETURN NONE;",
);

/// Removes a provider. Does nothing when it is already removed.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(store: &Store, name: &str) -> Result<()> {
    store.db.run(DELETE, bind! { name: name }).await.map(drop)
}
