//! Children, one per lane, and the requests that they work off.
//!
//! A lane works off one request at a time; others wait for their turn. A child is
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
use crate::host::{Host, NoHost};
use crate::program::{Delivery, Grants, Meta, Program, ProgramKey, Source, Step, Task};
use crate::wire::{self, Confinement, Item, Probe, What, to_child};

use child::LEAVE;
use exchange::exchange;
use lane::{Common, Lane, Turn};
use single::One;

/// How a pool starts its children, and how many.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The program that calls [`crate::worker::main`].
    pub program: PathBuf,
    /// What makes it do so: `plugin-worker`.
    pub arguments: Vec<OsString>,
    /// How many lanes there are; each has a child of its own.
    pub children: usize,
    /// What scripts may use.
    pub limits: Limits,
}

/// What scripts may use (PLG-37). Times are of the processor unless they
/// say otherwise: waiting for the host does not count.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a runtime.
    pub memory: usize,
    /// Bytes of its stack.
    pub stack: usize,
    /// Bytes of a source.
    pub source: usize,
    /// Bytes of what a function returns, as JSON.
    pub result: usize,
    /// For loading, and for `setupPlugin`.
    pub load: Duration,
    /// For an event in a step of a transformation.
    pub transform: Duration,
    /// For the same with all waiting.
    pub transform_wall: Duration,
    /// For an event at a destination.
    pub deliver: Duration,
    /// For a task, a job, and `teardownPlugin`. That of a program that is not granted
    /// `fetch` has the time of an event: its lane is waited for.
    pub task: Duration,
    /// For a delivery, a task, a job, with all waiting.
    pub wall: Duration,
    /// For compiling a source.
    pub compile: Duration,
    /// How much later than a script's limit a child is killed that does not answer.
    pub grace: Duration,
    /// How many programs a child keeps loaded.
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

/// Children that run scripts. Dropping it ends them.
#[derive(Debug)]
pub struct Pool {
    settings: Arc<PoolSettings>,
    lanes: Vec<Lane>,
    common: Common,
    /// Counts what is only looked at, so that each gets a key of its own.
    looked_at: AtomicU64,
}

impl Pool {
    /// A pool without children: they start when they are needed.
    pub fn new(settings: PoolSettings) -> Self {
        let lanes = (0..settings.children.max(1)).map(|_| Lane::default()).collect();
        let settings = Arc::new(settings);
        Self { settings, lanes, common: Common::default(), looked_at: AtomicU64::new(0) }
    }

    async fn turn(&self, lane: usize) -> Turn<'_> {
        self.lanes[lane % self.lanes.len()].turn(&self.settings, &self.common).await
    }

    /// Sends events through steps that may take any time, in order. There are as many
    /// answers as events.
    ///
    /// The same lane is the same child: `global` of a program is one per lane. If
    /// this is dropped before it is done, the child ends.
    pub async fn transform(
        &self,
        lane: usize,
        steps: &[Step],
        events: &[Box<RawValue>],
        host: &dyn Host,
    ) -> Result<Vec<Transformed>, Fault> {
        self.transform_within(lane, steps, &[], events, host).await
    }

    /// The same within allowances: `payers` says of each event whose it uses up, as
    /// indices of [`Step::allowances`].
    pub async fn transform_within(
        &self,
        lane: usize,
        steps: &[Step],
        payers: &[Vec<usize>],
        events: &[Box<RawValue>],
        host: &dyn Host,
    ) -> Result<Vec<Transformed>, Fault> {
        let turn = self.turn(lane).await;
        transform::transform(turn, &self.settings, steps, payers, events, host).await
    }

    /// Compiles a source to what [`Source`] says of its kind; else there is the fault of
    /// the source with its place. `name` is the file that the fault shows.
    pub async fn compile<T: DeserializeOwned>(
        &self,
        lane: usize,
        kind: Source,
        name: &str,
        text: &str,
    ) -> Result<Result<T, String>, Fault> {
        compile::compile(self.turn(lane).await, &self.settings, kind, name, text).await
    }

    /// Gives events to a destination. There are as many answers as events. Together
    /// they have at most 60 MiB.
    pub async fn deliver(
        &self,
        lane: usize,
        program: &Arc<Program>,
        how: Delivery,
        events: &[Box<RawValue>],
        host: &dyn Host,
    ) -> Result<Vec<Delivered>, Fault> {
        let turn = self.turn(lane).await;
        single::deliver(turn, &self.settings, program, how, events, host).await
    }

    /// Runs a scheduled task.
    pub async fn task(
        &self,
        lane: usize,
        program: &Arc<Program>,
        task: Task,
        host: &dyn Host,
    ) -> Result<Result<(), ScriptError>, Fault> {
        let one = One { what: What::Task, name: task.export(), payload: None, forget: false };
        Ok(self.run(lane, program, one, host).await?.map(drop))
    }

    /// Runs a job of the program.
    pub async fn job(
        &self,
        lane: usize,
        program: &Arc<Program>,
        name: &str,
        payload: &RawValue,
        host: &dyn Host,
    ) -> Result<Result<(), ScriptError>, Fault> {
        let one = One { what: What::Job, name, payload: Some(payload), forget: false };
        Ok(self.run(lane, program, one, host).await?.map(drop))
    }

    /// Calls `teardownPlugin` where the program is loaded, and forgets it there. A
    /// lane that has not got it has nothing to do.
    pub async fn teardown(
        &self,
        lane: usize,
        program: &Arc<Program>,
        host: &dyn Host,
    ) -> Result<Result<(), ScriptError>, Fault> {
        let mut turn = self.turn(lane).await;
        let Some(child) = turn.take_running() else {
            return Ok(Ok(()));
        };
        let holds = child.holds(program.key);
        turn.put(child);
        if !holds {
            return Ok(Ok(()));
        }
        let one = One { what: What::Teardown, name: "", payload: None, forget: true };
        Ok(single::run(turn, &self.settings, program, one, host).await?.map(drop))
    }

    /// What a source exports. It is loaded; no function of it is called. `name` is
    /// the file that errors show.
    pub async fn inspect(
        &self,
        lane: usize,
        name: &str,
        source: &Arc<str>,
    ) -> Result<Result<Capabilities, ScriptError>, Fault> {
        let version = self.looked_at.fetch_add(1, Ordering::Relaxed);
        let program = Arc::new(Program {
            // No config has this number.
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
        let one = One { what: What::Inspect, name: "", payload: None, forget: true };
        let item = self.run(lane, &program, one, &NoHost).await?;
        Ok(item.map(|item| item.capabilities.unwrap_or_default()))
    }

    async fn run(
        &self,
        lane: usize,
        program: &Arc<Program>,
        one: One<'_>,
        host: &dyn Host,
    ) -> Result<Result<Item, ScriptError>, Fault> {
        single::run(self.turn(lane).await, &self.settings, program, one, host).await
    }

    /// How many children there are.
    pub fn alive(&self) -> usize {
        self.common.alive.load(Ordering::Relaxed)
    }

    /// How many children took the place of another one since this was asked last.
    pub fn take_replaced(&self) -> u64 {
        self.common.replaced.swap(0, Ordering::Relaxed)
    }

    /// What holds the child of a lane, as it said when it started. Starts it.
    pub async fn confinement(&self, lane: usize) -> Result<Confinement, Fault> {
        let mut turn = self.turn(lane).await;
        let child = turn.take().await?;
        let confinement = child.confinement.clone();
        turn.put(child);
        Ok(confinement)
    }

    /// The process of a lane's child, if there is one that is idle.
    pub async fn process_id(&self, lane: usize) -> Option<u32> {
        let mut turn = self.turn(lane).await;
        let child = turn.take_running()?;
        let id = child.id();
        turn.put(child);
        id
    }

    /// Has the child of a lane try what it must not.
    pub async fn probe(&self, lane: usize) -> Result<Probe, Fault> {
        let mut turn = self.turn(lane).await;
        let mut child = turn.take().await?;
        let mut out = Vec::new();
        wire::put_empty(&mut out, to_child::PROBE);
        let patience = single::patience(&self.settings.limits, self.settings.limits.task);
        let reply = exchange(&mut child, out, &BTreeMap::new(), &NoHost, patience, 1).await;
        let probe = reply.probe.ok_or(Fault::KeepsEnding)?;
        turn.put(child);
        Ok(probe)
    }

    /// Ends all children; waits for requests that run, but no longer than an event
    /// may take. Later requests are refused. A child that is left ends with the
    /// request that has it, or with this process, whose end of the pipe it reads.
    pub async fn shutdown(&self) {
        self.common.closed.store(true, Ordering::Release);
        let patience = self.settings.limits.transform_wall + self.settings.limits.grace;
        let ends = (0..self.lanes.len()).map(|lane| async move {
            if let Some(child) = self.turn(lane).await.take_running() {
                child.end().await;
            }
        });
        if timeout(LEAVE + patience, futures::future::join_all(ends)).await.is_err() {
            tracing::warn!("a script of a plugin runs on while the service stops");
        }
    }
}
