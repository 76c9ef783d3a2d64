//! Google Cloud Storage, through its XML interface.
//!
//! What belongs here: settings and the client. What does not: writing files (`files`).

use object_store::gcp::GoogleCloudStorageBuilder;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Dependencies;
use super::files::store::{self, Store, connector, retries};
use super::files::{Files, read};
use crate::destination::Failure;

/// The endpoint of Google.
const ENDPOINT: &str = "https://storage.googleapis.com";

/// The settings that are not common to all files.
#[derive(Deserialize)]
struct Config {
    bucket_name: String,
    #[serde(default)]
    prefix: String,
    /// The JSON text of the key file from Google.
    service_account_key: String,
    endpoint_url: Option<String>,
}

/// Opens the destination.
pub(super) fn open(
    settings: &Map<String, Value>,
    dependencies: &Dependencies,
) -> Result<Files<Store>, Failure> {
    let config: Config = read(settings)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if !config.bucket_name.chars().all(fits) {
        return Err(Failure::permanent(
            "InvalidConfig",
            "Buckets are letters, digits, `-`, `.` and `_`.",
        ));
    }
    let endpoint = config.endpoint_url.as_deref().unwrap_or(ENDPOINT);
    let endpoint = store::endpoint(&dependencies.egress, endpoint)?;
    let store = GoogleCloudStorageBuilder::new()
        .with_bucket_name(config.bucket_name)
        .with_service_account_key(config.service_account_key)
        // Always set, because the key could name another URL.
        .with_base_url(&endpoint)
        .with_retry(retries())
        .with_http_connector(connector(&dependencies.egress))
        .build()
        .map_err(|_| {
            // The error may contain the key.
            Failure::permanent(
                "InvalidCredentials",
                "The key of the service account cannot be read.",
            )
        })?;
    Files::new(Store::new(store), &config.prefix, settings)
}
