//! Connections to addresses that members enter: destinations of exports, webhooks,
//! identity providers (SEC-27).
//!
//! ```text
//! host -> addresses -> every one judged -> dialled
//! ```
//!
//! What belongs here: which addresses may be dialled, HTTP and TCP and TLS to them,
//! faults as classes. What does not: the requests to a destination (`weir-export`,
//! `weir-plugins`, `weir-service`), and addresses that the operator sets (mail, name
//! servers), except of storages and databases, which use the same connections.
//!
//! Invariant: an address is judged at the moment at which it is dialled, also if it was
//! judged when it was saved.

mod address_filter;
mod fault;
mod host;
mod postgres;
mod rules;
mod tls;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Client;
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;

pub use address_filter::Resolve;
pub use fault::{Fault, FaultClass};
pub use host::Refused;
pub use postgres::{PostgresFault, PostgresStream};
pub use reqwest::{Body, Error as RequestError, Method, StatusCode, header};
pub use reqwest::{Request, RequestBuilder, Response};
pub use rules::Rules;
pub use tls::Trust;
pub use tokio_rustls::client::TlsStream;

use address_filter::{AddressFilter, GuardedNames, System, is_localhost};
use host::Host;

/// The timeout for a lookup and the connection, and again for TLS.
const CONNECT: Duration = Duration::from_secs(5);
/// The timeout for a request up to the end of its answer. A caller can set another one.
const REQUEST: Duration = Duration::from_secs(30);
/// How long an idle connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(15);

/// Why outgoing connections cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// TLS cannot be set up.
    #[error("TLS for outbound connections cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[from] reqwest::Error),
}

/// Outgoing connections. Cheap to clone.
#[derive(Clone)]
pub struct Egress {
    filter: Arc<AddressFilter>,
    clients: Arc<Clients>,
    roots: Arc<ClientConfig>,
    any_certificate: Arc<ClientConfig>,
    within: Duration,
}

/// The HTTP client resolves a name without passing the port. Each port of this service
/// therefore has a client that knows it.
struct Clients {
    of_own_ports: Vec<(u16, Client)>,
    of_others: Client,
}

impl Egress {
    /// Outgoing connections under these rules, with the resolver of the system.
    pub fn new(rules: Rules) -> Result<Self, BuildError> {
        Self::with_resolver(rules, Arc::new(System))
    }

    /// Outgoing connections with another resolver, for tests of answers that change.
    pub fn with_resolver(rules: Rules, resolver: Arc<dyn Resolve>) -> Result<Self, BuildError> {
        let mut ports: Vec<u16> = rules.own.iter().map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        let filter = Arc::new(AddressFilter { rules, resolver });
        let roots = tls::config_for_roots()?;
        let clients = Clients {
            of_own_ports: ports
                .into_iter()
                .map(|port| Ok((port, client(&filter, Some(port), &roots)?)))
                .collect::<Result<_, BuildError>>()?,
            of_others: client(&filter, None, &roots)?,
        };
        Ok(Self {
            filter,
            clients: Arc::new(clients),
            roots: Arc::new(roots),
            any_certificate: Arc::new(tls::config_for_any_certificate()?),
            within: REQUEST,
        })
    }

    /// Sets another timeout for requests than 30 seconds.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// A request over HTTP, without redirects and proxies: 5 s to connect, 30 s in all
    /// unless the caller sets another timeout. The addresses of a name are judged when
    /// the request is sent; convert that error into a [`Fault`].
    ///
    /// # Errors
    /// [`Refused`], if the URL itself shows that it must not be requested.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, Refused> {
        let (url, _, port) = self.read_url(url)?;
        let own = self.clients.of_own_ports.iter().find(|(own, _)| *own == port);
        let client = own.map_or(&self.clients.of_others, |(_, client)| client);
        Ok(client.request(method, url).timeout(self.within))
    }

    /// Reads the body of an answer, of at most `max` bytes.
    ///
    /// # Errors
    /// [`FaultClass::TooLarge`] when it is longer, and any fault of the connection.
    pub async fn read(mut response: Response, max: usize) -> Result<Bytes, Fault> {
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > max {
                return Err(FaultClass::TooLarge.into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// Connects to a host: a name, or an address in any spelling.
    ///
    /// # Errors
    /// [`Fault`] of the last address that was tried.
    pub async fn dial(&self, host: &str, port: u16) -> Result<TcpStream, Fault> {
        let host = read(host)?;
        let addresses = in_time(CONNECT, self.filter.pass(&host, Some(port))).await?;
        // The timeout is divided, so that one silent address leaves time for the others.
        let share = CONNECT / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut fault = FaultClass::NotFound.into();
        for address in addresses {
            match in_time(share, connect(address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(last) => fault = last,
            }
        }
        Err(fault)
    }

    /// TLS over a connection to this host.
    pub async fn tls(
        &self,
        stream: TcpStream,
        host: &str,
        trust: Trust,
    ) -> Result<TlsStream<TcpStream>, Fault> {
        let name = match read(host)? {
            Host::Address(address) => ServerName::IpAddress(address.into()),
            Host::Name(name) => {
                // A certificate names the host without the dot of the root.
                let name = name.trim_end_matches('.').to_owned();
                ServerName::try_from(name).map_err(|_| FaultClass::NotFound)?
            }
        };
        let config = match trust {
            Trust::Roots => Arc::clone(&self.roots),
            Trust::AnyCertificate => Arc::clone(&self.any_certificate),
        };
        let shaking = async move {
            TlsConnector::from(config).connect(name, stream).await.map_err(Fault::from)
        };
        in_time(CONNECT, shaking).await
    }

    /// Whether this text names an address that is never dialled, or this machine itself.
    /// Only the text is judged, at the time of entry. The text is a host, a host with a
    /// port, or a URL of any scheme; the address in it may have any spelling. Other text
    /// is not judged.
    pub fn never_dials(&self, text: &str) -> bool {
        let never = |address| !self.filter.permits(address);
        match host::named(text) {
            Some(Host::Address(address)) => never(address),
            Some(Host::Name(name)) => {
                is_localhost(&name)
                    && never(Ipv4Addr::LOCALHOST.into())
                    && never(Ipv6Addr::LOCALHOST.into())
            }
            None => false,
        }
    }

    /// Judges a host that a member wants to store, by its text alone, without resolving a
    /// name. Every dial judges it again.
    ///
    /// # Errors
    /// [`Refused::Malformed`], [`Refused::Spelling`], [`Refused::Address`].
    pub fn judge_host(&self, host: &str) -> Result<(), Refused> {
        Host::read_strictly(host)?;
        self.judge_text(host)
    }

    /// Judges a URL that a member wants to store, as [`Egress::judge_host`] does.
    pub fn judge_url(&self, url: &str) -> Result<(), Refused> {
        host::check_url_strictly(url)?;
        self.judge_text(url)
    }

    fn judge_text(&self, text: &str) -> Result<(), Refused> {
        if self.never_dials(text) { Err(Refused::Address) } else { Ok(()) }
    }

    /// Checks whether host and port of a URL could be dialled now. The addresses of a
    /// name may change later, so every dial checks again.
    pub async fn check_url(&self, url: &str) -> Result<(), Fault> {
        let (_, host, port) = self.read_url(url)?;
        in_time(CONNECT, self.filter.pass(&host, Some(port))).await.map(drop)
    }

    /// Parses a URL and refuses a literal address that must not be dialled.
    fn read_url(&self, url: &str) -> Result<(Url, Host, u16), Refused> {
        let (url, host, port) = host::read_url(url)?;
        // The HTTP client dials literal addresses without asking the resolver.
        if let Host::Address(address) = host {
            let judged = self.filter.judge(&address.to_string(), address, Some(port));
            judged.map_err(|_| Refused::Address)?;
        }
        Ok((url, host, port))
    }
}

/// Parses a host that can be dialled.
fn read(host: &str) -> Result<Host, Fault> {
    Host::read(host).ok_or_else(|| FaultClass::NotFound.into())
}

fn client(
    filter: &Arc<AddressFilter>,
    port: Option<u16>,
    tls: &ClientConfig,
) -> Result<Client, BuildError> {
    let names = GuardedNames { filter: Arc::clone(filter), port };
    let client = Client::builder()
        .dns_resolver(Arc::new(names))
        .use_preconfigured_tls(tls.clone())
        .redirect(Policy::none())
        .no_proxy()
        // Answers are not decompressed: a small compressed answer may be huge.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .referer(false)
        .connect_timeout(CONNECT)
        .timeout(REQUEST)
        .pool_idle_timeout(IDLE)
        .user_agent("weir")
        .build()?;
    Ok(client)
}

async fn connect(address: IpAddr, port: u16) -> Result<TcpStream, Fault> {
    let stream = TcpStream::connect((address, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn in_time<T>(
    time: Duration,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    timeout(time, work).await.unwrap_or(Err(FaultClass::TimedOut.into()))
}

#[cfg(test)]
mod corpus;
