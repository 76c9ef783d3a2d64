//! The connections of the service, of which each transaction has one while it reads and
//! commits.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use surrealdb_kvs::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::connection::Connection;
use crate::connector::Connector;
use crate::statements::ROLLBACK;

/// The timeout for the first connection of a service.
pub(crate) const START: Duration = Duration::from_secs(30);
/// How long a transaction waits for a connection: a little less than the shortest time limit
/// of an operation, so that the reason is reported.
const WAIT: Duration = Duration::from_secs(4);

/// The connections. Clones share them.
#[derive(Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    connector: Arc<Connector>,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    most: u32,
}

/// A connection of one transaction. If it is dropped before it was released, it is closed:
/// then it is unknown what the server still does on it.
pub(crate) struct Lease {
    connection: Connection,
    shared: Arc<Shared>,
    /// Dropped after the connection was closed or returned.
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>, most: u32) -> Self {
        let most = most.max(1);
        let permits = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX >> 3)));
        Self { shared: Arc::new(Shared { connector, idle: Mutex::default(), permits, most }) }
    }

    /// A connection that no other transaction uses.
    ///
    /// # Errors
    /// [`Error::ConnectionFailed`] when there is none in time.
    pub(crate) async fn lease(&self) -> Result<Lease> {
        let until = Instant::now() + WAIT;
        let Shared { permits, most, connector, idle } = &*self.shared;
        let permit = timeout_at(until, Arc::clone(permits).acquire_owned()).await;
        let permit = permit.map_err(|_| {
            Error::ConnectionFailed(format!(
                "all {most} connections to the database are in use (store_connections)"
            ))
        })?;
        let permit = permit.map_err(|_| Error::Shutdown)?;
        let lease =
            |connection| Lease { connection, shared: Arc::clone(&self.shared), _permit: permit };
        let next = || idle.lock().pop();
        while let Some(connection) = next() {
            if !connection.client.is_closed() {
                return Ok(lease(connection));
            }
        }
        let connected = async {
            let connection = connector.connect(until).await?;
            connection.prepare().await
        };
        let connected = timeout_at(until, connected).await;
        let connected = connected
            .map_err(|_| Error::ConnectionFailed("no answer of the database in time".to_owned()))?;
        Ok(lease(connected.map_err(|error| Error::ConnectionFailed(error.to_string()))?))
    }

    /// Closes the connections that are not in use. The others close when they are returned.
    pub(crate) fn close(&self) {
        self.shared.permits.close();
        self.shared.idle.lock().clear();
    }

    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.shared.idle.lock().len()
    }
}

impl std::ops::Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Lease {
    /// Returns the connection. Its transaction has ended.
    pub(crate) fn release(self) {
        let Self { connection, shared, _permit } = self;
        if !connection.client.is_closed() && !shared.permits.is_closed() {
            shared.idle.lock().push(connection);
        }
    }

    /// Ends a transaction without an effect, and returns the connection. The statement is
    /// sent by the first poll, and no task waits for its answer: the statements of the next
    /// transaction follow it on the same connection.
    pub(crate) fn roll_back(self) {
        match self.connection.client.batch_execute(ROLLBACK).now_or_never() {
            Some(Err(_)) => {}
            Some(Ok(())) | None => self.release(),
        }
    }
}
