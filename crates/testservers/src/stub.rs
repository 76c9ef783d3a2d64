//! An HTTP server whose answers a test makes, for services that do not run locally.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct StubRequest {
    /// The method, such as `POST`.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query without `?`; empty without one.
    pub query: String,
    /// The HTTP version, such as `HTTP/1.1`.
    pub version: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as it arrived.
    pub body: Vec<u8>,
}

impl StubRequest {
    /// A header's value, or an empty text if the request does not have it.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The answer of a stub.
#[derive(Debug, Clone)]
pub struct StubAnswer {
    /// The HTTP status code.
    pub status: u16,
    /// Names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body to send.
    pub body: Vec<u8>,
}

impl StubAnswer {
    /// An answer with a status and a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string().into_bytes() }
    }

    /// An answer with a status and no body.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// The same answer with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

type Answering = dyn FnMut(&StubRequest) -> Option<StubAnswer> + Send;

/// The server. Ends when dropped.
pub struct Stub {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Stub {
    /// Starts the server. A request without an answer closes the connection.
    pub async fn start(
        answering: impl FnMut(&StubRequest) -> Option<StubAnswer> + Send + 'static,
    ) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let answering: Arc<Mutex<Answering>> = Arc::new(Mutex::new(answering));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                let answering = Arc::clone(&answering);
                tokio::spawn(async move { serve(stream, &answering).await });
            }
        });
        Self { address, serving }
    }

    /// The address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A stub whose answers depend on a state that the test also reads. Ends when dropped.
pub struct StandIn<S> {
    kept: Arc<Mutex<S>>,
    stub: Stub,
}

impl<S: Send + 'static> StandIn<S> {
    /// Starts the server with this state. A request without an answer closes the
    /// connection.
    pub async fn start(
        kept: S,
        mut answering: impl FnMut(&mut S, &StubRequest) -> Option<StubAnswer> + Send + 'static,
    ) -> Self {
        let kept = Arc::new(Mutex::new(kept));
        let own = Arc::clone(&kept);
        let stub = Stub::start(move |request| answering(&mut lock(&own), request)).await;
        Self { kept, stub }
    }

    /// Locks the state. The stub does not answer until the guard is dropped.
    pub fn lock(&self) -> MutexGuard<'_, S> {
        lock(&self.kept)
    }

    /// The address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.stub.address()
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        self.stub.url()
    }
}

/// Ignores poisoning: an assertion of the test may have failed while it held the lock.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(stream: TcpStream, answering: &Mutex<Answering>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let said = {
            let mut answering = lock(answering);
            (*answering)(&request)
        };
        let Some(said) = said else { return };
        let headers: String =
            said.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let (status, length) = (said.status, said.body.len());
        let head = format!("HTTP/1.1 {status} Told\r\n{headers}content-length: {length}\r\n\r\n");
        let mut answer = head.into_bytes();
        if request.method != "HEAD" {
            answer.extend(said.body);
        }
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// Reads a request; `None` at the end of the connection.
pub(super) async fn read(stream: &mut BufReader<TcpStream>) -> Option<StubRequest> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let version = words.next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query, body) = (path.to_owned(), query.to_owned(), Vec::new());
    let mut request = StubRequest { method, path, query, version, headers, body };
    request.body.resize(request.header("content-length").parse().unwrap_or(0), 0);
    stream.read_exact(&mut request.body).await.ok()?;
    Some(request)
}
