//! Azure Blob Storage, set up with a connection string.

use object_store::azure::{MicrosoftAzureBuilder, split_sas};
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_model::exports::addresses::{Connection, Credentials};

use super::Surroundings;
use super::files::store::{self, Connector, Store, is_header, retries};
use super::files::{Files, read};
use crate::destination::Failure;

/// The settings, beside those of files.
#[derive(Deserialize)]
struct Config {
    container_name: String,
    connection_string: String,
    #[serde(default)]
    prefix: String,
}

/// The destination.
pub(super) fn open(
    settings: &Map<String, Value>,
    surroundings: &Surroundings,
) -> Result<Files<Store>, Failure> {
    let config: Config = read(settings)?;
    let Connection { account, endpoint, credentials } =
        Connection::read(&config.connection_string).ok_or_else(invalid)?;
    let endpoint = store::endpoint(&surroundings.egress, &endpoint)?;
    if !is_header(&account) {
        return Err(invalid());
    }
    let builder = MicrosoftAzureBuilder::new()
        .with_account(account)
        .with_endpoint(endpoint)
        .with_container_name(config.container_name)
        .with_allow_http(true)
        .with_retry(retries())
        .with_http_connector(Connector::new(&surroundings.egress));
    // One of both is always there: without, the credentials of this machine would
    // be asked for.
    let builder = match credentials {
        Credentials::Key(key) => builder.with_access_key(key),
        Credentials::Signature(signature) => {
            builder.with_sas_authorization(split_sas(&signature).map_err(|_| invalid())?)
        }
    };
    // The error may repeat the string.
    let store = builder.build().map_err(|_| invalid())?;
    Files::new(Store::new(store), &config.prefix, settings)
}

fn invalid() -> Failure {
    Failure::last(
        "InvalidCredentials",
        "The connection string cannot be used. It names an account, and a key or a shared access \
         signature.",
    )
}
