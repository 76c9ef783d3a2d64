//! Numbers for texts, shared by the threads of a question.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_questions::evaluate::PropertyValue;
use weir_segments::{Bits, NONE};

use crate::error::{AnswerError, Result};
use crate::property::PropertyColumn;
use crate::run::{Reservation, Run};

/// Most different texts of a property.
const TEXTS_MAX: usize = 1_000_000;
/// Bytes of a text beside its own: in the list and in the table.
const ENTRY: usize = 80;

/// The different texts of a property, numbered in the order in which they were seen. That
/// depends on the threads, so no result may depend on a number.
#[derive(Debug)]
pub(crate) struct Texts<'a> {
    /// What they are, for errors.
    what: String,
    inner: Mutex<Inner<'a>>,
}

#[derive(Debug)]
struct Inner<'a> {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    bytes: usize,
    memory: Reservation<'a>,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(run: &Run<'a>, what: impl Into<String>) -> Self {
        let memory = run.memory.reservation();
        let inner = Inner { numbers: HashMap::new(), texts: Vec::new(), bytes: 0, memory };
        Self { what: what.into(), inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<'a>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of texts, in the same order. [`NONE`]: there is no text.
    pub(crate) fn numbers(&self, texts: &[Option<Cow<'_, str>>]) -> Result<Vec<u32>> {
        let mut inner = self.inner();
        let number = |text: &Option<Cow<'_, str>>| match text {
            None => Ok(NONE),
            Some(text) => inner.number(text, &self.what),
        };
        texts.iter().map(number).collect()
    }

    pub(crate) fn number(&self, text: &str) -> Result<u32> {
        self.inner().number(text, &self.what)
    }

    pub(crate) fn text(&self, number: u32) -> Option<Arc<str>> {
        self.inner().texts.get(number as usize).cloned()
    }

    /// The texts by their numbers.
    pub(crate) fn all(&self) -> Vec<Arc<str>> {
        self.inner().texts.clone()
    }

    /// The place of each number when texts are sorted.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let texts = self.all();
        let mut sorted: Vec<u32> = (0..).take(texts.len()).collect();
        sorted.sort_unstable_by_key(|number| &texts[*number as usize]);
        let mut ranks = vec![0; texts.len()];
        for (rank, number) in (0..).zip(sorted) {
            ranks[number as usize] = rank;
        }
        ranks
    }

    /// The numbers of what a function makes of the values of a property, for some rows. The
    /// others have [`NONE`].
    pub(crate) fn numbers_of(
        &self,
        column: &PropertyColumn,
        rows: &Bits,
        size: usize,
        text: impl Fn(PropertyValue<'_>) -> Option<String>,
    ) -> Result<Vec<u32>> {
        let mut found = vec![NONE; size];
        // Each value is asked for once.
        let mut first_rows: Vec<usize> = Vec::new();
        match column {
            PropertyColumn::Codes { codes, values } => {
                let mut seen = vec![NONE; values.len()];
                for row in rows.ones() {
                    let code = codes.get(row).copied().unwrap_or(NONE);
                    if let Some(place) = seen.get_mut(code as usize) {
                        if *place == NONE {
                            *place = position(&mut first_rows, row);
                        }
                        found[row] = *place;
                    }
                }
            }
            PropertyColumn::Numbers { values, valid } => {
                let mut seen: HashMap<u64, u32> = HashMap::new();
                for row in rows.ones().filter(|row| valid.get(*row)) {
                    let Some(number) = values.get(row) else { continue };
                    let place = seen.entry(number.to_bits());
                    found[row] = *place.or_insert_with(|| position(&mut first_rows, row));
                }
            }
        }
        let texts: Vec<Option<Cow<'_, str>>> =
            first_rows.iter().map(|row| text(column.value(*row)).map(Cow::Owned)).collect();
        let numbers = self.numbers(&texts)?;
        for place in &mut found {
            *place = numbers.get(*place as usize).copied().unwrap_or(NONE);
        }
        Ok(found)
    }
}

/// Appends a row, and returns its position.
fn position(rows: &mut Vec<usize>, row: usize) -> u32 {
    rows.push(row);
    u32::try_from(rows.len() - 1).unwrap_or(NONE)
}

impl Inner<'_> {
    fn number(&mut self, text: &str, what: &str) -> Result<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        if self.texts.len() == TEXTS_MAX {
            return Err(AnswerError::TooLarge { what: what.to_owned(), limit: TEXTS_MAX });
        }
        self.memory.hold_more(&mut self.bytes, text.len() + ENTRY)?;
        let number = u32::try_from(self.texts.len()).unwrap_or(NONE);
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        Ok(number)
    }
}

/// The text of a value that names something, such as a group. An empty text names nothing.
pub(crate) fn name(value: PropertyValue<'_>) -> Option<String> {
    value.text().filter(|text| !text.is_empty()).map(Cow::into_owned)
}
