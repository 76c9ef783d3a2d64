//! Reading ranges of keys, in pages, merged with the writes of the transaction.
//!
//! A page begins after the last key of the one before, so no cursor of the server stays open.

use std::cmp::Ordering;
use std::iter::Peekable;

use surrealdb_kvs::{Direction, KeyRange, Result, Val};
use tokio_postgres::types::ToSql;

use crate::buffer::Write;
use crate::connection::Chosen;
use crate::transaction::{PostgresTransaction, State, column};

/// The largest number of keys in a page, and of keys with their values.
const KEYS_PER_PAGE: usize = 10_000;
const VALUES_PER_PAGE: usize = 1000;

/// What a scan reads of a range.
#[derive(Clone, Copy)]
pub(crate) struct ScanRequest {
    direction: Direction,
    has_values: bool,
    limit: usize,
    skip: usize,
}

impl ScanRequest {
    /// Keys without their values.
    pub(crate) fn keys(direction: Direction, limit: u32, skip: u32) -> Self {
        Self { has_values: false, ..Self::values(direction, limit, skip) }
    }

    /// Keys with their values.
    pub(crate) fn values(direction: Direction, limit: u32, skip: u32) -> Self {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self { direction, has_values: true, limit: number(limit), skip: number(skip) }
    }

    fn statement(self) -> Chosen {
        match (self.has_values, self.direction) {
            (true, Direction::Forward) => |all| &all.values,
            (true, Direction::Backward) => |all| &all.values_backward,
            (false, Direction::Forward) => |all| &all.keys,
            (false, Direction::Backward) => |all| &all.keys_backward,
        }
    }

    fn page(self) -> usize {
        if self.has_values { VALUES_PER_PAGE } else { KEYS_PER_PAGE }
    }
}

impl PostgresTransaction {
    /// Reads the first keys of a range that are not skipped, or the last ones.
    pub(crate) async fn scan_range(
        &self,
        state: &mut State,
        range: KeyRange<'_>,
        request: ScanRequest,
    ) -> Result<Vec<(Vec<u8>, Val)>> {
        let (mut start, mut end) = (range.start.into_vec(), range.end.into_vec());
        let ScanRequest { direction, limit, mut skip, .. } = request;
        let mut found = Vec::new();
        while found.len() < limit && start < end {
            // Without own writes the server skips. It passes over these rows all the same.
            let is_plain = !state.buffer.touches(&start, &end);
            let offset = if is_plain { std::mem::take(&mut skip) } else { 0 };
            let size = (limit - found.len()).saturating_add(skip).min(request.page());
            let rows = self.page(state, &start, &end, (size, offset), request).await?;
            let is_last = rows.len() < size;
            // The part of the range that this page is about.
            let (mut from, mut to) = (start.clone(), end.clone());
            if let Some((last, _)) = rows.last()
                && !is_last
            {
                match direction {
                    Direction::Forward => {
                        to.clone_from(last);
                        to.push(0);
                    }
                    Direction::Backward => from.clone_from(last),
                }
            }
            let written = state.buffer.copied(&from, &to, direction);
            for entry in merged(rows, written, direction) {
                if skip > 0 {
                    skip -= 1;
                } else if found.len() < limit {
                    found.push(entry);
                } else {
                    break;
                }
            }
            if is_last {
                break;
            }
            match direction {
                Direction::Forward => start = to,
                Direction::Backward => end = from,
            }
        }
        Ok(found)
    }

    /// Reads at most `size` keys after the first `offset` ones.
    async fn page(
        &self,
        state: &mut State,
        start: &[u8],
        end: &[u8],
        (size, offset): (usize, usize),
        request: ScanRequest,
    ) -> Result<Vec<(Vec<u8>, Val)>> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let (size, offset) = (number(size), number(offset));
        let parameters: [&(dyn ToSql + Sync); 4] = [&start, &end, &size, &offset];
        let rows = self.rows(state, request.statement(), &parameters).await?;
        let mut page = Vec::with_capacity(rows.len());
        for row in &rows {
            let value = if request.has_values { column(row, 1)? } else { Vec::new() };
            page.push((column(row, 0)?, value));
        }
        Ok(page)
    }

    /// The number of keys of a range.
    pub(crate) async fn count_range(
        &self,
        state: &mut State,
        range: &KeyRange<'_>,
    ) -> Result<usize> {
        if range.is_empty() {
            return Ok(0);
        }
        let (start, end) = (range.start.as_slice(), range.end.as_slice());
        let rows = self.rows(state, |all| &all.count, &[&start, &end]).await?;
        let stored: i64 = rows.first().map_or(Ok(0), |row| column(row, 0))?;
        let (written, with_value) = state.buffer.keys(start, end);
        if written.is_empty() {
            return Ok(usize::try_from(stored).unwrap_or(usize::MAX));
        }
        let rows = self.rows(state, |all| &all.count_of, &[&written]).await?;
        let replaced: i64 = rows.first().map_or(Ok(0), |row| column(row, 0))?;
        let others = usize::try_from(stored - replaced).unwrap_or_default();
        Ok(others.saturating_add(with_value))
    }
}

/// The rows of a page with the writes of the transaction, in the order of both.
fn merged(
    rows: Vec<(Vec<u8>, Val)>,
    written: Vec<Write>,
    direction: Direction,
) -> impl Iterator<Item = (Vec<u8>, Val)> {
    let (mut rows, mut written) = (rows.into_iter().peekable(), written.into_iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (rows.peek(), written.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((row, _)), Some((write, _))) => match direction {
                    Direction::Forward => row.cmp(write),
                    Direction::Backward => write.cmp(row),
                },
            };
            if order == Ordering::Less {
                return rows.next();
            }
            if order == Ordering::Equal {
                rows.next();
            }
            // A key that the transaction has removed is passed over.
            if let Some(entry) = next_value(&mut written) {
                return Some(entry);
            }
        }
    })
}

/// The next write, if it does not remove its key.
fn next_value(written: &mut Peekable<impl Iterator<Item = Write>>) -> Option<(Vec<u8>, Val)> {
    let (key, value) = written.next()?;
    Some((key, value?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(entries: impl Iterator<Item = (Vec<u8>, Val)>) -> String {
        let word = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        entries.map(|(key, value)| format!("{}{} ", word(key), word(value))).collect()
    }

    #[test]
    fn writes_replace_remove_and_add_rows_in_both_directions() {
        let rows = || {
            let keys = ["b", "d", "e"].into_iter();
            keys.map(|key| (key.into(), b"1".to_vec())).collect::<Vec<(Vec<u8>, Val)>>()
        };
        let written = || -> Vec<Write> {
            [("a", Some("2")), ("b", None), ("c", None), ("d", Some("2")), ("f", Some("2"))]
                .into_iter()
                .map(|(key, value)| (key.into(), value.map(Into::into)))
                .collect()
        };
        assert_eq!(text(merged(rows(), written(), Direction::Forward)), "a2 d2 e1 f2 ");
        let (mut rows, mut written) = (rows(), written());
        rows.reverse();
        written.reverse();
        assert_eq!(text(merged(rows, written, Direction::Backward)), "f2 e1 d2 a2 ");
    }
}
