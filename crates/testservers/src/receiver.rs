//! A receiver of events over HTTP. It keeps the events that it acknowledges. A test can
//! make it fail, hang, throttle or close connections.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::stub::{StubRequest, read};

/// The reaction of a receiver to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reception {
    /// Keeps the events and answers with success.
    Accept,
    /// Keeps the events and closes the connection without an answer.
    AcceptInSilence,
    /// Keeps the events, and answers with 200 and this text.
    AcceptSaying(String),
    /// Closes the connection.
    Close,
    /// Keeps the connection, and never answers.
    Hang,
    /// Answers with a status and header lines, each with `\r\n` at its end.
    Answer(u16, String),
}

/// The requests and events that a receiver has seen.
#[derive(Debug, Clone, Default)]
pub struct Receptions {
    /// Requests as they arrived, and their bodies as JSON.
    pub requests: Vec<(StubRequest, Value)>,
    /// Kept events in the order of arrival. An event that was sent more than once appears
    /// more than once.
    pub events: Vec<Value>,
}

impl Receptions {
    /// How often each uuid was stored by the receiver.
    pub fn by_uuid(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for event in &self.events {
            *counts.entry(event["uuid"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        counts
    }
}

/// The receiver. Ends when dropped.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    seen: Mutex<Receptions>,
    acts: Mutex<VecDeque<Reception>>,
    /// Larger bodies are answered with 413.
    limit: usize,
    came: Notify,
}

impl Receiver {
    /// Starts a receiver that does these things first and accepts afterwards.
    pub async fn start(acts: &[Reception]) -> Self {
        Self::with_limit(acts, usize::MAX).await
    }

    /// Starts a receiver that accepts bodies up to this many bytes.
    pub async fn with_limit(acts: &[Reception], limit: usize) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            acts: Mutex::new(acts.iter().cloned().collect()),
            limit,
            came: Notify::new(),
        });
        let state = Arc::clone(&shared);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move { serve(stream, &state).await });
            }
        });
        Self { address, shared, serving }
    }

    /// The address that the receiver listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to send events to.
    pub fn url(&self) -> String {
        format!("http://{}/batch/", self.address)
    }

    /// Sets the reactions to the next requests.
    pub fn then(&self, acts: &[Reception]) {
        let mut queue = self.shared.acts.lock().unwrap_or_else(PoisonError::into_inner);
        queue.extend(acts.iter().cloned());
    }

    /// The requests and events so far.
    pub fn seen(&self) -> Receptions {
        self.shared.seen().clone()
    }

    /// The number of requests so far.
    pub fn requests(&self) -> usize {
        self.shared.seen().requests.len()
    }

    /// Waits until this many requests arrived.
    pub async fn wait_for(&self, requests: usize) {
        let waiting = async {
            loop {
                let came = self.shared.came.notified();
                if self.requests() >= requests {
                    return;
                }
                came.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the requests come");
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn seen(&self) -> std::sync::MutexGuard<'_, Receptions> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, request: StubRequest) -> Reception {
        let next = self.acts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let act = match next {
            _ if request.body.len() > self.limit => Reception::Answer(413, String::new()),
            Some(act) => act,
            None => Reception::Accept,
        };
        let body = request.json();
        let keeps = matches!(
            act,
            Reception::Accept | Reception::AcceptInSilence | Reception::AcceptSaying(_)
        );
        let mut seen = self.seen();
        if keeps {
            seen.events.extend(body["batch"].as_array().unwrap().iter().cloned());
        }
        seen.requests.push((request, body));
        drop(seen);
        self.came.notify_waiters();
        act
    }
}

/// Answers requests until the connection is closed.
async fn serve(stream: TcpStream, shared: &Shared) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let (status, headers, body) = match shared.receive(request) {
            Reception::Close | Reception::AcceptInSilence => return,
            Reception::Hang => std::future::pending().await,
            Reception::Accept => (200, String::new(), "{\"status\":1}".to_owned()),
            Reception::AcceptSaying(body) => (200, String::new(), body),
            Reception::Answer(status, headers) => (status, headers, "{\"a\":\"b\"}".to_owned()),
        };
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status} Told\r\n{headers}content-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
