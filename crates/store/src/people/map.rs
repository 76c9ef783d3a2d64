//! The map of persons of one project: a number for each distinct id, and who is one person.
//!
//! It holds no text of a distinct id, but a hash of 128 bits with a seed of the process. Two
//! texts with one hash would be one person: among ten million ids the chance is below 10⁻²⁴.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashTable;
use twox_hash::XxHash3_128;
use weir_model::{PersonId, ProjectId};

use super::feed::{Merge, MergePosition};
use crate::persons::first_id_of_bytes;
use crate::{Error, Result};

/// Instead of the hash of a text: no event with the distinct id was read.
const NO_TEXT: u128 = 0;
/// Items that a full vector grows by at first and later. To double it would leave up to half
/// of it unused.
const GROWTH: (usize, usize) = (64, 1 << 16);

const NAME: &str = "distinct ids in memory";

/// Distinct ids of a project with their numbers. Numbers stay the same as long as the map
/// exists.
#[derive(Debug)]
pub struct People {
    project: ProjectId,
    seed: Seed,
    ids: RwLock<Ids>,
}

/// Which numbers of a map are one person, as of one moment. Copies share it.
#[derive(Debug, Clone)]
pub struct PersonView {
    roots: Arc<[u32]>,
    version: MergePosition,
}

impl PersonView {
    /// The number of the person of a distinct id, by its number.
    pub fn person(&self, id: u32) -> u32 {
        // A number that was added later has no merges at that moment.
        self.roots.get(id as usize).copied().unwrap_or(id)
    }

    /// How far the merges are here. What was computed from a view of the same version and the
    /// same events is still right.
    pub fn version(&self) -> MergePosition {
        self.version
    }
}

/// The keyed hash of a map.
#[derive(Debug, Clone, Copy)]
struct Seed(u64);

impl Seed {
    fn hash(self, bytes: &[u8]) -> u128 {
        XxHash3_128::oneshot_with_seed(self.0, bytes)
    }

    /// The hash of an id in a table. It has the seed too: a sender chooses distinct ids.
    fn hash_of_id(self, id: PersonId) -> u64 {
        in_table(self.hash(id.0.as_bytes()))
    }
}

/// The part of a hash that tables use.
fn in_table(hash: u128) -> u64 {
    hash as u64
}

/// What a map holds, by number.
#[derive(Debug)]
struct Ids {
    seed: Seed,
    /// The largest number of ids.
    most: usize,
    /// Numbers by the hash of the distinct id.
    by_text: HashTable<u32>,
    /// Numbers by the first id.
    by_first_id: HashTable<u32>,
    /// Hashes of distinct ids.
    texts: Vec<u128>,
    first_ids: Vec<PersonId>,
    /// What each was merged into, directly or through others; its own number: nothing.
    into: Vec<u32>,
    /// The persons of all numbers, until a merge is added.
    roots: Option<Arc<[u32]>>,
}

impl People {
    /// A map of at most so many ids.
    pub(super) fn of(project: ProjectId, most: usize) -> Self {
        let seed = Seed(RandomState::new().hash_one(project));
        let ids = Ids {
            seed,
            most,
            by_text: HashTable::new(),
            by_first_id: HashTable::new(),
            texts: Vec::new(),
            first_ids: Vec::new(),
            into: Vec::new(),
            roots: None,
        };
        Self { project, seed, ids: RwLock::new(ids) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Ids> {
        self.ids.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Ids> {
        self.ids.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the numbers of distinct ids, in the same order. Pass about a thousand at a time:
    /// the lock is taken once for those that are known, and once for new ones.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the map has as many ids as it may have. `into` has numbers
    /// without a meaning then.
    pub fn numbers(&self, distinct_ids: &[&[u8]], into: &mut Vec<u32>) -> Result<()> {
        let hashes: Vec<u128> = distinct_ids.iter().map(|id| self.seed.hash(id)).collect();
        let mut new: Vec<(usize, u128, &[u8])> = Vec::new();
        {
            let ids = self.read();
            for (distinct_id, hash) in distinct_ids.iter().zip(hashes) {
                let number = ids.find_text(hash);
                if number.is_none() {
                    new.push((into.len(), hash, *distinct_id));
                }
                into.push(number.unwrap_or_default());
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        // It is slow, so it comes before the lock.
        let first_ids = new.iter().map(|(.., id)| first_id_of_bytes(self.project, id));
        let first_ids: Vec<PersonId> = first_ids.collect();
        let mut ids = self.write();
        for ((at, hash, _), first_id) in new.into_iter().zip(first_ids) {
            let number = ids.add_text(hash, first_id)?;
            if let Some(place) = into.get_mut(at) {
                *place = number;
            }
        }
        Ok(())
    }

    /// Calls `see` with the first id of each distinct id among these numbers, and its place among
    /// them. Other numbers are skipped.
    pub(crate) fn each_first_id(&self, numbers: &[u32], mut see: impl FnMut(usize, PersonId)) {
        let ids = self.read();
        for (at, number) in numbers.iter().enumerate() {
            if let Some(first_id) = ids.first_ids.get(*number as usize) {
                see(at, *first_id);
            }
        }
    }

    /// Calls `see` with the number of each first id. New ids are added.
    pub(super) fn each_number<T: Copy>(
        &self,
        first_ids: &[(PersonId, T)],
        mut see: impl FnMut(u32, T),
    ) -> Result<()> {
        let mut ids = self.write();
        first_ids.iter().try_for_each(|(first_id, of)| {
            see(ids.add(*first_id)?, *of);
            Ok(())
        })
    }

    /// The id of the person with this number, whether or not it has a record. `None`: the map
    /// has no such number.
    pub fn person_id(&self, person: u32) -> Option<PersonId> {
        self.read().first_ids.get(person as usize).copied()
    }

    /// The bytes that the map holds, without views.
    pub fn bytes(&self) -> usize {
        self.read().bytes()
    }

    /// Whether a question can still add half of the ids that a map may have.
    pub(super) fn has_space(&self) -> bool {
        let ids = self.read();
        ids.first_ids.len() <= ids.most / 2
    }

    /// Adds merges. Merges that are here already may be among them.
    pub(super) fn merge(&self, merges: &[Merge]) -> Result<()> {
        if merges.is_empty() {
            return Ok(());
        }
        let mut ids = self.write();
        ids.roots = None;
        merges.iter().try_for_each(|(from, into)| ids.merge(*from, *into))
    }

    /// The persons as of now, when the merges up to a position are here.
    pub(super) fn view(&self, version: MergePosition) -> PersonView {
        let roots = self.read().roots.clone();
        PersonView { roots: roots.unwrap_or_else(|| self.write().find_roots()), version }
    }
}

impl Ids {
    fn find_text(&self, text: u128) -> Option<u32> {
        let is_same = |number: &u32| self.texts.get(*number as usize) == Some(&text);
        self.by_text.find(in_table(text), is_same).copied()
    }

    fn find_id(&self, first_id: PersonId) -> Option<u32> {
        let is_same = |number: &u32| self.first_ids.get(*number as usize) == Some(&first_id);
        self.by_first_id.find(self.seed.hash_of_id(first_id), is_same).copied()
    }

    /// The number of an id, which is added if it is new.
    fn add(&mut self, first_id: PersonId) -> Result<u32> {
        if let Some(number) = self.find_id(first_id) {
            return Ok(number);
        }
        let number = u32::try_from(self.first_ids.len()).unwrap_or(u32::MAX);
        if number as usize >= self.most {
            return Err(Error::TooLarge { statement: NAME });
        }
        push(&mut self.first_ids, first_id);
        push(&mut self.texts, NO_TEXT);
        push(&mut self.into, number);
        let (seed, first_ids) = (self.seed, &self.first_ids);
        let hash = |number: &u32| {
            first_ids.get(*number as usize).map_or(0, |first_id| seed.hash_of_id(*first_id))
        };
        self.by_first_id.insert_unique(seed.hash_of_id(first_id), number, hash);
        Ok(number)
    }

    /// The number of a distinct id, which is added if it is new.
    fn add_text(&mut self, text: u128, first_id: PersonId) -> Result<u32> {
        // Another thread may have added it.
        if let Some(number) = self.find_text(text) {
            return Ok(number);
        }
        let number = self.add(first_id)?;
        // An id has one text, so that damaged data cannot fill the table.
        if let Some(place) = self.texts.get_mut(number as usize).filter(|of| **of == NO_TEXT) {
            *place = text;
            let texts = &self.texts;
            let hash = |number: &u32| texts.get(*number as usize).map_or(0, |of| in_table(*of));
            self.by_text.insert_unique(in_table(text), number, hash);
        }
        Ok(number)
    }

    fn merge(&mut self, from: PersonId, into: PersonId) -> Result<()> {
        let (from, into) = (self.add(from)?, self.add(into)?);
        let root = self.root(into);
        // A ring would be damaged data.
        if root != from {
            self.lead(from, root);
        }
        Ok(())
    }

    /// The number that an id leads to. Each step halves the rest of the chain.
    fn root(&mut self, id: u32) -> u32 {
        let mut at = id;
        loop {
            let next = self.next(at);
            let after = self.next(next);
            if after == next {
                return next;
            }
            self.lead(at, after);
            at = after;
        }
    }

    fn next(&self, id: u32) -> u32 {
        self.into.get(id as usize).copied().unwrap_or(id)
    }

    fn lead(&mut self, id: u32, into: u32) {
        if let Some(place) = self.into.get_mut(id as usize) {
            *place = into;
        }
    }

    fn find_roots(&mut self) -> Arc<[u32]> {
        let count = u32::try_from(self.into.len()).unwrap_or(u32::MAX);
        let roots: Arc<[u32]> = (0..count).map(|id| self.root(id)).collect();
        self.roots = Some(Arc::clone(&roots));
        roots
    }

    fn bytes(&self) -> usize {
        let tables = [&self.by_text, &self.by_first_id].map(|table| table.allocation_size());
        let roots = self.roots.as_ref().map_or(0, |roots| size_of_val(&**roots));
        tables.iter().sum::<usize>()
            + self.texts.capacity() * size_of::<u128>()
            + self.first_ids.capacity() * size_of::<PersonId>()
            + self.into.capacity() * size_of::<u32>()
            + roots
    }
}

fn push<T>(items: &mut Vec<T>, item: T) {
    if items.len() == items.capacity() {
        items.reserve_exact(items.len().clamp(GROWTH.0, GROWTH.1));
    }
    items.push(item);
}
