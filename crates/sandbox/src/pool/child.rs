//! A child process: starting it, its pipes, and the programs that it holds.

use std::collections::{BTreeMap, HashMap};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{Limits, PoolSettings};
use crate::error::Fault;
use crate::program::{Program, ProgramKey};
use crate::wire::{
    self, Confinement, Forget, HEAD, Load, MAX_TO_PARENT, ScriptLimits, to_child, to_parent,
};

/// Time until a child process must report that it is ready.
const READY: Duration = Duration::from_secs(10);
/// Time for ending after its input was closed.
pub(super) const LEAVE: Duration = Duration::from_secs(1);

/// A protocol violation of a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProtocolViolation;

/// A child process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Child {
    process: tokio::process::Child,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) incoming: BytesMut,
    pub(super) confinement: Confinement,
    held: HashMap<ProgramKey, Held>,
    next: u32,
    guard: u64,
    _counted: Counted,
}

/// Counts a child process as long as it exists.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn one_more(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(alive))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Held {
    slot: u32,
    used: u64,
}

impl Child {
    /// Starts a child process, and waits until it is ready. It counts as `alive` until it
    /// ends.
    pub(super) async fn start(
        settings: &PoolSettings,
        alive: &Arc<AtomicUsize>,
    ) -> Result<Self, Fault> {
        let mut process = Command::new(&settings.program)
            .args(&settings.arguments)
            .env_clear()
            // Only for the allocator; the child process removes it. One thread needs one
            // arena and no background thread.
            .env("MALLOC_CONF", "narenas:1,background_thread:false")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(Fault::Spawn)?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Fault::NotReady);
        };
        let mut child = Self {
            process,
            stdin,
            stdout,
            incoming: BytesMut::with_capacity(64 << 10),
            confinement: Confinement {
                seccomp: false,
                landlock: String::new(),
                address_space: None,
                missing: Vec::new(),
            },
            held: HashMap::new(),
            next: 1,
            guard: 0,
            _counted: Counted::one_more(alive),
        };
        let ready = timeout(READY, child.greet(&settings.limits)).await;
        ready.unwrap_or(Err(Fault::NotReady)).map(|()| child)
    }

    async fn greet(&mut self, limits: &Limits) -> Result<(), Fault> {
        let hello = loop {
            match self.frame() {
                Ok(Some((to_parent::HELLO, body))) => break body,
                Ok(None) => {}
                Ok(Some(_)) | Err(ProtocolViolation) => return Err(Fault::NotReady),
            }
            let read = self.stdout.read_buf(&mut self.incoming).await.map_err(Fault::Spawn)?;
            if read == 0 {
                return Err(Fault::NotReady);
            }
        };
        self.confinement = read_frame(&hello).map_err(|ProtocolViolation| Fault::NotReady)?;
        if !self.confinement.seccomp {
            return Err(Fault::Unconfined(self.confinement.missing.join("; ")));
        }
        // All child processes of a service are alike, and some are replaced repeatedly,
        // so this is logged once.
        static REPORTED: AtomicBool = AtomicBool::new(false);
        let missing = &self.confinement.missing;
        for missing in missing.iter().filter(|_| !REPORTED.load(Ordering::Relaxed)) {
            tracing::warn!(missing, "the process for plugins is less confined than it should be");
        }
        REPORTED.fetch_or(!missing.is_empty(), Ordering::Relaxed);
        let mut frame = Vec::new();
        wire::put(&mut frame, to_child::LIMITS, &script_limits(limits))?;
        self.stdin.write_all(&frame).await.map_err(Fault::Spawn)
    }

    /// The next frame that was received completely.
    pub(super) fn frame(&mut self) -> Result<Option<(u8, BytesMut)>, ProtocolViolation> {
        let Some(head) = self.incoming.get(..HEAD) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = head[4];
        if length > MAX_TO_PARENT {
            return Err(ProtocolViolation);
        }
        if self.incoming.len() < HEAD + length {
            self.incoming.reserve(HEAD + length - self.incoming.len());
            return Ok(None);
        }
        self.incoming.advance(HEAD);
        Ok(Some((kind, self.incoming.split_to(length))))
    }

    /// Begins a request: programs that it uses stay until it ends.
    pub(super) fn guard(&mut self) {
        self.guard += 1;
    }

    /// The slot of a program in this child process. Frames that load it, and frames that
    /// unload others, are appended to `out`.
    pub(super) fn slot(
        &mut self,
        program: &Arc<Program>,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<u32, Fault> {
        if let Some(held) = self.held.get_mut(&program.key) {
            held.used = self.guard;
            return Ok(held.slot);
        }
        if self.held.len() >= limits.programs {
            let unused = self.held.iter().filter(|(_, held)| held.used < self.guard);
            let oldest = unused.min_by_key(|(_, held)| held.used).map(|(key, _)| *key);
            if let Some(held) = oldest.and_then(|key| self.held.remove(&key)) {
                wire::put(out, to_child::DROP, &Forget { slots: vec![held.slot] })?;
            }
        }
        let slot = self.next;
        self.next = self.next.wrapping_add(1);
        // The child process refuses a source that is too long, so the rest need not be
        // sent.
        let most = limits.source.saturating_add(4).min(program.source.len());
        let end = (0..=most).rev().find(|at| program.source.is_char_boundary(*at)).unwrap_or(0);
        let source = &program.source[..end];
        let load = Load {
            slot,
            name: program.name.as_str().into(),
            source: source.into(),
            config: &program.meta.config,
            attachments: std::borrow::Cow::Borrowed(&program.meta.attachments),
            plugin: program.meta.plugin.as_str().into(),
        };
        wire::put(out, to_child::LOAD, &load)?;
        self.held.insert(program.key, Held { slot, used: self.guard });
        Ok(slot)
    }

    /// Whether the child process has this program.
    pub(super) fn holds(&self, key: ProgramKey) -> bool {
        self.held.contains_key(&key)
    }

    /// Records that the child process has unloaded a program.
    pub(super) fn forgotten(&mut self, key: ProgramKey) {
        self.held.remove(&key);
    }

    /// The process id, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Its processor time, if the system reports it.
    pub(super) fn processor_time(&self) -> Option<Duration> {
        let reported = std::fs::read_to_string(format!("/proc/{}/schedstat", self.id()?)).ok()?;
        let used = reported.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos);
        // A kernel that does not count it reports 0.
        used.filter(|used| !used.is_zero())
    }

    /// Ends the process: first by closing its input, then by killing it.
    pub(super) async fn end(self) {
        let Self { mut process, stdin, stdout, .. } = self;
        drop((stdin, stdout));
        if timeout(LEAVE, process.wait()).await.is_err()
            && let Err(error) = process.kill().await
        {
            tracing::warn!(%error, "a process for plugins cannot be ended");
        }
    }
}

/// Parses the content of a frame.
pub(super) fn read_frame<T: DeserializeOwned>(body: &[u8]) -> Result<T, ProtocolViolation> {
    serde_json::from_slice(body).map_err(|_| ProtocolViolation)
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn script_limits(limits: &Limits) -> ScriptLimits {
    ScriptLimits {
        memory: limits.memory,
        stack: limits.stack,
        result: limits.result,
        source: limits.source,
        load_us: micros(limits.load),
        transform_us: micros(limits.transform),
        deliver_us: micros(limits.deliver),
    }
}

/// Programs by slot, for the calls of a request.
pub(super) type BySlot<'a> = BTreeMap<u32, &'a Program>;
