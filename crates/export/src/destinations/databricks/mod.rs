//! Databricks: Parquet files in a volume for the run, and one `COPY INTO` (EXP-38).
//!
//! What belongs here: statements, columns, the remains of an interrupted run. What does
//! not: requests (`api`).
//!
//! That statement makes the run atomic. A marker file in the volume says that all files
//! are complete. With it, a retry only copies again, and `COPY INTO` skips the files that
//! it has loaded. Without it, nothing has been copied. Persons are copied by one `MERGE`
//! instead, which takes only newer rows.

mod api;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
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
use api::Api;

/// The steps of its test.
pub(crate) const STEPS: &[&str] =
    &["Sign in", "Use the warehouse", "Find the schema", "Create a volume and a file in it"];

/// Name of the marker file, which says that all files of a run are complete.
const MARK: &str = "complete";

#[derive(Clone, Deserialize)]
struct Config {
    server_hostname: String,
    http_path: String,
    client_id: String,
    client_secret: String,
    catalog: String,
    schema: String,
    table_name: String,
    #[serde(default = "yes")]
    use_variant_type: bool,
    #[serde(default = "yes")]
    use_automatic_schema_evolution: bool,
}

fn yes() -> bool {
    true
}

impl Config {
    /// The id of the SQL warehouse, the last part of its path.
    fn warehouse(&self) -> Result<&str, Failure> {
        let id = self.http_path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let fits = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric());
        fits.then_some(id).ok_or_else(|| {
            Failure::permanent(
                "InvalidConfig",
                "The HTTP path is one like /sql/1.0/warehouses/1a2b3c.",
            )
        })
    }

    fn named(&self, name: &str) -> String {
        format!("{}.{}.{}", quoted(&self.catalog), quoted(&self.schema), quoted(name))
    }

    /// The path of the files in a volume.
    fn directory(&self, volume: &str) -> String {
        format!("/Volumes/{}/{}/{volume}", self.catalog, self.schema)
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A schema of a workspace.
pub(crate) struct Databricks {
    config: Config,
    dependencies: Dependencies,
}

impl Databricks {
    /// Opens the destination.
    pub(crate) fn new(
        config: &Map<String, Value>,
        dependencies: &Dependencies,
    ) -> Result<Self, Failure> {
        let wrong = |what| Failure::permanent("InvalidConfig", what);
        let config: Config = serde_json::from_value(Value::Object(config.clone()))
            .map_err(|_| wrong("Settings of Databricks are missing."))?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        if config.server_hostname.is_empty() || !config.server_hostname.chars().all(fits) {
            return Err(wrong("The server hostname is a name without https://."));
        }
        // These settings are parts of paths too.
        let fits = |c: char| c.is_alphanumeric() || "-_".contains(c);
        if ![&config.catalog, &config.schema].iter().all(|name| name.chars().all(fits)) {
            return Err(wrong("Names of catalog and schema have letters, digits, - and _."));
        }
        Ok(Self { config, dependencies: dependencies.clone() })
    }

    fn api(&self) -> Api {
        Api::new(&self.config, &self.dependencies)
    }

    /// The type of a JSON column in a new table.
    fn json_type(&self) -> &'static str {
        if self.config.use_variant_type { "VARIANT" } else { "STRING" }
    }

    fn kind(&self, kind: Kind) -> &'static str {
        match kind {
            Kind::Text | Kind::Uuid => "STRING",
            Kind::Json => self.json_type(),
            Kind::Integer => "BIGINT",
            Kind::Float => "DOUBLE",
            Kind::Boolean => "BOOLEAN",
            Kind::Timestamp => "TIMESTAMP",
        }
    }

    /// The statement that creates the table.
    fn created(&self, columns: &[Column]) -> String {
        let columns: Vec<String> = columns
            .iter()
            .map(|column| format!("{} {}", quoted(&column.name), self.kind(column.kind)))
            .collect();
        let table = self.config.named(&self.config.table_name);
        format!("CREATE TABLE IF NOT EXISTS {table} ({})", columns.join(", "))
    }

    /// The columns to select from the files, with the types of the table. `there` has the
    /// columns of the table with their types.
    fn selected(&self, all: &[Column], sent: &[Column], there: &[(String, String)]) -> String {
        let value = |column: &Column| {
            let name = quoted(&column.name);
            let before = all.iter().find(|other| other.name == column.name);
            let kind = before.map_or(column.kind, |column| column.kind);
            let found = there.iter().find(|(other, _)| other.eq_ignore_ascii_case(&column.name));
            let is_variant =
                found.map_or(self.config.use_variant_type, |(_, kind)| kind == "VARIANT");
            match kind {
                Kind::Json if is_variant => format!("PARSE_JSON({name}) AS {name}"),
                Kind::Timestamp => format!("CAST({name} AS TIMESTAMP) AS {name}"),
                _ => name,
            }
        };
        sent.iter().map(value).collect::<Vec<_>>().join(", ")
    }

    /// The statement that copies the files of a directory.
    fn brought(
        &self,
        model: ExportModel,
        sent: &[Column],
        selected: &str,
        directory: &str,
    ) -> String {
        let table = self.config.named(&self.config.table_name);
        match model {
            ExportModel::Events => format!(
                "COPY INTO {table} FROM (SELECT {selected} FROM '{directory}') \
                 FILEFORMAT = PARQUET PATTERN = '*.parquet' COPY_OPTIONS ('mergeSchema' = '{}')",
                self.config.use_automatic_schema_evolution,
            ),
            ExportModel::Persons => {
                // A pattern, because the marker file is in the directory too.
                let files = format!("read_files('{directory}/*.parquet', format => 'parquet')");
                let source = format!("(SELECT {selected} FROM {files})");
                persons::merge(&table, &source, sent, quoted)
            }
        }
    }
}

#[async_trait]
impl Destination for Databricks {
    fn columns(&self) -> Columns {
        Columns::of(&[
            ("uuid", Kind::Uuid, Source::Uuid),
            ("event", Kind::Text, Source::Event),
            ("properties", Kind::Json, Source::Properties),
            ("person_properties", Kind::Json, Source::PersonProperties),
            ("elements", Kind::Text, Source::ElementsChain),
            ("distinct_id", Kind::Text, Source::DistinctId),
            ("team_id", Kind::Integer, Source::TeamId),
            ("timestamp", Kind::Timestamp, Source::Timestamp),
            ("databricks_ingested_timestamp", Kind::Timestamp, Source::Now),
        ])
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        let api = self.api();
        let config = &self.config;
        let columns = &job.columns.columns;
        let look = format!("SELECT * FROM {} LIMIT 0", config.named(&config.table_name));
        let there = match api.run(&look).await {
            // Writing to an existing table needs no privilege to create one.
            Err(failure) if failure.class == api::NOT_FOUND => {
                api.run(&self.created(columns)).await?;
                api.run(&look).await?
            }
            there => there?,
        };
        let is_there = |name: &str| there.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        // A `MERGE` does not add columns.
        let evolves = config.use_automatic_schema_evolution && job.model == ExportModel::Events;
        let shape = Shape::new(columns, |name| (evolves || is_there(name)).then_some(Json::Text))?;
        if job.model == ExportModel::Persons {
            persons::check_table(is_there)?;
        }
        let volume = format!("weir_{}", job.run.0.simple());
        let directory = config.directory(&volume);
        let volume = config.named(&volume);
        api.run(&format!("CREATE VOLUME IF NOT EXISTS {volume}")).await?;
        let is_staged = api.has(&format!("{directory}/{MARK}")).await?;
        if !is_staged {
            // An interrupted attempt may have written different files.
            api.run(&format!("DROP VOLUME IF EXISTS {volume}")).await?;
            api.run(&format!("CREATE VOLUME IF NOT EXISTS {volume}")).await?;
        }
        let files = Files::new(Format::Parquet, shape)?;
        let selected = self.selected(columns, files.columns(), &there);
        let stage = DatabricksStage {
            statement: self.brought(job.model, files.columns(), &selected, &directory),
            api,
            volume,
            directory,
            is_staged,
        };
        Ok(Box::new(StagedWriter::new(stage, files, is_staged)))
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, _: ExportModel) -> Result<(), Failure> {
        let api = self.api();
        let config = &self.config;
        match step {
            0 => api.token().await.map(drop),
            1 => api.run("SELECT 1").await.map(drop),
            2 => {
                let schema = format!("{}.{}", quoted(&config.catalog), quoted(&config.schema));
                api.run(&format!("DESCRIBE SCHEMA {schema}")).await.map(drop)
            }
            _ => {
                let name = format!("weir_test_{}", clock::unused_id().simple());
                let (volume, directory) = (config.named(&name), config.directory(&name));
                api.run(&format!("CREATE VOLUME {volume}")).await?;
                let written = api.upload(&format!("{directory}/{MARK}"), Bytes::new()).await;
                api.run(&format!("DROP VOLUME IF EXISTS {volume}")).await?;
                written
            }
        }
    }
}

/// The volume of a run.
struct DatabricksStage {
    api: Api,
    volume: String,
    directory: String,
    /// The statement that copies the files.
    statement: String,
    /// An earlier attempt of this run wrote all files, and possibly copied them.
    is_staged: bool,
}

#[async_trait]
impl Stage for DatabricksStage {
    async fn upload(&self, number: u32, file: Bytes) -> Result<(), Failure> {
        self.api.upload(&format!("{}/{number:05}.parquet", self.directory), file).await
    }

    async fn load_files(&self, files: u32) -> Result<(), Failure> {
        if files > 0 {
            self.api.upload(&format!("{}/{MARK}", self.directory), Bytes::new()).await?;
        }
        if files > 0 || self.is_staged {
            self.api.run(&self.statement).await?;
        }
        // All rows are in the table. A remaining volume has nothing that is needed.
        let _ = self.api.run(&format!("DROP VOLUME IF EXISTS {}", self.volume)).await;
        Ok(())
    }

    async fn clear(&self, _files: u32) {
        // The marker file exists, so a retry continues with these files.
        let mark = format!("{}/{MARK}", self.directory);
        if self.api.has(&mark).await.is_ok_and(|is_there| !is_there) {
            let _ = self.api.run(&format!("DROP VOLUME IF EXISTS {}", self.volume)).await;
        }
    }
}

#[cfg(test)]
mod tests {

    use serde_json::json;
    use weir_egress::{Egress, Rules};

    use super::*;

    fn destination(changes: Value) -> Result<Databricks, Failure> {
        let mut config = json!({
            "server_hostname": "dbc-1.cloud.databricks.com",
            "http_path": "/sql/1.0/warehouses/1a2b",
            "client_id": "id",
            "client_secret": "secret",
            "catalog": "main",
            "schema": "web",
            "table_name": "events",
        });
        for (name, value) in changes.as_object().unwrap() {
            config[name] = value.clone();
        }
        let egress = Egress::new(Rules { allow: Vec::new(), own: Vec::new() }).unwrap();
        Databricks::new(config.as_object().unwrap(), &Dependencies::new(egress, None))
    }

    fn column(name: &str, kind: Kind) -> Column {
        Column { name: name.to_owned(), kind }
    }

    #[test]
    fn a_copy_follows_the_types_of_the_table() {
        let all = [
            column("uuid", Kind::Uuid),
            column("properties", Kind::Json),
            column("more", Kind::Json),
            column("timestamp", Kind::Timestamp),
        ];
        let sent = [
            column("uuid", Kind::Text),
            column("properties", Kind::Text),
            column("more", Kind::Text),
            column("timestamp", Kind::Text),
        ];
        let there = [("properties".to_owned(), "STRING".to_owned())];
        let destination = destination(json!({})).unwrap();
        let selected = destination.selected(&all, &sent, &there);
        assert_eq!(
            destination.brought(ExportModel::Events, &sent, &selected, "/Volumes/main/web/v"),
            "COPY INTO `main`.`web`.`events` FROM (SELECT `uuid`, `properties`, \
             PARSE_JSON(`more`) AS `more`, CAST(`timestamp` AS TIMESTAMP) AS `timestamp` \
             FROM '/Volumes/main/web/v') FILEFORMAT = PARQUET PATTERN = '*.parquet' \
             COPY_OPTIONS ('mergeSchema' = 'true')"
        );
    }

    #[test]
    fn persons_are_merged_from_the_files_without_the_mark() {
        let all = [column("distinct_id", Kind::Text), column("properties", Kind::Json)];
        let sent = [column("distinct_id", Kind::Text), column("properties", Kind::Text)];
        let destination = destination(json!({})).unwrap();
        let selected = destination.selected(&all, &sent, &[]);
        let merge = destination.brought(ExportModel::Persons, &sent, &selected, "/Volumes/v");
        let begin = "MERGE INTO `main`.`web`.`events` there USING (SELECT `distinct_id`, \
                     `properties` FROM (SELECT `distinct_id`, PARSE_JSON(`properties`) AS \
                     `properties` FROM read_files('/Volumes/v/*.parquet', format => 'parquet')) \
                     WHERE TRUE QUALIFY ";
        assert!(merge.starts_with(begin), "{merge}");
    }

    #[test]
    fn settings_cannot_lead_elsewhere() {
        for changes in [
            json!({ "server_hostname": "https://x" }),
            json!({ "server_hostname": "x/y" }),
            json!({ "server_hostname": "x:1@y" }),
            json!({ "catalog": "a/../b" }),
            json!({ "schema": "a'b" }),
        ] {
            let failure = destination(changes).map(|_| ()).unwrap_err();
            assert_eq!(failure.class, "InvalidConfig");
        }
        let odd = destination(json!({ "http_path": "/sql/" })).unwrap();
        assert!(odd.config.warehouse().is_ok_and(|id| id == "sql"));
    }
}
