//! One request to one child process: the frames sent and received, the calls in between,
//! and timeouts.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::BytesMut;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until};

use super::child::{BySlot, Child, read_frame};
use crate::error::ErrorKind;
use crate::host::{HostCall, ScriptHost};
use crate::program::Program;
use crate::wire::{self, Call, CallAnswer, Item, Mark, Probe, Results, to_child, to_parent};
use crate::worker::report::HOLD;

/// Maximum pending calls of one request; the child process allows fewer.
const MOST_CALLS: usize = 256;
/// Maximum calls without an answer in one request; the child process allows fewer.
const MAX_REPORTS: usize = 20_000;
/// Maximum bytes of answers of one request; the child process sends less.
const MOST_ANSWERED: usize = 64 << 20;
/// Additional timeout for a child process that got no processor time.
const STARVED: Duration = Duration::from_secs(10);
/// Time between two checks of its processor time.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// The longest answer to a call.
const LONGEST_ANSWER: usize = 8 << 20;

/// Timeouts of a child process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// For one call into a script, in processor time.
    pub(super) script: Duration,
    /// For loading a script, with its `setupPlugin`, in processor time.
    pub(super) load: Duration,
    /// For one call into a script, in wall clock time including calls to the host.
    pub(super) wall: Duration,
    /// Added to each of them.
    pub(super) grace: Duration,
}

/// Why a request was not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The child did not answer in time.
    TooLate,
    /// It ended, or violated the protocol.
    Ended,
}

/// The answer to a request, complete or not.
#[derive(Debug)]
pub(super) struct Reply {
    /// Answers, in order.
    pub(super) items: Vec<Item>,
    /// What the child process began last.
    pub(super) mark: Option<Mark>,
    /// Whether it sent anything at all.
    pub(super) heard: bool,
    /// Time since its last frame.
    silent: Duration,
    /// Its processor time at its last frame.
    processor: Option<Duration>,
    /// Processor time that it could have used since then at most.
    most: Duration,
    pub(super) probe: Option<Probe>,
    /// The result of compiling a source.
    pub(super) compiled: Option<BytesMut>,
    /// Why the answer is incomplete.
    pub(super) broken: Option<Broken>,
}

/// Sends frames to a child process, and answers its calls until it is done. It may send
/// results for this many `events`; more are a protocol violation.
pub(super) async fn exchange(
    child: &mut Child,
    mut out: Vec<u8>,
    by_slot: &BySlot<'_>,
    host: &dyn ScriptHost,
    patience: Timeouts,
    events: usize,
) -> Reply {
    let mut reply = Reply {
        items: Vec::new(),
        mark: None,
        heard: false,
        silent: Duration::ZERO,
        processor: None,
        most: Duration::ZERO,
        probe: None,
        compiled: None,
        broken: None,
    };
    let mut calls = FuturesUnordered::new();
    let mut pending = BTreeSet::new();
    let mut waits = FrameTimeout::new(patience);
    waits.processor = child.processor_time();
    let mut heard = false;
    // For each step of an event it sends a mark, and another one if it loads the step.
    let most_frames = events.max(1) * (by_slot.len() + 1) * 4;
    let (mut frames, mut bytes) = (0, 0);
    let mut reported = 0;
    let mut written = 0;
    // Whether a request of the current script had a temporary failure.
    let mut unreached = false;
    loop {
        loop {
            let (kind, body) = match child.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return reply.broken(Broken::Ended, &waits),
            };
            reply.heard = true;
            let length = body.len();
            match kind {
                to_parent::RESULTS => match read_frame::<Results>(&body) {
                    Ok(mut results) => {
                        if unreached {
                            results.items.iter_mut().for_each(try_again);
                        }
                        reply.items.extend(results.items);
                    }
                    Err(_) => return reply.broken(Broken::Ended, &waits),
                },
                to_parent::MARK => {
                    reply.mark = read_frame(&body).ok();
                    unreached = false;
                }
                to_parent::PROBE => reply.probe = read_frame(&body).ok(),
                to_parent::COMPILED => reply.compiled = Some(body),
                to_parent::DONE => return reply,
                to_parent::CALL => {
                    let Ok(Call { id, slot, call }) = read_frame::<Call>(&body) else {
                        return reply.broken(Broken::Ended, &waits);
                    };
                    let Some(program) = by_slot.get(&slot).copied() else {
                        return reply.broken(Broken::Ended, &waits);
                    };
                    if id == 0 {
                        reported += 1;
                        if reported <= MAX_REPORTS {
                            record(host, program, call).await;
                        }
                    } else if calls.len() < MOST_CALLS {
                        calls.push(async move {
                            let fetches = matches!(call, HostCall::Fetch { .. });
                            let answer = answer(host, program, call).await;
                            (id, fetches && may_pass(&answer), answer)
                        });
                        pending.insert(id);
                        waits.called = true;
                    } else {
                        return reply.broken(Broken::Ended, &waits);
                    }
                    continue;
                }
                to_parent::LOADING | to_parent::LOADED | to_parent::COMPILING => {}
                _ => return reply.broken(Broken::Ended, &waits),
            }
            frames += 1;
            bytes += length;
            if frames > most_frames || bytes > MOST_ANSWERED || reply.items.len() > events {
                return reply.broken(Broken::Ended, &waits);
            }
            waits.heard(kind == to_parent::LOADING);
            heard = true;
        }
        if std::mem::take(&mut heard) {
            waits.processor = child.processor_time();
        }
        let (at, last_chance) = waits.next(!calls.is_empty());
        tokio::select! {
            read = child.stdout.read_buf(&mut child.incoming) => {
                if !matches!(read, Ok(1..)) {
                    return reply.broken(Broken::Ended, &waits);
                }
            }
            sent = child.stdin.write(&out[written..]), if written < out.len() => match sent {
                Ok(sent) => {
                    written += sent;
                    if written == out.len() {
                        out.clear();
                        written = 0;
                    }
                }
                // Frames that it sent before it ended are read first.
                Err(_) => {
                    out.clear();
                    written = 0;
                }
            },
            Some((id, may_pass, answer)) = calls.next(), if !calls.is_empty() => {
                pending.remove(&id);
                unreached |= may_pass;
                put_answer(&mut out, id, answer);
            }
            // Calls prolong the time for waiting, not the time for computing.
            () = sleep_until(waits.next_check), if waits.called => {
                if waits.is_overrun(child.processor_time()) {
                    return reply.broken(Broken::TooLate, &waits);
                }
            }
            () = sleep_until(at) => {
                if last_chance && waits.is_starved(child.processor_time()) {
                    continue;
                }
                if last_chance {
                    return reply.broken(Broken::TooLate, &waits);
                }
                waits.expired = true;
                calls = FuturesUnordered::new();
                if let Some(id) = std::mem::take(&mut pending).first() {
                    put(&mut out, to_child::EXPIRED, &CallAnswer { id: *id, ok: None, error: None });
                }
            }
        }
    }
}

impl Reply {
    fn broken(mut self, why: Broken, waits: &FrameTimeout) -> Self {
        self.broken = Some(why);
        self.silent = waits.last.elapsed();
        self.processor = waits.processor;
        self.most = waits.most();
        self
    }

    /// Time that a child process without an answer has used since its last frame, if this
    /// is its processor time now. Time in which it waited for a processor is the fault of
    /// others.
    pub(super) fn used(&self, processor: Option<Duration>) -> Duration {
        let used = match (self.processor, processor) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.silent,
        };
        used.min(self.most)
    }
}

/// The current timeout, depending on the last frame.
struct FrameTimeout {
    patience: Timeouts,
    last: Instant,
    phase: Phase,
    /// Whether the script has called the host since.
    called: bool,
    /// Whether the child process was notified that waiting is over.
    expired: bool,
    /// Its processor time at that moment.
    processor: Option<Duration>,
    /// Until when the timeout is extended because it got no processor time.
    starved: Option<Instant>,
    /// When the processor time of a script that calls the host is checked next.
    next_check: Instant,
}

/// What a child process does, by its last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It reads the request, which may be large, and may then run a loaded script.
    Reading,
    Loading,
    Running,
}

impl FrameTimeout {
    fn new(patience: Timeouts) -> Self {
        let last = Instant::now();
        let mut waits = Self {
            patience,
            last,
            phase: Phase::Reading,
            called: false,
            expired: false,
            processor: None,
            starved: None,
            next_check: last,
        };
        waits.next_check = last + waits.most();
        waits
    }

    fn heard(&mut self, loading: bool) {
        self.last = Instant::now();
        self.phase = if loading { Phase::Loading } else { Phase::Running };
        self.called = false;
        self.expired = false;
        self.starved = None;
        self.next_check = self.last + self.most();
    }

    /// Processor time that a script may use before the child process sends a frame.
    fn own(&self) -> Duration {
        let Timeouts { script, load, .. } = self.patience;
        match self.phase {
            Phase::Reading => load + script,
            Phase::Loading => load,
            Phase::Running => script,
        }
    }

    /// The same with the grace: more processor time is an overrun.
    fn most(&self) -> Duration {
        self.own() + HOLD + self.patience.grace
    }

    /// Whether the child process has used more processor time than a script may.
    fn is_overrun(&mut self, processor: Option<Duration>) -> bool {
        let used = self.processor.zip(processor).map(|(before, now)| now.saturating_sub(before));
        let missing = self.most().saturating_sub(used.unwrap_or_default());
        self.next_check = Instant::now() + missing.max(CHECK_EVERY);
        missing.is_zero()
    }

    /// Whether a late child process did not get enough processor time and may still get
    /// it. On a busy machine the script is not late then.
    fn is_starved(&mut self, processor: Option<Duration>) -> bool {
        let (Some(before), Some(now)) = (self.processor, processor) else { return false };
        let missing = (self.own() + HOLD).saturating_sub(now.saturating_sub(before));
        let (end, _) = self.end(false);
        let may_wait = !missing.is_zero() && Instant::now() < end + STARVED.min(self.own() * 10);
        self.starved = may_wait.then(|| Instant::now() + missing.max(CHECK_EVERY));
        may_wait
    }

    /// The time of the next action, and whether that is the timeout.
    fn next(&self, waiting: bool) -> (Instant, bool) {
        let (at, is_end) = self.end(waiting);
        (self.starved.filter(|_| is_end).unwrap_or(at), is_end)
    }

    fn end(&self, waiting: bool) -> (Instant, bool) {
        let wall = self.patience.wall;
        let own = self.most();
        if !self.called {
            (self.last + own, true)
        } else if waiting && !self.expired {
            (self.last + wall, false)
        } else {
            (self.last + wall.max(own) + own, true)
        }
    }
}

/// Whether the same request may get another answer later.
fn may_pass(answer: &Result<Value, String>) -> bool {
    match answer {
        Ok(answer) => {
            matches!(answer.get("status").and_then(Value::as_u64), Some(408 | 425 | 429 | 500..))
        }
        Err(_) => true,
    }
}

/// An error that a script throws after such a request is taken as its consequence.
fn try_again(item: &mut Item) {
    for failure in &mut item.failures {
        failure.error.retry |= failure.error.kind == ErrorKind::Threw;
    }
}

async fn record(host: &dyn ScriptHost, program: &Program, call: HostCall) {
    if matches!(call, HostCall::Log { .. } | HostCall::Metric { .. })
        && let Err(error) = host.call(program, call).await
    {
        tracing::warn!(config = program.key.config, error, "a line of a plugin was not kept");
    }
}

async fn answer(host: &dyn ScriptHost, program: &Program, call: HostCall) -> Result<Value, String> {
    granted(program, &call)?;
    host.call(program, call).await
}

/// Whether a program may make this call. Decided here, because the child process is not
/// trusted.
fn granted(program: &Program, call: &HostCall) -> Result<(), String> {
    let grants = program.grants;
    let (granted, what) = match call {
        HostCall::StorageGet { .. }
        | HostCall::StorageSet { .. }
        | HostCall::StorageDel { .. }
        | HostCall::CursorInit { .. }
        | HostCall::CursorIncrement { .. } => (grants.storage, "storage"),
        HostCall::CacheGet { .. }
        | HostCall::CacheSet { .. }
        | HostCall::CacheIncr { .. }
        | HostCall::CacheExpire { .. }
        | HostCall::CacheLpush { .. }
        | HostCall::CacheLrange { .. }
        | HostCall::CacheLlen { .. }
        | HostCall::CacheLpop { .. }
        | HostCall::CacheLrem { .. } => (grants.cache, "cache"),
        HostCall::Fetch { .. } => (grants.fetch, "fetch"),
        HostCall::Capture { .. } => (grants.capture, "posthog.capture"),
        HostCall::JobEnqueue { .. } => (grants.jobs, "jobs"),
        HostCall::Geoip { .. } => (grants.geoip, "geoip"),
        HostCall::Metric { .. } | HostCall::Log { .. } => (true, ""),
    };
    if granted { Ok(()) } else { Err(format!("{what} is not available here")) }
}

fn put_answer(out: &mut Vec<u8>, id: u32, answer: Result<Value, String>) {
    let written = answer.and_then(|value| to_raw_value(&value).map_err(|error| error.to_string()));
    let (ok, error) = match written {
        Ok(value) if value.get().len() > LONGEST_ANSWER => {
            (None, Some("the answer is too long".to_owned()))
        }
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    };
    let frame = CallAnswer { id, ok: ok.as_deref(), error };
    put(out, to_child::ANSWER, &frame);
}

fn put(out: &mut Vec<u8>, kind: u8, frame: &CallAnswer<'_>) {
    if let Err(error) = wire::put(out, kind, frame) {
        tracing::warn!(%error, "an answer for a plugin cannot be written");
    }
}
