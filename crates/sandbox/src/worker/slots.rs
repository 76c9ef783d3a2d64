//! The programs of a child process by slot. The parent process assigns the slots.

use std::collections::HashMap;
use std::io;

use super::runtime::{Engine, Shared, Waiting};
use super::source::Script;
use super::trouble::ScriptFailure;
use crate::error::ScriptError;
use crate::wire::{Load, Loading, to_parent};

use rquickjs::Object;

/// Bytes that all engines together may hold, without the one that runs or ran last.
/// Beyond that, the least recently used engine is unloaded.
const MOST_KEPT: u64 = 64 << 20;

#[derive(Default)]
pub(super) struct Slots {
    held: HashMap<u32, Slot>,
    /// Counts requests.
    round: u64,
    /// Counts calls, to find the slot that was used last.
    calls: u64,
}

struct Slot {
    script: Script,
    engine: Option<Engine>,
    /// Why it could not be loaded in this request: each request tries once.
    failed: Option<(u64, ScriptError)>,
    /// The request that used it last.
    used: u64,
    /// The call that used it last.
    called: u64,
}

impl Slots {
    /// Adds a program. It is loaded when it is first called.
    pub(super) fn take(&mut self, load: &Load<'_>) -> io::Result<()> {
        #[derive(serde::Serialize)]
        struct ProgramInputs<'a> {
            config: &'a serde_json::value::RawValue,
            attachments: &'a std::collections::BTreeMap<String, crate::program::Attachment>,
            plugin: &'a str,
        }
        let given = serde_json::to_string(&ProgramInputs {
            config: load.config,
            attachments: &load.attachments,
            plugin: &load.plugin,
        })?;
        let script = Script { name: load.name.to_string(), source: load.source.to_string(), given };
        let slot = Slot { script, engine: None, failed: None, used: self.round, called: 0 };
        self.held.insert(load.slot, slot);
        Ok(())
    }

    /// Unloads programs.
    pub(super) fn forget(&mut self, slots: &[u32]) {
        for slot in slots {
            self.held.remove(slot);
        }
    }

    /// Whether a program's engine runs.
    pub(super) fn loaded(&self, slot: u32) -> bool {
        self.held.get(&slot).is_some_and(|slot| slot.engine.is_some())
    }

    /// Begins a request.
    pub(super) fn round(&mut self) {
        self.round += 1;
    }

    /// Loads a program unless it is loaded. `reported` sends pending frames before a slow
    /// operation.
    pub(super) fn ready(
        &mut self,
        shared: &Shared,
        number: u32,
        with_setup: bool,
        reported: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), ScriptFailure> {
        let round = self.round;
        self.calls += 1;
        let Some(slot) = self.held.get_mut(&number) else {
            return Err(ScriptFailure::Gone(io::ErrorKind::InvalidData.into()));
        };
        slot.used = round;
        slot.called = self.calls;
        // A request that calls many programs must not hold all of them in memory.
        self.memory();
        let Some(slot) = self.held.get_mut(&number) else {
            return Err(ScriptFailure::Gone(io::ErrorKind::InvalidData.into()));
        };
        shared.border.enter(number);
        if slot.engine.is_some() {
            return Ok(());
        }
        if let Some((at, error)) = &slot.failed
            && *at == round
        {
            return Err(ScriptFailure::Script(Box::new(error.clone())));
        }
        reported()?;
        shared.border.send(to_parent::LOADING, &Loading { slot: number })?;
        let loaded = Engine::load(shared, &slot.script).and_then(|mut engine| {
            if with_setup {
                engine.setup()?;
            }
            Ok(engine)
        });
        // The following calls have a shorter limit.
        shared.border.send_empty(to_parent::LOADED)?;
        match loaded {
            Ok(engine) => {
                slot.engine = Some(engine);
                Ok(())
            }
            Err(ScriptFailure::Script(error)) => {
                slot.failed = Some((round, (*error).clone()));
                Err(ScriptFailure::Script(error))
            }
            Err(gone) => Err(gone),
        }
    }

    /// Calls into a loaded program. An engine in an unknown state is unloaded.
    pub(super) fn run<T>(
        &mut self,
        number: u32,
        limit: std::time::Duration,
        work: impl for<'js> FnOnce(&Waiting<'_, 'js>, &Object<'js>) -> Result<T, ScriptFailure>,
    ) -> Result<T, ScriptFailure> {
        let Some(slot) = self.held.get_mut(&number) else {
            return Err(ScriptFailure::Gone(io::ErrorKind::InvalidData.into()));
        };
        let Some(engine) = &mut slot.engine else {
            return Err(ScriptFailure::Gone(io::ErrorKind::InvalidData.into()));
        };
        let outcome = engine.run(limit, work);
        if let Err(ScriptFailure::Script(error)) = &outcome
            && !engine.usable_after(error)
        {
            slot.engine = None;
        }
        outcome
    }

    /// Measures the memory of the engines of this request before engines of other
    /// requests need memory: within a request it is measured only periodically.
    pub(super) fn tidy(&mut self) {
        for slot in self.held.values_mut().filter(|slot| slot.used == self.round) {
            if slot.engine.as_mut().is_some_and(|engine| !engine.is_within_memory()) {
                slot.engine = None;
            }
        }
        self.memory();
    }

    /// Bytes of all engines, after unloading those beyond the limit. The one that was
    /// called last stays.
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
