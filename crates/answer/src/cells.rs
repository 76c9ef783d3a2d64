//! The numbers of a series: one for each cell of a result.
//!
//! What belongs here: counting, adding and merging. What does not: what a cell is (an
//! interval of a value of a breakdown, for trends).

use std::ops::Range;

use weir_questions::evaluate::{NumberTotals, Numeric, PropertyValue, percentile};
use weir_questions::query::{Math, PropertyMath};
use weir_segments::NONE;

use crate::error::Result;
use crate::property::{PropertyColumn, Value};
use crate::run::{Reservation, Run};
use crate::unique::Unique;

/// Bytes of a number that is kept: its vector has room for more.
const KEPT: usize = 2 * size_of::<f64>();

/// The numbers of a series, by cell.
#[derive(Debug)]
pub(crate) struct Cells<'a> {
    form: Form<'a>,
    memory: Reservation<'a>,
    /// Numbers that are kept.
    kept: usize,
}

#[derive(Debug)]
enum Form<'a> {
    /// Events.
    Counts(Vec<u64>),
    /// Totals of numbers.
    Totals(Vec<NumberTotals>),
    /// All numbers, for percentiles.
    Numbers(Vec<Vec<f64>>),
    /// Different actors.
    Unique(Unique<'a>),
}

impl<'a> Cells<'a> {
    /// For a math. `is_dense`: there is no breakdown, so that most actors are in most cells.
    pub(crate) fn new(run: &Run<'a>, math: &Math, is_dense: bool) -> Self {
        let form = match math {
            Math::Total => Form::Counts(Vec::new()),
            Math::UniquePersons | Math::UniqueSessions | Math::UniqueGroups(_) => {
                Form::Unique(Unique::new(run, is_dense))
            }
            Math::Property(math, _) if math.percentile().is_some() => Form::Numbers(Vec::new()),
            Math::Property(..) => Form::Totals(Vec::new()),
        };
        Self { form, memory: run.memory.reservation(), kept: 0 }
    }

    /// Has at least this many cells from here on.
    pub(crate) fn grow(&mut self, cells: usize) -> Result<()> {
        match &mut self.form {
            Form::Counts(counts) => grow(counts, cells, 0, &mut self.memory),
            Form::Totals(totals) => grow(totals, cells, 0, &mut self.memory),
            Form::Numbers(numbers) => grow(numbers, cells, self.kept * KEPT, &mut self.memory),
            Form::Unique(_) => Ok(()),
        }
    }

    /// Counts an event, if that is the math.
    pub(crate) fn count(&mut self, cell: usize) {
        if let Form::Counts(counts) = &mut self.form
            && let Some(count) = counts.get_mut(cell)
        {
            *count += 1;
        }
    }

    pub(crate) fn add_actor(&mut self, cell: usize, actor: u32) -> Result<()> {
        match &mut self.form {
            Form::Unique(unique) if actor != NONE => unique.insert(cell, actor),
            _ => Ok(()),
        }
    }

    pub(crate) fn add_number(&mut self, cell: usize, number: Numeric) {
        match &mut self.form {
            Form::Totals(totals) => {
                if let Some(totals) = totals.get_mut(cell) {
                    add(totals, number);
                }
            }
            Form::Numbers(numbers) => {
                if let Some(numbers) = numbers.get_mut(cell) {
                    numbers.push(number.value());
                    self.kept += 1;
                }
            }
            Form::Counts(_) | Form::Unique(_) => {}
        }
    }

    /// Holds the memory of what was added. To be called after each batch.
    pub(crate) fn hold(&mut self) -> Result<()> {
        let bytes = match &self.form {
            Form::Totals(totals) => {
                size_of_val(&totals[..]) + totals.iter().map(NumberTotals::bytes).sum::<usize>()
            }
            Form::Numbers(numbers) => size_of_val(&numbers[..]) + self.kept * KEPT,
            Form::Counts(_) | Form::Unique(_) => return Ok(()),
        };
        self.memory.hold(bytes)
    }

    /// Adds the cells of another series with the same math to those that `to` says. `cells`
    /// is the number of all cells.
    pub(crate) fn merge(
        &mut self,
        other: Self,
        cells: usize,
        to: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        self.grow(cells)?;
        match (&mut self.form, other.form) {
            (Form::Counts(counts), Form::Counts(others)) => {
                for (cell, other) in others.into_iter().enumerate() {
                    if let Some(count) = to(cell).and_then(|cell| counts.get_mut(cell)) {
                        *count += other;
                    }
                }
            }
            (Form::Totals(totals), Form::Totals(others)) => {
                for (cell, other) in others.into_iter().enumerate() {
                    if let Some(totals) = to(cell).and_then(|cell| totals.get_mut(cell)) {
                        totals.merge(other);
                    }
                }
            }
            (Form::Numbers(numbers), Form::Numbers(others)) => {
                for (cell, mut other) in others.into_iter().enumerate() {
                    if let Some(numbers) = to(cell).and_then(|cell| numbers.get_mut(cell)) {
                        self.kept += other.len();
                        numbers.append(&mut other);
                    }
                }
            }
            (Form::Unique(unique), Form::Unique(other)) => unique.merge(&other, to)?,
            _ => {}
        }
        self.hold()
    }

    /// The number of each row of `width` cells together, of those in a range.
    pub(crate) fn totals(
        &self,
        run: &Run<'a>,
        math: &Math,
        rows: usize,
        width: usize,
        range: &Range<usize>,
    ) -> Result<Vec<f64>> {
        let of_row = |row: usize| row * width + range.start..row * width + range.end;
        Ok(match &self.form {
            Form::Counts(counts) => {
                let count = |row| counts.get(of_row(row)).unwrap_or_default().iter().sum::<u64>();
                (0..rows).map(|row| count(row) as f64).collect()
            }
            Form::Totals(totals) => {
                let total = |row| {
                    let mut all = NumberTotals::default();
                    let cells = totals.get(of_row(row)).unwrap_or_default();
                    cells.iter().for_each(|totals| all.merge(totals.clone()));
                    value_of(math, &all)
                };
                (0..rows).map(total).collect()
            }
            Form::Numbers(numbers) => {
                let total = |row| {
                    let cells = numbers.get(of_row(row)).unwrap_or_default();
                    let mut all = cells.concat();
                    percentile_of(math, &mut all)
                };
                (0..rows).map(total).collect()
            }
            Form::Unique(unique) => {
                let mut joined = Unique::new(run, false);
                joined.merge(unique, |cell| {
                    range.contains(&(cell % width)).then_some(cell / width)
                })?;
                joined.counts(rows).into_iter().map(|count| count as f64).collect()
            }
        })
    }

    /// The number of actors that are in a cell, and in no earlier one of its row.
    pub(crate) fn first_amounts(
        self,
        cells: usize,
        row: impl Fn(usize) -> usize,
    ) -> Result<Vec<f64>> {
        let Form::Unique(unique) = self.form else { return Ok(vec![0.0; cells]) };
        let counts = unique.first_counts(cells, row)?;
        Ok(counts.into_iter().map(|count| count as f64).collect())
    }

    /// The number of each cell. One without numbers has 0.
    pub(crate) fn amounts(self, math: &Math, cells: usize) -> Vec<f64> {
        let mut amounts: Vec<f64> = match self.form {
            Form::Counts(counts) => counts.into_iter().map(|count| count as f64).collect(),
            Form::Totals(totals) => totals.iter().map(|totals| value_of(math, totals)).collect(),
            Form::Numbers(numbers) => {
                numbers.into_iter().map(|mut cell| percentile_of(math, &mut cell)).collect()
            }
            Form::Unique(unique) => {
                unique.counts(cells).into_iter().map(|count| count as f64).collect()
            }
        };
        amounts.resize(cells, 0.0);
        amounts
    }
}

fn grow<T: Default>(
    items: &mut Vec<T>,
    count: usize,
    more: usize,
    memory: &mut Reservation<'_>,
) -> Result<()> {
    if count > items.len() {
        if count > items.capacity() {
            let capacity = count.max(items.capacity() * 3 / 2);
            // While it grows, both copies are in memory.
            memory.hold((items.len() + capacity) * size_of::<T>() + more)?;
            items.reserve_exact(capacity - items.len());
        }
        items.resize_with(count, T::default);
    }
    Ok(())
}

fn add(totals: &mut NumberTotals, number: Numeric) {
    match number {
        Numeric::Whole(whole) => match i64::try_from(whole) {
            Ok(whole) => totals.add_integer(whole),
            Err(_) => totals.add(whole as f64),
        },
        Numeric::Double(number) => totals.add(number),
    }
}

fn property_math(math: &Math) -> PropertyMath {
    match math {
        Math::Property(math, _) => *math,
        _ => PropertyMath::Sum,
    }
}

fn value_of(math: &Math, totals: &NumberTotals) -> f64 {
    totals.value(property_math(math)).unwrap_or_default()
}

fn percentile_of(math: &Math, numbers: &mut Vec<f64>) -> f64 {
    let fraction = property_math(math).percentile();
    fraction.and_then(|fraction| percentile(numbers, fraction)).unwrap_or_default()
}

/// The numbers in a property, each of which is read once from its text.
pub(crate) struct NumberReader<'a> {
    column: Option<&'a PropertyColumn>,
    by_code: Vec<Option<Option<Numeric>>>,
}

impl<'a> NumberReader<'a> {
    pub(crate) fn new(column: Option<&'a PropertyColumn>) -> Self {
        let by_code = match column {
            Some(PropertyColumn::Codes { values, .. }) => vec![None; values.len()],
            _ => Vec::new(),
        };
        Self { column, by_code }
    }

    pub(crate) fn number(&mut self, row: usize) -> Option<Numeric> {
        let column = self.column?;
        match column {
            PropertyColumn::Codes { codes, values } => {
                let code = *codes.get(row)? as usize;
                let number = |value: Option<&Value>| value?.as_property().number();
                *self.by_code.get_mut(code)?.get_or_insert_with(|| number(values.get(code)))
            }
            PropertyColumn::Numbers { .. } => match column.value(row) {
                PropertyValue::Missing => None,
                value => value.number(),
            },
        }
    }
}
