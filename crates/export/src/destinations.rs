//! The destinations: one module each, all behind one trait.
//!
//! What belongs here: the module of each kind, and the dependencies of all of them. What
//! does not: validating a config (`weir_model::exports`).

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

/// The dependencies of destinations.
#[derive(Clone)]
pub struct Dependencies {
    /// Outgoing connections.
    pub egress: Egress,
    /// The directory below which local exports may write. `None`: local exports are not
    /// allowed.
    pub local_root: Option<PathBuf>,
    /// Base URLs of the public services that destinations use.
    pub addresses: DestinationAddresses,
}

impl Dependencies {
    /// Dependencies with the real public services.
    pub fn new(egress: Egress, local_root: Option<PathBuf>) -> Self {
        Self { egress, local_root, addresses: DestinationAddresses::default() }
    }
}

/// Base URLs of the services. They are not configurable; tests replace them.
#[derive(Debug, Clone)]
pub struct DestinationAddresses {
    /// Base URL of BigQuery, without a trailing slash.
    pub bigquery: String,
    /// Base URL of Databricks. `{host}` is replaced by the host in the settings.
    pub databricks: String,
    /// Base URL of the S3 that Redshift reads from. `{region}` is replaced by the region
    /// in the settings.
    pub s3: String,
    /// Base URL of Snowflake. `{account}` is replaced by the account in the settings.
    pub snowflake: String,
}

/// The real services.
impl Default for DestinationAddresses {
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
/// When a setting is missing or invalid. A stored config was validated when it was saved,
/// so such a config is from another version.
pub fn open(
    kind: &str,
    config: &Map<String, Value>,
    dependencies: &Dependencies,
) -> Result<Box<dyn Destination>, Failure> {
    match kind {
        "AzureBlob" => Ok(Box::new(azure_blob::open(config, dependencies)?)),
        "GoogleCloudStorage" => Ok(Box::new(google_cloud_storage::open(config, dependencies)?)),
        "HTTP" => Ok(Box::new(http::Http::new(config, dependencies)?)),
        "LocalDirectory" => Ok(Box::new(local_directory::open(config, dependencies)?)),
        "NoOp" => Ok(Box::new(noop::NoOp::new(config, dependencies)?)),
        "Postgres" => Ok(Box::new(postgres::Postgres::new(config, dependencies)?)),
        "Redshift" => Ok(Box::new(redshift::Redshift::new(config, dependencies)?)),
        "BigQuery" => Ok(Box::new(bigquery::BigQuery::new(config, dependencies)?)),
        "Databricks" => Ok(Box::new(databricks::Databricks::new(config, dependencies)?)),
        "Snowflake" => Ok(Box::new(snowflake::Snowflake::new(config, dependencies)?)),
        "S3" => Ok(Box::new(s3::open(config, dependencies)?)),
        _ => Err(Failure::permanent(
            "UnknownDestination",
            format!("There is no destination `{kind}`."),
        )),
    }
}

/// The steps of the test of this kind of destination, for users. Empty if there is
/// nothing to test.
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
