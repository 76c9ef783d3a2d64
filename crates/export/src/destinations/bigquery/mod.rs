//! BigQuery: load jobs into a staging table, and one statement that copies all of its
//! rows into the table (EXP-38).
//!
//! What belongs here: tables, columns, the ids of jobs. What does not: requests (`api`).
//!
//! That statement makes the run atomic: an `INSERT` of events, a `MERGE` of persons. It
//! is a job whose id contains the id of the run, so that a retry finds out whether the
//! job has succeeded.

mod api;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use weir_model::RunId;
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
use api::{Api, Ended};

/// The steps of its test.
pub(crate) const STEPS: &[&str] = &["Sign in", "Find the dataset", "Create a table", "Run a job"];

/// Lifetime of a staging table that was not removed.
const PARKED_LIVES: chrono::TimeDelta = chrono::TimeDelta::days(1);
/// Upper bound of failed jobs for the statement of one run.
const TRIES_MAX: u32 = 100;

#[derive(Clone, Deserialize)]
struct Config {
    project_id: String,
    dataset_id: String,
    #[serde(default = "events")]
    table_id: String,
    private_key: String,
    private_key_id: String,
    token_uri: String,
    client_email: String,
    #[serde(default)]
    use_json_type: bool,
}

fn events() -> String {
    "events".to_owned()
}

impl Config {
    /// The full name of a table in statements.
    fn named(&self, table: &str) -> String {
        format!("`{}.{}.{table}`", self.project_id, self.dataset_id)
    }
}

/// A dataset in BigQuery.
pub(crate) struct BigQuery {
    config: Config,
    dependencies: Dependencies,
}

impl BigQuery {
    /// Opens the destination.
    pub(crate) fn new(
        config: &Map<String, Value>,
        dependencies: &Dependencies,
    ) -> Result<Self, Failure> {
        let wrong = |what| Failure::permanent("InvalidConfig", what);
        let config: Config = serde_json::from_value(Value::Object(config.clone()))
            .map_err(|_| wrong("Settings of BigQuery are missing."))?;
        let names = [&config.project_id, &config.dataset_id, &config.table_id];
        if names.iter().any(|name| name.contains(['`', '\\', '/', '\n'])) {
            return Err(wrong("A name of BigQuery has no such characters."));
        }
        Ok(Self { config, dependencies: dependencies.clone() })
    }

    fn api(&self) -> Result<Api, Failure> {
        Api::new(&self.config, &self.dependencies)
    }

    /// The columns of the table. Creates the table if it does not exist.
    async fn table(&self, api: &Api, columns: &[Column]) -> Result<Vec<Value>, Failure> {
        let id = &self.config.table_id;
        if api.table(id).await?.is_none() {
            api.create(id, created(columns, self.config.use_json_type)).await?;
        }
        let missing = || Failure::permanent("NotFound", "The table could not be made.");
        let table = api.table(id).await?.ok_or_else(missing)?;
        let fields = table.pointer("/schema/fields").and_then(Value::as_array);
        Ok(fields.cloned().unwrap_or_default())
    }
}

#[async_trait]
impl Destination for BigQuery {
    fn columns(&self) -> Columns {
        let json = if self.config.use_json_type { Kind::Json } else { Kind::Text };
        Columns::of(&[
            ("uuid", Kind::Text, Source::Uuid),
            ("event", Kind::Text, Source::Event),
            ("properties", json, Source::Properties),
            ("elements", Kind::Text, Source::ElementsChain),
            ("set", json, Source::Set),
            ("set_once", json, Source::SetOnce),
            ("distinct_id", Kind::Text, Source::DistinctId),
            ("team_id", Kind::Integer, Source::TeamId),
            ("ip", Kind::Text, Source::Ip),
            ("site_url", Kind::Text, Source::Empty),
            ("timestamp", Kind::Timestamp, Source::Timestamp),
            ("bq_ingested_timestamp", Kind::Timestamp, Source::Now),
        ])
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        let api = self.api()?;
        let location = api.location().await?;
        let columns = &job.columns.columns;
        let there = self.table(&api, columns).await?;
        let kind_there = |name: &str| {
            let is_it = |field: &&Value| {
                let other = field.get("name").and_then(Value::as_str);
                other.is_some_and(|other| other.eq_ignore_ascii_case(name))
            };
            there.iter().find(is_it)?.get("type")?.as_str()
        };
        // The existing table decides, also if it has other types than a new one would
        // have.
        let shape = Shape::new(columns, |name| {
            kind_there(name).map(|kind| if kind == "JSON" { Json::Value } else { Json::Text })
        })?;
        let fields: Vec<Value> = shape
            .columns
            .iter()
            .filter_map(|column| {
                Some(json!({ "name": column.name, "type": kind_there(&column.name)? }))
            })
            .collect();
        if job.model == ExportModel::Persons {
            persons::check_table(|name| kind_there(name).is_some())?;
        }
        let (is_in, statement_job) = earlier(&api, job.run, &location).await?;
        let staging = staging(job.run);
        if !is_in {
            api.remove(&staging).await?;
            let until = (clock::now() + PARKED_LIVES).timestamp_millis();
            let table = json!({
                "schema": { "fields": fields },
                "expirationTime": until.to_string(),
            });
            api.create(&staging, table).await?;
        }
        let (to, from) = (self.config.named(&self.config.table_id), self.config.named(&staging));
        let statement = match job.model {
            ExportModel::Events => {
                let names: Vec<String> = shape.columns.iter().map(|c| quoted(&c.name)).collect();
                let names = names.join(", ");
                format!("INSERT INTO {to} ({names}) SELECT {names} FROM {from}")
            }
            ExportModel::Persons => persons::merge(&to, &from, &shape.columns, quoted),
        };
        let stage = BigQueryStage {
            api,
            location,
            staging,
            statement,
            statement_job,
            file_jobs: format!("{}_{}", named_run(job.run), clock::unused_id().simple()),
        };
        Ok(Box::new(StagedWriter::new(stage, Files::new(Format::JsonLines, shape)?, is_in)))
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, _: ExportModel) -> Result<(), Failure> {
        let api = self.api()?;
        let id = format!("weir_test_{}", clock::unused_id().simple());
        match step {
            0 => api.token().await.map(drop),
            1 => api.location().await.map(drop),
            2 => {
                let fields = json!([{ "name": "uuid", "type": "STRING" }]);
                api.create(&id, json!({ "schema": { "fields": fields } })).await?;
                api.remove(&id).await
            }
            _ => {
                let location = api.location().await?;
                api.query(&id, &location, "SELECT 1").await
            }
        }
    }
}

/// The id of a run for names of jobs and tables, which cannot contain hyphens.
fn named_run(run: RunId) -> String {
    format!("weir_{}", run.0.simple())
}

/// The name of the staging table.
fn staging(run: RunId) -> String {
    named_run(run)
}

/// Whether an earlier attempt of the run has copied all rows, and the id of the job that
/// does it in this attempt. The id of a failed job cannot be used again.
async fn earlier(api: &Api, run: RunId, location: &str) -> Result<(bool, String), Failure> {
    for number in 0..TRIES_MAX {
        let id = format!("{}_{number}", named_run(run));
        match api.job(&id, location).await? {
            None => return Ok((false, id)),
            Some(Ended::Done) => return Ok((true, id)),
            Some(Ended::Failed(_)) => {}
        }
    }
    Err(Failure::permanent("JobFailed", "BigQuery failed at this run too often."))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

/// The description of a new table: its columns, and a partition for each day if there is
/// a time.
fn created(columns: &[Column], use_json_type: bool) -> Value {
    let kind = |kind| match kind {
        Kind::Json if use_json_type => "JSON",
        Kind::Text | Kind::Uuid | Kind::Json => "STRING",
        Kind::Integer => "INT64",
        Kind::Float => "FLOAT64",
        Kind::Boolean => "BOOL",
        Kind::Timestamp => "TIMESTAMP",
    };
    let fields: Vec<Value> = columns
        .iter()
        .map(|column| json!({ "name": column.name, "type": kind(column.kind) }))
        .collect();
    let mut table = json!({ "schema": { "fields": fields } });
    let has_time =
        columns.iter().any(|column| column.name == "timestamp" && column.kind == Kind::Timestamp);
    if let Some(table) = table.as_object_mut()
        && has_time
    {
        let partition = json!({ "type": "DAY", "field": "timestamp" });
        table.insert("timePartitioning".to_owned(), partition);
    }
    table
}

/// The staging table of a run.
struct BigQueryStage {
    api: Api,
    location: String,
    staging: String,
    /// The statement that copies the rows, and the id of its job.
    statement: String,
    statement_job: String,
    /// The prefix of the ids of jobs that load files.
    file_jobs: String,
}

#[async_trait]
impl Stage for BigQueryStage {
    async fn upload(&self, number: u32, file: Bytes) -> Result<(), Failure> {
        let job = format!("{}_{number}", self.file_jobs);
        self.api.load(&job, &self.location, &self.staging, file).await
    }

    async fn load_files(&self, files: u32) -> Result<(), Failure> {
        if files > 0 {
            self.api.query(&self.statement_job, &self.location, &self.statement).await?;
        }
        // All rows are in the table. BigQuery removes a remaining staging table after a
        // day.
        let _ = self.api.remove(&self.staging).await;
        Ok(())
    }

    async fn clear(&self, _files: u32) {
        let _ = self.api.remove(&self.staging).await;
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_table_is_partitioned_by_the_day_of_its_time() {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let columns = [column("timestamp", Kind::Timestamp), column("properties", Kind::Json)];
        assert_eq!(
            created(&columns, true),
            json!({
                "schema": { "fields": [
                    { "name": "timestamp", "type": "TIMESTAMP" },
                    { "name": "properties", "type": "JSON" },
                ]},
                "timePartitioning": { "type": "DAY", "field": "timestamp" },
            })
        );
        assert_eq!(
            created(&columns[1..], false),
            json!({ "schema": { "fields": [{ "name": "properties", "type": "STRING" }] } })
        );
        assert_eq!(quoted("a`b"), "`a\\`b`");
    }
}
