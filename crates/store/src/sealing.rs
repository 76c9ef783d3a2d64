//! Sealed fields: their list, the key that they are sealed with, and replacing their
//! texts when the key changes (SEC-22, SEC-23).
//!
//! What belongs here: the list of sealed fields, and the record `master_key:current`.
//! What does not: keys and encryption (`weir-service`); this crate sees sealed texts
//! only.
//!
//! A rotation walks through the fields of [`SealedField`]. So every field that can be
//! sealed is part of a rotation.

use std::time::Duration;

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;
use weir_model::OrganizationId;

use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::{Result, Store};

/// Every field of a record that holds a sealed text. The records of its table have the
/// field `organization`, which is nil for fields of a user.
macro_rules! sealed_fields {
    ($($(#[$doc:meta])* $variant:ident = $table:literal . $field:literal;)+) => {
        /// A field that holds a sealed text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum SealedField {
            $($(#[$doc])* $variant),+
        }

        impl SealedField {
            /// All sealed fields.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The table of the record.
            pub const fn table(self) -> &'static str {
                match self { $(Self::$variant => $table),+ }
            }

            /// The name of the field.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $field),+ }
            }

            // Table scans: they run when the operator changes the key, and nothing else
            // runs at that time.
            const fn with_other_keys(self) -> Statement {
                match self {
                    $(Self::$variant => Statement::read(
                        concat!("sealing with other keys: ", $table),
                        concat!(
                            "SELECT VALUE {
                                 id: id, record: <string> record::id(id),
                                 organization: organization, sealed: ", $field, ",
                             } FROM ", $table, "
                             WHERE ", $field, " != NONE
                                 AND string::starts_with(", $field, ", $prefix) = false
                             LIMIT $most;"
                        ),
                    )),+
                }
            }

            const fn replace(self) -> Statement {
                match self {
                    $(Self::$variant => Statement::write(
                        concat!("sealing replace: ", $table),
                        concat!(
                            "BEGIN;
                             FOR $one IN $rows {
                                 LET $record = $one.id;
                                 UPDATE $record SET ", $field, " = $one.after
                                     WHERE ", $field, " = $one.before RETURN NONE;
                             };
                             COMMIT;"
                        ),
                    )),+
                }
            }
        }
    };
}

sealed_fields! {
    /// The credentials of a batch export's destination.
    BatchExportSecrets = "batch_export"."secrets";
    /// The secret keys of a project.
    ProjectSecrets = "project"."secrets";
    /// The token with which the source of a plugin is downloaded.
    PluginToken = "plugin"."private_token";
    /// The secret settings of a transformation config.
    PluginConfigSecrets = "plugin_config"."secrets";
    /// An attachment of a transformation config: mostly keys of other systems.
    PluginAttachment = "plugin_attachment"."contents";
    /// The secret from which the codes of a user's second factor are computed.
    SecondFactorSecret = "second_factor"."secret";
    /// The client secret of a provider of single sign-on.
    SignInProviderSecret = "sign_in_provider"."secret";
    /// The key with which a domain signs requests to its SAML provider.
    DomainSigningKey = "domain"."saml_signing_key";
}

/// The key that texts are sealed with, by its id.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct KeyInUse {
    /// Id of the key.
    pub key: String,
    /// Id of the new key of a rotation that was interrupted.
    pub next: Option<String>,
}

/// A sealed text and its record.
#[derive(Debug, Clone, PartialEq)]
pub struct SealedRow {
    id: RecordId,
    /// The record's id within its table, as text.
    pub record: String,
    /// The organization that the record belongs to.
    pub organization: OrganizationId,
    /// The sealed text.
    pub sealed: String,
}

#[derive(Debug, SurrealValue)]
struct Stored {
    id: RecordId,
    record: String,
    organization: Uuid,
    sealed: String,
}

impl From<Stored> for SealedRow {
    fn from(stored: Stored) -> Self {
        Self {
            id: stored.id,
            record: stored.record,
            organization: OrganizationId(stored.organization),
            sealed: stored.sealed,
        }
    }
}

#[derive(Debug, SurrealValue)]
struct Replacement {
    id: RecordId,
    before: String,
    after: String,
}

const IN_USE: Statement =
    Statement::read("sealing key in use", "SELECT * FROM master_key:current;");

/// The key in use; `None`: no text was ever sealed.
pub async fn in_use(store: &Store) -> Result<Option<KeyInUse>> {
    store.db.run(IN_USE, bind! {}).await?.row(0)
}

const USE: Statement = Statement::write(
    "sealing use key",
    "BEGIN;
     LET $present = (SELECT VALUE key FROM ONLY master_key:current);
     IF $present != NONE AND $present != $key { THROW 'other' };
     UPSERT master_key:current SET key = $key RETURN NONE;
     COMMIT;",
);

/// Stores the id of the first key, before any text is sealed with it. `false`: another
/// key is in use, and nothing was written.
pub async fn use_key(store: &Store, key: &str) -> Result<bool> {
    is_done(store.db.run(USE, bind! { key: key }).await)
}

const BEGIN: Statement = Statement::write(
    "sealing begin rotation",
    "UPDATE master_key:current SET next = $next RETURN NONE;",
);

/// Stores that a rotation to another key has begun.
pub async fn begin_rotation(store: &Store, next: &str) -> Result<()> {
    store.db.run(BEGIN, bind! { next: next }).await.map(drop)
}

const END: Statement = Statement::write(
    "sealing end rotation",
    "UPDATE master_key:current SET key = $key, next = NONE RETURN NONE;",
);

/// Stores that all texts are sealed with this key.
pub async fn end_rotation(store: &Store, key: &str) -> Result<()> {
    store.db.run(END, bind! { key: key }).await.map(drop)
}

/// At most `most` texts of a field that do not begin with `prefix`, the common beginning
/// of the texts of one key.
pub async fn with_other_keys(
    store: &Store,
    field: SealedField,
    prefix: &str,
    most: usize,
) -> Result<Vec<SealedRow>> {
    let statement = field.with_other_keys().within(Duration::from_secs(60));
    let vars = bind! { prefix: prefix, most: i64::try_from(most).unwrap_or(i64::MAX) };
    let rows = store.db.run(statement, vars).await?.rows::<Stored>(0)?;
    Ok(rows.into_iter().map(SealedRow::from).collect())
}

/// Replaces these texts, all or none. A text that has changed since it was read is not
/// replaced.
pub async fn replace(
    store: &Store,
    field: SealedField,
    rows: Vec<(SealedRow, String)>,
) -> Result<()> {
    let rows = rows
        .into_iter()
        .map(|(row, after)| Replacement { id: row.id, before: row.sealed, after })
        .collect::<Vec<_>>();
    store.db.run(field.replace(), bind! { rows: rows }).await.map(drop)
}
