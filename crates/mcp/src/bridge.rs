//! `weir mcp`: passes the messages of a client from standard input to a host, and the answers
//! to standard output. No second process opens the data of the host.
//!
//! What belongs here: lines, requests that are in progress, and their end. What does not:
//! the request over HTTP (`host`).

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _, Write};
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::{AbortHandle, JoinSet};
use weir_model::json::{self, VALUES};

use crate::error::BridgeError;
use crate::host::{Host, written};
use crate::message::{Id, Message, Refused, Request};
use crate::reply::{Fault, Reply};

/// Most bytes of a line: the largest body that a host accepts.
const LINE_MAX: usize = 1 << 20;
/// Most requests in progress.
const REQUESTS_MAX: usize = 32;
/// Lines that are read, or wait to be written, beside the one in work.
const WAITING: usize = 8;
/// The notification that a client does not need an answer any more.
const CANCELLED: &str = "notifications/cancelled";

/// Said of a host on another machine whose address begins with `http://`.
const EXPOSED: &str = "warning: the key is sent to another machine without encryption; use an \
    address that begins with https://";

/// Arguments of `weir mcp`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Address of the host, such as https://weir.example.org; the variable WEIR_API_KEY has a personal API key
    #[arg(long, env = "WEIR_URL", value_name = "URL")]
    pub url: String,
}

/// Runs `weir mcp` until the client closes standard input and all its requests are answered.
///
/// # Errors
/// [`BridgeError`].
pub async fn run(arguments: &Arguments) -> Result<(), BridgeError> {
    // Not an argument: other users of the machine can read those.
    let key = std::env::var("WEIR_API_KEY").unwrap_or_default();
    let host = Host::new(&arguments.url, &key)?;
    if host.exposes_key() {
        // Standard output has messages of the protocol alone. A client may read only that.
        let _ = writeln!(io::stderr(), "{EXPOSED}");
    }
    relay(host, io::BufReader::new(io::stdin()), io::stdout()).await
}

/// A line of the client.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Its bytes, with the line break.
    Text(Vec<u8>),
    /// It has more than [`LINE_MAX`] bytes, which were skipped.
    TooLong,
}

/// Reading and writing block, so each has a thread of its own. The one that reads may wait for
/// its next line for ever, so it is not awaited.
async fn relay(
    host: Host,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), BridgeError> {
    let (lines, received) = mpsc::channel(WAITING);
    let (replies, written) = mpsc::channel(WAITING);
    thread::spawn(move || read_lines(input, &lines));
    let writing = tokio::task::spawn_blocking(move || write_lines(output, written));
    let outcome = Bridge::new(host, replies).pass(received).await;
    // It ends when all senders of replies are dropped.
    let written = writing.await.map_err(io::Error::other)?;
    outcome?;
    Ok(written?)
}

/// The requests in progress.
struct Bridge {
    host: Arc<Host>,
    replies: Sender<String>,
    tasks: JoinSet<()>,
    running: HashMap<String, AbortHandle>,
}

impl Bridge {
    fn new(host: Host, replies: Sender<String>) -> Self {
        Self { host: Arc::new(host), replies, tasks: JoinSet::new(), running: HashMap::new() }
    }

    /// Passes lines on until there are no more, and waits for all answers.
    async fn pass(mut self, mut lines: Receiver<io::Result<Line>>) -> Result<(), BridgeError> {
        while let Some(line) = lines.recv().await {
            if self.replies.is_closed() {
                // Answers cannot be written any more, so nothing is asked any more.
                return Ok(());
            }
            self.forget_ended();
            match line? {
                Line::Text(text) if text.trim_ascii().is_empty() => {}
                Line::Text(text) => self.take(text).await,
                Line::TooLong => {
                    let fault = Fault::invalid_request("The message is larger than 1 MiB.");
                    self.reply(None, fault).await;
                }
            }
        }
        while self.tasks.join_next().await.is_some() {}
        Ok(())
    }

    async fn take(&mut self, text: Vec<u8>) {
        let value = match json::parse(&text, VALUES) {
            Ok(value) => value,
            Err(fault) => {
                let fault = Fault::new(Fault::PARSE_ERROR, fault.sentence());
                return self.reply(None, fault).await;
            }
        };
        match Message::read(value) {
            Ok(Message::Request(request)) => self.begin(request, text).await,
            Ok(Message::Notification { method, params }) => {
                let id = params.get("requestId").cloned().and_then(Id::read);
                if let Some(id) = id.filter(|_| method == CANCELLED)
                    && let Some(task) = self.running.remove(&id.text())
                {
                    // The host ends a question whose connection is closed.
                    task.abort();
                }
            }
            Err(Refused { id, fault }) => self.reply(id, fault).await,
        }
    }

    async fn begin(&mut self, request: Request, text: Vec<u8>) {
        let Request { id, .. } = request;
        if self.tasks.len() >= REQUESTS_MAX {
            let fault = Fault::new(Fault::REFUSED, "Too many requests at the same time.");
            return self.reply(Some(id), fault).await;
        }
        let (host, replies, name) = (Arc::clone(&self.host), self.replies.clone(), id.text());
        let task = self.tasks.spawn(async move {
            let answer = host.ask(id, text).await;
            // Fails only when nothing can be written any more.
            let _ = replies.send(answer).await;
        });
        self.running.insert(name, task);
    }

    async fn reply(&self, id: Option<Id>, fault: Fault) {
        let _ = self.replies.send(written(&Reply::fault(id, fault))).await;
    }

    fn forget_ended(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|_, task| !task.is_finished());
    }
}

fn read_lines(mut input: impl BufRead, lines: &Sender<io::Result<Line>>) {
    loop {
        let line = match next_line(&mut input) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let has_failed = line.is_err();
        if lines.blocking_send(line).is_err() || has_failed {
            return;
        }
    }
}

/// The next line. `None`: there is none.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    input.by_ref().take(LINE_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() <= LINE_MAX {
        return Ok(Some(Line::Text(line)));
    }
    let mut is_over = line.ends_with(b"\n");
    while !is_over {
        let read = input.fill_buf()?;
        let end = read.iter().position(|byte| *byte == b'\n');
        is_over = end.is_some() || read.is_empty();
        let skipped = end.map_or(read.len(), |end| end + 1);
        input.consume(skipped);
    }
    Ok(Some(Line::TooLong))
}

fn write_lines(mut output: impl Write, mut lines: Receiver<String>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        writeln!(output, "{line}")?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;

    /// What is written, for the test to read.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_bounded() {
        let long = "x".repeat(LINE_MAX + 7);
        let text = format!("one\n\n{long}\n{}\nlast", "y".repeat(LINE_MAX - 1));
        let mut input = io::BufReader::with_capacity(1 << 10, Cursor::new(text));
        let mut next = || next_line(&mut input).unwrap();
        assert_eq!(next(), Some(Line::Text(b"one\n".to_vec())));
        assert_eq!(next(), Some(Line::Text(b"\n".to_vec())));
        assert_eq!(next(), Some(Line::TooLong));
        assert!(matches!(next(), Some(Line::Text(text)) if text.len() == LINE_MAX));
        assert_eq!(next(), Some(Line::Text(b"last".to_vec())));
        assert_eq!(next(), None);
    }

    /// An output that its reader has closed.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_closed_output_ends_the_bridge() {
        let endless = io::Read::chain(Cursor::new("{\n"), io::repeat(b'\n'));
        let host = Host::new("http://127.0.0.1:9", "phx_test").unwrap();
        let ended = relay(host, io::BufReader::new(endless), Closed).await;
        assert!(matches!(ended, Err(BridgeError::Stream(_))), "{ended:?}");
    }

    #[tokio::test]
    async fn a_host_that_is_not_there_is_an_answer() {
        // Nothing listens at the port of a listener that is closed.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let deep = "[".repeat(1000);
        let lines = [
            json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string(),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
            String::new(),
            "{".to_owned(),
            deep,
            json!([1]).to_string(),
        ];
        let output = Shared::default();
        let host = Host::new(&url, "phx_test").unwrap();
        relay(host, Cursor::new(lines.join("\n")), output.clone()).await.unwrap();
        let written = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let mut replies: Vec<(Value, i64)> = written
            .lines()
            .map(|line| {
                let reply: Value = serde_json::from_str(line).unwrap();
                (reply["id"].clone(), reply["error"]["code"].as_i64().unwrap())
            })
            .collect();
        replies.sort_by_key(|(_, code)| *code);
        let expected = [
            (Value::Null, Fault::PARSE_ERROR),
            (Value::Null, Fault::PARSE_ERROR),
            (Value::Null, Fault::INVALID_REQUEST),
            (json!(7), Fault::REFUSED),
        ];
        assert_eq!(replies, expected);
        assert!(written.contains("cannot reach the host"), "{written}");
    }
}
