//! The schema of an export, as the API returns it (EXP-17).

use weir_model::exports::{ExportSchema, SchemaField};

use super::tree::Query;
use super::write::{Bound, write};

/// The schema of a query. Texts are values that expressions refer to by name.
pub fn schema(query: &Query) -> ExportSchema {
    let mut bound = Bound::default();
    let mut text = |expression| {
        let mut out = String::new();
        write(&mut out, expression, &mut bound);
        out
    };
    let fields = query
        .columns
        .iter()
        .map(|column| SchemaField {
            expression: text(&column.expression),
            alias: column.alias.clone(),
        })
        .collect();
    let filter = query.filter.as_ref().map(text);
    ExportSchema { fields, values: bound.values, hogql_query: query.normal_form(), filter }
}
