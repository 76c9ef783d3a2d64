//! The protocol between parent and child process: frames of `length (4 bytes, little
//! endian), kind (1 byte), JSON`. Both sides are here, so that they agree.
//!
//! The text of an event is copied into a frame unchanged: neither side builds a tree of
//! it.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::{Capabilities, Webhook};
use crate::error::ScriptError;
use crate::host::HostCall;
use crate::program::{Attachment, DeliveryFunction, Source};

/// Bytes before the JSON.
pub(crate) const HEAD: usize = 5;
/// Maximum bytes of a frame to the child process.
pub(crate) const MAX_TO_CHILD: usize = 64 << 20;
/// Maximum bytes of a frame to the parent process.
pub(crate) const MAX_TO_PARENT: usize = 8 << 20;

/// Kinds of frames to the child process.
pub(crate) mod to_child {
    /// [`super::ScriptLimits`], once.
    pub(crate) const LIMITS: u8 = b'l';
    /// [`super::Load`].
    pub(crate) const LOAD: u8 = b'L';
    /// [`super::Transform`].
    pub(crate) const TRANSFORM: u8 = b'T';
    /// [`super::Deliver`].
    pub(crate) const DELIVER: u8 = b'D';
    /// [`super::Run`].
    pub(crate) const RUN: u8 = b'R';
    /// [`super::Forget`].
    pub(crate) const DROP: u8 = b'X';
    /// [`super::CallAnswer`].
    pub(crate) const ANSWER: u8 = b'A';
    /// Waiting for this call is over: a [`super::CallAnswer`] with its id.
    pub(crate) const EXPIRED: u8 = b'E';
    /// Asks for [`super::Probe`]. No content.
    pub(crate) const PROBE: u8 = b'S';
    /// [`super::Compile`].
    pub(crate) const COMPILE: u8 = b'C';
}

/// Kinds of frames to the parent process.
pub(crate) mod to_parent {
    /// [`super::Confinement`], once.
    pub(crate) const HELLO: u8 = b'H';
    /// [`super::Results`].
    pub(crate) const RESULTS: u8 = b'R';
    /// [`super::Mark`].
    pub(crate) const MARK: u8 = b'M';
    /// [`super::Loading`].
    pub(crate) const LOADING: u8 = b'P';
    /// The program is loaded. No content.
    pub(crate) const LOADED: u8 = b'O';
    /// [`super::Call`].
    pub(crate) const CALL: u8 = b'C';
    /// [`super::Done`].
    pub(crate) const DONE: u8 = b'D';
    /// [`super::Probe`].
    pub(crate) const PROBE: u8 = b'S';
    /// Compiling has begun. No content.
    pub(crate) const COMPILING: u8 = b'B';
    /// The result of compiling, or the fault of the source as text.
    pub(crate) const COMPILED: u8 = b'K';
}

/// The confinement of the child process, as it reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Whether the kernel accepted the filter of system calls.
    pub seccomp: bool,
    /// `full`, `partial` or `none`: how much of the rule against file access the kernel
    /// supports.
    pub landlock: String,
    /// Limit of the address space in bytes, if there is one.
    pub address_space: Option<u64>,
    /// Descriptions of the parts that could not be set up.
    pub missing: Vec<String>,
}

/// The errors of the system when the child process tries forbidden operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Operations with their error number; `None` if the operation succeeded.
    pub tried: BTreeMap<String, Option<i32>>,
    /// Open descriptors in addition to the three standard ones.
    pub descriptors: Vec<i32>,
    /// Number of environment variables.
    pub environment: usize,
}

/// Limits of scripts, set by the parent process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScriptLimits {
    pub(crate) memory: usize,
    pub(crate) stack: usize,
    pub(crate) result: usize,
    pub(crate) source: usize,
    pub(crate) load_us: u64,
    pub(crate) transform_us: u64,
    pub(crate) deliver_us: u64,
}

/// Assigns a program to a slot of the child process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Load<'a> {
    pub(crate) slot: u32,
    #[serde(borrow)]
    pub(crate) name: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) source: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) config: &'a RawValue,
    pub(crate) attachments: std::borrow::Cow<'a, BTreeMap<String, Attachment>>,
    #[serde(borrow)]
    pub(crate) plugin: std::borrow::Cow<'a, str>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireStep {
    pub(crate) slot: u32,
    /// Allowances by payer, in microseconds.
    pub(crate) allowances_us: Vec<u64>,
}

/// Sends events through steps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Transform<'a> {
    pub(crate) steps: Vec<WireStep>,
    /// Send a mark before each step, and answer each event immediately.
    pub(crate) careful: bool,
    /// Steps that are skipped for the first event.
    pub(crate) skip: Vec<usize>,
    /// Payers of each event.
    pub(crate) payers: Vec<std::borrow::Cow<'a, [usize]>>,
    #[serde(borrow)]
    pub(crate) events: Vec<&'a RawValue>,
}

/// Compiles a source.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Compile<'a> {
    pub(crate) kind: Source,
    #[serde(borrow)]
    pub(crate) name: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) text: std::borrow::Cow<'a, str>,
}

/// Passes events to a destination.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Deliver<'a> {
    pub(crate) slot: u32,
    pub(crate) how: DeliveryFunction,
    #[serde(borrow)]
    pub(crate) events: Vec<&'a RawValue>,
}

/// The function to call, or an inspection.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum SingleCall {
    Task,
    Job,
    Teardown,
    Inspect,
}

/// Calls one function, or inspects the program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run<'a> {
    pub(crate) slot: u32,
    pub(crate) what: SingleCall,
    #[serde(borrow)]
    pub(crate) name: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) payload: Option<&'a RawValue>,
    /// Time limit in microseconds.
    pub(crate) limit_us: u64,
    /// Unload the program afterwards.
    pub(crate) forget: bool,
}

/// Programs to unload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Forget {
    pub(crate) slots: Vec<u32>,
}

/// The answer to a call: a value or an error.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallAnswer<'a> {
    pub(crate) id: u32,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(crate) ok: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) error: Option<String>,
}

/// A batch of results, in the order of the events. For [`Run`] there is one.
#[derive(Debug, Deserialize)]
pub(crate) struct Results {
    pub(crate) items: Vec<Item>,
}

/// The result for one event. The child process writes it without serde
/// (`worker/report.rs`).
#[derive(Debug, Deserialize)]
pub(crate) struct Item {
    /// The new event.
    #[serde(default)]
    pub(crate) kept: Option<Box<RawValue>>,
    /// The step that dropped it.
    #[serde(default)]
    pub(crate) dropped: Option<usize>,
    #[serde(default)]
    pub(crate) failures: Vec<WireFailure>,
    #[serde(default)]
    pub(crate) micros: Vec<u32>,
    #[serde(default)]
    pub(crate) passed_over: Vec<usize>,
    /// The request to send for a destination.
    #[serde(default)]
    pub(crate) webhook: Option<Webhook>,
    /// Capabilities of an inspected source.
    #[serde(default)]
    pub(crate) capabilities: Option<Capabilities>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireFailure {
    pub(crate) step: usize,
    pub(crate) error: ScriptError,
}

/// The step that the child process is about to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) event: usize,
    pub(crate) step: usize,
}

/// The child process is about to load a program, which takes longer than an event.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Loading {
    pub(crate) slot: u32,
}

/// A call of a script. Id 0: no answer is expected.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: u32,
    pub(crate) slot: u32,
    pub(crate) call: HostCall,
}

/// A request is completed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Bytes that the runtimes of the child process hold.
    pub(crate) memory: u64,
}

/// Appends a frame.
pub(crate) fn put<T: Serialize>(
    out: &mut Vec<u8>,
    kind: u8,
    content: &T,
) -> serde_json::Result<()> {
    let at = begin(out, kind);
    let written = serde_json::to_writer(&mut *out, content);
    if written.is_err() {
        out.truncate(at);
    }
    written.map(|()| end(out, at))
}

/// Appends the header of a frame. The caller writes its JSON; [`end`] completes it.
pub(crate) fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind]);
    at
}

/// Completes the frame that began at `at`.
pub(crate) fn end(out: &mut [u8], at: usize) {
    // The receiver refuses a frame longer than `MAX_TO_CHILD`.
    let length = u32::try_from(out.len() - at - HEAD).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends a frame without content.
pub(crate) fn put_empty(out: &mut Vec<u8>, kind: u8) {
    begin(out, kind);
}

/// Reads a frame into `into`, and returns its kind; `None` at the end of the pipe.
pub(crate) fn read(from: &mut impl Read, into: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut head = [0; HEAD];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if length > MAX_TO_CHILD {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
    }
    into.clear();
    into.resize(length, 0);
    from.read_exact(into)?;
    Ok(Some(head[4]))
}
