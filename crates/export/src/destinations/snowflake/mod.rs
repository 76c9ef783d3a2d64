//! Snowflake: Parquet files in the stage of the table, and one `COPY INTO` that loads all
//! of them (EXP-38).
//!
//! What belongs here: statements, columns, the remains of an interrupted run. What does
//! not: the protocol (`session`), the storage behind a stage (`stage`).
//!
//! That statement makes the run atomic: before it the table has no row of the run, after
//! it all of them. The files of a run are in a directory with the id of the run, so the
//! load history shows whether they have been loaded. The statement of an earlier attempt
//! may still be running after its process ended. The run waits for it.
//!
//! Persons are copied into a staging table, and one `MERGE` takes them from there. It can
//! be repeated: it takes only newer rows.

mod session;
mod sign;
mod stage;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::fmt::Simple;
use weir_model::exports::ExportModel;

use crate::columns::{Columns, Source};
use crate::destination::{Destination, Failure, Job, Writer};
use crate::destinations::warehouse::files::Files;
use crate::destinations::warehouse::shape::{Json, Shape};
use crate::destinations::warehouse::staged::{Stage, StagedWriter};
use crate::destinations::{Dependencies, clock};
use crate::encode::Format;
use crate::persons;
use crate::rows::{Column, Kind};
use session::Session;

/// The steps of its test.
pub(crate) const STEPS: &[&str] =
    &["Sign in", "Use the warehouse", "Find the database and its schema", "Create a table"];

#[derive(Clone, Deserialize)]
struct Config {
    account: String,
    database: String,
    warehouse: String,
    schema: String,
    user: String,
    #[serde(default = "password")]
    authentication_type: String,
    password: Option<String>,
    private_key: Option<String>,
    private_key_passphrase: Option<String>,
    #[serde(default = "events")]
    table_name: String,
    role: Option<String>,
}

fn password() -> String {
    "password".to_owned()
}

fn events() -> String {
    "events".to_owned()
}

impl Config {
    /// The base URL of the account.
    fn base(&self, dependencies: &Dependencies) -> Result<String, Failure> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !self.account.chars().all(fits) || self.account.is_empty() {
            return Err(Failure::permanent(
                "InvalidConfig",
                "The account is the part of its address before .snowflakecomputing.com.",
            ));
        }
        // Host names have no underscores. Accounts with underscores have both URLs.
        let account = self.account.replace('_', "-");
        Ok(dependencies.addresses.snowflake.replace("{account}", &account))
    }

    /// The account without its region.
    fn account_name(&self) -> String {
        let name = self.account.split('.').next().unwrap_or_default();
        name.to_uppercase()
    }

    /// The full name of the table.
    fn table(&self) -> String {
        self.named(&self.table_name)
    }

    /// The directory of a run in the stage of a table.
    fn stage(&self, table: &str, run: &str) -> String {
        format!("@{}/weir/{run}", self.named(&format!("%{table}")))
    }

    fn named(&self, name: &str) -> String {
        format!("{}.{}.{}", quoted(&self.database), quoted(&self.schema), quoted(name))
    }
}

/// A quoted name, which is case-sensitive.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A quoted text in a statement.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A table in Snowflake.
pub(crate) struct Snowflake {
    config: Config,
    dependencies: Dependencies,
}

impl Snowflake {
    /// Opens the destination.
    pub(crate) fn new(
        config: &Map<String, Value>,
        dependencies: &Dependencies,
    ) -> Result<Self, Failure> {
        let config = serde_json::from_value(Value::Object(config.clone())).map_err(|_| {
            Failure::permanent("InvalidConfig", "Settings of Snowflake are missing.")
        })?;
        Ok(Self { config, dependencies: dependencies.clone() })
    }

    async fn session(&self) -> Result<Session, Failure> {
        Session::open(&self.config, &self.dependencies).await
    }

    /// Begins a run of persons with a new staging table, which replaces the one of an
    /// earlier attempt.
    async fn begin_persons(
        &self,
        session: Session,
        files: Files,
        columns: &[Column],
        run: Simple,
    ) -> Result<Box<dyn Writer>, Failure> {
        let name = format!("weir_{run}");
        let staging = self.config.named(&name);
        session.run(&format!("DROP TABLE IF EXISTS {staging}")).await?;
        session.run(&created(&staging, columns)).await?;
        let directory = self.config.stage(&name, &clock::unused_id().simple().to_string());
        let kept = files.columns();
        let statements = vec![
            copied(&staging, columns, kept, &directory),
            persons::merge(&self.config.table(), &staging, kept, quoted),
        ];
        let stage = SnowflakeStage { session, directory, statements, staging: Some(staging) };
        Ok(Box::new(StagedWriter::new(stage, files, false)))
    }
}

#[async_trait]
impl Destination for Snowflake {
    fn columns(&self) -> Columns {
        Columns::of(&[
            ("uuid", Kind::Uuid, Source::Uuid),
            ("event", Kind::Text, Source::Event),
            ("properties", Kind::Json, Source::Properties),
            ("elements", Kind::Json, Source::ElementsChain),
            ("people_set", Kind::Json, Source::Set),
            ("people_set_once", Kind::Json, Source::SetOnce),
            ("person_properties", Kind::Json, Source::PersonProperties),
            ("distinct_id", Kind::Text, Source::DistinctId),
            ("team_id", Kind::Integer, Source::TeamId),
            ("ip", Kind::Text, Source::Ip),
            ("site_url", Kind::Text, Source::Empty),
            ("timestamp", Kind::Timestamp, Source::Timestamp),
            ("snowflake_ingested_timestamp", Kind::Timestamp, Source::Now),
        ])
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        let session = self.session().await?;
        let columns = &job.columns.columns;
        let look = format!("SELECT * FROM {} LIMIT 0", self.config.table());
        let table = match session.run(&look).await {
            // Writing to an existing table needs no privilege to create one.
            Err(failure) if failure.class == session::NOT_FOUND => {
                session.run(&created(&self.config.table(), columns)).await?;
                session.run(&look).await?
            }
            table => table?,
        };
        let there = names(&table);
        let is_there = |name: &str| there.iter().any(|other| other == name);
        let shape = Shape::new(columns, |name| is_there(name).then_some(Json::Text))?;
        let files = Files::new(Format::Parquet, shape)?;
        let run = job.run.to_string();
        if job.model == ExportModel::Persons {
            persons::check_table(is_there)?;
            return self.begin_persons(session, files, columns, job.run.0.simple()).await;
        }
        let table = &self.config.table_name;
        // This check comes first: a statement that ends in between is in the load
        // history.
        if is_loading(&session, &self.config, &run).await {
            session.close().await;
            return Err(Failure::retryable(
                "StillLoading",
                "Snowflake is still at work on an earlier try of this run.",
            ));
        }
        let is_in = session.run(&loaded(&self.config, &run)).await?;
        let is_in = is_in.get("total").and_then(Value::as_u64).is_some_and(|rows| rows > 0);
        if !is_in {
            // Files of an earlier attempt. If they cannot be removed they are not loaded:
            // each attempt has its own directory.
            let _ = session.run(&format!("REMOVE {}/", self.config.stage(table, &run))).await;
        }
        let directory = self.config.stage(table, &format!("{run}/{}", clock::unused_id().simple()));
        let statements = vec![copied(&self.config.table(), columns, files.columns(), &directory)];
        let stage = SnowflakeStage { session, directory, statements, staging: None };
        Ok(Box::new(StagedWriter::new(stage, files, is_in)))
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, _: ExportModel) -> Result<(), Failure> {
        let session = self.session().await?;
        let config = &self.config;
        let statements = match step {
            0 => Vec::new(),
            1 => vec![format!("USE WAREHOUSE {}", identifier(&config.warehouse))],
            2 => {
                vec![format!("USE SCHEMA {}.{}", quoted(&config.database), quoted(&config.schema))]
            }
            _ => {
                let name = format!("weir_test_{}", clock::unused_id().simple());
                let table = config.named(&name);
                vec![
                    format!("CREATE TABLE {table} (\"uuid\" VARCHAR)"),
                    format!("DROP TABLE IF EXISTS {table}"),
                ]
            }
        };
        let mut done = Ok(());
        for statement in statements {
            done = session.run(&statement).await.map(drop);
            if done.is_err() {
                break;
            }
        }
        session.close().await;
        done
    }
}

/// A name as in the settings of Snowflake's drivers: quoted already, or case-insensitive.
fn identifier(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(name) => quoted(name),
        None => quoted(&name.to_uppercase()),
    }
}

/// The statement that creates the table.
fn created(table: &str, columns: &[Column]) -> String {
    let kind = |kind| match kind {
        Kind::Text | Kind::Uuid => "VARCHAR",
        Kind::Json => "VARIANT",
        Kind::Integer => "INTEGER",
        Kind::Float => "FLOAT",
        Kind::Boolean => "BOOLEAN",
        Kind::Timestamp => "TIMESTAMP",
    };
    let columns: Vec<String> = columns
        .iter()
        .map(|column| format!("{} {}", quoted(&column.name), kind(column.kind)))
        .collect();
    format!("CREATE TABLE IF NOT EXISTS {table} ({})", columns.join(", "))
}

/// Whether Snowflake is loading files of a run now. Statements of an attempt whose
/// process ended continue for some minutes. If Snowflake does not answer this, only the
/// load history decides.
async fn is_loading(session: &Session, config: &Config, run: &str) -> bool {
    let found = session.run(&loading(config, run)).await;
    found.is_ok_and(|data| data.get("total").and_then(Value::as_u64).is_some_and(|rows| rows > 0))
}

/// The query for statements that load files of a run. Snowflake may not know the type of
/// a running statement yet, so its text is compared.
fn loading(config: &Config, run: &str) -> String {
    format!(
        "SELECT QUERY_ID FROM TABLE({}.INFORMATION_SCHEMA.QUERY_HISTORY_BY_USER(\
         RESULT_LIMIT => 10000)) WHERE STARTSWITH(QUERY_TEXT, 'COPY') \
         AND CONTAINS(QUERY_TEXT, {}) AND UPPER(EXECUTION_STATUS) \
         IN ('RUNNING', 'QUEUED', 'BLOCKED', 'RESUMING_WAREHOUSE') LIMIT 1",
        quoted(&config.database),
        text(&format!("weir/{run}/")),
    )
}

/// The query whether files of a run have been loaded.
fn loaded(config: &Config, run: &str) -> String {
    format!(
        "SELECT FILE_NAME FROM {}.INFORMATION_SCHEMA.LOAD_HISTORY WHERE SCHEMA_NAME = {} \
         AND TABLE_NAME = {} AND CONTAINS(FILE_NAME, {}) LIMIT 1",
        quoted(&config.database),
        text(&config.schema),
        text(&config.table_name),
        text(&format!("weir/{run}/")),
    )
}

/// The statement that loads the files.
fn copied(table: &str, all: &[Column], sent: &[Column], stage: &str) -> String {
    let is_json =
        |name: &str| all.iter().any(|column| column.name == name && column.kind == Kind::Json);
    let names: Vec<String> = sent.iter().map(|column| quoted(&column.name)).collect();
    let values: Vec<String> = sent
        .iter()
        .zip(&names)
        .map(|(column, name)| match is_json(&column.name) {
            true => format!("PARSE_JSON($1:{name})"),
            false => format!("$1:{name}"),
        })
        .collect();
    format!(
        "COPY INTO {table} ({}) FROM (SELECT {} FROM {stage}/) FILE_FORMAT = (TYPE = PARQUET) \
         ON_ERROR = ABORT_STATEMENT PURGE = TRUE",
        names.join(", "),
        values.join(", ")
    )
}

/// Names of the columns of a result.
fn names(data: &Value) -> Vec<String> {
    let columns = data.get("rowtype").and_then(Value::as_array);
    let name = |column: &Value| column.get("name")?.as_str().map(str::to_owned);
    columns.into_iter().flatten().filter_map(name).collect()
}

/// The directory of a run in the stage of a table.
struct SnowflakeStage {
    session: Session,
    directory: String,
    /// The statements that load the files.
    statements: Vec<String>,
    /// The staging table, if there is one.
    staging: Option<String>,
}

impl SnowflakeStage {
    /// Removes the staging table. A remaining one has nothing that is needed.
    async fn drop_parked(&self) {
        if let Some(staging) = &self.staging {
            let _ = self.session.run(&format!("DROP TABLE IF EXISTS {staging}")).await;
        }
    }
}

#[async_trait]
impl Stage for SnowflakeStage {
    async fn upload(&self, number: u32, file: Bytes) -> Result<(), Failure> {
        let name = format!("{number:05}.parquet");
        let put = format!(
            "PUT 'file://{name}' {} AUTO_COMPRESS = FALSE OVERWRITE = TRUE",
            self.directory
        );
        let place = self.session.run(&put).await?;
        stage::upload(&self.session.service, &place, &name, file).await
    }

    async fn load_files(&self, files: u32) -> Result<(), Failure> {
        if files > 0 {
            for statement in &self.statements {
                self.session.run(statement).await?;
            }
        }
        self.drop_parked().await;
        self.session.close().await;
        Ok(())
    }

    async fn clear(&self, files: u32) {
        if files > 0 {
            let _ = self.session.run(&format!("REMOVE {}/", self.directory)).await;
        }
        self.drop_parked().await;
        self.session.close().await;
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn statements_quote_names_and_texts() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(text(r"it's \n"), r"'it''s \\n'");
        assert_eq!(identifier("compute_wh"), "\"COMPUTE_WH\"");
        assert_eq!(identifier("\"compute_wh\""), "\"compute_wh\"");
    }

    #[test]
    fn a_copy_takes_json_apart_and_leaves_the_rest() {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let all = [column("uuid", Kind::Uuid), column("properties", Kind::Json)];
        let sent = [column("uuid", Kind::Text), column("properties", Kind::Text)];
        assert_eq!(
            copied("T", &all, &sent, "@S"),
            "COPY INTO T (\"uuid\", \"properties\") FROM (SELECT $1:\"uuid\", \
             PARSE_JSON($1:\"properties\") FROM @S/) FILE_FORMAT = (TYPE = PARQUET) \
             ON_ERROR = ABORT_STATEMENT PURGE = TRUE"
        );
    }
}
