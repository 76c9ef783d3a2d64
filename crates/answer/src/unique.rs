//! Different persons, groups or sessions in each cell of a result.

use crate::error::{AnswerError, Result};
use crate::run::{Reservation, Run};

/// Most bytes of bits. What needs more is kept as pairs.
const BITS_MAX: usize = 32 << 20;
/// Pairs after which equal ones are removed for the first time.
const PAIRS: usize = 64 << 10;

/// Which actors are in which cells.
#[derive(Debug)]
pub(crate) struct Unique<'a> {
    form: Form,
    memory: Reservation<'a>,
}

#[derive(Debug)]
enum Form {
    /// A bit for each actor, by cell.
    Bits { cells: Vec<Vec<u64>>, bytes: usize },
    /// The cell in the upper half and the actor in the lower one. Equal pairs are removed when
    /// there are as many as `limit`.
    Pairs { pairs: Vec<u64>, limit: usize },
}

impl<'a> Unique<'a> {
    /// `is_dense`: most actors are in most cells.
    pub(crate) fn new(run: &Run<'a>, is_dense: bool) -> Self {
        let form = match is_dense {
            true => Form::Bits { cells: Vec::new(), bytes: 0 },
            false => Form::Pairs { pairs: Vec::new(), limit: PAIRS },
        };
        Self { form, memory: run.memory.reservation() }
    }

    pub(crate) fn insert(&mut self, cell: usize, actor: u32) -> Result<()> {
        let (word, bit) = ((actor / u64::BITS) as usize, actor % u64::BITS);
        if let Form::Bits { cells, .. } = &mut self.form
            && let Some(place) = cells.get_mut(cell).and_then(|words| words.get_mut(word))
        {
            *place |= 1 << bit;
            return Ok(());
        }
        self.insert_new(cell, actor)
    }

    fn insert_new(&mut self, cell: usize, actor: u32) -> Result<()> {
        if let Form::Bits { cells, bytes } = &mut self.form {
            let word = (actor / u64::BITS) as usize;
            if cells.len() <= cell {
                cells.resize_with(cell + 1, Vec::new);
            }
            let words = &mut cells[cell];
            // Room for more, so that a cell grows seldom.
            let length = (word + word / 4 + 64).next_multiple_of(8);
            let more = length.saturating_sub(words.len()) * size_of::<u64>();
            if *bytes + more <= BITS_MAX {
                *bytes += more;
                let held = *bytes + cells.len() * size_of::<Vec<u64>>();
                self.memory.hold(held)?;
                let words = &mut cells[cell];
                words.reserve_exact(length - words.len());
                words.resize(length, 0);
                words[word] |= 1 << (actor % u64::BITS);
                return Ok(());
            }
            self.make_pairs()?;
        }
        self.push(pair(cell, actor)?)
    }

    /// Keeps pairs from here on, if it kept bits.
    fn make_pairs(&mut self) -> Result<()> {
        let Form::Bits { cells, bytes } = &mut self.form else { return Ok(()) };
        let (cells, bytes) = (std::mem::take(cells), *bytes);
        self.form = Form::Pairs { pairs: Vec::new(), limit: PAIRS };
        let count: usize = cells.iter().flatten().map(|word| word.count_ones() as usize).sum();
        self.memory.hold(bytes + count * size_of::<u64>())?;
        if let Form::Pairs { pairs, limit } = &mut self.form {
            pairs.reserve_exact(count);
            *limit = PAIRS.max(count * 2);
        }
        for (cell, words) in cells.into_iter().enumerate() {
            for_each_bit(&words, |actor| self.push(pair(cell, actor)?))?;
        }
        Ok(())
    }

    fn push(&mut self, pair: u64) -> Result<()> {
        let Form::Pairs { pairs, limit } = &mut self.form else { return Ok(()) };
        if pairs.len() == *limit {
            pairs.sort_unstable();
            pairs.dedup();
            *limit = PAIRS.max(pairs.len() * 2);
        }
        if pairs.len() == pairs.capacity() {
            let more = pairs.len().max(PAIRS / 64).min(*limit - pairs.len());
            // While it grows, both copies are in memory.
            self.memory.hold((2 * pairs.len() + more) * size_of::<u64>())?;
            pairs.reserve_exact(more);
        }
        pairs.push(pair);
        Ok(())
    }

    /// Inserts the actors of another one, in the cells that `to` says.
    pub(crate) fn merge(
        &mut self,
        other: &Self,
        to: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        match &other.form {
            Form::Bits { cells, .. } => {
                for (cell, words) in cells.iter().enumerate() {
                    let Some(cell) = to(cell) else { continue };
                    for_each_bit(words, |actor| self.insert(cell, actor))?;
                }
            }
            Form::Pairs { pairs, .. } => {
                for pair in pairs {
                    if let Some(cell) = to((pair >> u32::BITS) as usize) {
                        self.insert(cell, *pair as u32)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The number of actors that are in each cell, and in no cell before it of the same row.
    pub(crate) fn first_counts(
        mut self,
        cells: usize,
        row: impl Fn(usize) -> usize,
    ) -> Result<Vec<u64>> {
        self.make_pairs()?;
        let mut counts = vec![0; cells];
        let Form::Pairs { mut pairs, .. } = self.form else { return Ok(counts) };
        pairs.sort_unstable();
        pairs.dedup();
        // Rows with actors, and the cell of each; cells come in their order.
        self.memory.hold(pairs.len() * (size_of::<u64>() + size_of::<(u64, u32)>()))?;
        let mut firsts: Vec<(u64, u32)> = Vec::with_capacity(pairs.len());
        for found in pairs {
            let cell = (found >> u32::BITS) as u32;
            firsts.push((pair(row(cell as usize), found as u32)?, cell));
        }
        firsts.sort_unstable();
        firsts.dedup_by_key(|(row, _)| *row);
        for (_, cell) in firsts {
            if let Some(count) = counts.get_mut(cell as usize) {
                *count += 1;
            }
        }
        Ok(counts)
    }

    /// The number of different actors in each cell.
    pub(crate) fn counts(mut self, cells: usize) -> Vec<u64> {
        let mut counts = vec![0; cells];
        match &mut self.form {
            Form::Bits { cells, .. } => {
                for (count, words) in counts.iter_mut().zip(cells) {
                    *count = words.iter().map(|word| u64::from(word.count_ones())).sum();
                }
            }
            Form::Pairs { pairs, .. } => {
                pairs.sort_unstable();
                pairs.dedup();
                for pair in pairs {
                    if let Some(count) = counts.get_mut((*pair >> u32::BITS) as usize) {
                        *count += 1;
                    }
                }
            }
        }
        counts
    }
}

fn pair(cell: usize, actor: u32) -> Result<u64> {
    let limit = u32::MAX as usize;
    let cell = u64::try_from(cell).ok().filter(|cell| *cell <= u64::from(u32::MAX));
    match cell {
        Some(cell) => Ok(cell << u32::BITS | u64::from(actor)),
        None => Err(AnswerError::TooLarge { what: "numbers".to_owned(), limit }),
    }
}

fn for_each_bit(words: &[u64], mut see: impl FnMut(u32) -> Result<()>) -> Result<()> {
    for (at, word) in (0_u32..).zip(words) {
        let mut left = *word;
        while left != 0 {
            see(at * u64::BITS + left.trailing_zeros())?;
            left &= left - 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::run::{Cancel, MemoryPool};

    fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        }
    }

    #[test]
    fn bits_and_pairs_count_the_same() {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(usize::MAX));
        let run = Run { threads: 1, cancel: &cancel, memory: &memory };
        // The third one grows by little, and the last one has more bits than there may be.
        for (cells, actors, count) in
            [(1, 1, 3), (7, 500, 9_000), (1, 32_780, 140_000), (900, 3_000_000, 150_000)]
        {
            let mut next = random(7);
            let mut expected: HashSet<(usize, u32)> = HashSet::new();
            let mut both = [Unique::new(&run, true), Unique::new(&run, false)];
            let mut parts = [Unique::new(&run, true), Unique::new(&run, false)];
            for at in 0..count {
                let (cell, actor) = (next(cells) as usize, next(actors) as u32);
                expected.insert((cell, actor));
                for (one, part) in both.iter_mut().zip(&mut parts) {
                    let into = if at % 3 == 0 { part } else { one };
                    into.insert(cell, actor).unwrap();
                }
            }
            let mut counts = vec![0; cells as usize];
            expected.iter().for_each(|(cell, _)| counts[*cell] += 1);
            let all: HashSet<u32> = expected.iter().map(|(_, actor)| *actor).collect();
            for (mut one, part) in both.into_iter().zip(parts) {
                one.merge(&part, Some).unwrap();
                let mut joined = Unique::new(&run, false);
                joined.merge(&one, |_| Some(0)).unwrap();
                assert_eq!(joined.counts(1), [all.len() as u64]);
                assert_eq!(one.counts(cells as usize), counts);
            }
        }
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn actors_need_memory() {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(1 << 20));
        let run = Run { threads: 1, cancel: &cancel, memory: &memory };
        for is_dense in [true, false] {
            let mut unique = Unique::new(&run, is_dense);
            let filled = (0..10_000_000).try_for_each(|actor| unique.insert(0, actor));
            assert!(matches!(filled, Err(AnswerError::Memory { .. })));
        }
    }
}
