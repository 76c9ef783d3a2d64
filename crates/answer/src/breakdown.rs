//! Dividing rows by the values of a breakdown (QRY-30).
//!
//! What belongs here: the values of rows, and ranges of numbers. What does not: which values
//! have results of their own, which each kind of question decides by its numbers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use weir_model::errors::FieldError;
use weir_questions::evaluate::{
    BreakdownRank, NumberRanges, Numeric, PropertyValue, breakdown_text,
};
use weir_questions::query::{BREAKDOWNS_MAX, Breakdown, BreakdownFilter, PropertyOwner};
use weir_questions::results::{BREAKDOWN_NULL, BreakdownValue};
use weir_segments::NONE;

use crate::batch::Batch;
use crate::error::Result;
use crate::plan::Plan;
use crate::run::{Reservation, Run};
use crate::texts::Texts;

/// The numbers of the texts of up to three properties. [`NONE`]: there is no value.
pub(crate) type Key = [u32; BREAKDOWNS_MAX];

/// The key of rows without a breakdown, and of those that have no value.
pub(crate) const NO_KEY: Key = [NONE; BREAKDOWNS_MAX];
/// Bytes of a key in memory.
const KEY: usize = 48;
/// The field of a breakdown.
const PATH: &str = "breakdownFilter";

/// The texts of the values of a breakdown.
#[derive(Debug)]
pub(crate) struct Divider<'a> {
    filter: Option<&'a BreakdownFilter>,
    slots: Vec<usize>,
    texts: Vec<Texts<'a>>,
}

impl<'a> Divider<'a> {
    pub(crate) fn new(
        run: &Run<'a>,
        plan: &mut Plan,
        filter: Option<&'a BreakdownFilter>,
    ) -> Result<Self> {
        let breakdowns = filter.map_or(&[] as &[Breakdown], |filter| &filter.breakdowns);
        if breakdowns.iter().any(|breakdown| breakdown.owner != PropertyOwner::Event) {
            return Err(crate::filter::unsupported_owner(PATH).into());
        }
        let texts = |of: &Breakdown| Texts::new(run, format!("values of {}", of.property));
        Ok(Self {
            filter,
            slots: breakdowns.iter().map(|of| plan.slot(&of.property)).collect(),
            texts: breakdowns.iter().map(texts).collect(),
        })
    }

    /// Whether there is no breakdown.
    pub(crate) fn is_whole(&self) -> bool {
        self.filter.is_none()
    }

    /// Whether there is a breakdown whose values are not ranges of numbers.
    pub(crate) fn has_values(&self) -> bool {
        !self.is_whole() && self.breakdowns().iter().all(|breakdown| breakdown.bins.is_none())
    }

    /// Refuses ranges of numbers, for questions that do not have them.
    pub(crate) fn without_bins(self) -> Result<Self> {
        match self.breakdowns().iter().any(|breakdown| breakdown.bins.is_some()) {
            true => {
                let detail = "Weir does not support ranges of numbers here.";
                Err(FieldError::new(PATH, "invalid_input", detail).into())
            }
            false => Ok(self),
        }
    }

    pub(crate) fn filter(&self) -> Option<&'a BreakdownFilter> {
        self.filter
    }

    fn breakdowns(&self) -> &'a [Breakdown] {
        self.filter.map_or(&[], |filter| &filter.breakdowns)
    }

    /// The slots of the properties.
    pub(crate) fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// The values of the kept rows of a batch.
    pub(crate) fn keys(&self, batch: &Batch<'_>) -> Result<Keys> {
        let parts = self.breakdowns().iter().zip(&self.slots).zip(&self.texts);
        let columns = parts.map(|((breakdown, slot), texts)| {
            batch.numbers(*slot, texts, |value| text_of(breakdown, value))
        });
        Ok(Keys { columns: columns.collect::<Result<_>>()? })
    }

    /// The texts of the values of a key.
    pub(crate) fn texts_of(&self, key: Key) -> Vec<Option<Arc<str>>> {
        self.texts.iter().zip(key).map(|(texts, number)| texts.text(number)).collect()
    }

    /// The value of a key in results. `None`: there is no breakdown.
    pub(crate) fn value(&self, key: Key) -> Option<BreakdownValue> {
        let filter = self.filter?;
        let texts = self.texts_of(key).into_iter();
        let texts: Vec<Option<String>> =
            texts.map(|text| text.map(|text| text.to_string())).collect();
        Some(BreakdownValue::new(filter, &texts))
    }

    /// Whether a key has this value in results.
    fn has_value(&self, key: Key, value: &BreakdownValue) -> bool {
        let wanted = match value {
            BreakdownValue::One(text) => std::slice::from_ref(text),
            BreakdownValue::Many(texts) => texts.as_slice(),
        };
        let mut parts = self.texts.iter().zip(key).zip(wanted);
        wanted.len() == self.texts.len()
            && parts.all(|((texts, number), wanted)| {
                texts.text(number).as_deref().unwrap_or(BREAKDOWN_NULL) == wanted.as_str()
            })
    }

    /// The keys in which each number is replaced by its range, if a property is divided into
    /// ranges. `keys` come with the number of their events.
    pub(crate) fn in_bins(&self, keys: &[(Key, u64)]) -> Result<Option<Vec<Key>>> {
        if self.breakdowns().iter().all(|breakdown| breakdown.bins.is_none()) {
            return Ok(None);
        }
        let mut found: Vec<Key> = keys.iter().map(|(key, _)| *key).collect();
        for (at, (breakdown, texts)) in self.breakdowns().iter().zip(&self.texts).enumerate() {
            let Some(bins) = breakdown.bins else { continue };
            let texts_of = keys.iter().map(|(key, _)| texts.text(*key.get(at)?));
            let texts_of: Vec<Option<Arc<str>>> = texts_of.collect();
            let value = |text: &Option<Arc<str>>| match text {
                Some(text) => PropertyValue::Text(text).number().map(Numeric::value),
                None => None,
            };
            // The range of the question decides.
            let counted = texts_of.iter().zip(keys).filter(|(_, (_, events))| *events > 0);
            let numbers = counted.filter_map(|(text, _)| value(text));
            let (least, most) = numbers
                .fold((f64::INFINITY, f64::NEG_INFINITY), |found, number| {
                    (number.min(found.0), number.max(found.1))
                });
            let ranges = (least <= most).then(|| NumberRanges::new(least, most, bins));
            for (key, text) in found.iter_mut().zip(texts_of) {
                let text = text.as_deref().map_or(PropertyValue::Missing, PropertyValue::Text);
                let range = ranges.as_ref().and_then(|of| of.text(of.index(text)?));
                let number = range.map(|range| texts.number(&range)).transpose()?;
                if let Some(place) = key.get_mut(at) {
                    *place = number.unwrap_or(NONE);
                }
            }
        }
        Ok(Some(found))
    }
}

/// The values that a number is about.
#[derive(Debug)]
pub(crate) enum SelectedValues<'q> {
    /// All of them.
    All,
    /// This one.
    Value(&'q BreakdownValue),
    /// All but those that have results of their own.
    OthersThan(HashSet<Key>),
}

impl<'q> SelectedValues<'q> {
    /// The values that a number about persons is about. `None`: no value is one of them.
    /// `count` counts the persons of each value. `joins_others`: a person may belong to several
    /// values.
    pub(crate) fn of(
        value: Option<&'q BreakdownValue>,
        divider: &Divider<'_>,
        keys: &SharedKeys<'_>,
        joins_others: bool,
        count: impl FnOnce() -> Result<ByValue<u64>>,
    ) -> Result<Option<Self>> {
        let Some(value) = value else { return Ok(Some(Self::All)) };
        if !value.is_other() {
            return Ok(Some(Self::Value(value)));
        }
        let totals = count()?;
        let ordered = keys.ordered(divider);
        let first = first_places(divider, &ordered, &totals, |persons| *persons);
        Ok(first.map(|first| {
            if joins_others {
                keys.join_others(&ordered, &first);
            }
            Self::OthersThan(first.iter().map(|place| ordered.key(*place)).collect())
        }))
    }

    /// Whether a value is one of them. `None`: it is one of those without results of their own.
    pub(crate) fn includes(&self, divider: &Divider<'_>, key: Option<Key>) -> bool {
        match (self, key) {
            (Self::All, _) | (Self::OthersThan(_), None) => true,
            (Self::Value(_), None) => false,
            (Self::Value(value), Some(key)) => divider.has_value(key, value),
            (Self::OthersThan(shown), Some(key)) => !shown.contains(&key),
        }
    }
}

fn text_of(breakdown: &Breakdown, value: PropertyValue<'_>) -> Option<String> {
    match breakdown.bins {
        Some(_) => value.number().map(|number| number.to_string()),
        None => breakdown_text(breakdown, value),
    }
}

/// The first ones of values with their totals, in the order of results.
pub(crate) fn first_ranked(
    divider: &Divider<'_>,
    values: Vec<(usize, f64, Key)>,
    limit: usize,
) -> Vec<usize> {
    let texts: Vec<Vec<Option<Arc<str>>>> =
        values.iter().map(|(.., key)| divider.texts_of(*key)).collect();
    let texts: Vec<Vec<Option<&str>>> =
        texts.iter().map(|texts| texts.iter().map(Option::as_deref).collect()).collect();
    let ranks = values.iter().zip(&texts);
    let mut ranks: Vec<(BreakdownRank<'_>, usize)> = ranks
        .map(|((value, total, _), values)| (BreakdownRank { total: *total, values }, *value))
        .collect();
    ranks.sort_unstable();
    ranks.into_iter().take(limit).map(|(_, value)| value).collect()
}

/// The values of the rows of a batch.
#[derive(Debug)]
pub(crate) struct Keys {
    columns: Vec<Vec<u32>>,
}

impl Keys {
    pub(crate) fn of(&self, row: usize) -> Key {
        let mut key = NO_KEY;
        for (number, column) in key.iter_mut().zip(&self.columns) {
            *number = column.get(row).copied().unwrap_or(NONE);
        }
        key
    }
}

/// The values that were seen, in the order in which they were.
#[derive(Debug)]
pub(crate) struct SeenKeys<'a> {
    numbers: HashMap<Key, u32>,
    keys: Vec<Key>,
    last: Option<(Key, u32)>,
    bytes: usize,
    memory: Reservation<'a>,
}

impl<'a> SeenKeys<'a> {
    pub(crate) fn new(run: &Run<'a>) -> Self {
        let memory = run.memory.reservation();
        Self { numbers: HashMap::new(), keys: Vec::new(), last: None, bytes: 0, memory }
    }

    /// The number of a value, which is new if it was not seen.
    pub(crate) fn number(&mut self, key: Key) -> Result<u32> {
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == key) {
            return Ok(number);
        }
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                self.memory.hold_more(&mut self.bytes, KEY)?;
                let number = u32::try_from(self.keys.len()).unwrap_or(NONE);
                self.keys.push(key);
                self.numbers.insert(key, number);
                number
            }
        };
        self.last = Some((key, number));
        Ok(number)
    }

    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Numbers of values that the threads of a question share.
#[derive(Debug)]
pub(crate) struct SharedKeys<'a> {
    seen: Mutex<SeenKeys<'a>>,
    /// All other values are one.
    shown: OnceLock<HashSet<Key>>,
}

/// The number and the place of all other values, if they are one.
pub(crate) const OTHERS: u32 = NONE - 1;

impl<'a> SharedKeys<'a> {
    pub(crate) fn new(run: &Run<'a>) -> Self {
        Self { seen: Mutex::new(SeenKeys::new(run)), shown: OnceLock::new() }
    }

    /// The numbers of the values of the kept rows of a batch.
    pub(crate) fn numbers(&self, divider: &Divider<'_>, batch: &Batch<'_>) -> Result<Vec<u32>> {
        let mut numbers = vec![NONE; batch.rows()];
        if divider.filter().is_none() {
            return Ok(numbers);
        }
        let keys = divider.keys(batch)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for row in batch.kept().ones() {
            let key = keys.of(row);
            numbers[row] = match self.shown.get().is_some_and(|shown| !shown.contains(&key)) {
                true => OTHERS,
                false => seen.number(key)?,
            };
        }
        Ok(numbers)
    }

    /// Makes all other values than those at these places one from here on.
    pub(crate) fn join_others(&self, keys: &OrderedKeys, shown: &HashSet<u32>) {
        self.shown.get_or_init(|| shown.iter().map(|place| keys.key(*place)).collect());
    }

    /// The values in the order of their texts.
    pub(crate) fn ordered(&self, divider: &Divider<'_>) -> OrderedKeys {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let numbered = seen.keys().iter().copied().zip(0_u32..);
        let mut sorted: Vec<_> =
            numbered.map(|(key, number)| (divider.texts_of(key), key, number)).collect();
        sorted.sort_unstable();
        let mut places = vec![NONE; sorted.len()];
        for (place, (.., number)) in (0..).zip(&sorted) {
            places[*number as usize] = place;
        }
        OrderedKeys { places, keys: sorted.into_iter().map(|(_, key, _)| key).collect() }
    }
}

/// Values in an order that does not depend on threads.
#[derive(Debug)]
pub(crate) struct OrderedKeys {
    places: Vec<u32>,
    keys: Vec<Key>,
}

impl OrderedKeys {
    /// The place of the value with a number.
    pub(crate) fn place(&self, number: u32) -> u32 {
        if number == OTHERS {
            return OTHERS;
        }
        self.places.get(number as usize).copied().unwrap_or(NONE)
    }

    /// The same, if there is a value of at least one property.
    pub(crate) fn place_of_value(&self, number: u32) -> u32 {
        let place = self.place(number);
        if place != OTHERS && self.key(place) == NO_KEY { NONE } else { place }
    }

    /// The value at a place. `None`: it is that of all others.
    pub(crate) fn value_at(&self, place: u32) -> Option<Key> {
        (place != OTHERS).then(|| self.key(place))
    }

    /// The value at a place. [`NONE`]: there is no value.
    pub(crate) fn key(&self, place: u32) -> Key {
        self.keys.get(place as usize).copied().unwrap_or(NO_KEY)
    }
}

/// The totals of persons by value.
pub(crate) type ByValue<T> = HashMap<u32, T>;

/// The places of the values that have results of their own, if there is a result for all
/// others. A person may belong to several of the others and counts once in their result, so
/// that they are counted in a second scan, in which they are one.
pub(crate) fn first_places<T>(
    divider: &Divider<'_>,
    keys: &OrderedKeys,
    totals: &ByValue<T>,
    persons: impl Fn(&T) -> u64,
) -> Option<HashSet<u32>> {
    let filter = divider.filter()?;
    if filter.hides_other || totals.len() <= filter.limit {
        return None;
    }
    let places: Vec<u32> = totals.keys().copied().collect();
    let ranked = totals.iter().enumerate();
    let ranked =
        ranked.map(|(at, (place, total))| (at, persons(total) as f64, keys.key(*place))).collect();
    let first = first_ranked(divider, ranked, filter.limit).into_iter();
    Some(first.filter_map(|at| places.get(at).copied()).collect())
}

/// The totals that results show: those of the first values, each with its value, and those of
/// all others together. The number of persons decides which values are the first ones.
pub(crate) fn shown<T>(
    divider: &Divider<'_>,
    keys: &OrderedKeys,
    mut totals: ByValue<T>,
    persons: impl Fn(&T) -> u64,
    merge: impl Fn(&mut T, T),
) -> (Vec<(BreakdownValue, T)>, bool) {
    let Some(filter) = divider.filter() else { return (Vec::new(), false) };
    let mut other = totals.remove(&OTHERS);
    let totals = totals.into_iter().map(|(place, total)| (keys.key(place), total));
    let (keys, totals): (Vec<Key>, Vec<T>) = totals.unzip();
    let ranked = keys.iter().zip(&totals).enumerate();
    let ranked = ranked.map(|(at, (key, total))| (at, persons(total) as f64, *key)).collect();
    let chosen = first_ranked(divider, ranked, filter.limit);
    let places: HashMap<usize, usize> =
        chosen.into_iter().enumerate().map(|(place, at)| (at, place)).collect();
    let mut shown = Vec::new();
    for (at, (key, total)) in keys.into_iter().zip(totals).enumerate() {
        match (places.get(&at), divider.value(key), &mut other) {
            (Some(place), Some(value), _) => shown.push((*place, value, total)),
            (.., Some(other)) => merge(other, total),
            (.., none) => *none = Some(total),
        }
    }
    shown.sort_unstable_by_key(|(place, ..)| *place);
    let mut shown: Vec<(BreakdownValue, T)> =
        shown.into_iter().map(|(_, value, total)| (value, total)).collect();
    let has_more = other.is_some();
    if let Some(other) = other.filter(|_| !filter.hides_other) {
        shown.push((BreakdownValue::other(filter), other));
    }
    (shown, has_more)
}
