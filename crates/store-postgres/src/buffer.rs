//! The writes of a transaction, in memory until its commit.

use std::collections::BTreeMap;
use std::ops::Bound;

use surrealdb_kvs::{Direction, Error, Result};

/// A key, and the value that it will have. `None`: it will be removed.
pub(crate) type Write = (Vec<u8>, Option<Vec<u8>>);

/// The writes, in the order of their keys.
#[derive(Default)]
pub(crate) struct WriteBuffer {
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// For each open save point, what its writes replaced, in the order of these writes.
    save_points: Vec<Vec<Replaced>>,
}

/// What a write replaced in the buffer. `None`: the key was not in it.
struct Replaced {
    key: Vec<u8>,
    write: Option<Option<Vec<u8>>>,
}

impl WriteBuffer {
    /// Writes a key, or removes it.
    pub(crate) fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        match self.save_points.last_mut() {
            Some(replaced) => {
                let write = self.writes.insert(key.clone(), value);
                replaced.push(Replaced { key, write });
            }
            None => _ = self.writes.insert(key, value),
        }
    }

    /// What is written to this key. `None`: nothing.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.writes.get(key).map(Option::as_deref)
    }

    /// The writes to the keys from `start` (inclusive) to `end` (exclusive).
    fn range(
        &self,
        start: &[u8],
        end: &[u8],
    ) -> impl DoubleEndedIterator<Item = (&Vec<u8>, &Option<Vec<u8>>)> {
        // A range that ends before it begins would panic.
        let end = end.max(start);
        self.writes.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)))
    }

    /// Whether there is a write to a key of this range.
    pub(crate) fn touches(&self, start: &[u8], end: &[u8]) -> bool {
        self.range(start, end).next().is_some()
    }

    /// Copies of the writes to the keys of this range, in this order.
    pub(crate) fn copied(&self, start: &[u8], end: &[u8], direction: Direction) -> Vec<Write> {
        let copy = |(key, value): (&Vec<u8>, &Option<Vec<u8>>)| (key.clone(), value.clone());
        match direction {
            Direction::Forward => self.range(start, end).map(copy).collect(),
            Direction::Backward => self.range(start, end).rev().map(copy).collect(),
        }
    }

    /// The keys of this range that are written, and how many of them will have a value.
    pub(crate) fn keys(&self, start: &[u8], end: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let keys = self.range(start, end).map(|(key, _)| key.clone()).collect();
        (keys, self.range(start, end).filter(|(_, value)| value.is_some()).count())
    }

    /// All writes, in the order of their keys.
    pub(crate) fn into_writes(self) -> impl Iterator<Item = Write> {
        self.writes.into_iter()
    }

    /// Opens a save point.
    pub(crate) fn save(&mut self) {
        self.save_points.push(Vec::new());
    }

    /// Closes the last save point. The one around it can still undo its writes. Has no effect
    /// if none is open.
    pub(crate) fn release(&mut self) {
        if let Some(replaced) = self.save_points.pop()
            && let Some(around) = self.save_points.last_mut()
        {
            around.extend(replaced);
        }
    }

    /// Undoes the writes since the last save point, and closes it.
    ///
    /// # Errors
    /// [`Error::NoSavepoint`] when none is open.
    pub(crate) fn undo(&mut self) -> Result<()> {
        let replaced = self.save_points.pop().ok_or(Error::NoSavepoint)?;
        for Replaced { key, write } in replaced.into_iter().rev() {
            match write {
                Some(write) => _ = self.writes.insert(key, write),
                None => _ = self.writes.remove(&key),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(buffer: &mut WriteBuffer, key: &str, value: &str) {
        buffer.write(key.into(), Some(value.into()));
    }

    fn all(buffer: &WriteBuffer) -> Vec<(String, Option<String>)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let copied = buffer.copied(b"", &[0xff], Direction::Forward);
        copied.into_iter().map(|(key, value)| (text(key), value.map(text))).collect()
    }

    fn is(key: &str, value: &str) -> (String, Option<String>) {
        (key.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn a_save_point_undoes_what_released_ones_in_it_wrote() {
        let mut buffer = WriteBuffer::default();
        assert!(matches!(buffer.undo(), Err(Error::NoSavepoint)));
        buffer.release();
        set(&mut buffer, "a", "1");
        buffer.save();
        set(&mut buffer, "a", "2");
        buffer.save();
        set(&mut buffer, "a", "3");
        set(&mut buffer, "b", "3");
        buffer.write(b"a".to_vec(), None);
        buffer.release();
        assert_eq!(all(&buffer), [("a".to_owned(), None), is("b", "3")]);
        buffer.save();
        set(&mut buffer, "c", "4");
        buffer.undo().unwrap();
        assert_eq!(all(&buffer), [("a".to_owned(), None), is("b", "3")]);
        buffer.undo().unwrap();
        assert_eq!(all(&buffer), [is("a", "1")]);
        assert!(matches!(buffer.undo(), Err(Error::NoSavepoint)));
    }

    #[test]
    fn a_range_ends_before_its_end() {
        let mut buffer = WriteBuffer::default();
        for key in ["a", "b", "b\0", "c"] {
            set(&mut buffer, key, key);
        }
        let found = buffer.copied(b"a", b"b\0", Direction::Backward);
        assert_eq!(found.iter().map(|(key, _)| key.as_slice()).collect::<Vec<_>>(), [b"b", b"a"]);
        assert!(!buffer.touches(b"a\0", b"b"));
        assert!(!buffer.touches(b"c", b"a"), "it ends before it begins");
        assert_eq!(buffer.keys(b"b", b"c"), (vec![b"b".to_vec(), b"b\0".to_vec()], 2));
    }
}
