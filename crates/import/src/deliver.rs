//! Delivering requests: one at a time and in order, with retries, in halves if they are
//! too large, and within a rate.
//!
//! What belongs here: retries, the rate, and progress of the cursor. What does not: the
//! meaning of an answer ([`crate::host`]).

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::batch::{self, Batch, Body, Limits};
use crate::cursor::Cursor;
use crate::error::ImportError;
use crate::host::{ImportServer, Reply};
use crate::progress::Progress;
use crate::report::LineRef;
use crate::stop::Stop;

/// How long and how often to retry.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Time before the first retry; it doubles with each one.
    pub first_wait: Duration,
    /// Maximum time between two attempts, unless the host asks for more.
    pub longest_wait: Duration,
    /// Time without progress after which the import stops.
    pub give_up_after: Duration,
    /// The same for a host that has never answered: the address is probably wrong.
    pub give_up_unanswered_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            give_up_after: Duration::from_secs(3600),
            give_up_unanswered_after: Duration::from_secs(60),
        }
    }
}

/// How a delivery ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Everything is acknowledged.
    Complete,
    /// The user requested a stop.
    Interrupted,
    /// It could not continue.
    Stopped(String),
}

/// Delivers batches.
pub(crate) struct Delivery<'a> {
    pub(crate) host: ImportServer,
    pub(crate) key: &'a str,
    /// Names of the files, for messages.
    pub(crate) files: Vec<Arc<str>>,
    pub(crate) cursor: &'a mut Cursor,
    pub(crate) cursor_path: &'a Path,
    pub(crate) limits: Limits,
    pub(crate) patience: RetryPolicy,
    pub(crate) pace: Pace,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stop: Stop,
    /// Time of the first request.
    pub(crate) began: Option<Instant>,
    /// Requests, including retries.
    pub(crate) requests: u64,
    /// Lines that are too large for the host.
    pub(crate) refused: Vec<LineRef>,
    /// Whether the host has ever answered.
    pub(crate) answered: bool,
}

/// The result for a part of a batch.
enum Part {
    Accepted,
    TooLarge,
    Ended(Ended),
}

impl Delivery<'_> {
    /// Sends batches until there are no more.
    ///
    /// # Errors
    /// [`ImportError::Cursor`] if progress cannot be stored: continuing would only
    /// increase the number of events to send again.
    pub(crate) async fn run(
        &mut self,
        mut batches: mpsc::Receiver<Batch>,
    ) -> Result<Ended, ImportError> {
        while let Some(batch) = batches.recv().await {
            if self.stop.is_requested() {
                return Ok(Ended::Interrupted);
            }
            if let Some(ended) = self.send_whole(&batch).await? {
                return Ok(ended);
            }
            self.cursor.position = Some(batch.position);
            self.cursor.save(self.cursor_path)?;
            self.progress.reached(self.cursor.accepted + self.cursor.refused);
        }
        // If there are no more batches, an interrupted walk looks like a complete one.
        Ok(if self.stop.is_requested() { Ended::Interrupted } else { Ended::Complete })
    }

    /// Sends a batch, in halves if it is too large. `Some` if the delivery ended before
    /// the batch was complete. The next run sends its accepted events again.
    async fn send_whole(&mut self, batch: &Batch) -> Result<Option<Ended>, ImportError> {
        let (mut lines, mut links, mut refused) = (0, 0, Vec::new());
        let all = 0..batch.events.len();
        let mut parts = Vec::from([all]);
        while let Some(part) = parts.pop() {
            let events = batch.events.get(part.clone()).unwrap_or_default();
            let body = if events.len() == batch.events.len() {
                batch.body.clone()
            } else {
                batch::body(events, self.key).map_err(ImportError::Compress)?
            };
            let size = body.size;
            match self.send_part(body, events.len()).await {
                Part::Accepted => {
                    let of_lines = events.iter().filter(|event| event.is_line).count();
                    lines += of_lines as u64;
                    links += (events.len() - of_lines) as u64;
                }
                Part::TooLarge => match (halves(&part), events) {
                    (Some([first, second]), _) => {
                        self.limits.lower(size);
                        parts.push(second);
                        parts.push(first);
                    }
                    (None, [event]) if event.is_line => {
                        refused.push(self.place(event.file, event.line, size));
                    }
                    (None, _) => {}
                },
                Part::Ended(ended) => return Ok(Some(ended)),
            }
        }
        self.cursor.accepted += lines;
        self.cursor.links += links;
        self.cursor.refused += refused.len() as u64;
        self.refused.append(&mut refused);
        Ok(None)
    }

    /// Sends a body until it is accepted or a retry cannot help.
    async fn send_part(&mut self, body: Body, events: usize) -> Part {
        tokio::select! {
            () = self.pace.wait(events) => {}
            () = self.stop.requested() => return Part::Ended(Ended::Interrupted),
        }
        let began = Instant::now();
        let mut wait = self.patience.first_wait;
        loop {
            self.began.get_or_insert_with(Instant::now);
            self.requests += 1;
            let reply = tokio::select! {
                reply = self.host.send(body.compressed.clone()) => reply,
                () = self.stop.insisted() => return Part::Ended(Ended::Interrupted),
            };
            let (why, after) = match reply {
                Reply::Accepted => {
                    self.answered = true;
                    self.progress.note(None);
                    return Part::Accepted;
                }
                Reply::TooLarge => {
                    self.answered = true;
                    return Part::TooLarge;
                }
                Reply::Refused(why) => return Part::Ended(Ended::Stopped(why)),
                Reply::Later { why, after, answered } => {
                    self.answered |= answered;
                    (why, after)
                }
            };
            let patience = if self.answered {
                self.patience.give_up_after
            } else {
                self.patience.give_up_unanswered_after
            };
            let pause = wait.max(after.unwrap_or_default());
            if began.elapsed() + pause > patience {
                let tried = began.elapsed().as_secs();
                return Part::Ended(Ended::Stopped(format!("gave up after {tried} s: {why}")));
            }
            self.progress.note(Some(format!("{why}; next try in {} s", pause.as_secs())));
            tokio::select! {
                () = sleep(pause) => {}
                () = self.stop.requested() => return Part::Ended(Ended::Interrupted),
            }
            wait = (wait * 2).min(self.patience.longest_wait);
        }
    }

    fn place(&self, file: usize, line: u64, size: usize) -> LineRef {
        let file = self.files.get(file).cloned().unwrap_or_default();
        LineRef { file, line, detail: Some(format!("a request of {size} bytes")) }
    }
}

/// Splits a range of more than one event.
fn halves(part: &Range<usize>) -> Option<[Range<usize>; 2]> {
    let middle = part.start + part.len() / 2;
    (part.len() > 1).then_some([part.start..middle, middle..part.end])
}

/// Limits the number of events per second.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Option<NonZeroU32>,
    next: Instant,
}

impl Pace {
    /// With at most this many events per second; no limit if `None`.
    pub(crate) fn new(rate: Option<NonZeroU32>) -> Self {
        Self { rate, next: Instant::now() }
    }

    /// Waits until this many events may be sent.
    async fn wait(&mut self, events: usize) {
        let Some(rate) = self.rate else { return };
        sleep_until(self.next).await;
        let share = f64::from(u32::try_from(events).unwrap_or(u32::MAX)) / f64::from(rate.get());
        // Counted from now, not from the planned time: a delay is not caught up.
        self.next = Instant::now() + Duration::from_secs_f64(share);
    }
}
