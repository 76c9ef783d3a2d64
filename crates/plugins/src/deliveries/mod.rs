//! Destinations that are plugins. They receive stored events in order of arrival (ADR 9),
//! read as batch exports read them (ADR 8).
//!
//! ```text
//! follower: newest arrivals, then until all of it is applied -> marks
//! every second: configs with something up to their mark -> a delivery each
//! delivery: read -> call -> send -> position, for a few seconds at most
//! ```
//!
//! What belongs here: which config delivers next. What does not: one delivery ([`delivery`]).
//!
//! Invariant: ingestion never waits for a destination. A destination does not wait for a
//! slow one as long as there are free slots.

mod back_off;
mod delivery;
mod send;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use weir_model::{PluginConfigId, ProjectId};
use weir_store::Result;
use weir_store::events::{self, EventBounds};
use weir_store::plugin_runtime::cursors::{self, Cursor};
use weir_store::plugin_runtime::registry::running;

use crate::Shared;
use crate::registry::Active;
use delivery::Progress;

const CONCURRENT_DELIVERIES: usize = 4;
/// Concurrent deliveries of one project.
const OF_PROJECT: usize = 3;
/// A position that means "from now on". A config gets it when it is disabled, so that
/// enabling it does not deliver the events in between.
const FROM_NEWEST: u64 = i64::MAX as u64;

/// The watermark of each project: everything up to this arrival number can be read.
pub(crate) type Marks = HashMap<ProjectId, u64>;

/// The state of a config between its deliveries.
struct DeliveryState {
    project: ProjectId,
    /// `None`: a running delivery has it.
    progress: Option<Progress>,
    /// The earliest time of the next delivery.
    next: Duration,
    /// The sequence number of its last delivery.
    served: u64,
}

/// Decides which config delivers next.
struct Deliveries {
    shared: Arc<Shared>,
    configs: HashMap<PluginConfigId, DeliveryState>,
    of_projects: HashMap<ProjectId, u64>,
    deliveries: JoinSet<(PluginConfigId, Progress)>,
    /// The config of each running delivery.
    running: HashMap<Id, PluginConfigId>,
    count: u64,
}

impl Shared {
    /// Delivers until the service stops.
    pub(crate) async fn deliver(self: Arc<Self>) {
        let marks = watch::Sender::new(Marks::default());
        let mut deliveries = Deliveries {
            shared: Arc::clone(&self),
            configs: HashMap::new(),
            of_projects: HashMap::new(),
            deliveries: JoinSet::new(),
            running: HashMap::new(),
            count: 0,
        };
        let seen = marks.subscribe();
        tokio::select! {
            () = deliveries.run(seen) => {}
            () = self.follow_arrivals(&marks) => {}
        }
        // Deliveries end on their own when the service stops.
        while deliveries.deliveries.join_next().await.is_some() {}
    }

    /// The events of a project that its enabled destinations have not received yet. Without a
    /// position, a destination begins with the events that arrive from then on.
    pub(crate) async fn undelivered(&self, project: ProjectId) -> Result<Vec<EventBounds>> {
        let mut undelivered = Vec::new();
        for (config, _) in running(&self.store, project).await? {
            // A config that was just enabled may be loaded later.
            if self.registry.config(config.id).is_some_and(|active| !active.may_deliver()) {
                continue;
            }
            let cursor = cursors::cursor(&self.store, config.id).await?;
            undelivered.extend(cursor.map(|cursor| EventBounds::after(cursor.after)));
        }
        Ok(undelivered)
    }

    /// Keeps the watermarks of all projects with destinations up to date.
    async fn follow_arrivals(&self, marks: &watch::Sender<Marks>) {
        loop {
            let mut newest = Marks::new();
            for active in self.registry.all().iter().filter(|active| active.capabilities.delivers())
            {
                let project = active.project();
                if newest.contains_key(&project) {
                    continue;
                }
                match events::heads(&self.store, project).await {
                    Ok(heads) => {
                        let last = heads.values().filter_map(|head| u64::try_from(head.last).ok());
                        newest.insert(project, last.max().unwrap_or(0));
                    }
                    Err(error) => {
                        tracing::error!(%project, %error, "arrivals could not be checked");
                    }
                }
            }
            if !newest.is_empty() {
                // Earlier arrivals can be read then, too.
                self.services.applied().await;
                marks.send_replace(newest);
            }
            tokio::time::sleep(self.settings.tick).await;
        }
    }
}

impl Deliveries {
    async fn run(&mut self, marks: watch::Receiver<Marks>) {
        let mut tick = tokio::time::interval(self.shared.settings.tick);
        loop {
            tokio::select! {
                _ = tick.tick() => self.check().await,
                Some(ended) = self.deliveries.join_next_with_id() => match ended {
                    Ok((id, (config, progress))) => self.ended(id, config, progress),
                    Err(error) => {
                        tracing::error!(%error, "a delivery ended early");
                        if let Some(config) = self.running.get(&error.id()).copied() {
                            // Its progress is read from the store again.
                            self.ended(error.id(), config, Progress::default());
                        }
                    }
                },
                () = self.shared.stopped() => return,
            }
            self.begin(&marks.borrow());
        }
    }

    /// Notices configs that were enabled or disabled.
    async fn check(&mut self) {
        for active in self.shared.registry.all() {
            if active.capabilities.delivers() {
                self.configs.entry(active.id()).or_insert_with(|| DeliveryState {
                    project: active.project(),
                    progress: Some(Progress::default()),
                    next: Duration::ZERO,
                    served: 0,
                });
            }
        }
        let is_enabled = |config: &PluginConfigId| self.shared.registry.config(*config).is_some();
        let gone: Vec<(PluginConfigId, ProjectId)> = self
            .configs
            .iter()
            .filter(|(config, state)| state.progress.is_some() && !is_enabled(config))
            .map(|(config, state)| (*config, state.project))
            .collect();
        for (config, project) in gone {
            let cursor = Cursor { config, after: FROM_NEWEST, tries: 0, failed_since: None };
            match cursors::save_cursor(&self.shared.store, project, &cursor).await {
                Ok(_) => drop(self.configs.remove(&config)),
                Err(error) => tracing::error!(%config, %error, "a position was not given up yet"),
            }
        }
    }

    fn ended(&mut self, delivery: Id, config: PluginConfigId, progress: Progress) {
        self.running.remove(&delivery);
        if let Some(state) = self.configs.get_mut(&config) {
            state.next = progress.next;
            state.progress = Some(progress);
        }
    }

    /// Starts deliveries: for the project that has waited longest, and for its config
    /// that has waited longest.
    fn begin(&mut self, marks: &Marks) {
        let now = self.shared.services.uptime();
        while self.deliveries.len() < CONCURRENT_DELIVERIES {
            let waits = |(config, state): &(&PluginConfigId, &DeliveryState)| {
                let mark = marks.get(&state.project).copied()?;
                let progress = state.progress.as_ref()?;
                let active = self.shared.registry.config(**config)?;
                let is_due = state.next <= now && progress.has_work(mark);
                let is_due = is_due && self.deliveries_of(state.project) < OF_PROJECT;
                (is_due && active.capabilities.delivers()).then_some((active, mark))
            };
            let order = |state: &DeliveryState| {
                (self.of_projects.get(&state.project).copied().unwrap_or(0), state.served)
            };
            let next = self
                .configs
                .iter()
                .filter_map(|entry| waits(&entry).map(|found| (order(entry.1), found)))
                .min_by_key(|(order, _)| *order);
            let Some((_, (active, mark))) = next else { return };
            self.give(active, mark);
        }
    }

    fn deliveries_of(&self, project: ProjectId) -> usize {
        let of = |config: &&PluginConfigId| {
            self.configs.get(config).is_some_and(|state| state.project == project)
        };
        self.running.values().filter(of).count()
    }

    fn give(&mut self, active: Arc<Active>, mark: u64) {
        self.count += 1;
        self.of_projects.insert(active.project(), self.count);
        let config = active.id();
        let Some(state) = self.configs.get_mut(&config) else { return };
        let Some(mut progress) = state.progress.take() else { return };
        state.served = self.count;
        let shared = Arc::clone(&self.shared);
        let delivery = self.deliveries.spawn(async move {
            delivery::take(&shared, &active, &mut progress, mark).await;
            (config, progress)
        });
        self.running.insert(delivery.id(), config);
    }
}
