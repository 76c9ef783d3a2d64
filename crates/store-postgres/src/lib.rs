//! The storage of the engine in a PostgreSQL database: one table of keys and values.
//!
//! ```text
//! engine -> Transactable (transaction) -> snapshot of a connection (pool) -> table weir.kv
//!                       \-> writes in memory (buffer) -> statements of a commit (commit)
//! ```
//!
//! A transaction reads on a snapshot (`REPEATABLE READ`) and keeps its writes in memory.
//! Its commit sends them together, and fails if another transaction has written one of the
//! same keys, or one that was read for update, since the snapshot.
//!
//! What belongs here: the engine's interface of a storage over PostgreSQL, connections, and
//! what the database must be like. What does not: what keys and values mean (`weir-store`).
//!
//! Invariant: a commit that PostgreSQL did not acknowledge without a warning is never
//! reported as done, and never as undone.
//! Invariant: no statement that commits is cancelled. Cancelling one that waits for a
//! replica would acknowledge it.

mod address;
mod buffer;
mod checks;
mod commit;
mod connection;
mod connector;
mod error;
mod layout;
mod pool;
mod scan;
mod statements;
#[cfg(test)]
mod tests;
mod transaction;

use std::sync::Arc;

use surrealdb_cnf::ConfigMap;
use surrealdb_core::kvs::{TransactionBuilderFactory, TransactionBuilderParts};
use surrealdb_kvs::api::{BoxFut, Transactable};
use surrealdb_kvs::{Metrics, TransactionBuilder, TransactionType};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::connector::Connector;
use crate::pool::{Pool, START};
use crate::transaction::PostgresTransaction;

pub use address::{AddressError, DatabaseAddress};
pub use error::OpenError;

/// Which database, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The database.
    pub address: DatabaseAddress,
    /// Upper bound of connections.
    pub connections: u32,
    /// Whether a database without synchronous standbys is accepted. Its disk is then the only
    /// place of the data.
    pub accepts_single_database: bool,
}

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
}

impl Postgres {
    /// Connects to the database, checks that it keeps what it acknowledges, and creates the
    /// table if it is missing.
    ///
    /// `directory` is the id of the data directory of this service. A database belongs to
    /// the first one.
    ///
    /// # Errors
    /// [`OpenError`] with the reason. Nothing was changed.
    pub async fn open(settings: &Settings, directory: Uuid) -> Result<Self, OpenError> {
        let connector = Connector::new(&settings.address)?;
        let connection = connector.first(START).await?;
        connection.check(settings.accepts_single_database)?;
        layout::settle(&connection, directory).await?;
        let pool = Pool::new(Arc::new(connector), settings.connections);
        Ok(Self { pool })
    }

    #[cfg(test)]
    fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl TransactionBuilder for Postgres {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    fn new_transaction(
        &self,
        kind: TransactionType,
    ) -> BoxFut<'_, surrealdb_kvs::Result<(Box<dyn Transactable>, bool)>> {
        let is_write = matches!(kind, TransactionType::Write);
        let transaction = PostgresTransaction::new(self.pool.clone(), is_write);
        Box::pin(async move { Ok((Box::new(transaction) as Box<dyn Transactable>, false)) })
    }

    fn shutdown(&self) -> BoxFut<'_, surrealdb_kvs::Result<()>> {
        Box::pin(async move {
            self.pool.close();
            Ok(())
        })
    }

    fn register_metrics(&self) -> Option<Metrics> {
        None
    }

    fn collect_u64_metric(&self, _metric: &str) -> Option<u64> {
        None
    }
}

impl TransactionBuilderFactory for Postgres {
    type RouterState = ();

    async fn new_transaction_builder(
        &self,
        _path: &str,
        _canceller: CancellationToken,
        _config: ConfigMap,
    ) -> anyhow::Result<TransactionBuilderParts<()>> {
        Ok(TransactionBuilderParts::without_router_state(Box::new(self.clone())))
    }

    fn path_valid(&self, path: &str) -> anyhow::Result<String> {
        Ok(path.to_owned())
    }
}
