//! Azure Blob Storage, configured with a connection string.
//!
//! What belongs here: settings and the client. What does not: writing files (`files`).

use object_store::azure::{MicrosoftAzureBuilder, split_sas};
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_model::exports::addresses::{Connection, Credentials};

use super::Dependencies;
use super::files::store::{self, Store, connector, is_header, retries};
use super::files::{Files, read};
use crate::destination::Failure;

/// The settings that are not common to all files.
#[derive(Deserialize)]
struct Config {
    container_name: String,
    connection_string: String,
    #[serde(default)]
    prefix: String,
}

/// Opens the destination.
pub(super) fn open(
    settings: &Map<String, Value>,
    dependencies: &Dependencies,
) -> Result<Files<Store>, Failure> {
    let config: Config = read(settings)?;
    let Connection { account, endpoint, credentials } =
        Connection::read(&config.connection_string).ok_or_else(invalid)?;
    let endpoint = store::endpoint(&dependencies.egress, &endpoint)?;
    if !is_header(&account) {
        return Err(invalid());
    }
    let builder = MicrosoftAzureBuilder::new()
        .with_account(account)
        .with_endpoint(endpoint)
        .with_container_name(config.container_name)
        .with_allow_http(true)
        .with_retry(retries())
        .with_http_connector(connector(&dependencies.egress));
    // Exactly one of both is always there. Without any, the client would use the
    // credentials of this machine.
    let builder = match credentials {
        Credentials::Key(key) => builder.with_access_key(key),
        Credentials::Signature(signature) => {
            builder.with_sas_authorization(split_sas(&signature).map_err(|_| invalid())?)
        }
    };
    // The error may contain the connection string.
    let store = builder.build().map_err(|_| invalid())?;
    Files::new(Store::new(store), &config.prefix, settings)
}

fn invalid() -> Failure {
    Failure::permanent(
        "InvalidCredentials",
        "The connection string cannot be used. It names an account, and a key or a shared access \
         signature.",
    )
}
