//! Preferences of users about the pages.
//!
//! What belongs here: statements about `preference`, one record for each user who has set
//! a preference. What does not: which preferences there are (`weir-service`).

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue};
use weir_model::UserId;
use weir_model::preferences::{NumberFormat, Preferences, TableRows, Zone};

use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::{Result, Store};

/// The record. Its id is `preference:<user>`.
#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    zone: String,
    numbers: String,
    shortcuts: bool,
    /// Missing in older records.
    rows: Option<String>,
}

const GET: Operation = Operation::read("preferences get");

/// The preferences of a user; `None`: none is set. A word that this version does not know
/// counts as not set.
pub async fn get(store: &Store, user: UserId) -> Result<Option<Preferences>> {
    let id = RecordId::new("preference", RecordIdKey::Uuid(user.0.into()));
    let stored = store.db.get_one::<Stored>(GET, id).await?;
    Ok(stored.map(|stored| Preferences {
        zone: Zone::from_word(&stored.zone),
        numbers: NumberFormat::from_word(&stored.numbers).unwrap_or_default(),
        rows: stored.rows.and_then(|word| TableRows::from_word(&word)).unwrap_or_default(),
        shortcuts: stored.shortcuts,
    }))
}

const PUT: Statement = Statement::write(
    "preferences put",
    "UPSERT type::record('preference', $user) CONTENT $row RETURN NONE;",
);

/// Stores the preferences of a user.
pub async fn put(store: &Store, user: UserId, chosen: &Preferences) -> Result<()> {
    let row = Stored {
        zone: chosen.zone.word().to_owned(),
        numbers: chosen.numbers.word().to_owned(),
        shortcuts: chosen.shortcuts,
        rows: Some(chosen.rows.word().to_owned()),
    };
    store.db.run(PUT, bind! { user: user.0, row: row }).await.map(drop)
}
