//! Addresses of a destination: their valid forms, and the addresses in a config.
//!
//! What belongs here: the text of addresses. What does not: which addresses may be
//! connected to (`weir-egress`).
//!
//! Several parsers read these texts, and some fail on values that others normalize. So
//! only plain ASCII is accepted as a host.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::config::{AT, at, each_with};
use super::destinations::{DestinationType, Kind};

/// Longest host, in characters.
pub(super) const HOST_MAX: usize = 255;

const PLAIN: &str = "Write the host in ASCII, without percent codes. A name in other letters has a \
                     form that begins with xn--.";

/// An address in a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A host without a scheme and path.
    Host(String),
    /// A URL.
    Url(String),
}

/// The addresses of a config, each with the name of its setting in error messages.
pub fn addresses(kind: &DestinationType, config: &Map<String, Value>) -> Vec<(String, Address)> {
    let mut found = Vec::new();
    each_with(kind, |path, field| {
        let Some(text) = at(config, path).and_then(Value::as_str) else { return };
        let address = match (&field.kind, field.name) {
            (Kind::Host, _) => Address::Host(text.to_owned()),
            (Kind::Url, _) => Address::Url(text.to_owned()),
            (_, "connection_string") => match Connection::read(text) {
                Some(connection) => Address::Url(connection.endpoint),
                // An invalid value fails when it is used.
                None => return,
            },
            _ => return,
        };
        found.push((format!("{AT}__{}", path.join("__")), address));
    });
    found
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%')
}

/// Why this is not a valid host; `None` if it is valid.
pub(super) fn host_fault(text: &str) -> Option<&'static str> {
    let alone = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let other = |c: char| matches!(c, '/' | '\\' | ':' | '@' | '?' | '#' | '[' | ']');
    if alone.parse::<IpAddr>().is_ok() {
        return None;
    }
    if text.contains(other) {
        return Some("Enter the name or the address of the host alone: no URL, no path, no port.");
    }
    (!is_plain(text)).then_some(PLAIN)
}

/// Why this is not a valid web URL: `http` or `https`, a host, no user (SEC-28). `None`
/// if it is valid.
pub(super) fn url_fault(text: &str) -> Option<&'static str> {
    const NO_URL: Option<&str> = Some("Enter a valid URL.");
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else { return NO_URL };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_url = !authority.is_empty()
        && !authority.starts_with(':')
        && !authority.contains(['@', '\\'])
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control());
    if !is_url {
        return NO_URL;
    }
    (!is_plain(authority)).then_some(PLAIN)
}

/// Whether a text can be a part of a host name.
pub(super) fn is_host_part(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

/// Default domain of Azure storage accounts.
const SUFFIX: &str = "core.windows.net";

/// The content of an Azure connection string.
#[derive(Debug, PartialEq, Eq)]
pub struct Connection {
    /// Name of the storage account.
    pub account: String,
    /// Its URL.
    pub endpoint: String,
    /// Its credentials.
    pub credentials: Credentials,
}

/// Credentials in a connection string.
#[derive(Debug, PartialEq, Eq)]
pub enum Credentials {
    /// The access key of the storage account.
    Key(String),
    /// A shared access signature.
    Signature(String),
}

impl Connection {
    /// Parses a connection string. `None`: it names no storage account, or no
    /// credentials.
    pub fn read(text: &str) -> Option<Self> {
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
        // With a signature, the account name may be only in the address.
        let account = of("AccountName").map(str::to_owned).or_else(|| {
            let host = endpoint.split_once("://")?.1;
            Some(host.split(['.', ':', '/']).next()?.to_owned())
        })?;
        Some(Self { account, endpoint, credentials })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn hosts_are_names_or_addresses_alone() {
        for host in ["db.example", "DB_1.example.", "10.0.0.1", "::1", "[2600::1]", "0x7f.1"] {
            assert_eq!(host_fault(host), None, "{host}");
        }
        for host in [
            "postgres://db.example/events",
            "postgres://u:p@db.example:5432",
            "/var/run/postgresql",
            "db.example:5432",
            "user@db.example",
            "[::1]:5432",
            "a?b",
        ] {
            assert!(host_fault(host).is_some_and(|fault| fault != PLAIN), "{host}");
        }
        for host in ["münchen.example", "①②⑦.0.0.1", "%31%32%37.0.0.1", "a b", "a\u{0}b"] {
            assert_eq!(host_fault(host), Some(PLAIN), "{host}");
            assert!(url_fault(&format!("https://{host}/")).is_some(), "{host}");
        }
        assert_eq!(url_fault("https://münchen.example/"), Some(PLAIN));
        assert_eq!(url_fault("https://a.example:8443/ä?b=%20"), None);
    }

    #[test]
    fn every_address_of_a_config_is_found() {
        let of = |kind: &str, config: Value| {
            let Value::Object(config) = config else { panic!("no object") };
            let kind = DestinationType::of(kind).unwrap();
            let name = |attr: String| attr.trim_start_matches("destination__config__").to_owned();
            let found = addresses(kind, &config).into_iter();
            found.map(|(attr, address)| (name(attr), address)).collect::<Vec<_>>()
        };
        let url = |name: &str| (name.to_owned(), Address::Url("https://a.example/".to_owned()));
        let host = |name: &str| (name.to_owned(), Address::Host("a.example".to_owned()));
        for (kind, name) in [
            ("S3", "endpoint_url"),
            ("GoogleCloudStorage", "endpoint_url"),
            ("BigQuery", "token_uri"),
            ("HTTP", "url"),
        ] {
            assert_eq!(of(kind, json!({ name: "https://a.example/" })), [url(name)], "{kind}");
        }
        for (kind, name) in
            [("Postgres", "host"), ("Redshift", "host"), ("Databricks", "server_hostname")]
        {
            assert_eq!(of(kind, json!({ name: "a.example" })), [host(name)], "{kind}");
        }
        let connection = "AccountName=a;AccountKey=a2V5;BlobEndpoint=http://10.0.0.1/a";
        let expected = Address::Url("http://10.0.0.1/a".to_owned());
        let found = of("AzureBlob", json!({ "connection_string": connection }));
        assert_eq!(found, [("connection_string".to_owned(), expected)]);
        assert_eq!(of("AzureBlob", json!({ "connection_string": "?" })), []);
        assert_eq!(of("S3", json!({ "endpoint_url": null })), []);
    }

    #[test]
    fn connection_strings_need_a_name_and_a_key() {
        for text in
            ["", "AccountName=a", "AccountKey=k", "UseDevelopmentStorage=true", "AccountName"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
