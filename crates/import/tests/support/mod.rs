//! A minimal capture host: it stores acknowledged events, and fails on request.

use std::collections::{HashMap, VecDeque};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use weir_import::{Arguments, ImportError, RetryPolicy, Summary};
use weir_model::Timestamp;
use weir_testservers::{StandIn, StubAnswer, StubRequest};

/// The reaction of the host to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Stores the events and acknowledges them.
    Accept,
    /// Stores the events and closes the connection without an answer.
    AcceptInSilence,
    /// Closes the connection.
    Cut,
    /// Answers with a status and a header line.
    Answer(u16, &'static str),
}

impl Act {
    /// The answer of the host; `None`: it closes the connection.
    fn said(self) -> Option<StubAnswer> {
        match self {
            Self::Cut | Self::AcceptInSilence => None,
            Self::Accept => Some(StubAnswer::json(200, &json!({ "status": 1 }))),
            Self::Answer(status, header) => {
                let (name, value) = header.split_once(": ").unwrap();
                Some(StubAnswer::json(status, &json!({ "detail": "As set." })).with(name, value))
            }
        }
    }
}

/// The requests and events that the host received.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Requests as they were sent, and their decompressed bodies.
    pub(crate) requests: Vec<(StubRequest, Value)>,
    /// Events by uuid, as first acknowledged; and how often each was sent.
    pub(crate) events: HashMap<String, (Value, usize)>,
    /// Names of the events in the order of their arrival.
    pub(crate) order: Vec<String>,
}

/// The host. Ends when dropped.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    server: StandIn<Seen>,
}

impl Host {
    /// A host with these reactions, which then accepts all requests.
    pub(crate) async fn start(acts: &[Act]) -> Self {
        Self::with_limit(acts, usize::MAX).await
    }

    /// A host that accepts decompressed bodies up to a limit.
    pub(crate) async fn with_limit(acts: &[Act], limit: usize) -> Self {
        let mut acts: VecDeque<Act> = acts.iter().copied().collect();
        let server = StandIn::start(Seen::default(), move |seen, request| {
            let mut text = String::new();
            GzDecoder::new(&request.body[..]).read_to_string(&mut text).unwrap();
            let body: Value = serde_json::from_str(&text).unwrap();
            let act = match acts.pop_front() {
                _ if text.len() > limit => Act::Answer(413, "x-a: b"),
                Some(act) => act,
                None => Act::Accept,
            };
            seen.take(request.clone(), body, act);
            act.said()
        })
        .await;
        Self { address: server.address(), server }
    }

    /// Reads the received requests and events.
    pub(crate) fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.server.lock())
    }

    /// Number of requests.
    pub(crate) fn requests(&self) -> usize {
        self.seen(|seen| seen.requests.len())
    }
}

impl Seen {
    fn take(&mut self, request: StubRequest, body: Value, act: Act) {
        if matches!(act, Act::Accept | Act::AcceptInSilence) {
            for event in body["batch"].as_array().unwrap() {
                let uuid = event["uuid"].as_str().unwrap().to_owned();
                self.order.push(event["event"].as_str().unwrap().to_owned());
                self.events.entry(uuid).or_insert_with(|| (event.clone(), 0)).1 += 1;
            }
        }
        self.requests.push((request, body));
    }
}

/// Short waits, for tests.
pub(crate) const PATIENCE: RetryPolicy = RetryPolicy {
    first_wait: Duration::from_millis(5),
    longest_wait: Duration::from_millis(20),
    give_up_after: Duration::from_secs(20),
    give_up_unanswered_after: Duration::from_millis(200),
};

/// Arguments as from the command line.
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
