//! The pipes of the child process, and its pending calls.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io::{self, StdinLock, StdoutLock, Write as _};

use serde::Serialize;

use super::text::cut;
use crate::host::{HostCall, LogLevel};
use crate::wire::{self, Call, CallAnswer, to_child, to_parent};

/// Maximum pending calls of one script.
const MOST_CALLS: usize = 64;
/// Maximum log lines in one request. `MOST_LOGGED` bounds their bytes.
const MOST_LINES: usize = 100;
const MOST_LOGGED: usize = 32 << 10;
/// Maximum changes of metrics in one request.
const MAX_REPORTS: usize = 10_000;
/// Processor time without a frame to the parent process, after which the process ends on
/// its own. A living parent process kills it much earlier.
const SECONDS_OF_SILENCE: u64 = 60;
/// Maximum bytes of a log line.
const LONGEST_LINE: usize = 4 << 10;
/// Maximum bytes of a call.
const LARGEST_CALL: usize = 1 << 20;

/// Why a call cannot be made; thrown in the script.
pub(super) type Refused = &'static str;

/// A received answer.
pub(super) enum Arrival {
    /// The answer to the call with this id: JSON text, or an error message.
    Answer { id: u32, answer: Result<String, String> },
    /// The parent process does not wait any longer.
    Expired,
}

/// The pipes. A child process has exactly one.
pub(super) struct Pipes {
    input: RefCell<StdinLock<'static>>,
    output: RefCell<StdoutLock<'static>>,
    /// Frames that have not been sent.
    ready: RefCell<Vec<u8>>,
    /// The slot of the running program, for its calls.
    slot: Cell<u32>,
    next: Cell<u32>,
    owed: RefCell<HashSet<u32>>,
    lines: Cell<usize>,
    reported: Cell<usize>,
    logged: Cell<usize>,
}

impl Pipes {
    /// Opens standard input and output for exclusive use.
    pub(super) fn open() -> Self {
        Self {
            input: RefCell::new(io::stdin().lock()),
            output: RefCell::new(io::stdout().lock()),
            ready: RefCell::default(),
            slot: Cell::new(0),
            next: Cell::new(1),
            owed: RefCell::default(),
            lines: Cell::new(0),
            reported: Cell::new(0),
            logged: Cell::new(0),
        }
    }

    /// Reads the next request into `into`; `None` if the parent process has ended.
    pub(super) fn request(&self, into: &mut Vec<u8>) -> io::Result<Option<u8>> {
        self.lines.set(0);
        self.reported.set(0);
        self.logged.set(0);
        loop {
            match wire::read(&mut *self.input.borrow_mut(), into)? {
                // Answers to calls of a completed request.
                Some(to_child::ANSWER | to_child::EXPIRED) => {}
                kind => return Ok(kind),
            }
        }
    }

    /// Assigns further calls to this program. Pending answers of other programs are
    /// dropped.
    pub(super) fn enter(&self, slot: u32) {
        self.slot.set(slot);
        self.owed.borrow_mut().clear();
    }

    /// Whether answers are pending.
    pub(super) fn waiting(&self) -> bool {
        !self.owed.borrow().is_empty()
    }

    /// Sends a call with an answer; returns its id.
    pub(super) fn call(&self, text: &str) -> Result<u32, Refused> {
        if self.owed.borrow().len() >= MOST_CALLS {
            return Err("too many calls wait at the same time");
        }
        let call = read_call(text)?;
        let id = self.next.get();
        self.next.set(id.checked_add(1).unwrap_or(1));
        self.queue(&Call { id, slot: self.slot.get(), call });
        self.owed.borrow_mut().insert(id);
        Ok(id)
    }

    /// Sends a call without an answer, within the limit of the request.
    pub(super) fn tell(&self, text: &str) -> Result<(), Refused> {
        let call = read_call(text)?;
        self.reported.set(self.reported.get() + 1);
        if self.reported.get() <= MAX_REPORTS {
            self.queue(&Call { id: 0, slot: self.slot.get(), call });
        }
        Ok(())
    }

    /// Sends a log line, within the limit of the request.
    pub(super) fn log(&self, level: LogLevel, message: String) {
        let message = cut(message, LONGEST_LINE);
        self.lines.set(self.lines.get() + 1);
        self.logged.set(self.logged.get() + message.len());
        if self.lines.get() <= MOST_LINES && self.logged.get() <= MOST_LOGGED {
            let call = HostCall::Log { level, message };
            self.queue(&Call { id: 0, slot: self.slot.get(), call });
        }
    }

    fn queue(&self, call: &Call) {
        // The call was parsed from JSON, so writing it cannot fail.
        let _ = wire::put(&mut self.ready.borrow_mut(), to_parent::CALL, call);
    }

    /// Waits for the next answer. Late answers to dropped calls are skipped.
    pub(super) fn arrival(&self) -> io::Result<Arrival> {
        self.flush()?;
        let mut frame = Vec::new();
        loop {
            let kind = wire::read(&mut *self.input.borrow_mut(), &mut frame)?;
            let Some(kind @ (to_child::EXPIRED | to_child::ANSWER)) = kind else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let answer: CallAnswer<'_> = serde_json::from_slice(&frame)?;
            if self.owed.borrow_mut().remove(&answer.id) {
                if kind == to_child::EXPIRED {
                    return Ok(Arrival::Expired);
                }
                let content = match (answer.ok, answer.error) {
                    (_, Some(error)) => Err(error),
                    (Some(ok), None) => Ok(ok.get().to_owned()),
                    (None, None) => Ok("null".to_owned()),
                };
                return Ok(Arrival::Answer { id: answer.id, answer: content });
            }
        }
    }

    /// Queues a frame, and sends all queued frames.
    pub(super) fn send<T: Serialize>(&self, kind: u8, content: &T) -> io::Result<()> {
        wire::put(&mut self.ready.borrow_mut(), kind, content)?;
        self.flush()
    }

    /// Queues a frame without content, and sends all queued frames.
    pub(super) fn send_empty(&self, kind: u8) -> io::Result<()> {
        wire::put_empty(&mut self.ready.borrow_mut(), kind);
        self.flush()
    }

    /// Queues complete frames, and sends all queued frames.
    pub(super) fn send_frames(&self, frames: &mut Vec<u8>) -> io::Result<()> {
        self.ready.borrow_mut().append(frames);
        self.flush()
    }

    fn flush(&self) -> io::Result<()> {
        let mut ready = self.ready.borrow_mut();
        if !ready.is_empty() {
            super::confine::allow_seconds(SECONDS_OF_SILENCE);
            let mut output = self.output.borrow_mut();
            output.write_all(&ready)?;
            output.flush()?;
            ready.clear();
        }
        Ok(())
    }
}

fn read_call(text: &str) -> Result<HostCall, Refused> {
    if text.len() > LARGEST_CALL {
        return Err("what is asked for is too large");
    }
    serde_json::from_str(text)
        .map_err(|_| "this cannot be asked for: it is not what the host takes")
}
