//! S3, and storages with the same protocol.
//!
//! What belongs here: settings and the client. What does not: writing files (`files`),
//! and the statements that load them (`redshift`).

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Dependencies;
use super::files::store::{self, Store, connector, is_header, retries};
use super::files::{Files, read};
use crate::destination::Failure;

/// The settings of S3. `Files` reads those that all storages have.
#[derive(Deserialize)]
struct Config {
    bucket_name: String,
    region: String,
    prefix: String,
    aws_access_key_id: Option<String>,
    aws_secret_access_key: Option<String>,
    encryption: Option<String>,
    kms_key_id: Option<String>,
    endpoint_url: Option<String>,
    #[serde(default)]
    use_virtual_style_addressing: bool,
}

/// Opens the destination. Without keys, requests are not signed. Credentials of the server
/// itself are never used, because they are not those of the project.
pub(super) fn open(
    settings: &Map<String, Value>,
    dependencies: &Dependencies,
) -> Result<Files<Store>, Failure> {
    let config: Config = read(settings)?;
    let mut builder = builder(&config.bucket_name, &config.region, dependencies)?
        .with_virtual_hosted_style_request(config.use_virtual_style_addressing);
    builder = match (&config.aws_access_key_id, &config.aws_secret_access_key) {
        (Some(id), Some(secret)) if is_header(id) => {
            builder.with_access_key_id(id).with_secret_access_key(secret)
        }
        (Some(_), Some(_)) => return Err(invalid("This is no access key.")),
        (None, None) => builder.with_skip_signature(true),
        _ => return Err(invalid("An access key and its secret belong together.")),
    };
    if let Some(endpoint) = &config.endpoint_url {
        let endpoint = match config.use_virtual_style_addressing {
            true => of_bucket(endpoint, &config.bucket_name),
            false => endpoint.clone(),
        };
        builder = builder.with_endpoint(store::endpoint(&dependencies.egress, &endpoint)?);
    }
    if let Some(encryption) = &config.encryption {
        builder = builder.with_config(key("aws_server_side_encryption")?, encryption);
        if let Some(id) = config.kms_key_id.as_ref().filter(|_| encryption == "aws:kms") {
            if !is_header(id) {
                return Err(invalid("This is no key for encryption."));
            }
            builder = builder.with_config(key("aws_sse_kms_key_id")?, id);
        }
    }
    Files::new(built(builder)?, &config.prefix, settings)
}

/// The bucket that Redshift loads from, at Amazon.
pub(super) fn bucket(
    name: &str,
    region: &str,
    key_id: &str,
    secret: &str,
    dependencies: &Dependencies,
) -> Result<Store, Failure> {
    if !is_header(key_id) {
        return Err(invalid("This is no access key."));
    }
    let endpoint = dependencies.addresses.s3.replace("{region}", region);
    let builder = builder(name, region, dependencies)?
        .with_access_key_id(key_id)
        .with_secret_access_key(secret)
        .with_endpoint(endpoint);
    built(builder)
}

/// The common settings of all buckets.
fn builder(
    bucket: &str,
    region: &str,
    dependencies: &Dependencies,
) -> Result<AmazonS3Builder, Failure> {
    // Both become part of the host name. The URL is only checked here.
    if !is_name(bucket) || !is_name(region) {
        return Err(invalid("Buckets and regions are letters, digits, `-`, `.` and `_`."));
    }
    store::endpoint(&dependencies.egress, &format!("https://{bucket}.s3.{region}.amazonaws.com"))?;
    Ok(AmazonS3Builder::new()
        .with_region(region)
        .with_bucket_name(bucket)
        // Some storages do not support deleting many files with one request.
        .with_disable_bulk_delete(true)
        // For storages in the network of the operator. `egress` decides on the address.
        .with_allow_http(true)
        .with_retry(retries())
        .with_http_connector(connector(&dependencies.egress)))
}

fn built(builder: AmazonS3Builder) -> Result<Store, Failure> {
    let store = builder.build().map_err(|error| {
        tracing::debug!(%error, "S3 cannot be set up");
        invalid("The address, the encryption or the credentials cannot be used.")
    })?;
    Ok(Store::new(store))
}

fn invalid(why: &str) -> Failure {
    Failure::permanent("InvalidConfig", why)
}

fn key(name: &str) -> Result<AmazonS3ConfigKey, Failure> {
    name.parse().map_err(|_| invalid("This encryption is not known."))
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    !text.is_empty() && text.chars().all(fits)
}

/// The URL of a bucket that is part of the host name.
fn of_bucket(endpoint: &str, bucket: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    match endpoint.split_once("://") {
        Some((scheme, host)) => format!("{scheme}://{bucket}.{host}"),
        None => endpoint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_can_be_part_of_the_host() {
        for (endpoint, expected) in [
            ("https://s3.example.org", "https://b.s3.example.org"),
            ("http://127.0.0.1.nip.io:5000/", "http://b.127.0.0.1.nip.io:5000"),
        ] {
            assert_eq!(of_bucket(endpoint, "b"), expected);
        }
    }

    #[test]
    fn what_becomes_part_of_a_host_is_a_name() {
        for name in ["my-bucket", "my.bucket", "eu-west-1", "old_Bucket"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a/b", "evil.example/#", "a b", "a?b", "a@b", "ä", "a:1"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
