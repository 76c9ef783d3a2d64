//! Cells in the form that warehouses accept: texts without NUL, numbers and times within
//! their range, and few types.
//!
//! What belongs here: altering values that do not fit, and the notes about them. What
//! does not: files, statements.

use std::borrow::Cow;

use chrono::{DateTime, Datelike as _, SecondsFormat};
use uuid::Uuid;
use weir_json::{Escape, Part, rewrite};

use super::repeats::without_repeats;
use crate::destination::{Altered, Failure};
use crate::rows::{Cell, Column, Kind};

/// Upper bound of notes in memory: an export of only invalid values must not fill the
/// memory.
const NOTES_MAX: usize = 1000;

const NUL_LEFT_OUT: &str = "a NUL character was omitted";
const HALF_REPLACED: &str = "half of a surrogate pair became U+FFFD";
const NUMBER_AS_TEXT: &str = "a number out of range became text";
const NUMBER_AS_NULL: &str = "a number out of range became null";
const NAME_TWICE: &str = "of values with the same name the last one was kept";
const TIME_AS_NULL: &str = "a time out of range became null";

/// The form in which JSON is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::destinations) enum Json {
    /// As a nested value.
    Value,
    Text,
}

/// The columns of a row that are sent, and their types.
pub(in crate::destinations) struct Shape {
    /// The columns that are sent, with the kinds of the sent values.
    pub(in crate::destinations) columns: Vec<Column>,
    /// The index of each of them in a row.
    positions: Vec<usize>,
    /// The index of the event's id in a row.
    uuid: Option<usize>,
    notes: Vec<Altered>,
}

impl Shape {
    /// The columns of `all` that `sent` has an entry for. The entry says whether JSON
    /// stays JSON or becomes text. Times and ids become text. Fails if no column is left.
    pub(in crate::destinations) fn new(
        all: &[Column],
        sent: impl Fn(&str) -> Option<Json>,
    ) -> Result<Self, Failure> {
        let (mut columns, mut positions) = (Vec::new(), Vec::new());
        for (at, column) in all.iter().enumerate() {
            let Some(json) = sent(&column.name) else { continue };
            let kind = match column.kind {
                Kind::Timestamp | Kind::Uuid => Kind::Text,
                Kind::Json if json == Json::Text => Kind::Text,
                kind => kind,
            };
            columns.push(Column { name: column.name.clone(), kind });
            positions.push(at);
        }
        if columns.is_empty() {
            return Err(Failure::permanent(
                "WrongColumns",
                "The table has none of the columns that the export has.",
            ));
        }
        let uuid = all.iter().position(|column| column.name == "uuid");
        Ok(Self { columns, positions, uuid, notes: Vec::new() })
    }

    /// A row as it is sent.
    pub(in crate::destinations) fn row(&mut self, mut row: Vec<Cell>) -> Vec<Cell> {
        let uuid = self.uuid.and_then(|at| match row.get(at)? {
            Cell::Uuid(uuid) => Some(*uuid),
            Cell::Text(text) => Uuid::try_parse(text).ok(),
            _ => None,
        });
        let mut shaped = Vec::with_capacity(self.positions.len());
        for (&at, column) in self.positions.iter().zip(&self.columns) {
            let cell =
                row.get_mut(at).map_or(Cell::Null, |cell| std::mem::replace(cell, Cell::Null));
            let (cell, what) = fit(cell, column.kind);
            if let Some(what) = what
                && self.notes.len() < NOTES_MAX
            {
                self.notes.push(Altered { uuid, column: column.name.clone(), what });
            }
            shaped.push(cell);
        }
        shaped
    }

    /// The alterations since the last call.
    pub(in crate::destinations) fn altered(&mut self) -> Vec<Altered> {
        std::mem::take(&mut self.notes)
    }
}

fn fit(cell: Cell, kind: Kind) -> (Cell, Option<&'static str>) {
    match cell {
        Cell::Text(text) if text.contains('\0') => {
            (Cell::Text(text.replace('\0', "")), Some(NUL_LEFT_OUT))
        }
        Cell::Uuid(uuid) => (Cell::Text(uuid.to_string()), None),
        Cell::Json(json) => {
            let (json, what) = sanitise_json(json);
            let (json, what) = match without_repeats(&json) {
                Some(json) => (json, Some(NAME_TWICE)),
                None => (json, what),
            };
            (if kind == Kind::Json { Cell::Json(json) } else { Cell::Text(json) }, what)
        }
        Cell::Float(number) if !number.is_finite() => (Cell::Null, Some(NUMBER_AS_NULL)),
        Cell::Timestamp(micros) => match DateTime::from_timestamp_micros(micros) {
            Some(time) if (1..=9999).contains(&time.year()) => {
                (Cell::Text(time.to_rfc3339_opts(SecondsFormat::Micros, false)), None)
            }
            _ => (Cell::Null, Some(TIME_AS_NULL)),
        },
        cell => (cell, None),
    }
}

/// A number with at most this many characters is certainly in range and exact.
const HARMLESS: usize = 15;

/// JSON without values that warehouses refuse: NUL and unpaired surrogates in texts, and
/// numbers that are neither integers of 64 bits nor doubles.
fn sanitise_json(json: String) -> (String, Option<&'static str>) {
    let mut what = None;
    let tamed = rewrite(&json, |part| {
        let (other, why): (Cow<'_, str>, _) = match part {
            Part::Escape(Escape::Char(_)) => return None,
            Part::Escape(Escape::Nul) => ("".into(), Some(NUL_LEFT_OUT)),
            Part::Escape(Escape::SingleSurrogate) => ("\\ufffd".into(), Some(HALF_REPLACED)),
            Part::Number(number) => {
                let other = tame_number(number)?;
                let why = other.starts_with('"').then_some(NUMBER_AS_TEXT);
                (other.into(), why)
            }
        };
        what = why.or(what);
        Some(other)
    });
    (tamed.unwrap_or(json), what)
}

/// The replacement of a number. `None`: the number stays.
fn tame_number(number: &str) -> Option<String> {
    let is_whole = !number.contains(['.', 'e', 'E']);
    if number.len() <= HARMLESS && !number.contains(['e', 'E']) {
        return None;
    }
    if is_whole {
        let fits = number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
        return (!fits).then(|| format!("\"{number}\""));
    }
    match number.parse::<f64>() {
        // The value that every reader gets, in a form that parses to the same value.
        Ok(value) if value.is_finite() => Some(format!("{value:e}")),
        _ => Some(format!("\"{number}\"")),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn column(name: &str, kind: Kind) -> Column {
        Column { name: name.to_owned(), kind }
    }

    #[test]
    fn times_and_ids_become_text_and_columns_may_be_omitted() {
        let all = [
            column("uuid", Kind::Uuid),
            column("left", Kind::Integer),
            column("timestamp", Kind::Timestamp),
            column("properties", Kind::Json),
        ];
        let mut shape = Shape::new(&all, |name| (name != "left").then_some(Json::Text)).unwrap();
        assert_eq!(
            shape.columns,
            [
                column("uuid", Kind::Text),
                column("timestamp", Kind::Text),
                column("properties", Kind::Text),
            ]
        );
        let row = vec![
            Cell::Uuid(Uuid::from_u128(1)),
            Cell::Integer(1),
            Cell::Timestamp(1_700_000_000_123_456),
            Cell::Json(r#"{"a":1}"#.to_owned()),
        ];
        let text = |text: &str| Cell::Text(text.to_owned());
        assert_eq!(
            shape.row(row),
            [
                text("00000000-0000-0000-0000-000000000001"),
                text("2023-11-14T22:13:20.123456+00:00"),
                text(r#"{"a":1}"#),
            ]
        );
        assert_eq!(shape.altered(), []);
    }

    #[test]
    fn a_table_without_any_of_the_columns_is_refused() {
        let all = [column("uuid", Kind::Uuid)];
        let failure = Shape::new(&all, |_| None).map(|_| ()).unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), ("WrongColumns", false));
    }

    #[test]
    fn what_does_not_fit_is_altered_and_noted_with_its_event() {
        let all = [
            column("uuid", Kind::Uuid),
            column("event", Kind::Text),
            column("timestamp", Kind::Timestamp),
            column("n", Kind::Float),
        ];
        let mut shape = Shape::new(&all, |_| Some(Json::Value)).unwrap();
        let id = Uuid::from_u128(7);
        let row = vec![
            Cell::Uuid(id),
            Cell::Text("a\0b".to_owned()),
            Cell::Timestamp(i64::MAX),
            Cell::Float(f64::INFINITY),
        ];
        let shaped = shape.row(row);
        assert_eq!(shaped[1..], [Cell::Text("ab".to_owned()), Cell::Null, Cell::Null]);
        let noted: Vec<_> =
            shape.altered().into_iter().map(|note| (note.uuid, note.what)).collect();
        assert_eq!(
            noted,
            [(Some(id), NUL_LEFT_OUT), (Some(id), TIME_AS_NULL), (Some(id), NUMBER_AS_NULL)]
        );
        assert_eq!(shape.altered(), []);
    }

    #[test]
    fn names_that_stand_twice_or_become_equal_are_noted() {
        for json in [r#"{"ab":1,"ab":2}"#, r#"{"a\u0000b":1,"ab":2}"#] {
            let fitted = fit(Cell::Json(json.to_owned()), Kind::Json);
            assert_eq!(fitted, (Cell::Json(r#"{"ab":2}"#.to_owned()), Some(NAME_TWICE)), "{json}");
        }
    }

    #[test]
    fn json_loses_only_what_warehouses_refuse() {
        for (json, tamed, what) in [
            (r#"{"a":[1,-2.5,"3e999"],"b":"1\n"}"#, None, None),
            (r#"{"a":9007199254740993}"#, None, None),
            (r#"{"a":18446744073709551615}"#, None, None),
            (
                r#"{"a":18446744073709551616}"#,
                Some(r#"{"a":"18446744073709551616"}"#),
                Some(NUMBER_AS_TEXT),
            ),
            (r#"{"a":1e999,"b":2}"#, Some(r#"{"a":"1e999","b":2}"#), Some(NUMBER_AS_TEXT)),
            (r#"{"a":1e3}"#, Some(r#"{"a":1e3}"#), None),
            (r#"[0.12345678901234567890]"#, Some("[1.2345678901234568e-1]"), None),
            (r#"{"a\u0000b":"\u0000"}"#, Some(r#"{"ab":""}"#), Some(NUL_LEFT_OUT)),
            (r#"{"a":"\\u0000 \" 1e999"}"#, None, None),
            (r#"{"a":"\ud83d\ude00\u00e4"}"#, None, None),
            (r#"["\ud83d","\ude00\n"]"#, Some(r#"["\ufffd","\ufffd\n"]"#), Some(HALF_REPLACED)),
            ("{\"a\":\"ä\u{1F600}\\u0000\"}", Some("{\"a\":\"ä\u{1F600}\"}"), Some(NUL_LEFT_OUT)),
        ] {
            let expected = (tamed.unwrap_or(json).to_owned(), what);
            assert_eq!(sanitise_json(json.to_owned()), expected, "{json}");
        }
    }
}
