//! One script in a separate engine: loading it, calling it, waiting for promises.

use std::rc::Rc;
use std::time::Duration;

use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Promise, Runtime, Value};

use super::border::{Arrival, Pipes};
use super::clock::Clock;
use super::source::{self, Script};
use super::trouble::{ScriptFailure, trouble};
use crate::error::ErrorKind;
use crate::wire::ScriptLimits;

/// State that all scripts of a child process share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) border: Rc<Pipes>,
    pub(super) clock: Clock,
    pub(super) limits: Rc<ScriptLimits>,
}

/// Number of calls between two measurements of memory within a request. A measurement
/// visits all objects of an engine. There is also one after every request.
const LOOK_EVERY: u32 = 1_024;
/// A longer call may have allocated much memory and is followed by a measurement.
const LOOK_AFTER: Duration = Duration::from_millis(2);

/// An engine with a loaded script. Fields are dropped in this order: references into the
/// engine before the engine.
pub(super) struct Engine {
    program: Persistent<Object<'static>>,
    answer: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
    shared: Shared,
    file: String,
    calls: u32,
    /// The number of calls at the last measurement of memory.
    looked_at: u32,
    memory: u64,
}

impl Engine {
    /// Creates an engine and loads the script, without `setupPlugin`.
    pub(super) fn load(shared: &Shared, script: &Script) -> Result<Self, ScriptFailure> {
        let limits = &shared.limits;
        if script.source.len() > limits.source {
            return Err(ScriptFailure::plain(ErrorKind::Load, "the source is too large"));
        }
        let no_engine =
            |_| ScriptFailure::plain(ErrorKind::OutOfMemory, "no engine can be started");
        let runtime = Runtime::new().map_err(no_engine)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        let clock = shared.clock.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || clock.over())));
        source::set_modules(&runtime);
        let context = Context::full(&runtime).map_err(no_engine)?;
        shared.clock.start(Duration::from_micros(limits.load_us));
        let opened = context.with(|ctx| {
            let engine = Waiting { ctx: &ctx, shared, file: &script.name, answer: None };
            source::open(&engine, script)
        });
        let (program, answer) = opened.map_err(|trouble| as_kind(trouble, ErrorKind::Load))?;
        let file = script.name.clone();
        let shared = shared.clone();
        let mut engine = Self {
            program,
            answer,
            context,
            runtime,
            shared,
            file,
            calls: 0,
            looked_at: 0,
            memory: 0,
        };
        engine.look()?;
        Ok(engine)
    }

    /// Runs `setupPlugin`, if there is one.
    pub(super) fn setup(&mut self) -> Result<(), ScriptFailure> {
        let limit = Duration::from_micros(self.shared.limits.load_us);
        let outcome = self.run(limit, |engine, program| {
            if engine.ok(program.get::<_, bool>("hasSetup"))? {
                engine.call(program, "setup", ())?;
            }
            Ok(())
        });
        outcome.map_err(|trouble| as_kind(trouble, ErrorKind::Setup))
    }

    /// Calls into the script within a limit, and completes all work that it has begun.
    pub(super) fn run<T>(
        &mut self,
        limit: Duration,
        work: impl for<'js> FnOnce(&Waiting<'_, 'js>, &Object<'js>) -> Result<T, ScriptFailure>,
    ) -> Result<T, ScriptFailure> {
        let started = std::time::Instant::now();
        self.shared.clock.start(limit);
        let (shared, file) = (&self.shared, &self.file);
        let outcome = self.context.with(|ctx| {
            let foreign = |_| ScriptFailure::plain(ErrorKind::Threw, "the engine is another one");
            let program = self.program.clone().restore(&ctx).map_err(foreign)?;
            let answer = self.answer.clone().restore(&ctx).map_err(foreign)?;
            let engine = Waiting { ctx: &ctx, shared, file, answer: Some(answer) };
            let outcome = work(&engine, &program);
            if matches!(outcome, Err(ScriptFailure::Gone(_))) {
                return outcome;
            }
            // Also after a failure: pending work must not run in the time of the next
            // event.
            let drained = engine.drain();
            outcome.and_then(|outcome| drained.map(|()| outcome))
        });
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(LOOK_EVERY) || started.elapsed() > LOOK_AFTER {
            self.look()?;
        }
        outcome
    }

    /// Whether a failed script may be called again: not if a limit was reached, because
    /// its state may be inconsistent.
    pub(super) fn usable_after(&self, error: &crate::error::ScriptError) -> bool {
        !self.shared.clock.met()
            && !self.shared.border.waiting()
            && !matches!(
                error.kind,
                ErrorKind::TimedOut | ErrorKind::OutOfMemory | ErrorKind::Unsettled
            )
    }

    /// Bytes at the last measurement.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Measures memory if it was called since the last measurement; returns whether it is
    /// within the limit.
    pub(super) fn is_within_memory(&mut self) -> bool {
        self.looked_at == self.calls || self.look().is_ok()
    }

    /// Measures memory. A script can catch an out-of-memory error and continue, so memory
    /// near the limit is a failure too.
    fn look(&mut self) -> Result<(), ScriptFailure> {
        self.looked_at = self.calls;
        self.memory = u64::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0);
        let most = self.shared.limits.memory as u64;
        if self.memory > most / 10 * 9 {
            return Err(ScriptFailure::plain(
                ErrorKind::OutOfMemory,
                "the script uses too much memory",
            ));
        }
        Ok(())
    }
}

/// Marks an error with the phase in which it happened.
fn as_kind(trouble: ScriptFailure, kind: ErrorKind) -> ScriptFailure {
    match trouble {
        ScriptFailure::Script(mut error) => {
            error.kind = kind;
            ScriptFailure::Script(error)
        }
        gone @ ScriptFailure::Gone(_) => gone,
    }
}

/// An engine during a call.
pub(super) struct Waiting<'a, 'js> {
    pub(super) ctx: &'a Ctx<'js>,
    pub(super) shared: &'a Shared,
    pub(super) file: &'a str,
    pub(super) answer: Option<Function<'js>>,
}

impl<'js> Waiting<'_, 'js> {
    /// The result of the engine, or the thrown error.
    pub(super) fn ok<T>(&self, result: rquickjs::Result<T>) -> Result<T, ScriptFailure> {
        result.map_err(|error| trouble(self.ctx, &self.shared.clock, self.file, &error))
    }

    /// Calls a function of the program, and waits for its promise.
    pub(super) fn call<A>(
        &self,
        on: &Object<'js>,
        name: &str,
        args: A,
    ) -> Result<Value<'js>, ScriptFailure>
    where
        A: rquickjs::function::IntoArgs<'js>,
    {
        let function: Function<'js> = self.ok(on.get(name))?;
        let value = self.ok(function.call::<_, Value<'js>>(args))?;
        self.settle(value)
    }

    /// The value of a promise; any other value is returned as it is.
    pub(super) fn settle(&self, value: Value<'js>) -> Result<Value<'js>, ScriptFailure> {
        let Some(promise) = value.as_promise() else {
            return self.in_time(value);
        };
        loop {
            if self.shared.clock.over() {
                return Err(self.too_late());
            }
            match promise.state() {
                PromiseState::Pending => {}
                PromiseState::Resolved | PromiseState::Rejected => {
                    let result = promise.result::<Value<'js>>();
                    let result = result.unwrap_or(Err(rquickjs::Error::Unknown));
                    return self.ok(result).and_then(|value| self.in_time(value));
                }
            }
            if !self.ctx.execute_pending_job() && !self.receive(promise)? {
                let message = "the promise that was returned can never be settled";
                return Err(ScriptFailure::plain(ErrorKind::Unsettled, message));
            }
        }
    }

    /// Runs pending work that no promise waits for.
    fn drain(&self) -> Result<(), ScriptFailure> {
        loop {
            if self.shared.clock.over() {
                return Err(self.too_late());
            }
            if self.ctx.execute_pending_job() {
                continue;
            }
            if !self.shared.border.waiting() {
                return Ok(());
            }
            self.arrive()?;
        }
    }

    fn receive(&self, promise: &Promise<'js>) -> Result<bool, ScriptFailure> {
        if promise.state() != PromiseState::Pending {
            return Ok(true);
        }
        if !self.shared.border.waiting() {
            return Ok(false);
        }
        self.arrive().map(|()| true)
    }

    fn arrive(&self) -> Result<(), ScriptFailure> {
        let arrival = self.shared.clock.stopped(|| self.shared.border.arrival())?;
        match (arrival, &self.answer) {
            (Arrival::Expired, _) => {
                self.shared.clock.end();
                Err(ScriptFailure::plain(
                    ErrorKind::TimedOut,
                    "the script waits longer than it may",
                ))
            }
            (Arrival::Answer { id, answer }, Some(function)) => {
                let (ok, text) = match answer {
                    Ok(text) => (true, text),
                    Err(text) => (false, text),
                };
                self.ok(function.call::<_, ()>((id, ok, text)))
            }
            (Arrival::Answer { .. }, None) => Ok(()),
        }
    }

    /// A script cannot catch an interrupt, but it can hide it by what it did just before
    /// the limit.
    fn in_time(&self, value: Value<'js>) -> Result<Value<'js>, ScriptFailure> {
        if self.shared.clock.met() { Err(self.too_late()) } else { Ok(value) }
    }

    fn too_late(&self) -> ScriptFailure {
        self.shared.clock.end();
        ScriptFailure::plain(ErrorKind::TimedOut, "the script runs longer than it may")
    }
}
