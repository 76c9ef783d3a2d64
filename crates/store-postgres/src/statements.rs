//! The statements, prepared once for each connection.

use tokio_postgres::{Client, Error, Statement};

/// Begins a transaction that reads. Its snapshot is taken by the first statement after it.
pub(crate) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Begins a transaction that writes.
pub(crate) const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE";
pub(crate) const COMMIT: &str = "COMMIT";
pub(crate) const ROLLBACK: &str = "ROLLBACK";

/// Declares the statements: the name, what it does, and the text.
macro_rules! statements {
    ($($(#[doc = $doc:literal])+ $name:ident: $text:literal;)+) => {
        /// The prepared statements of a connection.
        pub(crate) struct Statements {
            $($(#[doc = $doc])+ pub(crate) $name: Statement,)+
        }

        impl Statements {
            /// Prepares them, in one exchange with the server.
            pub(crate) async fn prepare(client: &Client) -> Result<Self, Error> {
                let ($($name),+) = tokio::try_join!($(client.prepare($text)),+)?;
                Ok(Self { $($name),+ })
            }
        }
    };
}

statements! {
    /// The value of a key.
    get: "SELECT value FROM weir.kv WHERE key = $1";
    /// Whether there is a key.
    exists: "SELECT 1 FROM weir.kv WHERE key = $1";
    /// The values of keys.
    get_many: "SELECT key, value FROM weir.kv WHERE key = ANY($1)";
    /// The first keys of a range.
    keys: "SELECT key FROM weir.kv WHERE key >= $1 AND key < $2 \
           ORDER BY key LIMIT $3 OFFSET $4";
    /// The last keys of a range.
    keys_backward: "SELECT key FROM weir.kv WHERE key >= $1 AND key < $2 \
                    ORDER BY key DESC LIMIT $3 OFFSET $4";
    /// The first keys of a range, with their values.
    values: "SELECT key, value FROM weir.kv WHERE key >= $1 AND key < $2 \
             ORDER BY key LIMIT $3 OFFSET $4";
    /// The last keys of a range, with their values.
    values_backward: "SELECT key, value FROM weir.kv WHERE key >= $1 AND key < $2 \
                      ORDER BY key DESC LIMIT $3 OFFSET $4";
    /// The number of keys in a range.
    count: "SELECT count(*) FROM weir.kv WHERE key >= $1 AND key < $2";
    /// The number of keys of a list.
    count_of: "SELECT count(*) FROM weir.kv WHERE key = ANY($1)";
    /// Locks rows that are to be written. Fails if one of them was changed or deleted since
    /// the snapshot.
    lock: "SELECT 1 FROM weir.kv WHERE key = ANY($1) ORDER BY key FOR UPDATE";
    /// The same for rows that were read for update. Transactions that only read them do not
    /// exclude each other.
    share: "SELECT 1 FROM weir.kv WHERE key = ANY($1) ORDER BY key FOR SHARE";
    /// Takes keys that the snapshot does not have. Fails if one of them was inserted since
    /// the snapshot. The rows are removed again before the commit.
    hold: "INSERT INTO weir.kv (key, value) SELECT held, '' FROM unnest($1::bytea[]) AS held \
           ON CONFLICT DO NOTHING";
    /// Writes keys with their values. Fails if one of them was inserted since the snapshot.
    set: "INSERT INTO weir.kv (key, value) \
          SELECT key, value FROM unnest($1::bytea[], $2::bytea[]) AS written (key, value) \
          ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    /// Removes keys.
    delete: "DELETE FROM weir.kv WHERE key = ANY($1)";
}
