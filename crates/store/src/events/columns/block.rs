//! The columns of a block that was not sealed when a snapshot was made.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use weir_segments::{Bits, Codes, NONE};

use super::{Block, EventSnapshot, Needed};
use crate::erasures::Erased;
use crate::events::block::{BorrowedEvent, each_plain};
use crate::events::read::read_encoded;
use crate::{Error, Result, Store};

/// What most questions need of the events of a block, in order of arrival. It has events that
/// are to be erased too.
#[derive(Debug, PartialEq, Eq)]
pub struct BlockColumns {
    arrivals: Vec<u64>,
    times: Vec<i64>,
    names: Codes,
    distinct_ids: Codes,
}

/// An open block.
pub struct OpenBlock {
    partition: u16,
    columns: Arc<BlockColumns>,
    erased: Option<Arc<Erased>>,
    /// The events before compression. `None`: the columns alone were needed.
    encoded: Option<Vec<u8>>,
    _room: Option<OwnedSemaphorePermit>,
}

/// Opens a block; `None`: it was removed.
pub(super) async fn open(
    store: &Store,
    snapshot: &EventSnapshot,
    block: Block,
    needed: Needed,
) -> Result<Option<OpenBlock>> {
    let (project, Block { block_ref, last, bytes, is_open }) = (snapshot.project, block);
    let (partition, erased) = (block_ref.0, snapshot.erased.clone());
    if needed == Needed::Columns
        && !is_open
        && let Some(columns) = store.blocks.columns(project, block_ref)
    {
        return Ok(Some(OpenBlock { partition, columns, erased, encoded: None, _room: None }));
    }
    let room = snapshot.room(bytes).await?;
    let removals = store.blocks.removals();
    let Some(encoded) = read_encoded(store, project, block_ref).await? else { return Ok(None) };
    let columns = Arc::new(BlockColumns::of(&encoded, last)?);
    if !is_open {
        store.blocks.put_columns(project, block_ref, Arc::clone(&columns), removals);
    }
    let (encoded, _room) = match needed {
        Needed::Columns => (None, None),
        Needed::Events => (Some(encoded), Some(room)),
    };
    Ok(Some(OpenBlock { partition, columns, erased, encoded, _room }))
}

impl BlockColumns {
    /// The columns of the events up to an arrival number.
    pub(in crate::events) fn of(encoded: &[u8], last: u64) -> Result<Self> {
        let (mut arrivals, mut times) = (Vec::new(), Vec::new());
        let (mut names, mut distinct_ids) = (Texts::default(), Texts::default());
        each_plain::<BorrowedEvent<'_>>(encoded, |event| {
            if event.arrival > last {
                return ControlFlow::Break(());
            }
            arrivals.push(event.arrival);
            times.push(event.timestamp);
            names.push(event.event);
            distinct_ids.push(event.distinct_id);
            ControlFlow::Continue(())
        })?;
        arrivals.shrink_to_fit();
        times.shrink_to_fit();
        Ok(Self { arrivals, times, names: names.codes(), distinct_ids: distinct_ids.codes() })
    }

    /// Roughly the bytes that it takes.
    pub(in crate::events) fn memory(&self) -> usize {
        let of_codes = |Codes { codes, values }: &Codes| {
            let texts = values.iter().map(|text| size_of_val(text) + text.len());
            size_of_val(&codes[..]) + texts.sum::<usize>()
        };
        size_of::<Self>()
            + size_of_val(&self.arrivals[..])
            + size_of_val(&self.times[..])
            + of_codes(&self.names)
            + of_codes(&self.distinct_ids)
    }

    /// The arrival number of each event.
    pub fn arrivals(&self) -> &[u64] {
        &self.arrivals
    }

    /// The time of each event, microseconds since 1970.
    pub fn times(&self) -> &[i64] {
        &self.times
    }

    /// The name of each event.
    pub fn names(&self) -> &Codes {
        &self.names
    }

    /// The distinct id of each event.
    pub fn distinct_ids(&self) -> &Codes {
        &self.distinct_ids
    }
}

impl OpenBlock {
    /// The partition of its events.
    pub fn partition(&self) -> u16 {
        self.partition
    }

    /// Its columns.
    pub fn columns(&self) -> &BlockColumns {
        &self.columns
    }

    /// The rows that are events of erased persons. The reader must omit them. `None`: there
    /// are none.
    pub fn erased_rows(&self) -> Option<Bits> {
        let (partition, erased) = (self.partition, self.erased.as_deref()?);
        let BlockColumns { arrivals, distinct_ids, .. } = &*self.columns;
        if *arrivals.first()? > erased.bound(partition) {
            return None;
        }
        let bound = |id: &[u8]| erased.bound_of(partition, &String::from_utf8_lossy(id));
        let bounds: Vec<Option<u64>> = distinct_ids.values.iter().map(|id| bound(id)).collect();
        let mut rows = Bits::default();
        rows.reset(arrivals.len());
        for (row, (arrival, code)) in arrivals.iter().zip(&distinct_ids.codes).enumerate() {
            let bound = bounds.get(*code as usize).copied().flatten();
            if bound.is_some_and(|bound| *arrival <= bound) {
                rows.set(row);
            }
        }
        (rows.count() > 0).then_some(rows)
    }

    /// Calls `see` with each row and its event, in order, until it breaks.
    ///
    /// # Errors
    /// [`Error::Shape`] when the block is damaged, or was opened without its events.
    pub fn each_event(
        &self,
        mut see: impl FnMut(u32, &BorrowedEvent<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(encoded) = &self.encoded else {
            let detail = "it was opened without its events".to_owned();
            return Err(Error::Shape { statement: "open block of events", detail });
        };
        let mut rows = (0..).zip(&self.columns.arrivals);
        each_plain::<BorrowedEvent<'_>>(encoded, |event| match rows.next() {
            Some((row, _)) => see(row, &event),
            // A later event than those of the snapshot.
            None => ControlFlow::Break(()),
        })
    }
}

impl fmt::Debug for OpenBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.columns.arrivals.len();
        f.debug_struct("OpenBlock").field("rows", &rows).finish_non_exhaustive()
    }
}

/// Gives equal texts one code.
#[derive(Default)]
struct Texts<'a> {
    codes: Vec<u32>,
    texts: Vec<&'a str>,
    /// By text.
    known: HashMap<&'a str, u32>,
}

impl<'a> Texts<'a> {
    fn push(&mut self, text: &'a str) {
        let next = u32::try_from(self.texts.len()).unwrap_or(NONE);
        let code = match self.known.entry(text) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.texts.push(text);
                *new.insert(next)
            }
        };
        self.codes.push(code);
    }

    fn codes(self) -> Codes {
        let mut codes = self.codes;
        codes.shrink_to_fit();
        let values = self.texts.iter().map(|text| text.as_bytes().to_vec().into()).collect();
        Codes { codes, values }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::ProjectId;

    use super::*;
    use crate::events::block::BlockBuilder;
    use crate::events::block::tests::event;

    #[test]
    fn equal_texts_have_one_code_and_later_events_are_cut_off() {
        let ids = ["ada", "", "ada", "bob", "ada"];
        let events: Vec<_> = (1..).zip(ids).map(|(arrival, id)| event(arrival, id)).collect();
        let block = BlockBuilder::remainder(ProjectId(1), 1, &events).unwrap().unwrap();
        let encoded = block.encoded_from(0).unwrap();
        let columns = BlockColumns::of(encoded, u64::MAX).unwrap();
        assert_eq!(columns.arrivals(), [1, 2, 3, 4, 5]);
        assert_eq!(columns.times(), [1, 2, 3, 4, 5].map(|second| second * 1_000_000));
        let texts = |codes: &Codes| -> Vec<String> {
            codes.values.iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
        };
        assert_eq!(columns.distinct_ids().codes, [0, 1, 0, 2, 0]);
        assert_eq!(texts(columns.distinct_ids()), ["ada", "", "bob"]);
        assert_eq!(columns.names().codes, [0, 1, 2, 0, 1]);
        assert_eq!(texts(columns.names()), ["event 1", "event 2", "event 0"]);
        let least = 5 * (8 + 8 + 4 + 4);
        assert!((least..least + 1_000).contains(&columns.memory()), "{}", columns.memory());

        let some = BlockColumns::of(encoded, 3).unwrap();
        assert_eq!(some.arrivals(), [1, 2, 3]);
        assert_eq!(some.distinct_ids().codes, [0, 1, 0]);
        assert!(BlockColumns::of(encoded, 0).unwrap().arrivals().is_empty());
        assert!(BlockColumns::of(&encoded[..encoded.len() - 3], u64::MAX).is_err());
    }
}
