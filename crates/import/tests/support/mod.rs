//! A capture host of few words: it keeps what it acknowledges, and fails on
//! demand.

use std::collections::{HashMap, VecDeque};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use weir_import::{Arguments, ImportError, Patience, Summary};
use weir_model::Timestamp;

/// What the host does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Keeps the events and says so.
    Accept,
    /// Keeps the events and closes the connection without a word.
    AcceptInSilence,
    /// Closes the connection.
    Cut,
    /// Answers with a status and a header line.
    Answer(u16, &'static str),
}

/// What the host has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Requests as they were sent: head and body.
    pub(crate) requests: Vec<(String, Value)>,
    /// Events by uuid, as acknowledged first; and how often each was sent.
    pub(crate) events: HashMap<String, (Value, usize)>,
    /// Names of the events in the order of their arrival.
    pub(crate) order: Vec<String>,
}

/// The host.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    serving: tokio::task::JoinHandle<()>,
}

struct State {
    seen: Mutex<Seen>,
    acts: Mutex<VecDeque<Act>>,
    /// Unpacked bodies above are answered with 413.
    limit: usize,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Host {
    /// A host that does these things first and accepts afterwards.
    pub(crate) async fn start(acts: &[Act]) -> Self {
        Self::with_limit(acts, usize::MAX).await
    }

    /// One that takes bodies up to a limit only.
    pub(crate) async fn with_limit(acts: &[Act], limit: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acts = Mutex::new(acts.iter().copied().collect());
        let state = Arc::new(State { seen: Mutex::default(), acts, limit });
        let serving = tokio::spawn({
            let state = state.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, state.clone()));
                }
            }
        });
        Self { address, state, serving }
    }

    /// Looks at what it has seen.
    pub(crate) fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.state.seen.lock().unwrap())
    }

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.seen(|seen| seen.requests.len())
    }
}

/// Answers requests until the connection is closed.
async fn serve(stream: TcpStream, state: Arc<State>) {
    let mut stream = BufReader::new(stream);
    while let Some((head, body)) = read(&mut stream).await {
        let mut text = String::new();
        GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
        let body: Value = serde_json::from_str(&text).unwrap();
        let act = match state.acts.lock().unwrap().pop_front() {
            _ if text.len() > state.limit => Act::Answer(413, "x-a: b"),
            Some(act) => act,
            None => Act::Accept,
        };
        state.seen.lock().unwrap().take(head, body, act);
        let (status, header, body) = match act {
            Act::Cut | Act::AcceptInSilence => return,
            Act::Accept => (200, "x-a: b", "{\"status\":1}"),
            Act::Answer(status, header) => (status, header, "{\"detail\":\"As told.\"}"),
        };
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status} Told\r\n{header}\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Head and body of a request; `None` at the end of the connection.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

impl Seen {
    fn take(&mut self, head: String, body: Value, act: Act) {
        if matches!(act, Act::Accept | Act::AcceptInSilence) {
            for event in body["batch"].as_array().unwrap() {
                let uuid = event["uuid"].as_str().unwrap().to_owned();
                self.order.push(event["event"].as_str().unwrap().to_owned());
                self.events.entry(uuid).or_insert_with(|| (event.clone(), 0)).1 += 1;
            }
        }
        self.requests.push((head, body));
    }
}

/// Short waits.
pub(crate) const PATIENCE: Patience = Patience {
    first_wait: Duration::from_millis(5),
    longest_wait: Duration::from_millis(20),
    give_up_after: Duration::from_secs(20),
    give_up_unanswered_after: Duration::from_millis(200),
};

/// A call as on the command line.
pub(crate) fn arguments(files: &[&Path], to: Option<SocketAddr>) -> Arguments {
    Arguments {
        files: files.iter().map(PathBuf::from).collect(),
        project_key: to.map(|_| "phc_key".to_owned()),
        to: to.map(|address| format!("http://{address}")),
        format: None,
        dry_run: to.is_none(),
        skip_invalid: false,
        undated_as_now: false,
        rate: None,
        cursor: None,
        json: false,
    }
}

pub(crate) async fn import(arguments: &Arguments) -> Result<Summary, ImportError> {
    let now = Timestamp::parse("2026-06-01T10:00:00Z").unwrap();
    weir_import::import(arguments, now, PATIENCE).await
}

/// Lines with the names `e<from>` to `e<to - 1>`.
pub(crate) fn lines(range: std::ops::Range<usize>) -> String {
    range
        .map(|n| {
            format!(
                "{{\"event\":\"e{n}\",\"distinct_id\":\"u{}\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"properties\":{{\"n\":{n}}}}}\n",
                n % 50
            )
        })
        .collect()
}
