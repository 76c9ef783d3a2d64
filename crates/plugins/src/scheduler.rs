//! Background work of plugins: scheduled tasks and jobs (PLG-26).
//!
//! What belongs here: when a task or job runs, and retrying jobs. What does not:
//! boundaries of time ([`schedule`](crate::schedule)).
//!
//! A task is recorded before it runs, so that a crash does not run it twice. A job is
//! removed after it ran, so that a crash does not lose it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use uuid::Uuid;
use weir_model::plugin_configs::{LogLevel, LogSource};
use weir_model::{PluginConfigId, ProjectId, Timestamp};
use weir_sandbox::{Fault, ScriptError, Task};
use weir_store::plugin_configs::jobs::{self, DueJob, JobRow};
use weir_store::plugin_runtime::tasks;

use crate::Shared;
use crate::metrics::Effect;
use crate::registry::{Active, Loaded};
use crate::report::Tally;
use crate::schedule::{Due, due};
use crate::shape;

/// Tasks and jobs that run concurrently.
const CONCURRENT_TASKS: usize = 4;
/// Concurrent tasks: one slot is left to jobs.
const OF_TASKS: usize = 3;
/// Concurrent tasks and jobs of one project: one slot is left to other projects.
const OF_PROJECT: usize = 3;
/// Jobs that are read together.
const JOBS: usize = 100;
/// How often a job is attempted.
const TRIES: u32 = 3;
/// Time between two attempts of a job.
const PAUSE: Duration = Duration::from_secs(5);

/// Identifies work in progress: a task of a config, or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WorkKey {
    Task(PluginConfigId, &'static str),
    Job(Uuid),
}

/// How a task or job ended.
enum Ended {
    /// It is done, or its config no longer exists.
    Done,
    Failed(Box<(Arc<Active>, JobRow, String)>),
}

struct SchedulerState {
    shared: Arc<Shared>,
    /// The boundary for which each task ran last, as far as it was read.
    last: HashMap<(PluginConfigId, &'static str), Timestamp>,
    /// Failed jobs: the number of attempts, and the time of the next one.
    tried: HashMap<Uuid, (u32, Duration)>,
    running: HashMap<WorkKey, (Id, ProjectId)>,
    /// The sequence number of the last slot of each project.
    served: HashMap<ProjectId, u64>,
    count: u64,
    work: JoinSet<(WorkKey, Ended)>,
}

impl Shared {
    /// Runs tasks and jobs until the service stops.
    pub(crate) async fn run_by_the_clock(self: Arc<Self>) {
        let mut tick = tokio::time::interval(self.settings.tick);
        let mut clockwork = SchedulerState {
            shared: Arc::clone(&self),
            last: HashMap::new(),
            tried: HashMap::new(),
            running: HashMap::new(),
            served: HashMap::new(),
            count: 0,
            work: JoinSet::new(),
        };
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                Some(ended) = clockwork.work.join_next() => match ended {
                    Ok((what, ended)) => clockwork.ended(what, ended).await,
                    Err(error) => {
                        tracing::error!(%error, "a task or a job of a plugin ended early");
                        clockwork.running.retain(|_, (id, _)| *id != error.id());
                    }
                },
                () = self.stopped() => break,
            }
            if let Err(error) = clockwork.look().await
                && !matches!(error, weir_store::Error::Stopped)
            {
                tracing::error!(%error, "tasks and jobs of plugins could not be checked");
            }
        }
        // They end at their limits, or when the pool ends.
        while clockwork.work.join_next().await.is_some() {}
    }

    async fn run_task(&self, active: &Active, task: Task) {
        let Some(loaded) = active.script() else { return };
        let lane = self.lane_of(active.id());
        let ran = self.work.task(lane, &loaded.worker, task, self).await;
        if let Err(message) = outcome(loaded, ran) {
            let message = format!("{}: {message}", task.export());
            self.failed(active, &message);
        } else {
            self.succeeded(active);
        }
    }

    async fn run_job(&self, active: &Active, job: &JobRow) -> Result<(), String> {
        let Some(loaded) = active.script() else {
            return Err("The plugin cannot be run.".to_owned());
        };
        let payload = shape::raw(job.payload.clone());
        let payload = payload.ok_or_else(|| "The payload cannot be read.".to_owned())?;
        let lane = self.lane_of(active.id());
        let ran = self.work.job(lane, &loaded.worker, &job.kind, &payload, self).await;
        outcome(loaded, ran)
    }

    fn succeeded(&self, active: &Active) {
        let tally = Tally { succeeded: 1, ..Tally::default() };
        self.metrics.count(Effect::Ran, tally);
        self.report.count(active.project(), active.id(), tally, self.services.now());
    }

    fn failed(&self, active: &Active, message: &str) {
        let now = self.services.now();
        let tally = Tally { failed: 1, ..Tally::default() };
        self.metrics.count(Effect::Ran, tally);
        self.report.count(active.project(), active.id(), tally, now);
        self.report.fault(&active.row, message, None, now);
    }
}

fn outcome(loaded: &Loaded, ran: Result<Result<(), ScriptError>, Fault>) -> Result<(), String> {
    match ran {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(loaded.message(&error)),
        Err(fault) => Err(fault.to_string()),
    }
}

impl SchedulerState {
    /// Starts due tasks and jobs while there are free slots, those that have waited
    /// longest first.
    async fn look(&mut self) -> weir_store::Result<()> {
        let shared = Arc::clone(&self.shared);
        let now = shared.services.now();
        let mut all = shared.registry.all();
        let projects: HashSet<ProjectId> = all.iter().map(|active| active.project()).collect();
        self.served.retain(|project, _| projects.contains(project));
        all.sort_by_key(|active| self.served.get(&active.project()).copied());
        let of_tasks = |what: &&WorkKey| matches!(what, WorkKey::Task(..));
        for active in &all {
            for task in &active.capabilities.tasks {
                if self.running.keys().filter(of_tasks).count() < OF_TASKS
                    && self.has_slot(active.project())
                {
                    self.look_at_task(active, *task, now).await?;
                }
            }
        }
        if self.work.len() >= CONCURRENT_TASKS {
            return Ok(());
        }
        let mut due = jobs::due(&shared.store, now, JOBS).await?;
        let is_known = |job: &Uuid| due.iter().any(|due| due.job.id == *job);
        self.tried.retain(|job, _| is_known(job));
        due.sort_by_key(|due| self.served.get(&due.project).copied());
        for DueJob { job, project } in due {
            if self.has_slot(project) {
                self.look_at_job(job, project).await?;
            }
        }
        Ok(())
    }

    fn has_slot(&self, project: ProjectId) -> bool {
        let own = self.running.values().filter(|(_, of)| *of == project).count();
        self.work.len() < CONCURRENT_TASKS && own < OF_PROJECT
    }

    /// Records that a task or job of a project runs.
    fn began(&mut self, what: WorkKey, id: Id, project: ProjectId) {
        self.count += 1;
        self.served.insert(project, self.count);
        self.running.insert(what, (id, project));
    }

    async fn look_at_task(
        &mut self,
        active: &Arc<Active>,
        task: Task,
        now: Timestamp,
    ) -> weir_store::Result<()> {
        let (store, config) = (&self.shared.store, active.id());
        let key = (config, task.export());
        let what = WorkKey::Task(config, task.export());
        if self.running.contains_key(&what) {
            return Ok(());
        }
        let last = match self.last.get(&key) {
            Some(last) => Some(*last),
            None => tasks::last_run(store, config, task.export()).await?,
        };
        let (boundary, is_run) = match due(task, last, now) {
            Due::Nothing => {
                self.last.extend(last.map(|last| (key, last)));
                return Ok(());
            }
            Due::Begin(boundary) => (boundary, false),
            Due::Run(boundary) => (boundary, true),
        };
        if !tasks::save_run(store, active.project(), config, task.export(), boundary).await? {
            return Ok(());
        }
        self.last.insert(key, boundary);
        if is_run {
            let (shared, active) = (Arc::clone(&self.shared), Arc::clone(active));
            let project = active.project();
            let work = self.work.spawn(async move {
                shared.run_task(&active, task).await;
                (what, Ended::Done)
            });
            self.began(what, work.id(), project);
        }
        Ok(())
    }

    async fn look_at_job(&mut self, job: JobRow, project: ProjectId) -> weir_store::Result<()> {
        let shared = Arc::clone(&self.shared);
        let what = WorkKey::Job(job.id);
        let waits = self.tried.get(&job.id).is_some_and(|(_, at)| *at > shared.services.uptime());
        if waits || self.running.contains_key(&what) {
            return Ok(());
        }
        let Some(active) = shared.registry.config(job.config) else {
            // The job must not run when the config is enabled later.
            let message = format!("The job {} was not run: the config is not enabled.", job.kind);
            let (source, now) = (LogSource::System, shared.services.now());
            shared.report.line(job.config, source, LogLevel::Warn, &message, now);
            return jobs::remove(&shared.store, &job).await;
        };
        let work = self.work.spawn(async move {
            let ended = match shared.run_job(&active, &job).await {
                Ok(()) => {
                    shared.succeeded(&active);
                    shared.remove_job(&job).await;
                    Ended::Done
                }
                Err(message) => Ended::Failed(Box::new((active, job, message))),
            };
            (what, ended)
        });
        self.began(what, work.id(), project);
        Ok(())
    }

    async fn ended(&mut self, what: WorkKey, ended: Ended) {
        self.running.remove(&what);
        let Ended::Failed(failed) = ended else { return };
        let (active, job, message) = *failed;
        let (tries, _) = self.tried.get(&job.id).copied().unwrap_or_default();
        let tries = tries + 1;
        let message = format!("Job {}, try {tries} of {TRIES}: {message}", job.kind);
        self.shared.failed(&active, &message);
        if tries >= TRIES {
            self.tried.remove(&job.id);
            self.shared.remove_job(&job).await;
        } else {
            self.tried.insert(job.id, (tries, self.shared.services.uptime() + PAUSE));
        }
    }
}

impl Shared {
    async fn remove_job(&self, job: &JobRow) {
        if let Err(error) = jobs::remove(&self.store, job).await {
            tracing::error!(job = %job.id, %error, "a job that was run is still there");
        }
    }
}
