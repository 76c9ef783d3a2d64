//! The child process.
//!
//! What belongs here: the limits of the process (`confine`), the engines (`slots`,
//! `runtime`, `source`), the environment of scripts (`prelude/`, `natives`), and the
//! requests (`transform`, `single`, `compile`). What does not: grants and schedules,
//! which the parent process decides (`pool`, `weir-plugins`).

mod border;
mod clock;
mod compile;
mod confine;
mod natives;
mod probe;
pub(crate) mod report;
mod runtime;
mod single;
mod slots;
mod source;
mod text;
mod transform;
mod trouble;

use std::io;
use std::process::ExitCode;
use std::rc::Rc;

use serde::Deserialize;

use border::Pipes;
use clock::Clock;
use runtime::Shared;
use slots::Slots;

use crate::wire::{Done, ScriptLimits, to_child, to_parent};

/// Runs the child process: reads requests from standard input until it ends.
///
/// It must be called before anything else of the program starts: no other thread may
/// exist, and nothing may be open that is needed later.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let confinement = confine::confine();
    let border = Rc::new(Pipes::open());
    border.send(to_parent::HELLO, &confinement)?;
    let mut frame = Vec::new();
    if border.request(&mut frame)? != Some(to_child::LIMITS) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let limits: ScriptLimits = read(&frame)?;
    let shared =
        Shared { border: border.clone(), clock: Clock::default(), limits: Rc::new(limits) };
    let mut slots = Slots::default();
    while let Some(kind) = border.request(&mut frame)? {
        slots.round();
        shared.clock.begin();
        match kind {
            to_child::LOAD => {
                slots.take(&read(&frame)?)?;
                continue;
            }
            to_child::DROP => {
                let forget: crate::wire::Forget = read(&frame)?;
                slots.forget(&forget.slots);
                continue;
            }
            to_child::TRANSFORM => transform::transform(&shared, &mut slots, &read(&frame)?)?,
            to_child::DELIVER => single::deliver(&shared, &mut slots, &read(&frame)?)?,
            to_child::RUN => single::run(&shared, &mut slots, &read(&frame)?)?,
            to_child::COMPILE => compile::compile(&border, &read(&frame)?)?,
            to_child::PROBE => border.send(to_parent::PROBE, &probe::probe())?,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        border.send(to_parent::DONE, &Done { memory: slots.memory() })?;
        // No request waits at this point.
        slots.tidy();
    }
    Ok(())
}

fn read<'a, T: Deserialize<'a>>(frame: &'a [u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(frame)?)
}
