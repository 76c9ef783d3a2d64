//! The pool of child processes, one per lane, and its requests.
//!
//! A lane processes one request at a time; other requests wait. A child process is
//! started when its lane is first used, and replaced when it ends.

mod child;
mod compile;
mod exchange;
mod lane;
mod single;
mod transform;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::answer::{Capabilities, Delivered, Transformed};
use crate::error::{Fault, ScriptError};
use crate::host::{NoHost, ScriptHost};
use crate::program::{
    DeliveryFunction, Grants, Meta, Program, ProgramKey, Source, Task, TransformationCall,
};
use crate::wire::{self, Confinement, Item, Probe, SingleCall, to_child};

use child::LEAVE;
use exchange::exchange;
use lane::{Common, Lane, LaneGuard};
use single::One;

/// How a pool starts child processes, and how many.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The program that calls [`crate::worker::main`].
    pub program: PathBuf,
    /// The arguments that make it a child process: `plugin-worker`.
    pub arguments: Vec<OsString>,
    /// Number of lanes. Each has its own child process.
    pub children: usize,
    /// Limits of scripts.
    pub limits: Limits,
}

/// Limits of scripts (PLG-37). Times are processor time unless stated otherwise: waiting
/// for the host does not count.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of memory per runtime.
    pub memory: usize,
    /// Bytes of the stack.
    pub stack: usize,
    /// Bytes of a source.
    pub source: usize,
    /// Bytes of the result of a function, as JSON.
    pub result: usize,
    /// Time for loading, and for `setupPlugin`.
    pub load: Duration,
    /// Time for an event in one step of a transformation.
    pub transform: Duration,
    /// Wall clock time for an event in one step, including all waiting.
    pub transform_wall: Duration,
    /// Time for an event at a destination.
    pub deliver: Duration,
    /// Time for a task, a job, and `teardownPlugin`. A program without the grant `fetch`
    /// gets the time of an event, because events wait for its lane.
    pub task: Duration,
    /// Wall clock time for a delivery, a task or a job, including all waiting.
    pub wall: Duration,
    /// Time for compiling a source.
    pub compile: Duration,
    /// How long after the limit of a script a silent child process is killed.
    pub grace: Duration,
    /// Maximum programs that a child process keeps loaded.
    pub programs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            stack: 512 << 10,
            source: 512 << 10,
            result: 1 << 20,
            load: Duration::from_secs(1),
            transform: Duration::from_millis(100),
            transform_wall: Duration::from_secs(1),
            deliver: Duration::from_secs(1),
            task: Duration::from_secs(5),
            wall: Duration::from_secs(30),
            compile: Duration::from_secs(5),
            grace: Duration::from_millis(250),
            programs: 64,
        }
    }
}

/// Child processes that run scripts. Dropping it ends them.
#[derive(Debug)]
pub struct Pool {
    settings: Arc<PoolSettings>,
    lanes: Vec<Lane>,
    common: Common,
    /// Counts inspections, so that each gets a unique key.
    looked_at: AtomicU64,
}

impl Pool {
    /// A pool without child processes: they start when they are needed.
    pub fn new(settings: PoolSettings) -> Self {
        let lanes = (0..settings.children.max(1)).map(|_| Lane::default()).collect();
        let settings = Arc::new(settings);
        Self { settings, lanes, common: Common::default(), looked_at: AtomicU64::new(0) }
    }

    async fn guard(&self, lane: usize) -> LaneGuard<'_> {
        self.lanes[lane % self.lanes.len()].guard(&self.settings, &self.common).await
    }

    /// Sends events through steps without allowances, in order. There are as many results
    /// as events.
    ///
    /// The same lane is the same child process: each lane has one `global` per program.
    /// If the future is dropped before it is done, the child process ends.
    pub async fn transform(
        &self,
        lane: usize,
        steps: &[TransformationCall],
        events: &[Box<RawValue>],
        host: &dyn ScriptHost,
    ) -> Result<Vec<Transformed>, Fault> {
        self.transform_within(lane, steps, &[], events, host).await
    }

    /// Sends events through steps within allowances: `payers` lists for each event the
    /// allowances that it uses up, as indexes into [`TransformationCall::allowances`].
    pub async fn transform_within(
        &self,
        lane: usize,
        steps: &[TransformationCall],
        payers: &[Vec<usize>],
        events: &[Box<RawValue>],
        host: &dyn ScriptHost,
    ) -> Result<Vec<Transformed>, Fault> {
        let guard = self.guard(lane).await;
        transform::transform(guard, &self.settings, steps, payers, events, host).await
    }

    /// Compiles a source to the type that [`Source`] names for its kind, or returns its
    /// fault with the position. `name` is the file name in the fault.
    pub async fn compile<T: DeserializeOwned>(
        &self,
        lane: usize,
        kind: Source,
        name: &str,
        text: &str,
    ) -> Result<Result<T, String>, Fault> {
        compile::compile(self.guard(lane).await, &self.settings, kind, name, text).await
    }

    /// Passes events to a destination. There are as many results as events. All events
    /// together have at most 60 MiB.
    pub async fn deliver(
        &self,
        lane: usize,
        program: &Arc<Program>,
        how: DeliveryFunction,
        events: &[Box<RawValue>],
        host: &dyn ScriptHost,
    ) -> Result<Vec<Delivered>, Fault> {
        let guard = self.guard(lane).await;
        single::deliver(guard, &self.settings, program, how, events, host).await
    }

    /// Runs a scheduled task.
    pub async fn task(
        &self,
        lane: usize,
        program: &Arc<Program>,
        task: Task,
        host: &dyn ScriptHost,
    ) -> Result<Result<(), ScriptError>, Fault> {
        let one = One { what: SingleCall::Task, name: task.export(), payload: None, forget: false };
        Ok(self.run(lane, program, one, host).await?.map(drop))
    }

    /// Runs a job of the program.
    pub async fn job(
        &self,
        lane: usize,
        program: &Arc<Program>,
        name: &str,
        payload: &RawValue,
        host: &dyn ScriptHost,
    ) -> Result<Result<(), ScriptError>, Fault> {
        let one = One { what: SingleCall::Job, name, payload: Some(payload), forget: false };
        Ok(self.run(lane, program, one, host).await?.map(drop))
    }

    /// Calls `teardownPlugin` if the program is loaded, and unloads it. A lane without
    /// the program does nothing.
    pub async fn teardown(
        &self,
        lane: usize,
        program: &Arc<Program>,
        host: &dyn ScriptHost,
    ) -> Result<Result<(), ScriptError>, Fault> {
        let mut guard = self.guard(lane).await;
        let Some(child) = guard.take_running() else {
            return Ok(Ok(()));
        };
        let holds = child.holds(program.key);
        guard.put(child);
        if !holds {
            return Ok(Ok(()));
        }
        let one = One { what: SingleCall::Teardown, name: "", payload: None, forget: true };
        Ok(single::run(guard, &self.settings, program, one, host).await?.map(drop))
    }

    /// Returns the capabilities of a source. It is loaded; none of its functions is
    /// called. `name` is the file name in errors.
    pub async fn inspect(
        &self,
        lane: usize,
        name: &str,
        source: &Arc<str>,
    ) -> Result<Result<Capabilities, ScriptError>, Fault> {
        let version = self.looked_at.fetch_add(1, Ordering::Relaxed);
        let program = Arc::new(Program {
            // No config has this id.
            key: ProgramKey { config: i64::MIN, version },
            source: source.clone(),
            name: name.to_owned(),
            meta: Meta {
                config: RawValue::from_string("{}".to_owned())?,
                attachments: BTreeMap::new(),
                plugin: name.to_owned(),
            },
            grants: Grants::default(),
        });
        let one = One { what: SingleCall::Inspect, name: "", payload: None, forget: true };
        let item = self.run(lane, &program, one, &NoHost).await?;
        Ok(item.map(|item| item.capabilities.unwrap_or_default()))
    }

    async fn run(
        &self,
        lane: usize,
        program: &Arc<Program>,
        one: One<'_>,
        host: &dyn ScriptHost,
    ) -> Result<Result<Item, ScriptError>, Fault> {
        single::run(self.guard(lane).await, &self.settings, program, one, host).await
    }

    /// Number of running child processes.
    pub fn alive(&self) -> usize {
        self.common.alive.load(Ordering::Relaxed)
    }

    /// Number of child processes that replaced another one since the last call.
    pub fn take_replaced(&self) -> u64 {
        self.common.replaced.swap(0, Ordering::Relaxed)
    }

    /// The confinement of the child process of a lane, as it reported at its start.
    /// Starts it if needed.
    pub async fn confinement(&self, lane: usize) -> Result<Confinement, Fault> {
        let mut guard = self.guard(lane).await;
        let child = guard.take().await?;
        let confinement = child.confinement.clone();
        guard.put(child);
        Ok(confinement)
    }

    /// The process id of an idle child process of a lane, if there is one.
    pub async fn process_id(&self, lane: usize) -> Option<u32> {
        let mut guard = self.guard(lane).await;
        let child = guard.take_running()?;
        let id = child.id();
        guard.put(child);
        id
    }

    /// Has the child process of a lane try forbidden operations.
    pub async fn probe(&self, lane: usize) -> Result<Probe, Fault> {
        let mut guard = self.guard(lane).await;
        let mut child = guard.take().await?;
        let mut out = Vec::new();
        wire::put_empty(&mut out, to_child::PROBE);
        let patience = single::patience(&self.settings.limits, self.settings.limits.task);
        let reply = exchange(&mut child, out, &BTreeMap::new(), &NoHost, patience, 1).await;
        let probe = reply.probe.ok_or(Fault::KeepsEnding)?;
        guard.put(child);
        Ok(probe)
    }

    /// Ends all child processes; waits for running requests, but no longer than an event
    /// may take. Later requests are refused. A remaining child process ends with its
    /// request, or with this process, because its pipe is closed then.
    pub async fn shutdown(&self) {
        self.common.closed.store(true, Ordering::Release);
        let patience = self.settings.limits.transform_wall + self.settings.limits.grace;
        let ends = (0..self.lanes.len()).map(|lane| async move {
            if let Some(child) = self.guard(lane).await.take_running() {
                child.end().await;
            }
        });
        if timeout(LEAVE + patience, futures::future::join_all(ends)).await.is_err() {
            tracing::warn!("a script of a plugin runs on while the service stops");
        }
    }
}
