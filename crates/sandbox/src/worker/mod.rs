//! The child: its whole life.
//!
//! What belongs here: the limits of the process (`confine`), the engines (`slots`,
//! `runtime`, `source`), what scripts find in them (`prelude/`, `natives`), and the
//! work (`transform`, `single`, `compile`). What does not: who may do what, and when.

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

use border::Border;
use clock::Clock;
use runtime::Shared;
use slots::Slots;

use crate::wire::{Done, ScriptLimits, to_child, to_parent};

/// Runs the child: reads requests from standard input until it ends.
///
/// Nothing else of the program may have started before: no thread of ours exists, and
/// nothing is open that is needed later.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let confinement = confine::confine();
    let border = Rc::new(Border::open());
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
        slots.turn();
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
        // Nobody waits for this.
        slots.tidy();
    }
    Ok(())
}

fn read<'a, T: Deserialize<'a>>(frame: &'a [u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(frame)?)
}
