//! The programs that a child holds, each under the number that the parent gave it.

use std::collections::HashMap;
use std::io;

use super::runtime::{Engine, Shared, Waiting};
use super::source::Script;
use super::trouble::Trouble;
use crate::error::ScriptError;
use crate::wire::{Load, Loading, to_parent};

use rquickjs::Object;

/// Bytes that engines may hold together beside the one that runs, or that ran last.
/// Beyond that, the one that has waited longest goes.
const MOST_KEPT: u64 = 64 << 20;

#[derive(Default)]
pub(super) struct Slots {
    held: HashMap<u32, Slot>,
    /// Counts requests.
    turn: u64,
    /// Counts calls, to know which slot was used last.
    calls: u64,
}

struct Slot {
    script: Script,
    engine: Option<Engine>,
    /// Why it could not be loaded in this request: it is tried once in each.
    failed: Option<(u64, ScriptError)>,
    /// The request that used it last.
    used: u64,
    /// The call that used it last.
    called: u64,
}

impl Slots {
    /// Takes a program in. It is loaded when it is first called.
    pub(super) fn take(&mut self, load: &Load<'_>) -> io::Result<()> {
        #[derive(serde::Serialize)]
        struct Given<'a> {
            config: &'a serde_json::value::RawValue,
            attachments: &'a std::collections::BTreeMap<String, crate::program::Attachment>,
            plugin: &'a str,
        }
        let given = serde_json::to_string(&Given {
            config: load.config,
            attachments: &load.attachments,
            plugin: &load.plugin,
        })?;
        let script = Script { name: load.name.to_string(), source: load.source.to_string(), given };
        let slot = Slot { script, engine: None, failed: None, used: self.turn, called: 0 };
        self.held.insert(load.slot, slot);
        Ok(())
    }

    /// Lets programs go.
    pub(super) fn forget(&mut self, slots: &[u32]) {
        for slot in slots {
            self.held.remove(slot);
        }
    }

    /// Whether a program's engine runs.
    pub(super) fn loaded(&self, slot: u32) -> bool {
        self.held.get(&slot).is_some_and(|slot| slot.engine.is_some())
    }

    /// A new request begins.
    pub(super) fn turn(&mut self) {
        self.turn += 1;
    }

    /// Loads a program where it is not loaded. `told` sends what has to be sent
    /// before something that takes long.
    pub(super) fn ready(
        &mut self,
        shared: &Shared,
        number: u32,
        with_setup: bool,
        told: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Trouble> {
        let turn = self.turn;
        self.calls += 1;
        let Some(slot) = self.held.get_mut(&number) else {
            return Err(Trouble::Gone(io::ErrorKind::InvalidData.into()));
        };
        slot.used = turn;
        slot.called = self.calls;
        // A request that calls many programs must not hold all of them.
        self.memory();
        let Some(slot) = self.held.get_mut(&number) else {
            return Err(Trouble::Gone(io::ErrorKind::InvalidData.into()));
        };
        shared.border.enter(number);
        if slot.engine.is_some() {
            return Ok(());
        }
        if let Some((at, error)) = &slot.failed
            && *at == turn
        {
            return Err(Trouble::Script(Box::new(error.clone())));
        }
        told()?;
        shared.border.send(to_parent::LOADING, &Loading { slot: number })?;
        let loaded = Engine::load(shared, &slot.script).and_then(|mut engine| {
            if with_setup {
                engine.setup()?;
            }
            Ok(engine)
        });
        // What comes now has less time.
        shared.border.send_empty(to_parent::LOADED)?;
        match loaded {
            Ok(engine) => {
                slot.engine = Some(engine);
                Ok(())
            }
            Err(Trouble::Script(error)) => {
                slot.failed = Some((turn, (*error).clone()));
                Err(Trouble::Script(error))
            }
            Err(gone) => Err(gone),
        }
    }

    /// Calls into a loaded program. An engine that cannot be trusted afterwards goes.
    pub(super) fn run<T>(
        &mut self,
        number: u32,
        limit: std::time::Duration,
        work: impl for<'js> FnOnce(&Waiting<'_, 'js>, &Object<'js>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let Some(slot) = self.held.get_mut(&number) else {
            return Err(Trouble::Gone(io::ErrorKind::InvalidData.into()));
        };
        let Some(engine) = &mut slot.engine else {
            return Err(Trouble::Gone(io::ErrorKind::InvalidData.into()));
        };
        let outcome = engine.run(limit, work);
        if let Err(Trouble::Script(error)) = &outcome
            && !engine.usable_after(error)
        {
            slot.engine = None;
        }
        outcome
    }

    /// Looks at what the engines of this request hold, before those of others need
    /// room: within a request they are looked at now and then only.
    pub(super) fn tidy(&mut self) {
        for slot in self.held.values_mut().filter(|slot| slot.used == self.turn) {
            if slot.engine.as_mut().is_some_and(|engine| !engine.is_within_memory()) {
                slot.engine = None;
            }
        }
        self.memory();
    }

    /// Bytes that all engines hold, after those that were too much have gone. The one
    /// that was called last stays.
    pub(super) fn memory(&mut self) -> u64 {
        let size = |slot: &Slot| slot.engine.as_ref().map_or(0, Engine::memory);
        loop {
            let all: u64 = self.held.values().map(size).sum();
            let newest = self.held.values().max_by_key(|slot| slot.called).map_or(0, size);
            if all - newest <= MOST_KEPT {
                return all;
            }
            let running = self.held.values_mut().filter(|slot| slot.engine.is_some());
            if let Some(oldest) = running.min_by_key(|slot| slot.called) {
                oldest.engine = None;
            }
        }
    }
}
