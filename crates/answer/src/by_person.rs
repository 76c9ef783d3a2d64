//! The kept events of each person, in order.
//!
//! Threads push what a question needs of each event. Then the events of a part of the persons
//! at a time are joined, sorted and shown person by person. What does not fit into memory is
//! computed in several passes, each of which keeps the events of a part of the persons.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use weir_questions::evaluate::PERSON_EVENTS_MAX;
use weir_segments::NONE;

use crate::batch::{Batch, Needs};
use crate::error::{AnswerError, Result};
use crate::plan::{Actor, Plan};
use crate::run::{Reservation, Run};
use crate::scan::{in_threads, scan};
use crate::source::Source;
use crate::texts::Texts;

/// Parts that persons are divided into.
const PARTS: usize = 64;
/// Records of the first chunk of a part, and most of a chunk.
const CHUNK: (usize, usize) = (64, 4_096);
/// Most passes of a question.
const PASSES_MAX: u32 = 8;
/// Persons after which a cancelled question ends.
const CHECKED: usize = 1_024;

/// What a question needs of an event. The order is that of persons, and of the events of a
/// person.
pub(crate) trait Record: Copy + Ord + Send + Sync {
    /// The number of the person or group.
    fn person(&self) -> u32;
}

/// An event of which the time and a few bits matter. From the highest bit: person, time since
/// the beginning of the range in microseconds (a calendar has fewer than 2^60), bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShortRecord(u128);

impl ShortRecord {
    const PERSON: u32 = 96;
    /// Bits of what is not person and time.
    pub(crate) const BITS: u32 = 36;
    const TIME_MASK: u128 = (1 << (Self::PERSON - Self::BITS)) - 1;

    /// `time` is not before `begin`. `bits` are the lowest [`BITS`](Self::BITS).
    pub(crate) fn new(person: u32, begin: i64, time: i64, bits: u64) -> Self {
        let after = u128::from(time.wrapping_sub(begin).cast_unsigned()) & Self::TIME_MASK;
        let bits = u128::from(bits) & ((1 << Self::BITS) - 1);
        Self(u128::from(person) << Self::PERSON | after << Self::BITS | bits)
    }

    pub(crate) fn time(self, begin: i64) -> i64 {
        let after = (self.0 >> Self::BITS & Self::TIME_MASK) as u64;
        begin.wrapping_add(after.cast_signed())
    }

    pub(crate) fn bits(self) -> u64 {
        (self.0 & ((1 << Self::BITS) - 1)) as u64
    }

    /// The same event with other bits.
    pub(crate) fn with_bits(self, bits: u64) -> Self {
        let mask = (1 << Self::BITS) - 1;
        Self(self.0 & !mask | u128::from(bits) & mask)
    }
}

impl Record for ShortRecord {
    fn person(&self) -> u32 {
        (self.0 >> Self::PERSON) as u32
    }
}

/// An event whose order of arrival or value matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LongRecord {
    pub(crate) person: u32,
    pub(crate) time: i64,
    pub(crate) arrival: u64,
    pub(crate) bits: u64,
    /// The place of a text among others in their order.
    pub(crate) value: u32,
}

impl Record for LongRecord {
    fn person(&self) -> u32 {
        self.person
    }
}

/// What questions by person read of events.
pub(crate) struct Reading<'q, 'a> {
    pub(crate) source: &'q dyn Source,
    pub(crate) run: &'q Run<'a>,
    pub(crate) plan: &'q Plan,
    pub(crate) actor: Actor,
    /// Slots of properties, beside that of a group.
    pub(crate) properties: Vec<usize>,
    pub(crate) arrivals: bool,
    pub(crate) names: bool,
    /// The keys of groups.
    pub(crate) groups: Texts<'a>,
}

impl<'q, 'a> Reading<'q, 'a> {
    pub(crate) fn new(
        source: &'q dyn Source,
        run: &'q Run<'a>,
        plan: &'q Plan,
        actor: Actor,
    ) -> Self {
        Self {
            source,
            run,
            plan,
            actor,
            properties: Vec::new(),
            arrivals: false,
            names: false,
            groups: Texts::new(run, "groups"),
        }
    }

    /// Reads the events, with a state for each thread. `see` gets a batch, and the number of
    /// the actor of each of its kept rows.
    pub(crate) fn read<T: Send>(
        &self,
        make: impl Fn() -> T + Sync,
        see: impl Fn(&mut T, &Batch<'_>, &[u32]) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let mut properties = self.properties.clone();
        if let Actor::Group { slot } = self.actor {
            properties.push(slot);
        }
        let needs = Needs {
            properties: &properties,
            persons: self.actor == Actor::Person,
            arrivals: self.arrivals,
            names: self.names,
        };
        scan(self.source, self.run, self.plan, make, |state, batch| {
            batch.prepare(needs)?;
            let actors = batch.actors(self.actor, &self.groups)?;
            see(state, batch, &actors)
        })
    }
}

/// Which persons a pass is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    number: u32,
    count: u32,
}

impl Pass {
    /// One for all persons.
    pub(crate) const ALL: Self = Self { number: 0, count: 1 };

    pub(crate) fn is_all(self) -> bool {
        self.count == 1
    }

    pub(crate) fn includes(self, person: u32) -> bool {
        self.is_all() || person / PARTS as u32 % self.count == self.number
    }

    /// The place of a person among those of the pass, which have no gaps. `None`: it is of
    /// another pass.
    pub(crate) fn place(self, person: u32) -> Option<usize> {
        let (part, at) = (person / PARTS as u32, person % PARTS as u32);
        self.includes(person).then_some((part / self.count * PARTS as u32 + at) as usize)
    }

    /// The person at a place.
    pub(crate) fn person(self, place: usize) -> u32 {
        let (part, at) = (place / PARTS, place % PARTS);
        (part as u32 * self.count + self.number) * PARTS as u32 + at as u32
    }
}

/// Runs a function for all persons, or in several passes if that does not fit into memory.
/// `merge` adds the result of a pass to that of the passes before.
pub(crate) fn in_passes<T>(
    mut run: impl FnMut(Pass) -> Result<T>,
    merge: impl Fn(&mut T, T) -> Result<()>,
) -> Result<T> {
    let mut count = 1;
    loop {
        match passes(count, &mut run, &merge) {
            Err(AnswerError::Memory { .. }) if count < PASSES_MAX => count *= 2,
            found => return found,
        }
    }
}

fn passes<T>(
    count: u32,
    run: &mut impl FnMut(Pass) -> Result<T>,
    merge: &impl Fn(&mut T, T) -> Result<()>,
) -> Result<T> {
    let mut all = run(Pass { number: 0, count })?;
    for number in 1..count {
        merge(&mut all, run(Pass { number, count })?)?;
    }
    Ok(all)
}

/// Events that a thread has kept.
#[derive(Debug)]
pub(crate) struct ByPerson<'a, R> {
    pass: Pass,
    /// Chunks of records, so that growing copies nothing.
    parts: Vec<Vec<Vec<R>>>,
    bytes: usize,
    memory: Reservation<'a>,
}

impl<'a, R: Record> ByPerson<'a, R> {
    pub(crate) fn new(run: &Run<'a>, pass: Pass) -> Self {
        let parts = (0..PARTS).map(|_| Vec::new()).collect();
        Self { pass, parts, bytes: 0, memory: run.memory.reservation() }
    }

    /// Keeps an event of a person of the pass.
    pub(crate) fn push(&mut self, record: R) -> Result<()> {
        let person = record.person();
        if person == NONE || !self.pass.includes(person) {
            return Ok(());
        }
        let Some(chunks) = self.parts.get_mut(person as usize % PARTS) else { return Ok(()) };
        match chunks.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(record),
            last => {
                let size = last.map_or(CHUNK.0, |last| (last.len() * 2).min(CHUNK.1));
                self.memory.hold_more(&mut self.bytes, size * size_of::<R>())?;
                let mut chunk = Vec::with_capacity(size);
                chunk.push(record);
                chunks.push(chunk);
            }
        }
        Ok(())
    }
}

/// Shows the sorted events of each person. `change` changes records before they are sorted.
/// Each thread has a state of its own, and sees some of the persons in no certain order.
pub(crate) fn visit<'a, R: Record, T: Send>(
    run: &Run<'a>,
    kept: Vec<ByPerson<'a, R>>,
    change: impl Fn(&mut R) + Sync,
    make: impl Fn() -> T + Sync,
    see: impl Fn(&mut T, u32, &[R]) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let mut parts: Vec<Vec<Vec<R>>> = (0..PARTS).map(|_| Vec::new()).collect();
    let mut memory = Vec::new();
    for mut kept in kept {
        for (part, chunks) in parts.iter_mut().zip(&mut kept.parts) {
            part.append(chunks);
        }
        memory.push(kept.memory);
    }
    let parts: Vec<Mutex<Vec<Vec<R>>>> = parts.into_iter().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    in_threads(run, || {
        let mut state = make();
        let mut joined = run.memory.reservation();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let chunks = std::mem::take(&mut *part.lock().unwrap_or_else(PoisonError::into_inner));
            let count: usize = chunks.iter().map(Vec::len).sum();
            joined.hold(count * size_of::<R>())?;
            let mut records: Vec<R> = Vec::with_capacity(count);
            for chunk in chunks {
                records.extend_from_slice(&chunk);
            }
            records.iter_mut().for_each(&change);
            records.sort_unstable();
            for (at, events) in records.chunk_by(|a, b| a.person() == b.person()).enumerate() {
                if at.is_multiple_of(CHECKED) {
                    run.cancel.check()?;
                }
                if events.len() > PERSON_EVENTS_MAX {
                    let what = "events of one person".to_owned();
                    return Err(AnswerError::TooLarge { what, limit: PERSON_EVENTS_MAX });
                }
                if let Some(first) = events.first() {
                    see(&mut state, first.person(), events)?;
                }
            }
        }
        Ok(state)
    })
}

/// Shows the sorted events of each person of a pass, with their nodes as bits. Their times are
/// since `begin`.
pub(crate) fn visit_nodes<T: Send>(
    reading: &Reading<'_, '_>,
    pass: Pass,
    begin: i64,
    make: impl Fn() -> T + Sync,
    see: impl Fn(&mut T, u32, &[ShortRecord]) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let kept = reading.read(
        || ByPerson::new(reading.run, pass),
        |kept, batch, actors| {
            let masks = batch.masks();
            batch.kept().ones().try_for_each(|row| {
                let (person, time) = (actors[row], batch.times()[row]);
                kept.push(ShortRecord::new(person, begin, time, masks[row]))
            })
        },
    )?;
    visit(reading.run, kept, |_| {}, make, see)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::run::{Cancel, MemoryPool};

    #[test]
    fn a_short_record_has_its_parts() {
        let begin = -5_000_000_000_000_000;
        for (person, time, bits) in [
            (0, begin, 0),
            (7, 1_793_000_000_000_000, 5),
            (u32::MAX - 1, begin + (1 << 60) - 1, 1 << 35),
        ] {
            let record = ShortRecord::new(person, begin, time, bits);
            assert_eq!((record.person(), record.time(begin), record.bits()), (person, time, bits));
        }
    }

    #[test]
    fn persons_of_a_pass_have_places_without_gaps() {
        for count in [1, 2, 8] {
            for number in 0..count {
                let pass = Pass { number, count };
                let persons: Vec<u32> = (0..2_048).filter(|of| pass.includes(*of)).collect();
                for (place, person) in persons.into_iter().enumerate() {
                    assert_eq!(pass.place(person), Some(place));
                    assert_eq!(pass.person(place), person);
                }
                assert_eq!(pass.place(number * 64 + 64).is_some(), count == 1);
            }
        }
    }

    fn visited(threads: usize, memory: usize) -> Result<(BTreeMap<u32, Vec<i64>>, u32)> {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(memory));
        let run = Run { threads, cancel: &cancel, memory: &memory };
        let mut passes = 0;
        let found = in_passes(
            |pass| {
                passes = pass.count;
                let kept = (0..3).map(|thread| {
                    let mut kept = ByPerson::new(&run, pass);
                    for at in 0..20_000 {
                        let person = (at * 7 + thread) % 1_000;
                        kept.push(ShortRecord::new(person, 0, i64::from(20_000 - at), 0))?;
                    }
                    kept.push(ShortRecord::new(NONE, 0, 1, 0))?;
                    Ok(kept)
                });
                let kept: Vec<_> = kept.collect::<Result<_>>()?;
                let states = visit(
                    &run,
                    kept,
                    |_| {},
                    BTreeMap::new,
                    |state, person, events| {
                        let times = events.iter().map(|event| event.time(0)).collect();
                        assert!(state.insert(person, times).is_none());
                        Ok(())
                    },
                )?;
                Ok(states.into_iter().flatten().collect::<BTreeMap<u32, Vec<i64>>>())
            },
            |all, more| {
                all.extend(more);
                Ok(())
            },
        );
        Ok((found?, passes))
    }

    #[test]
    fn passes_and_threads_show_the_same_persons() {
        let (all, passes) = visited(1, 1 << 30).unwrap();
        assert_eq!((all.len(), passes), (1_000, 1));
        assert_eq!(all.values().map(Vec::len).sum::<usize>(), 60_000);
        assert!(all.values().all(|times| times.is_sorted()));
        for (threads, memory) in [(3, 1 << 30), (1, 600 << 10), (2, 600 << 10), (2, 300 << 10)] {
            let (found, passes) = visited(threads, memory).unwrap();
            assert!(found == all);
            assert_eq!(passes > 1, memory < 1 << 20, "{passes} passes");
        }
        assert!(matches!(visited(1, 10_000), Err(AnswerError::Memory { .. })));
    }
}
