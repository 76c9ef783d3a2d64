//! The earliest time of each person.

use weir_segments::NONE;

use crate::error::Result;
use crate::run::{Reservation, Run};

/// There is no time.
const NEVER: i64 = i64::MAX;

/// The earliest time of each person, by its number.
#[derive(Debug)]
pub(crate) struct Earliest<'a> {
    times: Vec<i64>,
    memory: Reservation<'a>,
}

impl<'a> Earliest<'a> {
    pub(crate) fn new(run: &Run<'a>) -> Self {
        Self { times: Vec::new(), memory: run.memory.reservation() }
    }

    pub(crate) fn see(&mut self, person: u32, time: i64) -> Result<()> {
        if person == NONE {
            return Ok(());
        }
        let at = person as usize;
        if at >= self.times.len() {
            let length = at + at / 4 + 64;
            self.memory.hold((self.times.len() + length) * size_of::<i64>())?;
            self.times.reserve_exact(length - self.times.len());
            self.times.resize(length, NEVER);
        }
        if let Some(earliest) = self.times.get_mut(at) {
            *earliest = time.min(*earliest);
        }
        Ok(())
    }

    /// `None`: the person was not seen.
    pub(crate) fn of(&self, person: u32) -> Option<i64> {
        self.times.get(person as usize).copied().filter(|time| *time != NEVER)
    }
}
