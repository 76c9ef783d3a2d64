//! Lists of the persons or groups that were found.

use std::sync::Arc;

use weir_segments::NONE;

use crate::by_person::{Pass, in_passes};
use crate::error::Result;
use crate::run::{Reservation, Run};
use crate::texts::Texts;

/// Those who are behind a number.
#[derive(Debug)]
pub(crate) struct Behind<'a> {
    /// The number of each, and how many of its events the number counts.
    pub(crate) actors: Vec<(u32, u64)>,
    /// The type of groups, and their keys in the same order. `None`: they are persons.
    pub(crate) groups: Option<(u8, Vec<Arc<str>>)>,
    pub(crate) memory: Reservation<'a>,
}

/// Persons or groups that were found, by their numbers.
#[derive(Debug)]
pub(crate) struct ActorList<'a> {
    actors: Vec<(u32, u64)>,
    memory: Reservation<'a>,
}

impl<'a> ActorList<'a> {
    pub(crate) fn new(run: &Run<'a>) -> Self {
        Self { actors: Vec::new(), memory: run.memory.reservation() }
    }

    /// Adds one, with the number of its events that count.
    pub(crate) fn push(&mut self, actor: u32, events: u64) -> Result<()> {
        self.grow(1)?;
        self.actors.push((actor, events));
        Ok(())
    }

    /// Adds those of another list.
    pub(crate) fn merge(&mut self, mut other: Self) -> Result<()> {
        self.grow(other.actors.len())?;
        self.actors.append(&mut other.actors);
        Ok(())
    }

    /// Those that the threads of each pass find.
    pub(crate) fn in_passes(
        run: &Run<'a>,
        find: impl Fn(Pass) -> Result<Vec<Self>>,
    ) -> Result<Self> {
        in_passes(
            |pass| {
                let mut all = Self::new(run);
                find(pass)?.into_iter().try_for_each(|list| all.merge(list))?;
                Ok(all)
            },
            Self::merge,
        )
    }

    fn grow(&mut self, more: usize) -> Result<()> {
        let count = self.actors.len() + more;
        if count > self.actors.capacity() {
            let capacity = count.max(self.actors.capacity() * 3 / 2);
            // While it grows, both copies are in memory.
            self.memory.hold((self.actors.len() + capacity) * size_of::<(u32, u64)>())?;
            self.actors.reserve_exact(capacity - self.actors.len());
        }
        Ok(())
    }

    /// The list, with the keys of groups of a type.
    pub(crate) fn finish(mut self, groups: Option<(u8, &Texts<'_>)>) -> Result<Behind<'a>> {
        let Some((group_type, texts)) = groups else {
            return Ok(Behind { actors: self.actors, groups: None, memory: self.memory });
        };
        let keys: Vec<Arc<str>> =
            self.actors.iter().map(|(actor, _)| texts.text(*actor).unwrap_or_default()).collect();
        // The keys outlive the texts of the question.
        let bytes = |key: &Arc<str>| key.len() + size_of::<Arc<str>>() * 2;
        let held = self.actors.capacity() * size_of::<(u32, u64)>();
        self.memory.hold(held + keys.iter().map(bytes).sum::<usize>())?;
        Ok(Behind { actors: self.actors, groups: Some((group_type, keys)), memory: self.memory })
    }
}

/// How many events of each person or group of a pass count, by its place.
#[derive(Debug)]
pub(crate) struct EventCounts<'a> {
    pass: Pass,
    counts: Vec<u64>,
    memory: Reservation<'a>,
}

impl<'a> EventCounts<'a> {
    pub(crate) fn new(run: &Run<'a>, pass: Pass) -> Self {
        Self { pass, counts: Vec::new(), memory: run.memory.reservation() }
    }

    /// Counts an event of a person or group, if it is of the pass. [`NONE`] is not one.
    pub(crate) fn add(&mut self, actor: u32) -> Result<()> {
        match self.pass.place(actor).filter(|_| actor != NONE) {
            Some(place) => self.add_at(place, 1),
            None => Ok(()),
        }
    }

    fn add_at(&mut self, at: usize, events: u64) -> Result<()> {
        if at >= self.counts.len() {
            let length = at + at / 4 + 64;
            // While it grows, both copies are in memory.
            self.memory.hold((self.counts.len() + length) * size_of::<u64>())?;
            self.counts.reserve_exact(length - self.counts.len());
            self.counts.resize(length, 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count += events;
        }
        Ok(())
    }

    /// Those with events.
    pub(crate) fn list(parts: Vec<Self>, run: &Run<'a>, pass: Pass) -> Result<ActorList<'a>> {
        let mut all = Self::new(run, pass);
        for part in parts {
            for (place, events) in part.counts.iter().enumerate().filter(|(_, of)| **of > 0) {
                all.add_at(place, *events)?;
            }
        }
        let mut list = ActorList::new(run);
        for (place, events) in all.counts.iter().enumerate().filter(|(_, events)| **events > 0) {
            list.push(pass.person(place), *events)?;
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::AnswerError;
    use crate::run::{Cancel, MemoryPool};

    #[test]
    fn events_are_counted_by_person_and_need_memory() {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(1 << 20));
        let run = Run { threads: 1, cancel: &cancel, memory: &memory };
        let mut parts = vec![EventCounts::new(&run, Pass::ALL), EventCounts::new(&run, Pass::ALL)];
        for (part, actor) in [(0, 7), (0, 7), (1, 7), (1, 300), (0, NONE)] {
            parts[part].add(actor).unwrap();
        }
        let found = EventCounts::list(parts, &run, Pass::ALL).unwrap().finish(None).unwrap();
        assert_eq!(found.actors, [(7, 3), (300, 1)]);
        assert!(found.groups.is_none());
        drop(found);
        let refused = EventCounts::new(&run, Pass::ALL).add(1 << 20);
        assert!(matches!(refused, Err(AnswerError::Memory { .. })));
        let mut list = ActorList::new(&run);
        let filled = (0..1 << 20).try_for_each(|actor| list.push(actor, 1));
        assert!(matches!(filled, Err(AnswerError::Memory { .. })));
        drop(list);
        assert_eq!(memory.used(), 0);
    }
}
