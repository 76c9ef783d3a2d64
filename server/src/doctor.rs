//! `weir doctor`: a report about an instance, for the people who help with it (SEC-40).
//!
//! It reads settings, files, the system, the probes and metrics of a server that runs, and
//! the store, which it opens from links to its files. It changes nothing, and every part
//! that cannot be read is a line of the report.
//!
//! What belongs here: what is collected, and how it is bounded. What does not: hiding
//! secrets in settings (`config`) and in log lines (`redact`), and requests to the server
//! (`asking`).

mod asking;
mod redact;
mod system;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use weir_store::inspection::{Inspection, inspect};
use weir_store::{DATABASE_ID, schema_version};

use crate::backup::{link_store, stop_flag, unlink_store};
use crate::config::{Config, StoreKind};
use crate::files::{shown, size};
use crate::log_tools::has_store;
use crate::logs::with_causes;
use crate::master_key;
use crate::serve::free_bytes;

/// Series of metrics that are shown.
const SERIES: usize = 300;
/// How much of the end of a log file is read, bytes.
const LOG_END: u64 = 4 << 20;
/// Lines of a log file that are shown.
const LOG_LINES: usize = 50;
/// Longest line that is shown, in characters.
const LONGEST_LINE: usize = 400;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written to `{path}`")]
pub struct DoctorError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// What the report reads beside the settings.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The settings file that was named.
    pub settings_file: Option<&'a Path>,
    /// A file with log lines.
    pub log_file: Option<&'a Path>,
}

/// Collects the report.
pub async fn report(config: &Config, sources: Sources<'_>) -> String {
    let mut report = Report::default();
    system::about_program(&mut report);
    about_settings(&mut report, config, sources.settings_file);
    about_files(&mut report, config);
    about_disk(&mut report, config);
    system::about_limits(&mut report, &config.data);
    about_data(&mut report, config).await;
    about_health(&mut report, config).await;
    about_metrics(&mut report, config).await;
    about_log(&mut report, sources.log_file);
    report.text
}

/// Writes the report to a new file, which only its owner can read.
///
/// # Errors
/// [`DoctorError`], also if the file exists.
pub fn write(path: &Path, report: &str) -> Result<(), DoctorError> {
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(report.as_bytes()));
    written.map_err(|source| DoctorError { path: path.to_owned(), source })
}

/// A text with sections.
#[derive(Debug, Default)]
struct Report {
    text: String,
}

impl Report {
    fn section(&mut self, title: &str) {
        let blank = if self.text.is_empty() { "" } else { "\n" };
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "{blank}== {title}");
    }

    fn line(&mut self, text: impl AsRef<str>) {
        let text: String = text.as_ref().chars().take(LONGEST_LINE).collect();
        let _ = writeln!(self.text, "{text}");
    }

    fn fact(&mut self, name: &str, value: impl std::fmt::Display) {
        self.line(format!("{name}: {value}"));
    }
}

fn about_settings(report: &mut Report, config: &Config, file: Option<&Path>) {
    report.section("Settings, secrets hidden");
    match file {
        Some(file) => report.fact("file", file.display()),
        None => report.fact("file", "weir.toml of the directory, if it exists"),
    }
    match config.to_toml() {
        Ok(text) => text.lines().for_each(|line| report.line(line)),
        Err(error) => report.fact("they cannot be printed", error),
    }
}

fn about_files(report: &mut Report, config: &Config) {
    report.section("Files: mode, owner, size");
    let data = &config.data;
    let mut paths = vec![data.clone()];
    paths.extend(
        [
            "LOCK",
            "store",
            "log",
            "log/quarantine",
            "segments",
            "ballast",
            "instance-id",
            DATABASE_ID,
        ]
        .map(|name| data.join(name)),
    );
    for path in [
        &config.local_exports,
        &config.browser_library,
        &config.geoip_database,
        &config.tls_certificate,
        &config.tls_key,
        &config.acme_root,
    ] {
        if !path.as_os_str().is_empty() {
            paths.push(path.clone());
        }
    }
    for path in paths {
        report.line(system::described(&path));
    }
    match master_key::source(config) {
        Ok(source) => {
            let location = source.location();
            let state = match source.find() {
                Ok(Some(_)) => "can be read".to_owned(),
                Ok(None) => "is not there, because no secret is stored".to_owned(),
                Err(error) => error.to_string(),
            };
            report.fact("master key", format!("{location} {state}"));
            let path = Path::new(location.trim_matches('`'));
            if path.is_absolute() {
                report.line(system::described(path));
            }
        }
        Err(error) => report.fact("master key", error),
    }
}

fn about_disk(report: &mut Report, config: &Config) {
    report.section("Disk");
    if config.store == StoreKind::Memory {
        return report.line("the store is in memory");
    }
    match free_bytes(config) {
        Some(free) => report.fact("free", shown(free)),
        None => report.line("the free space cannot be measured"),
    }
    for (name, mark) in [("disk_high", config.disk_high), ("disk_low", config.disk_low)] {
        report.fact(name, shown(mark.0));
    }
    for part in ["store", "segments", "log", "log/quarantine"] {
        report.fact(part, shown(size(&config.data.join(part))));
    }
}

/// The schema and the numbers of records, from links to the files of the store.
async fn about_data(report: &mut Report, config: &Config) {
    report.section("Data");
    report.fact("newest schema version of this program", schema_version());
    match config.store {
        StoreKind::RocksDb => {}
        StoreKind::Postgres(_) => return report.line("the store is in a PostgreSQL database"),
        StoreKind::Memory => return report.line("the store is in memory"),
    }
    if !has_store(config) {
        return report.line("there is no store");
    }
    let is_stopped = match stop_flag() {
        Ok(is_stopped) => is_stopped,
        Err(error) => return report.fact("the store is not read", error),
    };
    let staging = match link_store(&config.data, &is_stopped).await {
        Ok(staging) => staging,
        Err(error) => return report.fact("the store is not read", with_causes(&error)),
    };
    let found = inspect(staging.path(), &is_stopped).await;
    if let Err(error) = unlink_store(staging).await {
        report.fact("the links to the store stay until the next start", with_causes(&error));
    }
    let Inspection { schema, events, tables } = match found {
        Ok(found) => found,
        Err(error) => return report.fact("the store is not read", with_causes(&error)),
    };
    match schema {
        Ok(schema) => {
            report.fact("schema version", schema.version);
            for missing in schema.missing {
                report.fact("migration to apply", format!("{} {}", missing.version, missing.name));
            }
        }
        Err(error) => report.fact("schema", with_causes(&error)),
    }
    let number = |counted: Result<u64, weir_store::Error>| match counted {
        Ok(number) => number.to_string(),
        Err(error) => with_causes(&error),
    };
    report.fact("stored events", number(events));
    for (table, counted) in tables {
        report.fact(&format!("records of {table}"), number(counted));
    }
    if is_stopped.load(Ordering::Acquire) {
        report.line("counting was stopped by a signal");
    }
}

async fn about_health(report: &mut Report, config: &Config) {
    report.section("Probes of the server");
    if config.listen.ends_with(":0") {
        return report.line("listen has no fixed port");
    }
    for path in ["/_livez", "/_readyz"] {
        match asking::get(config, path).await {
            Ok((status, body)) => report.fact(path, format!("{status} {}", body.trim())),
            Err(error) => report.fact(path, error),
        }
    }
}

/// The series that are not zero. Labels come from closed lists.
async fn about_metrics(report: &mut Report, config: &Config) {
    report.section("Metrics that are not 0");
    let Some(address) = config.metrics_listen.0 else {
        return report.line("metrics_listen is off");
    };
    if address.port() == 0 {
        return report.line("metrics_listen has no fixed port");
    }
    match asking::get_plain(&address.to_string(), "/metrics").await {
        Ok((200, page)) => {
            page.lines().filter(|line| is_shown(line)).take(SERIES).for_each(|line| {
                report.line(line);
            });
        }
        Ok((status, _)) => report.fact("the page was answered with", status),
        Err(error) => report.line(error),
    }
}

/// Whether a line of the page of metrics is a series that counts something. The ranges of
/// histograms are many.
fn is_shown(line: &str) -> bool {
    let value = line.rsplit(' ').next().unwrap_or_default();
    !line.starts_with('#') && !line.contains("_bucket{") && !matches!(value, "0" | "0.0")
}

fn about_log(report: &mut Report, file: Option<&Path>) {
    report.section("Last errors and warnings of the log");
    let Some(path) = file else {
        return report.line("no file was named with --log-file");
    };
    match end_of(path) {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().filter(|line| is_complaint(line)).collect();
            if lines.is_empty() {
                report.line("there are none");
            }
            for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
                report.line(redact::line(line));
            }
        }
        Err(error) => report.fact("the file cannot be read", error),
    }
}

fn is_complaint(line: &str) -> bool {
    ["ERROR", "WARN", "error: "].iter().any(|sign| line.contains(sign))
}

/// The last whole lines of a file. A part of a line may have a secret without the word
/// before it.
fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(LOG_END);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(LOG_END).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = match begin {
        0 => &*text,
        _ => text.split_once('\n').map_or("", |(_, whole)| whole),
    };
    Ok(whole.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_that_count_nothing_are_not_shown() {
        for shown in ["weir_a_total 3", "weir_b{c=\"d\"} 0.5", "process_start_time_seconds 1.0"] {
            assert!(is_shown(shown), "{shown}");
        }
        for hidden in ["# TYPE weir_a counter", "weir_a_total 0", "weir_b_bucket{le=\"1.0\"} 4"] {
            assert!(!is_shown(hidden), "{hidden}");
        }
    }

    #[test]
    fn a_report_replaces_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        write(&path, "one").unwrap();
        let refused = write(&path, "two").unwrap_err();
        assert!(refused.to_string().contains("report"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
    }

    #[test]
    fn the_last_complaints_of_a_log_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut text = "2026-06-01T10:00:00Z  INFO serving\n".repeat(10);
        for number in 0..60 {
            text += &format!("2026-06-01T10:00:00Z  WARN key phx_{number:040} was refused\n");
        }
        std::fs::write(&path, text).unwrap();
        let mut report = Report::default();
        about_log(&mut report, Some(&path));
        assert_eq!(report.text.matches("WARN").count(), LOG_LINES);
        assert!(!report.text.contains("INFO") && !report.text.contains("phx_0"));
    }

    #[test]
    fn a_long_log_begins_with_a_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let end = "WARN the end\n";
        let cut = "x".repeat(usize::try_from(LOG_END).unwrap());
        std::fs::write(&path, format!("ERROR password={cut}\n{end}")).unwrap();
        assert_eq!(end_of(&path).unwrap(), end);
    }
}
