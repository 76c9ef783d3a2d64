//! The tables of questions in SQL, for people who write them.

use weir_answer::type_name;
use weir_query::{Expression, Field, GROUP_TYPES, Kind, Table};

/// A table that a question in SQL can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlTable {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: Vec<SqlColumn>,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlColumn {
    /// Its name.
    pub name: &'static str,
    /// Its type, as answers name it.
    pub kind: &'static str,
}

/// All tables with their columns.
pub fn sql_tables() -> Vec<SqlTable> {
    let tables = Table::ALL.into_iter();
    tables.map(|table| SqlTable { name: table.name(), columns: columns(table) }).collect()
}

fn columns(table: Table) -> Vec<SqlColumn> {
    let column = |name: &'static str, kind: Kind| SqlColumn { name, kind: type_name(kind) };
    if table != Table::Events {
        return table.columns().iter().map(|(name, kind)| column(name, *kind)).collect();
    }
    let groups = (0..GROUP_TYPES).map(Field::GroupProperties);
    let fields = Field::ALL.into_iter().chain([Field::SessionId]).chain(groups);
    fields.map(|field| column(field.name(), Expression::Field(field).kind())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_query::parse_select;

    use super::sql_tables;

    #[test]
    fn every_column_can_be_selected() {
        for table in sql_tables() {
            assert!(!table.columns.is_empty(), "{}", table.name);
            for column in table.columns {
                let query = format!("SELECT {} FROM {}", column.name, table.name);
                assert!(parse_select(&query, &BTreeMap::new()).is_ok(), "{query}");
            }
        }
    }
}
