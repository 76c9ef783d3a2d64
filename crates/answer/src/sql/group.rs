//! The groups of a question.

use std::collections::HashMap;

use weir_query::AggregateCall;

use super::aggregate::State;
use super::value::{Owned, borrowed, is_shown_before, push_key, row_bytes};
use crate::error::{AnswerError, Result};
use crate::run::{Reservation, Run};

/// Most groups.
const GROUPS_MAX: usize = 1_000_000;
/// Bytes of a group beside its keys and states.
const ENTRY: usize = 160;

/// Groups by the bytes of their keys.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    groups: HashMap<Box<[u8]>, Group>,
    bytes: usize,
    memory: Reservation<'a>,
}

/// A group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) keys: Vec<Owned>,
    pub(super) states: Vec<State>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(run: &Run<'a>) -> Self {
        Self { groups: HashMap::new(), bytes: 0, memory: run.memory.reservation() }
    }

    /// The group with these keys, whose bytes are `key`. A new one begins with the states.
    /// `add` changes its states, and returns the bytes by which they have grown.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        keys: Vec<weir_query::Value<'_>>,
        calls: &[AggregateCall],
        add: impl FnOnce(&mut [State]) -> Result<usize>,
    ) -> Result<()> {
        if !self.groups.contains_key(key) {
            let states = calls.iter().map(|call| State::new(call.aggregate)).collect();
            let keys = keys.into_iter().map(weir_query::Value::into_owned).collect();
            return self.insert(key.into(), Group { keys, states }, add);
        }
        let Some(group) = self.groups.get_mut(key) else { return Ok(()) };
        for (known, new) in group.keys.iter_mut().zip(&keys) {
            if is_shown_before(new, known) {
                *known = borrowed(new).into_owned();
            }
        }
        let more = add(&mut group.states)?;
        self.grow(more)
    }

    fn insert(
        &mut self,
        key: Box<[u8]>,
        mut group: Group,
        add: impl FnOnce(&mut [State]) -> Result<usize>,
    ) -> Result<()> {
        if self.groups.len() == GROUPS_MAX {
            return Err(AnswerError::TooLarge { what: "groups".to_owned(), limit: GROUPS_MAX });
        }
        let states = size_of_val(&group.states[..]);
        self.grow(ENTRY + 2 * key.len() + row_bytes(&group.keys) + states)?;
        let more = add(&mut group.states)?;
        self.groups.insert(key, group);
        self.grow(more)
    }

    fn grow(&mut self, more: usize) -> Result<()> {
        match more {
            0 => Ok(()),
            more => self.memory.hold_more(&mut self.bytes, more),
        }
    }

    /// Adds the groups that another thread found.
    pub(super) fn merge(&mut self, other: Self) -> Result<()> {
        for (key, group) in other.groups {
            match self.groups.get_mut(&key) {
                None => self.insert(key, group, |_| Ok(0))?,
                Some(known) => {
                    let mut more = 0;
                    for (known, new) in known.keys.iter_mut().zip(group.keys) {
                        if is_shown_before(&new, known) {
                            *known = new;
                        }
                    }
                    for (known, new) in known.states.iter_mut().zip(group.states) {
                        more += known.merge(new)?;
                    }
                    self.grow(more)?;
                }
            }
        }
        Ok(())
    }

    /// The group of all rows, if there is no other.
    pub(super) fn add_if_empty(&mut self, calls: &[AggregateCall]) -> Result<()> {
        match self.groups.is_empty() {
            true => self.add(&[], Vec::new(), calls, |_| Ok(0)),
            false => Ok(()),
        }
    }

    /// The groups, in no order.
    pub(super) fn into_groups(self) -> (impl Iterator<Item = Group>, Reservation<'a>) {
        (self.groups.into_values(), self.memory)
    }
}

/// The bytes of keys.
pub(super) fn key_of(key: &mut Vec<u8>, values: &[weir_query::Value<'_>]) {
    key.clear();
    values.iter().for_each(|value| push_key(key, value));
}
