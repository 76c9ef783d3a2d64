//! The destinations: one module each, all behind one trait.
//!
//! What belongs here: which kind is which module, and what they share of the
//! world. What does not: what a config may be (`weir_model::exports`).

mod azure_blob;
mod bigquery;
mod clock;
mod databricks;
mod files;
mod google_cloud_storage;
mod http;
mod local_directory;
mod noop;
mod postgres;
mod redshift;
mod s3;
mod snowflake;
mod warehouse;

use std::path::PathBuf;

use serde_json::{Map, Value};
use weir_egress::Egress;

use crate::destination::{Destination, Failure};

/// What destinations work with.
#[derive(Clone)]
pub struct Surroundings {
    /// The way out.
    pub egress: Egress,
    /// The directory below which local exports may write; none: nowhere.
    pub local_root: Option<PathBuf>,
    /// Where public services are.
    pub hosts: Hosts,
}

impl Surroundings {
    /// Surroundings with the real public services.
    #[must_use]
    pub fn new(egress: Egress, local_root: Option<PathBuf>) -> Self {
        Self { egress, local_root, hosts: Hosts::default() }
    }
}

/// Where public services are. No setting reaches this: tests put their own in.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// BigQuery, without a slash at the end.
    pub bigquery: String,
    /// Databricks; `{host}` stands for the host of the settings.
    pub databricks: String,
    /// The S3 that Redshift reads from; `{region}` stands for the region of the
    /// settings.
    pub s3: String,
    /// Snowflake; `{account}` stands for the account of the settings.
    pub snowflake: String,
}

/// The real ones.
impl Default for Hosts {
    fn default() -> Self {
        Self {
            bigquery: "https://bigquery.googleapis.com".to_owned(),
            databricks: "https://{host}".to_owned(),
            s3: "https://s3.{region}.amazonaws.com".to_owned(),
            snowflake: "https://{account}.snowflakecomputing.com".to_owned(),
        }
    }
}

/// The destination of this kind with these settings, secrets included.
///
/// # Errors
/// When a setting is missing or does not fit; a stored config was checked when it
/// was saved, so that is a config of another version.
pub fn open(
    kind: &str,
    config: &Map<String, Value>,
    surroundings: &Surroundings,
) -> Result<Box<dyn Destination>, Failure> {
    match kind {
        "AzureBlob" => Ok(Box::new(azure_blob::open(config, surroundings)?)),
        "GoogleCloudStorage" => Ok(Box::new(google_cloud_storage::open(config, surroundings)?)),
        "HTTP" => Ok(Box::new(http::Http::new(config, surroundings)?)),
        "LocalDirectory" => Ok(Box::new(local_directory::open(config, surroundings)?)),
        "NoOp" => Ok(Box::new(noop::NoOp::new(config, surroundings)?)),
        "Postgres" => Ok(Box::new(postgres::Postgres::new(config, surroundings)?)),
        "Redshift" => Ok(Box::new(redshift::Redshift::new(config, surroundings)?)),
        "BigQuery" => Ok(Box::new(bigquery::BigQuery::new(config, surroundings)?)),
        "Databricks" => Ok(Box::new(databricks::Databricks::new(config, surroundings)?)),
        "Snowflake" => Ok(Box::new(snowflake::Snowflake::new(config, surroundings)?)),
        "S3" => Ok(Box::new(s3::open(config, surroundings)?)),
        _ => Err(Failure::last("UnknownDestination", format!("There is no destination `{kind}`."))),
    }
}

/// The steps of the test of this kind of destination, for people; none: there is
/// nothing to test.
#[must_use]
pub fn steps(kind: &str) -> &'static [&'static str] {
    match kind {
        "AzureBlob" | "GoogleCloudStorage" | "S3" => files::STEPS,
        "HTTP" => http::STEPS,
        "LocalDirectory" => local_directory::STEPS,
        "Postgres" => postgres::STEPS,
        "Redshift" => redshift::STEPS,
        "BigQuery" => bigquery::STEPS,
        "Databricks" => databricks::STEPS,
        "Snowflake" => snowflake::STEPS,
        _ => &[],
    }
}
