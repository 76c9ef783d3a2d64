//! The floor: the minimum that a server must do to answer "stored".
//!
//! It parses the same events with raw properties, appends them to one file and answers
//! after a group `fdatasync`. It checks no key, drops nothing, makes nothing readable. A
//! durable server on the same machine cannot be much faster, so ratios to the floor are
//! more meaningful than absolute figures.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::post;
use flate2::write::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use weir_bench::process::Process;

/// Maximum bytes written with one sync.
const GROUP: usize = 8 << 20;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    uuid: Cow<'a, str>,
    #[serde(borrow)]
    distinct_id: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    properties: &'a RawValue,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    batch: Vec<Event<'a>>,
}

/// Bytes for the file, and the requests that wait for them.
enum Waiting {
    Append(Vec<u8>, oneshot::Sender<()>),
    Empty(oneshot::Sender<()>),
}

type Queue = mpsc::UnboundedSender<Waiting>;

/// Starts the floor as a separate process.
///
/// # Errors
/// If it does not start.
pub(crate) fn start(file: &Path) -> Result<(Process, SocketAddr)> {
    use std::io::BufRead as _;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("floor").arg(file).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = Process::start(&mut command)?;
    let output = process.take_output().context("the floor has no output")?;
    let mut line = String::new();
    std::io::BufReader::new(output).read_line(&mut line)?;
    let address = line.trim().parse().context("the floor did not tell its address")?;
    Ok((process, address))
}

/// The process of the floor: serves until it is killed.
///
/// # Errors
/// If the file cannot be created or the port cannot be opened.
pub(crate) fn run(file: &Path) -> Result<()> {
    // It must end together with the benchmark, even if that is killed.
    let end = rustix::process::Signal::TERM;
    rustix::process::set_parent_process_death_signal(Some(end))?;
    let file = File::options().create(true).append(true).open(file)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(file))
}

#[expect(clippy::disallowed_methods, reason = "serves a benchmark on this host only")]
async fn serve(file: File) -> Result<()> {
    let (queue, waiting) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("floor-writer".to_owned()).spawn(|| write(file, waiting))?;
    let router = Router::new()
        .route("/capture/", post(single))
        .route("/batch/", post(batch))
        .route("/empty/", post(empty))
        .layer(DefaultBodyLimit::max(20 << 20))
        .with_state(queue);
    let tcp = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(std::io::stdout(), "{}", tcp.local_addr()?)?;
    axum::serve(
        axum::serve::ListenerExt::tap_io(tcp, |stream| {
            // Answers are small; waiting for a full packet only delays them.
            let _ = stream.set_nodelay(true);
        }),
        router,
    )
    .await?;
    Ok(())
}

async fn single(State(queue): State<Queue>, body: Bytes) -> StatusCode {
    match serde_json::from_slice::<Event>(&body) {
        Ok(event) => append(&queue, &[event]).await,
        Err(_) => StatusCode::BAD_REQUEST,
    }
}

async fn batch(State(queue): State<Queue>, body: Bytes) -> StatusCode {
    let decompressed;
    let text: &[u8] = if body.starts_with(&[0x1f, 0x8b]) {
        let mut decoder = GzDecoder::new(Vec::with_capacity(body.len() * 8));
        if decoder.write_all(&body).is_err() {
            return StatusCode::BAD_REQUEST;
        }
        let Ok(text) = decoder.finish() else { return StatusCode::BAD_REQUEST };
        decompressed = text;
        &decompressed
    } else {
        &body
    };
    match serde_json::from_slice::<Batch>(text) {
        Ok(batch) => append(&queue, &batch.batch).await,
        Err(_) => StatusCode::BAD_REQUEST,
    }
}

/// Empties the file, so that rounds do not fill the disk.
async fn empty(State(queue): State<Queue>) -> StatusCode {
    let (done, wait) = oneshot::channel();
    answer(queue.send(Waiting::Empty(done)).is_ok(), wait).await
}

async fn append(queue: &Queue, events: &[Event<'_>]) -> StatusCode {
    let mut bytes = Vec::with_capacity(events.len() * 1100);
    for event in events {
        let parts: [&str; 5] = [
            &event.event,
            &event.uuid,
            &event.distinct_id,
            &event.timestamp,
            event.properties.get(),
        ];
        for part in parts {
            bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(0).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    let (done, wait) = oneshot::channel();
    answer(queue.send(Waiting::Append(bytes, done)).is_ok(), wait).await
}

async fn answer(sent: bool, wait: oneshot::Receiver<()>) -> StatusCode {
    if sent && wait.await.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// Writes all waiting bytes, syncs once, answers all requests. Ends at the first error.
fn write(mut file: File, mut queue: mpsc::UnboundedReceiver<Waiting>) {
    let mut buffer = Vec::with_capacity(GROUP);
    while let Some(first) = queue.blocking_recv() {
        buffer.clear();
        let mut done = Vec::new();
        let mut next = Some(first);
        while let Some(waiting) = next.take() {
            match waiting {
                Waiting::Append(bytes, answer) => {
                    buffer.extend_from_slice(&bytes);
                    done.push(answer);
                }
                Waiting::Empty(answer) => {
                    if file.set_len(0).is_err() {
                        return;
                    }
                    done.push(answer);
                }
            }
            if buffer.len() < GROUP {
                next = queue.try_recv().ok();
            }
        }
        if file.write_all(&buffer).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        for answer in done {
            // The client may have disconnected.
            let _ = answer.send(());
        }
    }
}
