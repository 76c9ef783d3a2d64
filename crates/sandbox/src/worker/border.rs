//! The child's end of the two pipes, and the calls that are on their way.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io::{self, StdinLock, StdoutLock, Write as _};

use serde::Serialize;

use super::text::cut;
use crate::host::{HostCall, LogLevel};
use crate::wire::{self, Call, CallAnswer, to_child, to_parent};

/// Calls of one script that may wait at the same time.
const MOST_CALLS: usize = 64;
/// Lines of a log, and their bytes, in one request.
const MOST_LINES: usize = 100;
const MOST_LOGGED: usize = 32 << 10;
/// Changes of metrics in one request.
const MOST_TOLD: usize = 10_000;
/// Time on a processor without a word to the parent, after which the process ends by
/// itself. A parent that is there kills it much earlier.
const SECONDS_OF_SILENCE: u64 = 60;
/// Bytes of one line.
const LONGEST_LINE: usize = 4 << 10;
/// Bytes of what is asked for in one call.
const LARGEST_CALL: usize = 1 << 20;

/// Why a call cannot be made; thrown in the script.
pub(super) type Refused = &'static str;

/// An answer that has come.
pub(super) enum Arrival {
    /// To the call with this id: JSON text, or words.
    Answer { id: u32, answer: Result<String, String> },
    /// The parent will not wait any longer.
    Expired,
}

/// The pipes. There is one in a child.
pub(super) struct Border {
    input: RefCell<StdinLock<'static>>,
    output: RefCell<StdoutLock<'static>>,
    /// Frames that have not been sent.
    ready: RefCell<Vec<u8>>,
    /// The program that runs, for its calls.
    slot: Cell<u32>,
    next: Cell<u32>,
    owed: RefCell<HashSet<u32>>,
    lines: Cell<usize>,
    told: Cell<usize>,
    logged: Cell<usize>,
}

impl Border {
    /// Takes standard input and output for itself.
    pub(super) fn open() -> Self {
        Self {
            input: RefCell::new(io::stdin().lock()),
            output: RefCell::new(io::stdout().lock()),
            ready: RefCell::default(),
            slot: Cell::new(0),
            next: Cell::new(1),
            owed: RefCell::default(),
            lines: Cell::new(0),
            told: Cell::new(0),
            logged: Cell::new(0),
        }
    }

    /// Reads the next request into `into`; `None` when the parent has gone.
    pub(super) fn request(&self, into: &mut Vec<u8>) -> io::Result<Option<u8>> {
        self.lines.set(0);
        self.told.set(0);
        self.logged.set(0);
        loop {
            match wire::read(&mut *self.input.borrow_mut(), into)? {
                // Answers to calls of a request that is over.
                Some(to_child::ANSWER | to_child::EXPIRED) => {}
                kind => return Ok(kind),
            }
        }
    }

    /// Calls are of this program from now on. What others are owed is forgotten.
    pub(super) fn enter(&self, slot: u32) {
        self.slot.set(slot);
        self.owed.borrow_mut().clear();
    }

    /// Whether answers are still to come.
    pub(super) fn waiting(&self) -> bool {
        !self.owed.borrow().is_empty()
    }

    /// Sends a call that has an answer; gives its id.
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

    /// Sends a call that has none, where there is room for it.
    pub(super) fn tell(&self, text: &str) -> Result<(), Refused> {
        let call = read_call(text)?;
        self.told.set(self.told.get() + 1);
        if self.told.get() <= MOST_TOLD {
            self.queue(&Call { id: 0, slot: self.slot.get(), call });
        }
        Ok(())
    }

    /// Sends a line of the log, where there is room for it.
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
        // A call was JSON a moment ago, so it is written as JSON again.
        let _ = wire::put(&mut self.ready.borrow_mut(), to_parent::CALL, call);
    }

    /// Waits for the next answer. Late ones to calls that are forgotten are skipped.
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

    /// Queues a frame, and sends everything.
    pub(super) fn send<T: Serialize>(&self, kind: u8, content: &T) -> io::Result<()> {
        wire::put(&mut self.ready.borrow_mut(), kind, content)?;
        self.flush()
    }

    /// The same for one without content.
    pub(super) fn send_empty(&self, kind: u8) -> io::Result<()> {
        wire::put_empty(&mut self.ready.borrow_mut(), kind);
        self.flush()
    }

    /// Queues frames that are complete already, and sends everything.
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
