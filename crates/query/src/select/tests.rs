//! Tests of questions in SQL.

mod corpus;
mod faults;
mod fragments;
mod generated;
mod hostile;
mod normal;
mod tree;
mod values;

use serde_json::json;

use super::*;

/// Values beside the queries of these tests.
fn values() -> BTreeMap<String, Json> {
    let values = [
        ("name", json!("it's")),
        ("number", json!(-5)),
        ("half", json!(0.5)),
        ("yes", json!(true)),
        ("nothing", Json::Null),
        ("list", json!([1])),
        ("nul", json!("a\0b")),
        ("smallest", json!(i64::MIN)),
        ("wide", json!(18_446_744_073_709_551_615_u64)),
        ("limit", json!(7)),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The tree of a query that is valid.
fn select(text: &str) -> Select {
    parse_select(text, &values()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The normal form of a query, or its fault.
fn normal(text: &str) -> String {
    match parse_select(text, &values()) {
        Ok(select) => select.normal_form(),
        Err(error) => error.to_string(),
    }
}
