//! One connection: its client, its statements, and the warnings of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinHandle;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{AsyncMessage, Client, Connection as Line, Statement};
use weir_egress::PostgresStream;

use crate::checks::{Facts, SET_UP};
use crate::error::{ConnectError, OpenError};
use crate::statements::Statements;

/// A connection that is set up, before the table may exist. Dropping it closes the socket
/// immediately. The server then rolls back what is not being committed.
pub(crate) struct NewConnection {
    pub(crate) client: Client,
    warnings: Arc<AtomicU64>,
    line: ClosedWhenDropped,
    facts: Facts,
}

/// A connection with prepared statements. Dropping it closes the socket immediately.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
    warnings: Arc<AtomicU64>,
    _line: ClosedWhenDropped,
}

/// The task that reads and writes the socket.
struct ClosedWhenDropped(JoinHandle<()>);

impl Drop for ClosedWhenDropped {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Chooses a statement of a connection.
pub(crate) type Chosen = fn(&Statements) -> &Statement;

impl NewConnection {
    /// Sets the session up over a connection that has signed in.
    pub(crate) async fn set_up(
        client: Client,
        line: Line<PostgresStream, NoTlsStream>,
    ) -> Result<Self, ConnectError> {
        let warnings = Arc::new(AtomicU64::new(0));
        let line = ClosedWhenDropped(tokio::spawn(drive(line, Arc::clone(&warnings))));
        let answer = client.simple_query(SET_UP).await?;
        let wrong = || ConnectError::Unsuitable(vec!["it does not say how it is set up".into()]);
        let facts = Facts::read(&answer).ok_or_else(wrong)?;
        if facts.is_standby {
            return Err(ConnectError::Standby);
        }
        let faults = facts.faults_of_server();
        if !faults.is_empty() {
            return Err(ConnectError::Unsuitable(faults));
        }
        Ok(Self { client, warnings, line, facts })
    }

    /// Checks that commits are stored in two places.
    pub(crate) fn check(&self, accepts_single_database: bool) -> Result<(), OpenError> {
        let faults = self.facts.faults_of_standbys();
        if accepts_single_database || faults.is_empty() {
            return Ok(());
        }
        Err(OpenError::Unsuitable(faults))
    }

    /// How many warnings the server has sent.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }

    /// Prepares the statements. The table exists.
    pub(crate) async fn prepare(self) -> Result<Connection, ConnectError> {
        let statements = Statements::prepare(&self.client).await?;
        let Self { client, warnings, line, .. } = self;
        Ok(Connection { client, statements, warnings, _line: line })
    }
}

impl Connection {
    /// How many warnings the server has sent.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }
}

/// Reads and writes the socket, and counts the warnings. A warning arrives before the answer
/// to its statement, and is counted before that answer is passed on.
async fn drive(mut line: Line<PostgresStream, NoTlsStream>, warnings: Arc<AtomicU64>) {
    loop {
        match std::future::poll_fn(|context| line.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                warnings.fetch_add(1, Ordering::AcqRel);
                let (code, message) = (notice.code().code(), notice.message());
                tracing::warn!(code, message, "a warning of the database");
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to the database ended");
                return;
            }
            None => return,
        }
    }
}
