//! Azure Blob Storage, set up with a connection string.

use object_store::azure::{MicrosoftAzureBuilder, split_sas};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Surroundings;
use super::files::store::{Connector, Store, retries};
use super::files::{Files, read};
use crate::destination::Failure;

/// Where accounts are when their string names no other place.
const SUFFIX: &str = "core.windows.net";

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

/// What a connection string says.
#[derive(Debug, PartialEq, Eq)]
struct Connection {
    account: String,
    endpoint: String,
    credentials: Credentials,
}

#[derive(Debug, PartialEq, Eq)]
enum Credentials {
    Key(String),
    /// A shared access signature.
    Signature(String),
}

impl Connection {
    fn read(text: &str) -> Option<Self> {
        let pairs: Vec<(&str, &str)> = text
            .split(';')
            .filter(|part| !part.trim().is_empty())
            .map(|part| part.split_once('=').map(|(name, value)| (name.trim(), value.trim())))
            .collect::<Option<_>>()?;
        let of = |wanted: &str| {
            let found = pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| *value).filter(|value| !value.is_empty())
        };
        let credentials = match (of("AccountKey"), of("SharedAccessSignature")) {
            (Some(key), _) => Credentials::Key(key.to_owned()),
            (None, Some(signature)) => Credentials::Signature(signature.to_owned()),
            (None, None) => return None,
        };
        let endpoint = match (of("BlobEndpoint"), of("AccountName")) {
            (Some(endpoint), _) => endpoint.trim_end_matches('/').to_owned(),
            (None, Some(account)) => {
                let protocol = of("DefaultEndpointsProtocol").unwrap_or("https");
                let suffix = of("EndpointSuffix").unwrap_or(SUFFIX);
                format!("{protocol}://{account}.blob.{suffix}")
            }
            (None, None) => return None,
        };
        // With a signature the account may be in the address alone.
        let account = of("AccountName").map(str::to_owned).or_else(|| {
            let host = endpoint.split_once("://")?.1;
            Some(host.split(['.', ':', '/']).next()?.to_owned())
        })?;
        Some(Self { account, endpoint, credentials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, String, Credentials)> {
        let Connection { account, endpoint, credentials } = Connection::read(text)?;
        Some((account, endpoint, credentials))
    }

    fn key(account: &str, endpoint: &str) -> Option<(String, String, Credentials)> {
        Some((account.to_owned(), endpoint.to_owned(), Credentials::Key("a2V5==".to_owned())))
    }

    #[test]
    fn connection_strings_are_read_as_azure_writes_them() {
        for (text, endpoint) in [
            (
                "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5==;\
                 EndpointSuffix=core.windows.net",
                "https://acc.blob.core.windows.net",
            ),
            ("accountname=acc; ACCOUNTKEY=a2V5== ;;", "https://acc.blob.core.windows.net"),
            (
                "AccountName=acc;AccountKey=a2V5==;BlobEndpoint=http://127.0.0.1:10000/acc/;",
                "http://127.0.0.1:10000/acc",
            ),
        ] {
            assert_eq!(read(text), key("acc", endpoint), "{text}");
        }
        let signature = Credentials::Signature("sv=2024&sig=a%3D".to_owned());
        assert_eq!(
            read(
                "BlobEndpoint=https://acc.blob.core.windows.net/;\
                 SharedAccessSignature=sv=2024&sig=a%3D"
            ),
            Some(("acc".to_owned(), "https://acc.blob.core.windows.net".to_owned(), signature))
        );
    }

    #[test]
    fn strings_without_account_or_credentials_are_none() {
        for text in
            ["", "AccountName=a", "AccountKey=k", "UseDevelopmentStorage=true", "AccountName"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
