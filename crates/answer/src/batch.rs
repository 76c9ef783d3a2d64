//! The rows that a thread works on.
//!
//! What belongs here: reading the columns of a batch when they are needed, and only the rows
//! that a question keeps. What does not: which batches there are (`scan`), and what is made
//! of the rows.

mod rows;

use std::ops::ControlFlow;

use memchr::memmem::Finder;
use weir_segments::{Bits, Codes, ColumnName, ColumnType, Columns, Complete, GroupReader, NONE};

use crate::error::{Result, SourceError};
use crate::plan::{Actor, Plan};
use crate::property::{JsonColumn, PropertyColumn, see_json};
use crate::run::{Reservation, Run};
use crate::source::{Block, Source};
use crate::texts::{Texts, name};

pub(crate) use rows::TextColumn;

/// Distinct ids that are numbered at a time.
const PAGE: usize = 1_000;
/// Fewer than one row in so many are read page by page, instead of all.
const FEW: usize = 8;
/// Rows after which a cancelled question ends.
const CHECKED: u32 = 4_096;

/// The columns of a batch.
pub(crate) enum Reader<'a> {
    Group { columns: &'a Columns, reader: GroupReader<'a> },
    Block(&'a dyn Block),
}

/// Which batch it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The number of its part.
    pub(crate) part: usize,
    /// Later rows of the part do not count.
    pub(crate) last: u64,
    pub(crate) rows: usize,
    /// Bounds of its times and arrival numbers, both inclusive.
    pub(crate) times: (i64, i64),
    pub(crate) arrivals: (u64, u64),
}

/// What the rows of a batch are needed for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs<'a> {
    /// Slots of properties.
    pub(crate) properties: &'a [usize],
    pub(crate) persons: bool,
    pub(crate) arrivals: bool,
    pub(crate) names: bool,
}

/// Rows of one part.
pub(crate) struct Batch<'a> {
    source: &'a dyn Source,
    run: Run<'a>,
    plan: &'a Plan,
    place: Place,
    reader: Reader<'a>,
    times: Vec<i64>,
    names: Option<Codes>,
    arrivals: Option<Vec<u64>>,
    ids: Option<Vec<u32>>,
    persons: Vec<u32>,
    columns: Vec<Option<PropertyColumn>>,
    /// The rows that count.
    kept: Bits,
    /// For each node, those of them that are its events.
    nodes: Vec<Bits>,
    memory: Reservation<'a>,
    bytes: usize,
}

impl<'a> Batch<'a> {
    /// The batch with the rows that the plan keeps. `None`: there is no such row.
    pub(crate) fn read(
        source: &'a dyn Source,
        run: Run<'a>,
        plan: &'a Plan,
        place: Place,
        reader: Reader<'a>,
    ) -> Result<Option<Self>> {
        if !plan.may_see(place.times) || place.rows == 0 {
            return Ok(None);
        }
        let mut batch = Self {
            source,
            run,
            plan,
            place,
            reader,
            times: Vec::new(),
            names: None,
            arrivals: None,
            ids: None,
            persons: Vec::new(),
            columns: plan.properties.iter().map(|_| None).collect(),
            kept: Bits::default(),
            nodes: Vec::new(),
            memory: run.memory.reservation(),
            bytes: 0,
        };
        Ok(batch.filter()?.then_some(batch))
    }

    /// Whether rows are left.
    fn filter(&mut self) -> Result<bool> {
        if !self.has_names()? {
            return Ok(false);
        }
        self.read_times()?;
        self.select_nodes()?;
        if self.kept.is_empty() {
            return Ok(false);
        }
        self.omit_later()?;
        self.omit_erased()?;
        if self.kept.is_empty() {
            return Ok(false);
        }
        self.test()?;
        Ok(!self.kept.is_empty())
    }

    /// Whether the batch may have events of a node, by its dictionary.
    fn has_names(&mut self) -> Result<bool> {
        let needs_name = !self.plan.keeps_all && self.plan.nodes.iter().all(|n| n.event.is_some());
        let Reader::Group { reader, .. } = &mut self.reader else { return Ok(true) };
        if !needs_name {
            return Ok(true);
        }
        let names = reader.dictionary(&ColumnName::Event)?;
        Ok(names.is_none_or(|names| names.iter().any(|name| self.plan.mask(name) != 0)))
    }

    fn read_times(&mut self) -> Result<()> {
        match &mut self.reader {
            Reader::Group { reader, .. } => {
                reader.numbers(&ColumnName::Timestamp, &mut self.times)?;
            }
            Reader::Block(block) => self.times.extend_from_slice(block.times()),
        }
        Ok(())
    }

    fn read_names(&mut self) -> Result<()> {
        if self.names.is_none() {
            self.names = Some(match &mut self.reader {
                Reader::Group { reader, .. } => reader.codes(&ColumnName::Event)?,
                Reader::Block(block) => block.names(),
            });
        }
        Ok(())
    }

    /// Keeps the rows in the ranges of the plan, by nodes.
    fn select_nodes(&mut self) -> Result<()> {
        let rows = self.place.rows;
        let mut all = Bits::default();
        if self.plan.sees_all(self.place.times) {
            all.fill(rows);
        } else {
            all.reset(rows);
            let times = self.times.iter().enumerate();
            times.filter(|(_, time)| self.plan.sees(**time)).for_each(|(row, _)| all.set(row));
        }
        let has_names = self.plan.has_names();
        self.nodes = Vec::with_capacity(self.plan.nodes.len());
        for node in &self.plan.nodes {
            let mut bits = Bits::default();
            match node.event {
                None => bits.clone_from(&all),
                Some(_) => bits.reset(rows),
            }
            self.nodes.push(bits);
        }
        if has_names {
            self.read_names()?;
        }
        if let Some(names) = self.names.as_ref().filter(|_| has_names) {
            let masks: Vec<u64> = names.values.iter().map(|name| self.plan.mask(name)).collect();
            for row in all.ones() {
                let code = names.codes.get(row).map_or(usize::MAX, |code| *code as usize);
                let mut mask = masks.get(code).copied().unwrap_or(0);
                while mask != 0 {
                    if let Some(bits) = self.nodes.get_mut(mask.trailing_zeros() as usize) {
                        bits.set(row);
                    }
                    mask &= mask - 1;
                }
            }
        }
        self.kept = match self.plan.keeps_all {
            true => all,
            false => self.united(),
        };
        Ok(())
    }

    /// The rows of any node.
    fn united(&self) -> Bits {
        let mut all = Bits::default();
        all.reset(self.place.rows);
        self.nodes.iter().for_each(|bits| all.unite(bits));
        all
    }

    fn omit(&mut self, rows: &Bits) {
        self.kept.subtract(rows);
        self.nodes.iter_mut().for_each(|bits| bits.subtract(rows));
    }

    fn read_arrivals(&mut self) -> Result<()> {
        if self.arrivals.is_some() {
            return Ok(());
        }
        self.arrivals = Some(match &mut self.reader {
            Reader::Group { reader, .. } => {
                let mut numbers = Vec::new();
                reader.numbers(&ColumnName::Arrival, &mut numbers)?;
                numbers.into_iter().map(i64::cast_unsigned).collect()
            }
            Reader::Block(block) => block.arrivals().to_vec(),
        });
        Ok(())
    }

    /// Omits rows that came after the moment of the question.
    fn omit_later(&mut self) -> Result<()> {
        if self.place.arrivals.1 <= self.place.last {
            return Ok(());
        }
        self.read_arrivals()?;
        let mut later = Bits::default();
        later.reset(self.place.rows);
        let arrivals = self.arrivals.as_deref().unwrap_or_default().iter().enumerate();
        let last = self.place.last;
        arrivals.filter(|(_, arrival)| **arrival > last).for_each(|(row, _)| later.set(row));
        self.omit(&later);
        Ok(())
    }

    fn omit_erased(&mut self) -> Result<()> {
        let Place { part, rows, arrivals, .. } = self.place;
        if !self.source.may_have_erased(part, arrivals) {
            return Ok(());
        }
        self.read_arrivals()?;
        let mut all = Bits::default();
        all.fill(rows);
        self.read_ids(&all)?;
        let mut erased = Bits::default();
        erased.reset(rows);
        if let (Some(arrivals), Some(ids)) = (&self.arrivals, &self.ids) {
            self.source.erased_rows(part, arrivals, ids, &mut erased);
        }
        self.omit(&erased);
        Ok(())
    }

    fn test(&mut self) -> Result<()> {
        let plan = self.plan;
        if plan.tested.is_empty() {
            return Ok(());
        }
        self.load(&plan.tested)?;
        let Self { columns, kept, nodes, .. } = self;
        let rows = self.place.rows;
        let column = |slot: usize| columns.get(slot).and_then(Option::as_ref);
        plan.scope.apply(&column, rows, kept);
        for (node, bits) in plan.nodes.iter().zip(nodes) {
            bits.intersect(kept);
            node.test.apply(&column, rows, bits);
        }
        if !plan.keeps_all {
            self.kept = self.united();
        }
        Ok(())
    }

    /// Reads what the kept rows are needed for.
    pub(crate) fn prepare(&mut self, needs: Needs<'_>) -> Result<()> {
        self.load(needs.properties)?;
        if needs.arrivals {
            self.read_arrivals()?;
        }
        if needs.names {
            self.read_names()?;
        }
        if needs.persons && self.persons.is_empty() {
            let kept = std::mem::take(&mut self.kept);
            let read = self.read_ids(&kept);
            self.kept = kept;
            read?;
            let ids = self.ids.as_deref().unwrap_or_default();
            self.persons.reserve_exact(ids.len());
            self.source.persons(ids, &mut self.persons);
        }
        Ok(())
    }

    /// The number of rows, of which some are kept.
    pub(crate) fn rows(&self) -> usize {
        self.place.rows
    }

    pub(crate) fn times(&self) -> &[i64] {
        &self.times
    }

    /// The rows that count.
    pub(crate) fn kept(&self) -> &Bits {
        &self.kept
    }

    /// The rows of each node.
    pub(crate) fn nodes(&self) -> &[Bits] {
        &self.nodes
    }

    /// The nodes of each row, as bits.
    pub(crate) fn masks(&self) -> Vec<u64> {
        let mut masks = vec![0; self.rows()];
        for (at, bits) in self.nodes.iter().enumerate() {
            bits.ones().for_each(|row| masks[row] |= 1 << at);
        }
        masks
    }

    /// The arrival number of a row, if they were prepared.
    pub(crate) fn arrival(&self, row: usize) -> u64 {
        let arrivals = self.arrivals.as_deref().unwrap_or_default();
        arrivals.get(row).copied().unwrap_or_default()
    }

    /// The name of the event of a row, if they were prepared.
    pub(crate) fn name(&self, row: usize) -> Option<(u32, &[u8])> {
        let names = self.names.as_ref()?;
        let code = *names.codes.get(row)?;
        Some((code, names.values.get(code as usize)?))
    }

    /// The values of a property that was prepared.
    pub(crate) fn property(&self, slot: usize) -> Option<&PropertyColumn> {
        self.columns.get(slot).and_then(Option::as_ref)
    }

    /// The number of the person or group of each kept row. [`NONE`]: it has no such group.
    /// Persons, or the property, must have been prepared.
    pub(crate) fn actors(&self, actor: Actor, groups: &Texts<'_>) -> Result<Vec<u32>> {
        match actor {
            Actor::Person => Ok(self.persons.clone()),
            Actor::Group { slot } => self.numbers(slot, groups, name),
        }
    }

    /// The numbers of what a function makes of a property, for the kept rows.
    pub(crate) fn numbers(
        &self,
        slot: usize,
        texts: &Texts<'_>,
        text: impl Fn(weir_questions::evaluate::PropertyValue<'_>) -> Option<String>,
    ) -> Result<Vec<u32>> {
        match self.property(slot) {
            Some(column) => texts.numbers_of(column, &self.kept, self.rows(), text),
            None => Ok(vec![NONE; self.rows()]),
        }
    }

    /// Reads the numbers of distinct ids, at least of these rows.
    fn read_ids(&mut self, rows: &Bits) -> Result<()> {
        if self.ids.is_some() {
            return Ok(());
        }
        let size = self.place.rows;
        let (source, cancel) = (self.source, self.run.cancel);
        self.ids = Some(match &mut self.reader {
            Reader::Block(block) => block.ids().to_vec(),
            Reader::Group { reader, .. } => {
                let mut page = IdPage::new(source, size);
                let mut failed = Ok(());
                let selected = few(rows, size);
                if let Some(selected) = selected {
                    reader.texts_at(&ColumnName::DistinctId, &selected, |row, text| {
                        if failed.is_ok() {
                            failed = page.push(row, text);
                        }
                    })?;
                } else {
                    let mut checked = Ok(());
                    reader.each_text(&ColumnName::DistinctId, |row, text| {
                        if row.is_multiple_of(CHECKED) {
                            checked = cancel.check();
                        }
                        if rows.get(row as usize) && failed.is_ok() {
                            failed = page.push(row, text);
                        }
                        match failed.is_ok() && checked.is_ok() {
                            true => ControlFlow::Continue(()),
                            false => ControlFlow::Break(()),
                        }
                    })?;
                    checked?;
                }
                failed?;
                page.finish()?
            }
        });
        Ok(())
    }

    /// Reads properties of the kept rows.
    fn load(&mut self, slots: &[usize]) -> Result<()> {
        let size = self.place.rows;
        let plan = self.plan;
        let mut json: Vec<(usize, JsonColumn<'a>)> = Vec::new();
        for slot in slots.iter().copied() {
            let Some(name) = plan.properties.get(slot) else { continue };
            if self.columns.get(slot).is_none_or(Option::is_some)
                || json.iter().any(|(other, _)| *other == slot)
            {
                continue;
            }
            let typed = match &mut self.reader {
                Reader::Group { columns, reader } => typed(columns, reader, name)?,
                Reader::Block(_) => None,
            };
            let Some((column, complete)) = typed else {
                json.push((slot, JsonColumn::new(name, size, self.kept.clone(), None)));
                continue;
            };
            self.memory.hold_more(&mut self.bytes, column.bytes())?;
            let mut left = Bits::default();
            left.reset(size);
            let is_left = |row: &usize| {
                column.is_inexact(*row) || (complete != Complete::Yes && column.is_missing(*row))
            };
            self.kept.ones().filter(is_left).for_each(|row| left.set(row));
            if left.is_empty() {
                self.columns[slot] = Some(column);
            } else {
                json.push((slot, JsonColumn::new(name, size, left, Some(column))));
            }
        }
        if json.is_empty() {
            return Ok(());
        }
        let (slots, mut columns): (Vec<usize>, Vec<JsonColumn<'a>>) = json.into_iter().unzip();
        self.read_json(&mut columns)?;
        let bytes: usize = columns.iter().map(JsonColumn::bytes).sum();
        self.memory.hold_more(&mut self.bytes, bytes)?;
        for (slot, column) in slots.into_iter().zip(columns) {
            self.columns[slot] = Some(column.finish());
        }
        Ok(())
    }

    fn read_json(&mut self, columns: &mut [JsonColumn<'_>]) -> Result<()> {
        let size = self.place.rows;
        let mut rows = Bits::default();
        rows.reset(size);
        columns.iter().for_each(|column| rows.unite(&column.rows));
        let needles: Vec<String> = needles(columns);
        let (cancel, mut seen, mut checked) = (self.run.cancel, 0_u32, Ok(()));
        let mut see = |row: u32, text: &str| {
            seen += 1;
            if seen.is_multiple_of(CHECKED) && checked.is_ok() {
                checked = cancel.check();
            }
            if checked.is_ok() {
                see_json(columns, row, text);
            }
        };
        match &mut self.reader {
            Reader::Block(block) => block.properties(&mut see)?,
            Reader::Group { reader, .. } => {
                let see = |row: u32, text: &[u8]| {
                    if let Ok(text) = std::str::from_utf8(text) {
                        see(row, text);
                    }
                };
                match few(&rows, size) {
                    Some(selected) => reader.texts_at(&ColumnName::Properties, &selected, see)?,
                    None => {
                        let finders: Vec<Finder<'_>> = needles.iter().map(Finder::new).collect();
                        reader.each_with(&ColumnName::Properties, &finders, see)?;
                    }
                }
            }
        }
        checked
    }
}

/// The rows, if they are few.
fn few(rows: &Bits, size: usize) -> Option<Vec<u32>> {
    (rows.count() < size / FEW)
        .then(|| rows.ones().filter_map(|row| u32::try_from(row).ok()).collect())
}

/// What is in the text of every object with one of these names: the name in quotes, or a
/// backslash, because names may be written with escape sequences.
fn needles(columns: &[JsonColumn<'_>]) -> Vec<String> {
    let quoted = columns.iter().map(|column| format!("\"{}\"", column.name));
    quoted.chain(["\\".to_owned()]).collect()
}

/// The typed column of a property, and whether it is complete.
fn typed(
    columns: &Columns,
    reader: &mut GroupReader<'_>,
    property: &str,
) -> Result<Option<(PropertyColumn, Complete)>> {
    let Some((kind, complete)) = columns.typed(property) else { return Ok(None) };
    let name = ColumnName::Typed(property.to_owned());
    let column = match kind {
        ColumnType::Text => PropertyColumn::of_texts(reader.codes(&name)?),
        ColumnType::Number => {
            let (mut values, mut valid) = (Vec::new(), Bits::default());
            reader.doubles(property, &mut values, &mut valid)?;
            PropertyColumn::Numbers { values, valid }
        }
        ColumnType::Boolean => {
            let (mut set, mut valid) = (Bits::default(), Bits::default());
            reader.booleans(&name, &mut set, &mut valid)?;
            let rows = valid.ones().last().map_or(0, |row| row + 1);
            PropertyColumn::of_booleans(rows, &set, &valid)
        }
    };
    Ok(Some((column, complete)))
}

/// Distinct ids that are numbered together.
struct IdPage<'a> {
    source: &'a dyn Source,
    ids: Vec<u32>,
    bytes: Vec<u8>,
    /// The row of each text, and where it ends.
    texts: Vec<(u32, usize)>,
    found: Vec<u32>,
}

impl<'a> IdPage<'a> {
    fn new(source: &'a dyn Source, size: usize) -> Self {
        Self {
            source,
            ids: vec![NONE; size],
            bytes: Vec::new(),
            texts: Vec::with_capacity(PAGE),
            found: Vec::with_capacity(PAGE),
        }
    }

    fn push(&mut self, row: u32, text: &[u8]) -> Result<(), SourceError> {
        self.bytes.extend_from_slice(text);
        self.texts.push((row, self.bytes.len()));
        if self.texts.len() == PAGE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), SourceError> {
        let mut begin = 0;
        let texts = self.texts.iter().map(|(_, end)| {
            let text = self.bytes.get(begin..*end).unwrap_or_default();
            begin = *end;
            text
        });
        let texts: Vec<&[u8]> = texts.collect();
        self.found.clear();
        self.source.ids(&texts, &mut self.found)?;
        for ((row, _), number) in self.texts.iter().zip(&self.found) {
            if let Some(id) = self.ids.get_mut(*row as usize) {
                *id = *number;
            }
        }
        self.bytes.clear();
        self.texts.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u32>, SourceError> {
        self.flush()?;
        Ok(self.ids)
    }
}
