//! Results for the parent process: written as text, sent in batches.

use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::border::Pipes;
use crate::answer::{Capabilities, Webhook};
use crate::error::ScriptError;
use crate::wire::{self, WireFailure, to_parent};

/// How long a result waits for further ones. The timer of the parent process starts at
/// the last batch.
pub(crate) const HOLD: Duration = Duration::from_millis(10);
/// Maximum bytes of waiting results.
const FULL: usize = 128 << 10;

/// The result of one event while it is computed.
#[derive(Default)]
pub(super) struct EventResult {
    pub(super) kept: Option<String>,
    pub(super) dropped: Option<usize>,
    pub(super) failures: Vec<WireFailure>,
    pub(super) micros: Vec<u32>,
    pub(super) passed_over: Vec<usize>,
    pub(super) webhook: Option<Webhook>,
    pub(super) capabilities: Option<Capabilities>,
}

impl EventResult {
    /// A failure of the only step.
    pub(super) fn failed(error: ScriptError) -> Self {
        Self { failures: vec![WireFailure { step: 0, error }], ..Self::default() }
    }
}

/// The results of a request.
pub(super) struct Report<'a> {
    border: &'a Pipes,
    frames: Vec<u8>,
    /// The start of the open frame.
    open: Option<usize>,
    sent: Instant,
}

impl<'a> Report<'a> {
    pub(super) fn new(border: &'a Pipes) -> Self {
        Self { border, frames: Vec::new(), open: None, sent: Instant::now() }
    }

    /// Adds a result; sends waiting results if it is time.
    pub(super) fn push(&mut self, made: &EventResult) -> io::Result<()> {
        if self.open.is_none() {
            self.open = Some(wire::begin(&mut self.frames, to_parent::RESULTS));
            self.frames.extend_from_slice(b"{\"items\":[");
        } else {
            self.frames.push(b',');
        }
        write(&mut self.frames, made)?;
        if self.frames.len() >= FULL || self.stale() { self.flush() } else { Ok(()) }
    }

    /// Sends waiting results.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if let Some(at) = self.open.take() {
            self.frames.extend_from_slice(b"]}");
            wire::end(&mut self.frames, at);
            self.border.send_frames(&mut self.frames)?;
            self.sent = Instant::now();
        }
        Ok(())
    }

    /// Whether the last frame to the parent process is too long ago.
    pub(super) fn stale(&self) -> bool {
        self.sent.elapsed() >= HOLD
    }

    /// Sends waiting results, followed by a frame.
    pub(super) fn send<T: Serialize>(&mut self, kind: u8, content: &T) -> io::Result<()> {
        self.flush()?;
        self.sent = Instant::now();
        self.border.send(kind, content)
    }
}

/// Written without serde, so that the text of an event is copied and not parsed again.
fn write(out: &mut Vec<u8>, made: &EventResult) -> io::Result<()> {
    let mut first = true;
    let mut name = |out: &mut Vec<u8>, name: &str| {
        out.extend_from_slice(if first { b"{\"" } else { b",\"" });
        first = false;
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
    };
    name(out, "micros");
    serde_json::to_writer(&mut *out, &made.micros)?;
    if let Some(kept) = &made.kept {
        name(out, "kept");
        out.extend_from_slice(kept.as_bytes());
    }
    if let Some(step) = &made.dropped {
        name(out, "dropped");
        serde_json::to_writer(&mut *out, step)?;
    }
    if !made.failures.is_empty() {
        name(out, "failures");
        serde_json::to_writer(&mut *out, &made.failures)?;
    }
    if !made.passed_over.is_empty() {
        name(out, "passed_over");
        serde_json::to_writer(&mut *out, &made.passed_over)?;
    }
    if let Some(webhook) = &made.webhook {
        name(out, "webhook");
        serde_json::to_writer(&mut *out, webhook)?;
    }
    if let Some(capabilities) = &made.capabilities {
        name(out, "capabilities");
        serde_json::to_writer(&mut *out, capabilities)?;
    }
    out.push(b'}');
    Ok(())
}
