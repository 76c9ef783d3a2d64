//! Labels for exports: states, intervals, destinations and settings.
//!
//! What belongs here: labels and hints. What does not: the list of settings
//! (`weir_model::exports::destinations`), and advice about failures (`causes`).

use weir_model::exports::{BatchExport, ExportModel, Interval, LogLevel, Run, Status};

use crate::ui::status::Tone;

/// Tone and word for a status.
pub(in crate::pages) const fn status(status: Status) -> (Tone, &'static str) {
    match status {
        Status::Starting => (Tone::Busy, "Starting"),
        Status::Running => (Tone::Busy, "Running"),
        Status::Completed => (Tone::Good, "Completed"),
        Status::Failed => (Tone::Bad, "Failed"),
        Status::FailedRetryable => (Tone::Bad, "Failed after all attempts"),
        Status::FailedBilling => (Tone::Bad, "Failed, quota used up"),
        Status::Cancelled => (Tone::Quiet, "Cancelled"),
        Status::TimedOut => (Tone::Bad, "Timed out"),
        Status::Terminated => (Tone::Bad, "Terminated"),
        Status::ContinuedAsNew => (Tone::Quiet, "Continued as another run"),
    }
}

/// Tone and word for a run. A run that will be retried counts as failing, although it has
/// not ended.
pub(super) const fn run(run: &Run) -> (Tone, &'static str) {
    if run.is_retried() { (Tone::Bad, "Failing, retried") } else { status(run.status) }
}

/// Tone and word for the condition of an export.
pub(super) fn condition(word: &str, paused: bool) -> (Tone, &'static str) {
    match (word, paused) {
        ("failing", true) => (Tone::Bad, "Failing, paused"),
        ("failing", false) => (Tone::Bad, "Failing"),
        (_, true) => (Tone::Quiet, "Paused"),
        (_, false) => (Tone::Good, "Active"),
    }
}

/// Tone and word for a log level.
pub(super) const fn level(level: LogLevel) -> (Tone, &'static str) {
    match level {
        LogLevel::Debug => (Tone::Quiet, "Debug"),
        LogLevel::Info => (Tone::Quiet, "Info"),
        LogLevel::Warning => (Tone::Warn, "Warning"),
        LogLevel::Error => (Tone::Bad, "Error"),
    }
}

/// Label of an interval.
pub(in crate::pages) const fn interval(interval: Interval) -> &'static str {
    match interval {
        Interval::Hour => "Every hour",
        Interval::Day => "Every day",
        Interval::Week => "Every week",
        Interval::FiveMinutes => "Every 5 minutes",
        Interval::QuarterHour => "Every 15 minutes",
    }
}

/// Names of weekdays. Index 0 is Sunday.
pub(in crate::pages) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The schedule of an export in words, as the start of a sentence.
pub(super) fn schedule_text(export: &BatchExport) -> String {
    let day = usize::try_from(export.offset_day.unwrap_or(0)).ok().and_then(|day| DAYS.get(day));
    let unit = match export.interval {
        Interval::Day => "day",
        Interval::Week => day.copied().unwrap_or("week"),
        other => return interval(other).to_owned(),
    };
    let hour = match export.offset_hour.unwrap_or(0) {
        0 => "midnight".to_owned(),
        hour => format!("{hour:02}:00"),
    };
    format!("Every {unit} at {hour} {}", export.timezone)
}

/// Label of a model.
pub(in crate::pages) const fn model(model: ExportModel) -> &'static str {
    match model {
        ExportModel::Events => "Events",
        ExportModel::Persons => "Persons",
    }
}

/// Singular and plural of the rows of a model.
pub(super) const fn rows(model: ExportModel) -> (&'static str, &'static str) {
    match model {
        ExportModel::Events => ("event", "events"),
        ExportModel::Persons => ("row of persons", "rows of persons"),
    }
}

/// Converts a count of the API, which is never negative.
pub(super) fn count(count: Option<i32>) -> Option<u64> {
    count.and_then(|count| u64::try_from(count).ok())
}

/// A destination type, described in a sentence.
pub(super) fn destination(kind: &str) -> &'static str {
    match kind {
        "S3" => "Files of JSON Lines or Parquet, in S3, MinIO, R2 and others.",
        "AzureBlob" => "Files of JSON Lines or Parquet, in a container of Azure.",
        "GoogleCloudStorage" => "Files of JSON Lines or Parquet, in a bucket of Google.",
        "Postgres" => "A table in PostgreSQL; rows of the same events are replaced.",
        "Redshift" => "A table in Redshift, by inserts or from a bucket.",
        "Snowflake" => "A table in Snowflake.",
        "BigQuery" => "A table in BigQuery.",
        "Databricks" => "A table in Unity Catalog.",
        "HTTP" => {
            "Another instance, or any other server that accepts events from client libraries."
        }
        "LocalDirectory" => "Files on the machine that Weir runs on, if its operator allows it.",
        "NoOp" => "Delivers nothing: for trying an interval, a filter or a backfill.",
        _ => "",
    }
}

/// What happens to events that are delivered twice.
pub(super) fn repeated(kind: &str, model: ExportModel) -> &'static str {
    match (kind, model) {
        (_, ExportModel::Persons) | ("Postgres" | "Redshift", ExportModel::Events) => {
            "Existing rows are replaced if the table has a unique key."
        }
        ("S3" | "AzureBlob" | "GoogleCloudStorage" | "LocalDirectory", _) => {
            "A backfill writes its own files, so these events are stored twice: keep one for each uuid."
        }
        ("Snowflake" | "BigQuery" | "Databricks", _) => {
            "The table has these events twice: keep one row for each uuid."
        }
        ("HTTP", _) => "A receiver that deduplicates by uuid keeps one of them.",
        _ => "Nothing is stored there.",
    }
}

/// Label and hint of a setting. `path` is its name; a nested setting has both names,
/// joined with two underscores.
pub(super) fn setting(kind: &str, path: &str) -> (&'static str, &'static str) {
    let own = match (kind, path) {
        ("S3", "region") => (
            "Region",
            "Such as eu-central-1. For a storage without regions, enter any word, such as auto.",
        ),
        ("S3", "prefix") => ("Prefix", PREFIX),
        ("S3", "endpoint_url") => {
            ("Endpoint", "Address of a compatible storage. Leave it empty for Amazon S3.")
        }
        ("AzureBlob" | "GoogleCloudStorage", "prefix") => ("Prefix", PREFIX_OR_ROOT),
        ("GoogleCloudStorage", "endpoint_url") => {
            ("Endpoint", "Address of a compatible storage. Leave empty for Google's own.")
        }
        ("Redshift", "host") => ("Host", "Name of the cluster's or the workgroup's endpoint."),
        ("Snowflake", "schema") => ("Schema", "It must exist."),
        ("Snowflake", "user") => ("User", "The user that Weir signs in with."),
        ("Snowflake", "password") => ("Password", "For the sign-in with a password."),
        ("Snowflake", "private_key") => (
            "Private key",
            "For the sign-in with a key pair: the key in PEM, with its first and last line.",
        ),
        ("BigQuery", "private_key") => (
            "Private key",
            "From the key file of the service account; line ends as \\n are understood.",
        ),
        ("Databricks", "schema") => ("Schema", "It must exist."),
        ("Databricks", "table_name") => ("Table", "It is created if it does not exist."),
        _ => shared(path),
    };
    if own.0.is_empty() { (UNNAMED, "") } else { own }
}

/// The label of a setting, of any destination. `None`: no destination has it.
#[cfg(feature = "ssr")]
pub(in crate::pages) fn setting_label(path: &str) -> Option<&'static str> {
    // Each setting is shared, or is one of these destinations.
    let labels = ["S3", "Snowflake"].map(|kind| setting(kind, path).0);
    labels.into_iter().find(|label| *label != UNNAMED)
}

/// The label of a setting without one.
const UNNAMED: &str = "Setting";

const PREFIX: &str = "Directory of the files. {year}, {month}, {day}, {hour} and {table} are replaced, as in weir/{year}/{month}.";
const PREFIX_OR_ROOT: &str = "Directory of the files; empty for the root. {year}, {month}, {day}, {hour} and {table} are replaced.";

/// Settings with the same meaning in all destinations.
fn shared(path: &str) -> (&'static str, &'static str) {
    match path {
        "bucket_name" => ("Bucket", "It must exist."),
        "container_name" => ("Container", "It must exist."),
        "aws_access_key_id" => ("Access key id", "Leave both keys empty for unsigned requests."),
        "aws_secret_access_key" => ("Secret access key", ""),
        "compression" => ("Compression", "zstd, lz4 and snappy are for Parquet only."),
        "file_format" => ("File format", ""),
        "encryption" => ("Encryption by the storage", "Empty: what the bucket says."),
        "kms_key_id" => ("Key for aws:kms", "Empty: the account's own."),
        "max_file_size_mb" => {
            ("Largest file in MiB", "A new file is started at about this size. Empty: one file.")
        }
        "use_virtual_style_addressing" => {
            ("The bucket is part of the host name", "And not of the path.")
        }
        "connection_string" => (
            "Connection string",
            "As the portal shows it under Access keys or Shared access signature.",
        ),
        "service_account_key" => {
            ("Key of the service account", "The key file that Google gives out, as text.")
        }
        "host" => ("Host", "Name or address of the server."),
        "port" => ("Port", ""),
        "database" => ("Database", ""),
        "user" => ("User", "The user that Weir signs in with."),
        "password" => ("Password", ""),
        "schema" => ("Schema", "It must exist."),
        "table_name" | "table_id" => {
            ("Table", "It is created if it does not exist. Persons need a table of their own.")
        }
        "has_self_signed_cert" => (
            "Take any certificate",
            "The connection is encrypted then, but the server is not verified.",
        ),
        "properties_data_type" => ("Type of JSON columns", "For a table that Weir creates."),
        "mode" => {
            ("Loading method", "COPY goes through a bucket and is faster for millions of events.")
        }
        "copy_inputs__s3_bucket" => ("COPY: bucket", "Only for COPY, as all that follows."),
        "copy_inputs__region_name" => ("COPY: region of the bucket", ""),
        "copy_inputs__s3_key_prefix" => ("COPY: prefix in the bucket", "Empty: none."),
        "copy_inputs__authorization" => (
            "COPY: role of Redshift",
            "ARN of the role that reads the files. Instead of it, a key below.",
        ),
        "copy_inputs__authorization__aws_access_key_id" => {
            ("COPY: access key id of Redshift", "Only without a role.")
        }
        "copy_inputs__authorization__aws_secret_access_key" => {
            ("COPY: secret access key of Redshift", "Only without a role.")
        }
        "copy_inputs__bucket_credentials__aws_access_key_id" => {
            ("COPY: access key id of Weir", "With which Weir writes and removes the files.")
        }
        "copy_inputs__bucket_credentials__aws_secret_access_key" => {
            ("COPY: secret access key of Weir", "")
        }
        "account" => ("Account", "Such as acme-main: the part before snowflakecomputing.com."),
        "warehouse" => ("Warehouse", ""),
        "authentication_type" => ("Sign-in", ""),
        "private_key_passphrase" => ("Passphrase of the private key", "If it has one."),
        "role" => ("Role", "Empty: the user's own."),
        "project_id" => ("Project of Google Cloud", ""),
        "dataset_id" => ("Dataset", "It must exist."),
        "private_key_id" => ("Id of the private key", "From the key file."),
        "token_uri" => ("Token address", "token_uri of the key file."),
        "client_email" => {
            ("E-mail address of the service account", "client_email of the key file.")
        }
        "use_json_type" => {
            ("Columns of type JSON", "Instead of STRING. Only for a table that Weir creates.")
        }
        "server_hostname" => ("Server host name", "From Connection details of the SQL warehouse."),
        "http_path" => ("HTTP path", "Such as /sql/1.0/warehouses/1a2b3c."),
        "client_id" => ("Client id", "Of the service principal."),
        "client_secret" => ("Client secret", "Of the service principal."),
        "catalog" => ("Catalog", "It must exist."),
        "use_variant_type" => ("New JSON columns are VARIANT", "Instead of STRING."),
        "use_automatic_schema_evolution" => {
            ("Add columns that the table lacks", "Otherwise they are skipped.")
        }
        "url" => {
            ("Address", "The capture address of the receiver. Without a path, /batch/ is added.")
        }
        "token" => ("Project key at the receiver", ""),
        "path" => (
            "Directory",
            "Below the directory for exports; {year}, {month}, {day} and {table} are replaced.",
        ),
        "arg" => ("Note", "Kept and shown, without effect."),
        "include_events" => ("Only these events", "One name on each line. Empty: all events."),
        "exclude_events" => ("Without these events", "One name on each line."),
        _ => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::exports::destinations::ALL;

    use super::*;
    use crate::server_fns::exports::config::form_settings;

    #[test]
    fn every_setting_and_destination_has_a_label() {
        for kind in ALL {
            assert!(!destination(kind.name).is_empty(), "{}", kind.name);
            for one in form_settings(kind) {
                let (label, _) = setting(kind.name, &one.path);
                assert_ne!(label, UNNAMED, "{} {}", kind.name, one.path);
                #[cfg(feature = "ssr")]
                assert_eq!(setting_label(&one.path), Some(label), "{} {}", kind.name, one.path);
            }
        }
    }
}
