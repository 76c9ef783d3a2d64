use weir_model::exports::ExportModel;

use super::*;
use crate::destinations::postgres::Found;

fn texts(columns: &[(&str, Target)]) -> Texts {
    let column = |(cell, (name, target)): (usize, &(&str, Target))| Matched {
        cell,
        found: Found { name: (*name).to_owned(), sql: String::new(), target: *target },
    };
    Texts::of(&Plan {
        table: "t".to_owned(),
        model: ExportModel::Events,
        columns: columns.iter().enumerate().map(column).collect(),
        key: Vec::new(),
        uuid: None,
    })
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

#[test]
fn every_value_is_a_text_or_null() {
    let mut texts = texts(&[
        ("text", Target::Text(Some(3))),
        ("json", Target::Json),
        ("whole", Target::Integer(64)),
        ("yes", Target::Boolean),
        ("time", Target::Timestamp),
        ("none", Target::Float),
    ]);
    let row = texts.row(vec![
        text("long"),
        Cell::Json("{\"n\": 1}".to_owned()),
        Cell::Integer(9_007_199_254_740_993),
        Cell::Boolean(true),
        Cell::Timestamp(0),
        Cell::Null,
    ]);
    assert_eq!(
        row,
        [
            text("lon"),
            text("{\"n\": 1}"),
            text("9007199254740993"),
            text("true"),
            text("1970-01-01 00:00:00.000000+00"),
            Cell::Null,
        ]
    );
    let altered_columns: Vec<String> =
        texts.altered().into_iter().map(|altered| altered.column).collect();
    assert_eq!(altered_columns, ["text"]);
    assert!(texts.columns().iter().all(|column| column.kind == Kind::Text));
}

#[test]
fn what_is_too_long_for_its_column_or_for_a_line_is_omitted() {
    let json = format!("\"{}\"", "x".repeat(TEXT_MAX));
    let mut one = texts(&[("json", Target::Json)]);
    assert_eq!(one.row(vec![Cell::Json(json)]), [Cell::Null]);
    assert_eq!(one.altered().first().map(|altered| altered.what), Some(LONG_JSON));

    // Written as JSON, each value takes six times its bytes.
    let names: Vec<String> = (0..11).map(|number| format!("c{number}")).collect();
    let columns: Vec<(&str, Target)> =
        names.iter().map(|name| (name.as_str(), Target::Text(Some(TEXT_MAX)))).collect();
    let mut many = texts(&columns);
    let long = text(&"\u{1}".repeat(TEXT_MAX));
    let row = many.row(vec![long.clone(); 11]);
    assert_eq!(row.iter().filter(|cell| **cell == long).count(), 10);
    let altered = many.altered();
    assert_eq!(altered.len(), 1);
    assert_eq!((altered[0].column.as_str(), altered[0].what), ("c10", LONG_LINE));
}
