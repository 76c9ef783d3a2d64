//! PostgreSQL: one transaction for a run (EXP-36).
//!
//! ```text
//! rows -> COPY into the table                                              -> COMMIT
//!      -> COPY into a temporary table -> INSERT … SELECT into the table ->
//! ```
//!
//! What belongs here: the columns, creating the table, the statements of a run. What does
//! not: their order (`writer`), the session, names, values (modules below, used by
//! `redshift` too).
//!
//! An interrupted run leaves nothing, because nothing was committed. If the answer to a
//! commit is lost, the run is repeated. It then replaces its own rows if the table has a
//! unique key for the event's id; tables created here have one. Persons require such a
//! key, because they replace older rows.

mod coerce;
mod json;
mod session;
mod table;
mod writer;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;
use weir_egress::{Egress, Trust};
use weir_model::exports::ExportModel;
use weir_query::Field;

pub(super) use coerce::{Bounds, fit};
pub(super) use session::{Credentials, Session, dial};
#[cfg(test)]
pub(super) use table::Found;
pub(super) use table::{Matched, Table, Target, explained, name, names, shortened};
use writer::PostgresWriter;

use crate::columns::{Columns, Source};
use crate::destination::{Altered, Destination, Failure, Job, Writer};
use crate::destinations::Dependencies;
use crate::persons;
use crate::rows::{Cell, Column, Kind};

/// The temporary table that holds the rows until the end of the run.
pub(super) const STAGE: &str = "weir_rows";
/// Upper bound of bytes in a name.
const NAME_MAX: usize = 63;
/// The type `numeric`, which JSON is based on, allows more digits before the point and
/// roughly this many after it.
const BOUNDS: Bounds = Bounds { in_bytes: false, digits_max: 16_000 };

pub(super) const STEPS: &[&str] = &[
    "Reach the server",
    "Sign in",
    "Find the schema and the table",
    "Write in a transaction that is rolled back",
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
    has_self_signed_cert: bool,
}

fn default_port() -> u16 {
    5432
}

pub(super) fn default_schema() -> String {
    "public".to_owned()
}

pub(super) fn default_table() -> String {
    "events".to_owned()
}

/// A table in a PostgreSQL database.
pub(crate) struct Postgres {
    egress: Egress,
    credentials: Credentials,
    table: Table,
}

impl Postgres {
    /// Opens the destination.
    pub(crate) fn new(
        config: &Map<String, Value>,
        dependencies: &Dependencies,
    ) -> Result<Self, Failure> {
        let config: Config =
            serde_json::from_value(Value::Object(config.clone())).map_err(|_| {
                Failure::permanent("InvalidConfig", "A setting of the database is missing.")
            })?;
        let trust = if config.has_self_signed_cert { Trust::AnyCertificate } else { Trust::Roots };
        Ok(Self {
            egress: dependencies.egress.clone(),
            credentials: Credentials {
                host: config.host,
                port: config.port,
                database: config.database,
                user: config.user,
                password: config.password,
                trust,
            },
            table: Table { schema: config.schema, name: config.table_name },
        })
    }

    /// The statements of a run. Creates the table if it does not exist.
    async fn plan(
        &self,
        session: &mut Session,
        model: ExportModel,
        columns: &Columns,
    ) -> Result<Plan, Failure> {
        let create = create(&self.table, model, columns);
        let columns_there =
            self.table.matched_or_made(session, &create, model, columns, spelled).await?;
        let keys = self.table.unique_keys(session).await?;
        let key = key(model, columns, &columns_there, &keys);
        if model == ExportModel::Persons && key.is_empty() {
            let message = "The table needs a unique key of team_id and distinct_id for persons.";
            return Err(Failure::permanent("NoPersonsTable", message));
        }
        let uuid = columns.position_of(Field::Uuid);
        Ok(Plan { table: self.table.sql(), model, columns: columns_there, key, uuid })
    }
}

/// The spelling of a name in the database, which cuts long names.
fn spelled(name: &str) -> String {
    shortened(name, NAME_MAX).to_owned()
}

#[async_trait]
impl Destination for Postgres {
    fn columns(&self) -> Columns {
        Columns::of(&[
            ("uuid", Kind::Text, Source::Uuid),
            ("event", Kind::Text, Source::Event),
            ("properties", Kind::Json, Source::Properties),
            ("elements", Kind::Json, Source::ElementsChain),
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
        Ok(Box::new(PostgresWriter::begin(session, plan).await?))
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, model: ExportModel) -> Result<(), Failure> {
        if step == 0 {
            return dial(&self.egress, &self.credentials).await.map(drop);
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
                session.run(&format!("{}; {}; ROLLBACK", plan.stage(), plan.insert())).await
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
    /// The columns of the unique key for events or distinct ids. Empty: the table has
    /// none.
    key: Vec<String>,
    /// The index of the cell with the event's id.
    uuid: Option<usize>,
}

impl Plan {
    fn names(&self) -> String {
        names(self.columns.iter().map(|column| column.found.name.as_str()))
    }

    fn stage(&self) -> String {
        let columns = self.columns.iter().map(|column| &column.found);
        let columns: Vec<String> =
            columns.map(|found| format!("{} {}", name(&found.name), found.sql)).collect();
        format!("CREATE TEMPORARY TABLE {STAGE} ({}) ON COMMIT DROP", columns.join(", "))
    }

    fn copy(&self, table: &str) -> String {
        format!("COPY {table} ({}) FROM STDIN", self.names())
    }

    fn insert(&self) -> String {
        let (table, names_all) = (&self.table, self.names());
        let key = names(self.key.iter().map(String::as_str));
        let versions = persons::VERSIONS.map(name);
        let mut sql = match self.model {
            ExportModel::Events => {
                format!("INSERT INTO {table} ({names_all}) SELECT {names_all} FROM {STAGE}")
            }
            // A statement cannot replace the same row twice. A key can occur twice if
            // persons were merged during the run.
            ExportModel::Persons => {
                let newest = versions.each_ref().map(|version| format!("{version} DESC"));
                format!(
                    "INSERT INTO {table} AS there ({names_all}) \
                     SELECT DISTINCT ON ({key}) {names_all} FROM {STAGE} ORDER BY {key}, {}",
                    newest.join(", ")
                )
            }
        };
        if self.key.is_empty() {
            return sql;
        }
        let replaced: Vec<String> = self
            .columns
            .iter()
            .map(|column| &column.found.name)
            .filter(|column| !self.key.contains(column))
            .map(|column| format!("{0} = EXCLUDED.{0}", name(column)))
            .collect();
        let act = match replaced.is_empty() {
            true => "NOTHING".to_owned(),
            false => format!("UPDATE SET {}", replaced.join(", ")),
        };
        sql.push_str(&format!(" ON CONFLICT ({key}) DO {act}"));
        if self.model == ExportModel::Persons {
            let newer = versions.map(|version| format!("EXCLUDED.{version} > there.{version}"));
            sql.push_str(&format!(" WHERE {}", newer.join(" OR ")));
        }
        sql
    }
}

/// The statement that creates the table, with a unique key for its rows if the key is
/// exported.
fn create(table: &Table, model: ExportModel, columns: &Columns) -> String {
    let mut parts: Vec<String> = columns
        .columns
        .iter()
        .map(|column| format!("{} {}", name(shortened(&column.name, NAME_MAX)), sql_type(column)))
        .collect();
    let key = own_key(model, columns);
    if !key.is_empty() {
        let key = names(key.iter().map(|column| shortened(&column.name, NAME_MAX)));
        parts.push(format!("PRIMARY KEY ({key})"));
    }
    format!("CREATE TABLE IF NOT EXISTS {} ({})", table.sql(), parts.join(", "))
}

/// The field that identifies rows within a project: the id of events, the distinct id of
/// persons.
pub(super) fn identity(model: ExportModel) -> Field {
    match model {
        ExportModel::Events => Field::Uuid,
        ExportModel::Persons => Field::DistinctId,
    }
}

/// The columns that identify rows: the project, if it is exported, and the id. Empty if
/// the id is not exported.
fn own_key(model: ExportModel, columns: &Columns) -> Vec<&Column> {
    let Some(id) = columns.position_of(identity(model)) else { return Vec::new() };
    let both = [columns.position_of(Field::TeamId), Some(id)];
    both.into_iter().flatten().filter_map(|at| columns.columns.get(at)).collect()
}

/// The smallest unique key of the table that consists of columns of [`own_key`] and
/// contains the id.
fn key(
    model: ExportModel,
    columns: &Columns,
    there: &[Matched],
    keys: &[Vec<String>],
) -> Vec<String> {
    let named = |field| {
        let cell = columns.position_of(field)?;
        there.iter().find(|column| column.cell == cell).map(|column| &column.found.name)
    };
    let (Some(id), project) = (named(identity(model)), named(Field::TeamId)) else {
        return Vec::new();
    };
    let fits = |key: &&Vec<String>| {
        key.contains(id) && key.iter().all(|name| name == id || Some(name) == project)
    };
    keys.iter().filter(fits).min_by_key(|key| key.len()).cloned().unwrap_or_default()
}

fn sql_type(column: &Column) -> &'static str {
    match (column.kind, column.name.as_str()) {
        (Kind::Text, "uuid" | "ip" | "site_url") => "VARCHAR(200)",
        (Kind::Integer, "team_id") => "INTEGER",
        (Kind::Text, _) => "TEXT",
        (Kind::Json, _) => "JSONB",
        (Kind::Integer, _) => "BIGINT",
        (Kind::Float, _) => "DOUBLE PRECISION",
        (Kind::Boolean, _) => "BOOLEAN",
        (Kind::Timestamp, _) => "TIMESTAMPTZ",
        (Kind::Uuid, _) => "UUID",
    }
}

/// The cell of a column.
pub(super) fn of<'a>(row: &'a [Cell], column: &Matched) -> &'a Cell {
    row.get(column.cell).unwrap_or(&Cell::Null)
}

/// The note of an altered value.
pub(super) fn altered(
    row: &[Cell],
    uuid: Option<usize>,
    column: &Matched,
    what: &'static str,
) -> Altered {
    let uuid = match uuid.and_then(|at| row.get(at)) {
        Some(Cell::Uuid(uuid)) => Some(*uuid),
        Some(Cell::Text(text)) => Uuid::try_parse(text).ok(),
        _ => None,
    };
    Altered { uuid, column: column.found.name.clone(), what }
}
