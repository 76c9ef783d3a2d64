//! The table at the destination: its present columns and keys, and how names are written
//! in SQL.
//!
//! What belongs here: reading. What does not: creating a table, because types differ
//! (`postgres.rs`, `redshift.rs`).

use weir_model::exports::ExportModel;

use crate::columns::Columns;
use crate::destination::Failure;
use crate::persons;

use super::session::Session;

/// A table by name.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
}

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    /// Its type with its bounds, in SQL.
    pub(crate) sql: String,
    pub(crate) target: Target,
}

/// The values that a column accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Text, of at most this length.
    Text(Option<usize>),
    Json,
    /// An integer of this many bits.
    Integer(u32),
    /// A floating-point number of 32 bits.
    SmallFloat,
    /// A floating-point number of 64 bits, or a number without bounds.
    Float,
    /// A number with this many digits, `whole` of them before the point.
    Decimal {
        digits: usize,
        whole: i64,
    },
    /// True or false.
    Boolean,
    /// An instant.
    Timestamp,
    Date,
    Uuid,
    /// An address of a network, or of a host.
    Address {
        is_network: bool,
    },
    /// Another type. Values are written as text, whether they fit or not.
    Other,
}

/// A column of the export that the table has.
#[derive(Debug, Clone)]
pub(crate) struct Matched {
    /// The index of its cell in a row of the export.
    pub(crate) cell: usize,
    pub(crate) found: Found,
}

impl Table {
    /// The name in SQL.
    pub(crate) fn sql(&self) -> String {
        format!("{}.{}", name(&self.schema), name(&self.name))
    }

    /// The columns of an export that the table has. Creates the table if it does not
    /// exist.
    ///
    /// `spelled` returns the spelling of a name in the database.
    pub(crate) async fn matched_or_made(
        &self,
        session: &mut Session,
        create: &str,
        model: ExportModel,
        columns: &Columns,
        spelled: fn(&str) -> String,
    ) -> Result<Vec<Matched>, Failure> {
        let found = self.columns_or_make(session, create).await?;
        if model == ExportModel::Persons {
            persons::check_table(|name| found.iter().any(|column| column.name == name))?;
        }
        matched(columns, &found, spelled)
    }

    /// The columns of the table. Creates the table if it does not exist.
    async fn columns_or_make(
        &self,
        session: &mut Session,
        create: &str,
    ) -> Result<Vec<Found>, Failure> {
        let found = self.columns(session).await?;
        if !found.is_empty() {
            return Ok(found);
        }
        self.check_schema(session).await?;
        let made = session.run(create).await;
        match (self.columns(session).await, made) {
            (found, Ok(())) => found,
            // Another run has created the table first.
            (Ok(found), Err(_)) if !found.is_empty() => Ok(found),
            (_, Err(failure)) => Err(failure),
        }
    }

    /// Fails if the schema does not exist.
    pub(crate) async fn check_schema(&self, session: &mut Session) -> Result<(), Failure> {
        let schema = literal(&self.schema);
        let sql = format!("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {schema}");
        if session.rows(&sql).await?.is_empty() {
            let message = format!("There is no schema {:?}. Create it first.", self.schema);
            return Err(Failure::permanent("MissingSchema", message));
        }
        Ok(())
    }

    /// The columns of the table. Empty if the table does not exist.
    async fn columns(&self, session: &mut Session) -> Result<Vec<Found>, Failure> {
        let sql = format!(
            "SELECT a.attname, t.typname, a.atttypmod, \
             pg_catalog.format_type(a.atttypid, a.atttypmod) \
             FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
             JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
             WHERE n.nspname = {} AND c.relname = {} AND c.relkind IN ('r', 'p', 'v', 'f') \
             AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            literal(&self.schema),
            literal(&self.name),
        );
        Ok(session.rows(&sql).await?.into_iter().filter_map(found).collect())
    }

    /// The names in each unique key of the table that always applies.
    pub(crate) async fn unique_keys(
        &self,
        session: &mut Session,
    ) -> Result<Vec<Vec<String>>, Failure> {
        let sql = format!(
            "SELECT i.indexrelid, a.attname \
             FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_catalog.pg_index i ON i.indrelid = c.oid \
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) \
             WHERE n.nspname = {} AND c.relname = {} AND i.indisunique AND i.indisvalid \
             AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL \
             ORDER BY i.indexrelid, a.attnum",
            literal(&self.schema),
            literal(&self.name),
        );
        let mut keys: Vec<(String, Vec<String>)> = Vec::new();
        for row in session.rows(&sql).await? {
            let mut row = row.into_iter().flatten();
            let (Some(index), Some(column)) = (row.next(), row.next()) else { continue };
            match keys.last_mut() {
                Some((last, columns)) if *last == index => columns.push(column),
                _ => keys.push((index, vec![column])),
            }
        }
        Ok(keys.into_iter().map(|(_, columns)| columns).collect())
    }
}

fn found(row: Vec<Option<String>>) -> Option<Found> {
    let mut row = row.into_iter().flatten();
    let (name, kind, bound, sql) = (row.next()?, row.next()?, row.next()?, row.next()?);
    // The stored length includes a header of four bytes.
    let bound = bound.parse().ok().and_then(|bound: usize| bound.checked_sub(4));
    let target = match kind.as_str() {
        "varchar" | "bpchar" => Target::Text(bound),
        "text" | "name" | "citext" => Target::Text(None),
        "json" | "jsonb" | "super" => Target::Json,
        "int2" => Target::Integer(16),
        "int4" => Target::Integer(32),
        "int8" => Target::Integer(64),
        "float4" => Target::SmallFloat,
        "float8" => Target::Float,
        "numeric" => bound.map_or(Target::Float, decimal),
        "bool" => Target::Boolean,
        "timestamp" | "timestamptz" => Target::Timestamp,
        "date" => Target::Date,
        "uuid" => Target::Uuid,
        "inet" => Target::Address { is_network: false },
        "cidr" => Target::Address { is_network: true },
        _ => Target::Other,
    };
    Some(Found { name, sql, target })
}

/// The bounds of `numeric(precision, scale)`. The scale is in the lower eleven bits, as a
/// signed number. The precision is in the bits above.
fn decimal(bound: usize) -> Target {
    let (digits, scale) = (bound >> 16, (bound & 0x7ff) as i64);
    let scale = if scale < 0x400 { scale } else { scale - 0x800 };
    Target::Decimal { digits, whole: digits as i64 - scale }
}

/// Adds the columns that are the likely cause to a failure about a value that does not
/// fit.
pub(crate) fn explained(failure: Failure, columns: &[Matched]) -> Failure {
    let others = columns.iter().filter(|column| column.found.target == Target::Other);
    let others: Vec<String> = others.map(|column| format!("{:?}", column.found.name)).collect();
    if failure.class != "WrongType" || others.is_empty() {
        return failure;
    }
    let message = format!(
        "{} Values are not fitted into the types of: {}.",
        failure.message,
        others.join(", ")
    );
    Failure { message, ..failure }
}

/// The columns of an export that a table has. Other columns are skipped (EXP-12).
fn matched(
    columns: &Columns,
    found: &[Found],
    spelled: fn(&str) -> String,
) -> Result<Vec<Matched>, Failure> {
    let mut all: Vec<Matched> = Vec::new();
    for (cell, column) in columns.columns.iter().enumerate() {
        let name = spelled(&column.name);
        let Some(found) = found.iter().find(|found| found.name == name) else { continue };
        if all.iter().any(|other| other.found.name == name) {
            let message = format!("Two columns of the query are {name:?} in the database.");
            return Err(Failure::permanent("SameColumnTwice", message));
        }
        all.push(Matched { cell, found: found.clone() });
    }
    if all.is_empty() {
        let message = "The table has no column of the export. Use another table.";
        return Err(Failure::permanent("MissingColumn", message));
    }
    Ok(all)
}

/// A quoted name in SQL.
pub(crate) fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quoted names in SQL, separated by commas.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(name).collect::<Vec<_>>().join(", ")
}

/// A quoted text in SQL. Only for names from settings, which contain no backslash.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name with at most this many bytes, as databases cut it.
pub(crate) fn shortened(name: &str, bytes: usize) -> &str {
    name.get(..name.floor_char_boundary(bytes)).unwrap_or(name)
}
