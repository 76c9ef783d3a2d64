//! Connecting to the primary of a database.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::NoTls;
use weir_egress::{Egress, Fault, PostgresFault, Rules};

use crate::address::DatabaseAddress;
use crate::connection::NewConnection;
use crate::error::{ConnectError, OpenError};

/// The timeout for signing in and for setting the session up.
const SIGN_IN: Duration = Duration::from_secs(10);
/// The pause after the first attempt to connect. It doubles with every attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a host may leave sent bytes without an acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// The first sign of life on an idle connection is requested after this time, and the next
/// ones after the interval. Without an answer to all of them the connection counts as broken.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVES: u32 = 3;
/// The server is the operator's, and a session lasts for days.
const NO_LIMIT: usize = usize::MAX;

/// Connects to the primary of a database.
pub(crate) struct Connector {
    egress: Egress,
    address: DatabaseAddress,
}

impl Connector {
    /// The address is the operator's, as the one of the mail server is, so each may be
    /// dialled.
    pub(crate) fn new(address: &DatabaseAddress) -> Result<Self, OpenError> {
        Ok(Self { egress: Egress::new(Rules::any())?, address: address.clone() })
    }

    /// The first connection of a service.
    pub(crate) async fn first(&self, within: Duration) -> Result<NewConnection, OpenError> {
        self.connect(Instant::now() + within).await.map_err(|error| match error {
            ConnectError::Unsuitable(faults) => OpenError::Unsuitable(faults),
            other => OpenError::Unreachable(other.to_string()),
        })
    }

    /// A connection to the primary. Attempts are made until this time.
    pub(crate) async fn connect(&self, until: Instant) -> Result<NewConnection, ConnectError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let failed = match timeout_at(until, self.once()).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => error,
                Err(_) => return Err(ConnectError::Silent),
            };
            if failed.is_final() || Instant::now() + pause >= until {
                return Err(failed);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Tries each host.
    async fn once(&self) -> Result<NewConnection, ConnectError> {
        let mut last = ConnectError::Standby;
        for (host, port) in &self.address.hosts {
            match self.host(host, *port).await {
                Ok(connection) => return Ok(connection),
                Err(ConnectError::Unsuitable(faults)) => {
                    return Err(ConnectError::Unsuitable(faults));
                }
                // There is a primary among the other hosts.
                Err(ConnectError::Standby) => {}
                Err(error) => {
                    tracing::debug!(%host, port, %error, "no connection to the database");
                    last = error;
                }
            }
        }
        Err(last)
    }

    async fn host(&self, host: &str, port: u16) -> Result<NewConnection, ConnectError> {
        let trust = self.address.trust;
        let dialled = self.egress.dial(host, port).await.map_err(PostgresFault::from)?;
        keep_alive(&dialled).map_err(|error| PostgresFault::from(Fault::from(error)))?;
        let stream = self.egress.negotiate_postgres(dialled, host, trust, NO_LIMIT).await?;
        let signing_in = async {
            let (client, line) = self.address.sign_in().connect_raw(stream, NoTls).await?;
            NewConnection::set_up(client, line).await
        };
        timeout(SIGN_IN, signing_in).await.map_err(|_| ConnectError::Silent)?
    }
}

/// Makes a connection end when the host no longer answers.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    stream.set_nodelay(true)
}
