//! Amazon Redshift: the protocol of PostgreSQL with different SQL (EXP-37).
//!
//! ```text
//! rows -> INSERTs of many rows --> temporary table -> DELETE and INSERT … SELECT -> COMMIT
//!      -> files in S3 -> COPY --->
//! ```
//!
//! What belongs here: the differences from `postgres`: types, statements as text, lengths
//! in bytes, the meaning of a backslash. What does not: how rows get into the temporary
//! table (`insert`, `copy`, `staged`), the session, reading the table, fitting values.
//!
//! Redshift does not enforce unique keys. A run therefore deletes its own events before
//! it inserts them, so a repeated run leaves each event once. For persons it deletes
//! older rows, and inserts rows whose key is not in the table then.

mod copy;
mod insert;
mod staged;

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_egress::{Egress, Trust};
use weir_model::exports::ExportModel;
use weir_query::Field;

use self::copy::Staging;
use self::insert::InsertWriter;
use self::staged::Waiting;
use super::postgres::{
    Bounds, Credentials, Matched, STAGE, Session, Table, Target, altered, default_schema,
    default_table, dial, fit, identity, name, names, of, shortened,
};
use crate::columns::{Columns, Source};
use crate::destination::{Altered, Destination, Failure, Job, Writer};
use crate::destinations::Dependencies;
use crate::persons;
use crate::rows::{Cell, Column, Kind};

/// Upper bound of bytes in a name.
const NAME_MAX: usize = 127;
/// Upper bound of bytes in a text.
const TEXT_MAX: usize = 65_535;
/// Numbers in SUPER have 64 bits, as integers or floating-point numbers.
const BOUNDS: Bounds = Bounds { in_bytes: true, digits_max: 300 };

/// The steps of its test. The steps of the bucket do nothing in the mode INSERT.
pub(crate) const STEPS: &[&str] = &[
    "Reach the server",
    "Sign in",
    "Find the schema and the table",
    "Write in a transaction that is rolled back",
    "Reach the bucket (mode COPY)",
    "Write a file there and remove it (mode COPY)",
];

#[derive(Deserialize)]
struct Config {
    host: String,
    #[serde(default = "default_port")]
    port: u16,
    database: String,
    user: String,
    password: String,
    #[serde(default = "default_schema")]
    schema: String,
    #[serde(default = "default_table")]
    table_name: String,
    #[serde(default)]
    properties_data_type: Json,
    #[serde(default)]
    mode: Mode,
    copy_inputs: Option<copy::Inputs>,
}

/// How JSON is stored in a new table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Json {
    #[default]
    Varchar,
    Super,
}

/// How rows get into the temporary table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Mode {
    #[default]
    Insert,
    Copy,
}

fn default_port() -> u16 {
    5439
}

/// A table in Redshift.
pub(crate) struct Redshift {
    egress: Egress,
    credentials: Arc<Credentials>,
    table: Table,
    json: Json,
    /// The bucket for rows in the mode COPY. `None`: the mode is INSERT.
    staging: Option<Arc<Staging>>,
}

impl Redshift {
    /// Opens the destination.
    pub(crate) fn new(
        config: &Map<String, Value>,
        dependencies: &Dependencies,
    ) -> Result<Self, Failure> {
        let config: Config =
            serde_json::from_value(Value::Object(config.clone())).map_err(|_| {
                Failure::permanent("InvalidConfig", "A setting of the database is missing.")
            })?;
        let staging = match (config.mode, config.copy_inputs) {
            (Mode::Insert, _) => None,
            (Mode::Copy, Some(inputs)) => Some(Arc::new(Staging::new(inputs, dependencies)?)),
            (Mode::Copy, None) => {
                return Err(Failure::permanent(
                    "InvalidConfig",
                    "The mode COPY needs copy_inputs.",
                ));
            }
        };
        Ok(Self {
            egress: dependencies.egress.clone(),
            credentials: Arc::new(Credentials {
                host: config.host,
                port: config.port,
                database: config.database,
                user: config.user,
                password: config.password,
                trust: Trust::Roots,
            }),
            table: Table { schema: spelled(&config.schema), name: spelled(&config.table_name) },
            json: config.properties_data_type,
            staging,
        })
    }

    /// The statements of a run. Creates the table if it does not exist.
    async fn plan(
        &self,
        session: &mut Session,
        model: ExportModel,
        columns: &Columns,
    ) -> Result<Plan, Failure> {
        let create = create(&self.table, columns, self.json);
        let columns_there =
            self.table.matched_or_made(session, &create, model, columns, spelled).await?;
        let cells = [columns.position_of(Field::TeamId), columns.position_of(identity(model))];
        let mut key: Vec<String> = Vec::new();
        // Without the id, the DELETE would remove all rows of the project.
        if columns_there.iter().any(|column| Some(column.cell) == cells[1]) {
            let is_key = |column: &&Matched| cells.contains(&Some(column.cell));
            key.extend(columns_there.iter().filter(is_key).map(|column| column.found.name.clone()));
        }
        let uuid = columns.position_of(Field::Uuid);
        Ok(Plan { table: self.table.sql(), model, columns: columns_there, key, uuid })
    }
}

/// The spelling of a name in the database, which has no upper case.
fn spelled(name: &str) -> String {
    shortened(name, NAME_MAX).to_ascii_lowercase()
}

#[async_trait]
impl Destination for Redshift {
    fn columns(&self) -> Columns {
        Columns::of(&[
            ("uuid", Kind::Text, Source::Uuid),
            ("event", Kind::Text, Source::Event),
            ("properties", Kind::Json, Source::Properties),
            ("elements", Kind::Text, Source::Empty),
            ("set", Kind::Json, Source::Set),
            ("set_once", Kind::Json, Source::SetOnce),
            ("distinct_id", Kind::Text, Source::DistinctId),
            ("team_id", Kind::Integer, Source::TeamId),
            ("ip", Kind::Text, Source::Ip),
            ("site_url", Kind::Text, Source::Empty),
            ("timestamp", Kind::Timestamp, Source::Timestamp),
        ])
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        let mut session = Session::open(&self.egress, &self.credentials).await?;
        let plan = self.plan(&mut session, job.model, &job.columns).await?;
        let Some(staging) = &self.staging else {
            return Ok(Box::new(InsertWriter::begin(session, plan).await?));
        };
        // COPY opens its own session later: this one would be idle while files are
        // written.
        drop(session);
        let directory = staging.directory_of(&job);
        let (egress, credentials) = (self.egress.clone(), Arc::clone(&self.credentials));
        let staging = Arc::clone(staging);
        let waiting = Waiting { egress, credentials, staging, plan, directory };
        Ok(Box::new(waiting.writer()?))
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, model: ExportModel) -> Result<(), Failure> {
        match (step, &self.staging) {
            (0, _) => return dial(&self.egress, &self.credentials).await.map(drop),
            (4, Some(staging)) => return staging.test_reaching().await,
            (5.., Some(staging)) => return staging.test_writing().await,
            (4.., None) => return Ok(()),
            _ => {}
        }
        let mut session = Session::open(&self.egress, &self.credentials).await?;
        match step {
            1 => Ok(()),
            2 => self.table.check_schema(&mut session).await,
            _ => {
                session.run("BEGIN").await?;
                let columns = match model {
                    ExportModel::Events => self.columns(),
                    ExportModel::Persons => persons::columns(),
                };
                let plan = self.plan(&mut session, model, &columns).await?;
                let merge = plan.merge().join("; ");
                session.run(&format!("{}; {merge}; ROLLBACK", plan.stage())).await
            }
        }
    }
}

/// How a run writes to the table.
struct Plan {
    /// The name of the table in SQL.
    table: String,
    model: ExportModel,
    columns: Vec<Matched>,
    /// The columns that identify rows. Empty: the table does not have all of them.
    key: Vec<String>,
    /// The index of the cell with the event's id.
    uuid: Option<usize>,
}

impl Plan {
    fn names(&self) -> String {
        names(self.columns.iter().map(|column| column.found.name.as_str()))
    }

    /// The statement that creates the temporary table. JSON is text in it, because a list
    /// of values cannot contain the function that parses JSON.
    fn stage(&self) -> String {
        let sql = |column: &Matched| match column.found.target {
            Target::Json => format!("{} VARCHAR({TEXT_MAX})", name(&column.found.name)),
            _ => format!("{} {}", name(&column.found.name), column.found.sql),
        };
        let columns: Vec<String> = self.columns.iter().map(sql).collect();
        format!("CREATE TEMPORARY TABLE {STAGE} ({})", columns.join(", "))
    }

    /// The beginning of a statement that inserts rows.
    fn head(&self) -> String {
        format!("INSERT INTO {STAGE} ({}) VALUES ", self.names())
    }

    /// Appends a row to a statement.
    fn push_row(&self, out: &mut String, row: &[Cell], changed: &mut Vec<Altered>) {
        for (at, column) in self.columns.iter().enumerate() {
            out.push(if at == 0 { '(' } else { ',' });
            let fitted = fit(of(row, column), column.found.target, BOUNDS);
            let mut what = fitted.altered;
            let text = fitted.text.filter(|text| {
                let is_too_long = column.found.target == Target::Json && text.len() > TEXT_MAX;
                what = if is_too_long { Some(LONG_JSON) } else { what };
                !is_too_long
            });
            match (text, column.found.target) {
                (None, _) => out.push_str("NULL"),
                (
                    Some(number),
                    Target::Integer(_)
                    | Target::Float
                    | Target::SmallFloat
                    | Target::Decimal { .. },
                ) => out.push_str(&number),
                (Some(value), Target::Boolean) => out.push_str(&value),
                (Some(text), _) => push_literal(out, &text),
            }
            if let Some(what) = what {
                changed.push(altered(row, self.uuid, column, what));
            }
        }
        out.push(')');
    }

    /// The statements that copy rows from the temporary table into the table.
    fn merge(&self) -> Vec<String> {
        let (table, names) = (&self.table, self.names());
        let values: Vec<String> = self
            .columns
            .iter()
            .map(|column| match column.found.target {
                Target::Json => format!("JSON_PARSE({})", name(&column.found.name)),
                _ => name(&column.found.name),
            })
            .collect();
        let values = values.join(", ");
        let insert = format!("INSERT INTO {table} ({names}) SELECT {values} FROM {STAGE}");
        if self.key.is_empty() {
            return vec![insert];
        }
        let delete = format!("DELETE FROM {table} USING {STAGE} WHERE {}", self.same(table, STAGE));
        if self.model == ExportModel::Events {
            return vec![delete, insert];
        }
        let versions = persons::VERSIONS.map(name);
        let newer =
            versions.each_ref().map(|version| format!("{STAGE}.{version} > {table}.{version}"));
        let newest = versions.each_ref().map(|version| format!("{version} DESC"));
        let key = persons::KEY.map(name).join(", ");
        // Persons that were merged during the run have two rows with the same key.
        vec![
            format!("{delete} AND ({})", newer.join(" OR ")),
            format!(
                "INSERT INTO {table} ({names}) SELECT {values} FROM (SELECT *, ROW_NUMBER() OVER \
                 (PARTITION BY {key} ORDER BY {}) AS weir_row FROM {STAGE}) AS here \
                 WHERE weir_row = 1 AND NOT EXISTS (SELECT 1 FROM {table} WHERE {})",
                newest.join(", "),
                self.same(table, "here"),
            ),
        ]
    }

    /// The condition that a row of the table and a row of the temporary table have the
    /// same key.
    fn same(&self, table: &str, waiting: &str) -> String {
        let same = |column: &String| format!("{table}.{0} = {waiting}.{0}", name(column));
        self.key.iter().map(same).collect::<Vec<_>>().join(" AND ")
    }
}

const LONG_JSON: &str = "JSON longer than 65,535 bytes was omitted";

fn create(table: &Table, columns: &Columns, json: Json) -> String {
    let columns: Vec<String> = columns
        .columns
        .iter()
        .map(|column| format!("{} {}", name(&spelled(&column.name)), sql_type(column, json)))
        .collect();
    format!("CREATE TABLE IF NOT EXISTS {} ({})", table.sql(), columns.join(", "))
}

fn sql_type(column: &Column, json: Json) -> &'static str {
    match (column.kind, column.name.as_str()) {
        (Kind::Text, "uuid" | "ip" | "site_url") => "VARCHAR(200)",
        (Kind::Integer, "team_id") => "INTEGER",
        (Kind::Json, _) if json == Json::Super => "SUPER",
        (Kind::Text | Kind::Json, _) => "VARCHAR(65535)",
        (Kind::Integer, _) => "BIGINT",
        (Kind::Float, _) => "DOUBLE PRECISION",
        (Kind::Boolean, _) => "BOOLEAN",
        (Kind::Timestamp, _) => "TIMESTAMP WITH TIME ZONE",
        // Redshift has no such type.
        (Kind::Uuid, _) => "VARCHAR(36)",
    }
}

/// Appends a text in quotation marks. Only a doubled backslash always means one
/// backslash.
fn push_literal(out: &mut String, text: &str) {
    out.push('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
}

#[cfg(test)]
mod tests;
