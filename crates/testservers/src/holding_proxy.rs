//! A proxy to a server that a test blocks at a chosen read or request. Bytes behind that
//! position are held until the test opens the proxy again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How long the test waits until the traffic reaches the chosen position.
const HOLD_TIMEOUT: Duration = Duration::from_secs(120);

/// The position at which the proxy blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// At the read that exceeds this many bytes to the server, over all connections; all of
    /// that read is held.
    Bytes(usize),
    /// Before the request that contains these bytes reaches the server.
    Request(&'static [u8]),
    /// After the request that contains these bytes: the server does it, and its answer is
    /// held.
    Answer(&'static [u8]),
}

/// The proxy. Ends when dropped.
pub struct HoldingProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    to: SocketAddr,
    state: Mutex<State>,
    /// Whether something is held.
    held: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    hold: Option<Hold>,
    /// How often the proxy was opened.
    opened: u64,
    /// Bytes sent to the server since then.
    sent: usize,
    connections: JoinSet<()>,
}

/// The decision on bytes on their way to the server.
enum Verdict {
    Pass,
    Hold,
    /// They pass, and from then on the answers on this connection are held.
    PassThenHoldAnswers,
}

impl HoldingProxy {
    /// Starts an open proxy to this server.
    pub async fn start(to: SocketAddr) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let (state, held) = (Mutex::default(), watch::Sender::new(false));
        let shared = Arc::new(Shared { to, state, held });
        let accepting = Arc::clone(&shared);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = tcp.accept().await {
                let mut state = accepting.state();
                let passing = pass(client, Arc::clone(&accepting), state.opened);
                state.connections.spawn(passing);
            }
        });
        Self { address, shared, serving }
    }

    /// The address that the proxy listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Blocks at this position, once.
    pub fn hold(&self, hold: Hold) {
        self.shared.state().hold = Some(hold);
    }

    /// Waits until something is held.
    ///
    /// # Panics
    /// When nothing is held in time.
    pub async fn wait_until_held(&self) {
        let mut held = self.shared.held.subscribe();
        let waiting = tokio::time::timeout(HOLD_TIMEOUT, held.wait_for(|held| *held));
        drop(waiting.await.expect("traffic reaches the hold position in time").unwrap());
    }

    /// Closes all connections, which discards held bytes, and passes all later traffic.
    pub fn open(&self) {
        let mut state = self.shared.state();
        *state = State { opened: state.opened + 1, ..State::default() };
        self.shared.held.send_replace(false);
    }
}

impl Drop for HoldingProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides on the next bytes of a connection. `before` are the last bytes before
    /// them, because the bytes to find may be split between two reads.
    fn decide(&self, before: &mut Vec<u8>, bytes: &[u8]) -> Verdict {
        let mut state = self.state();
        state.sent += bytes.len();
        before.extend_from_slice(bytes);
        let has = |wanted: &[u8]| before.windows(wanted.len()).any(|part| part == wanted);
        let hold = state.hold;
        let verdict = match hold {
            Some(Hold::Bytes(most)) if state.sent > most => Verdict::Hold,
            Some(Hold::Request(wanted)) if has(wanted) => Verdict::Hold,
            Some(Hold::Answer(wanted)) if has(wanted) => {
                state.hold = None;
                Verdict::PassThenHoldAnswers
            }
            _ => Verdict::Pass,
        };
        let wanted = match hold {
            Some(Hold::Request(wanted) | Hold::Answer(wanted)) => wanted.len(),
            Some(Hold::Bytes(_)) | None => 0,
        };
        let kept = before.len().min(wanted.saturating_sub(1));
        before.drain(..before.len() - kept);
        verdict
    }

    /// Reports that something is held, and holds it until the connection ends. A
    /// connection from before the proxy was opened reports nothing.
    async fn hold_forever(&self, opened: u64) {
        self.report_held(opened);
        std::future::pending().await
    }

    fn report_held(&self, opened: u64) {
        let state = self.state();
        if state.opened == opened {
            self.held.send_replace(true);
        }
    }
}

/// Copies bytes in both directions until both have ended.
async fn pass(client: TcpStream, shared: Arc<Shared>, opened: u64) {
    let Ok(server) = TcpStream::connect(shared.to).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let holds_answers = AtomicBool::new(false);
    let requests = async {
        let mut before = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            let bytes = &buffer[..read];
            match shared.decide(&mut before, bytes) {
                Verdict::Pass => {}
                Verdict::Hold => shared.hold_forever(opened).await,
                Verdict::PassThenHoldAnswers => holds_answers.store(true, Ordering::Release),
            }
            if to_server.write_all(bytes).await.is_err() {
                break;
            }
        }
        // The other side may be gone.
        let _ = to_server.shutdown().await;
    };
    let answers = async {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            if holds_answers.load(Ordering::Acquire) {
                shared.hold_forever(opened).await;
            }
            if to_client.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
        let _ = to_client.shutdown().await;
    };
    tokio::join!(requests, answers);
}
