//! Preferences of users about the pages.
//!
//! What belongs here: statements about `preference`, one record for each user who has set
//! a preference. What does not: which preferences there are (`weir-service`).

use surrealdb::types::SurrealValue;
use weir_model::UserId;
use weir_model::preferences::{NumberFormat, Preferences, Zone};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// The record. Its id is `preference:<user>`.
#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    zone: String,
    numbers: String,
    shortcuts: bool,
}

const GET: Statement =
    Statement::read("preferences get", "SELECT * FROM type::record('preference', $user);");

/// The preferences of a user; `None`: none is set. A number format that this version does
/// not know counts as not set.
pub async fn get(store: &Store, user: UserId) -> Result<Option<Preferences>> {
    let stored = store.db.run(GET, bind! { user: user.0 }).await?.row::<Stored>(0)?;
    Ok(stored.map(|stored| Preferences {
        zone: Zone::from_word(&stored.zone),
        numbers: NumberFormat::from_word(&stored.numbers).unwrap_or_default(),
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
    };
    store.db.run(PUT, bind! { user: user.0, row: row }).await.map(drop)
}
