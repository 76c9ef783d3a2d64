//! The settings: flags override the environment, the environment overrides `weir.toml`,
//! and that overrides the defaults.
//!
//! What belongs here: one table of all settings, their texts and their checks. A setting
//! is listed only if it has an effect. An unknown key in the file is an error, so that a
//! misspelt setting is not overlooked.

mod acme;
mod backup;
mod capture_prefix;
mod organization_limits;
mod traces;
mod values;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use http::HeaderValue;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_mail::SmtpUrl;
use weir_model::limits::LimitSet;
use weir_store::disk::DiskMarks;
use weir_store::events::SealBounds;
use weir_store::{Access, BucketLocation, SegmentBucket};

pub use acme::{AcmeContact, AcmeDirectory, HostNames};
pub use backup::BackupInterval;
pub use capture_prefix::CapturePrefix;
pub use organization_limits::{
    DiskLimit, EventsPerMonthLimit, EventsPerSecondLimit, ExportsLimit, MembersLimit,
};
pub use traces::{TraceShare, TracesEndpoint, TracesHeaders};
pub use values::{
    ByteSize, LogFormat, NameServers, Networks, OptionalAddress, PublicUrl, SecretText,
    SegmentLocation, SignInProviders, StoreKind,
};

/// The file that is read if it exists and no other is given.
pub const FILE: &str = "weir.toml";

/// Declares every setting once: help text, name, type, default, environment variable.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty = $default:expr, $env:literal;)+) => {
        /// Settings from one source. A setting that the source does not contain is
        /// `None`.
        #[derive(Debug, Clone, Default, clap::Args, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $(
                $(#[doc = $doc])+
                #[arg(long, env = $env, hide_env_values = true, global = true, value_name = "VALUE")]
                #[serde(default, deserialize_with = "setting")]
                pub $name: Option<$kind>,
            )+
        }

        /// The effective settings.
        #[derive(Debug, Clone, Serialize)]
        pub struct Config {
            $($(#[doc = $doc])+ pub $name: $kind,)+
        }

        impl Settings {
            /// The effective settings: from these, then from `file`, then the defaults.
            pub fn over(self, file: Self) -> Config {
                Config {
                    $($name: self.$name.or(file.$name).unwrap_or_else(|| $default),)+
                }
            }
        }
    };
}

settings! {
    /// Address to listen on; port 0 takes any free port [default: 127.0.0.1:8000]
    listen: String = "127.0.0.1:8000".to_owned(), "WEIR_LISTEN";
    /// Directory of all data, created if it is missing [default: ./data]
    data: PathBuf = PathBuf::from("./data"), "WEIR_DATA";
    /// Address at which users reach this instance, such as https://weir.example.org
    public_url: PublicUrl = PublicUrl::default(), "WEIR_PUBLIC_URL";
    /// Where data is stored: `rocksdb` under the data directory, postgres://user:password@host:port/database with the log and the files of events under the data directory, or `mem://` (lost at exit) [default: rocksdb]
    store: StoreKind = StoreKind::RocksDb, "WEIR_STORE";
    /// Connections to the database of `store`, 2 to 1000 [default: 16]
    store_connections: u32 = 16, "WEIR_STORE_CONNECTIONS";
    /// Whether the database of `store` may be without a synchronous standby, so that its disk is the only place of the data: true or false [default: false]
    accept_single_database: bool = false, "WEIR_ACCEPT_SINGLE_DATABASE";
    /// Log filter, such as `info` or `warn,weir=debug` [default: warn,weir=info]
    log: String = "warn,weir=info".to_owned(), "WEIR_LOG";
    /// Form of log lines: `text` or `json` [default: text]
    log_format: LogFormat = LogFormat::Text, "WEIR_LOG_FORMAT";
    /// Address of the metrics page for Prometheus, or `off` [default: 127.0.0.1:9464]
    metrics_listen: OptionalAddress = OptionalAddress::METRICS, "WEIR_METRICS_LISTEN";
    /// Address of a collector of OpenTelemetry that traces are sent to, such as http://127.0.0.1:4318/v1/traces [default: none, nothing is traced]
    traces_endpoint: TracesEndpoint = TracesEndpoint::default(), "WEIR_TRACES_ENDPOINT";
    /// Headers of those requests, separated by commas, such as authorization=Bearer abc; better in the settings file or the environment than as a flag [default: none]
    traces_headers: TracesHeaders = TracesHeaders::default(), "WEIR_TRACES_HEADERS";
    /// Share of traces that are recorded, from 0 to 1 [default: 1]
    traces_share: TraceShare = TraceShare::default(), "WEIR_TRACES_SHARE";
    /// Whether trusted_proxies name the trace of a request in the header traceparent, which they must remove from what clients send: true or false [default: false]
    traces_parent: bool = false, "WEIR_TRACES_PARENT";
    /// Mail server, such as smtp://user:password@mail.example.org:587 or smtps://…; add ?from=address for the sender [default: no mail is sent]
    smtp_url: SmtpUrl = SmtpUrl::default(), "WEIR_SMTP_URL";
    /// Providers that users can sign in through, separated by commas, each as `NAME CLIENT_ID CLIENT_SECRET`, and an issuer unless NAME is google-oauth2, github or gitlab [default: those of the Instance page alone]
    sign_in_providers: SignInProviders = SignInProviders::default(), "WEIR_SIGN_IN_PROVIDERS";
    /// Whether a new user who signs in through a provider may create an organization, if no organization has verified the domain of the address: true or false [default: false]
    new_organizations: bool = false, "WEIR_NEW_ORGANIZATIONS";
    /// File of the key that stored secrets are sealed with: 64 hexadecimal digits, base64 or 32 bytes, mode 0600, not in the data directory; WEIR_MASTER_KEY may hold the key itself instead [default: the data directory's path and `.key`, created when the first secret is stored]
    master_key_file: PathBuf = PathBuf::new(), "WEIR_MASTER_KEY_FILE";
    /// Name servers to ask when a domain is verified, separated by commas, such as 9.9.9.9 or 127.0.0.1:5353 [default: those of the system]
    dns_servers: NameServers = NameServers::default(), "WEIR_DNS_SERVERS";
    /// Networks that exports may connect to although they are not public, separated by commas, such as 127.0.0.1 or 10.1.0.0/16 [default: none]
    egress_allow: Networks = Networks::default(), "WEIR_EGRESS_ALLOW";
    /// Directory below which exports to files of this machine are written [default: none, such exports are refused]
    local_exports: PathBuf = PathBuf::new(), "WEIR_LOCAL_EXPORTS";
    /// Networks of proxies whose X-Forwarded headers are trusted, separated by commas [default: none]
    trusted_proxies: Networks = Networks::default(), "WEIR_TRUSTED_PROXIES";
    /// Whether each connection from trusted_proxies begins with a header of the PROXY protocol, version 1 or 2: true or false [default: false]
    proxy_protocol: bool = false, "WEIR_PROXY_PROTOCOL";
    /// File of the certificate and its chain, as PEM; the address of `listen` then speaks https [default: none, it speaks http]
    tls_certificate: PathBuf = PathBuf::new(), "WEIR_TLS_CERTIFICATE";
    /// File of the private key of that certificate, as PEM, not encrypted [default: none]
    tls_key: PathBuf = PathBuf::new(), "WEIR_TLS_KEY";
    /// Host names to obtain a certificate for by ACME, separated by commas, instead of tls_certificate [default: none]
    acme_domains: HostNames = HostNames::default(), "WEIR_ACME_DOMAINS";
    /// Mail address that the certificate authority may write to [default: none]
    acme_contact: AcmeContact = AcmeContact::default(), "WEIR_ACME_CONTACT";
    /// Address of the directory of the certificate authority [default: that of Let's Encrypt]
    acme_directory: AcmeDirectory = AcmeDirectory::default(), "WEIR_ACME_DIRECTORY";
    /// File of the root certificates, as PEM, that the directory's own certificate must be from [default: those of the system]
    acme_root: PathBuf = PathBuf::new(), "WEIR_ACME_ROOT";
    /// Address whose requests over plain http are redirected to public_url, such as 0.0.0.0:80, or `off` [default: off]
    redirect_listen: OptionalAddress = OptionalAddress::OFF, "WEIR_REDIRECT_LISTEN";
    /// Seconds for which browsers use https alone (Strict-Transport-Security), sent if public_url is https; 0: not sent [default: 31536000]
    hsts_seconds: u64 = 31_536_000, "WEIR_HSTS_SECONDS";
    /// Browser library served at /static/: the `dist` folder of the npm package posthog-js, or one file [default: the one that Weir contains]
    browser_library: PathBuf = PathBuf::new(), "WEIR_BROWSER_LIBRARY";
    /// Path below which Weir answers client libraries too, such as /ingest, because blockers know the usual paths [default: none]
    capture_prefix: CapturePrefix = CapturePrefix::default(), "WEIR_CAPTURE_PREFIX";
    /// MaxMind database file: events get the location of their address [default: none]
    geoip_database: PathBuf = PathBuf::new(), "WEIR_GEOIP_DATABASE";
    /// Free disk space below which the service reports itself not ready [default: 1GiB]
    disk_high: ByteSize = ByteSize(DiskMarks::default().high), "WEIR_DISK_HIGH";
    /// Free disk space below which nothing is written [default: 256MiB]
    disk_low: ByteSize = ByteSize(DiskMarks::default().low), "WEIR_DISK_LOW";
    /// Stored events of a partition that are moved into a file together, 1 to 1000000 [default: 64000]
    seal_events: u64 = SealBounds::default().events, "WEIR_SEAL_EVENTS";
    /// Seconds between two searches for events to move into files, and for old ones to remove, at least 1 [default: 600]
    seal_seconds: u64 = 600, "WEIR_SEAL_SECONDS";
    /// Seconds for which the clock must not have been set before old events are removed, also after a start; less is for tests [default: 1800]
    retention_clock_seconds: u64 = 1800, "WEIR_RETENTION_CLOCK_SECONDS";
    /// Where the files of events are: s3://bucket/prefix, in a storage with the protocol of S3 [default: in the data directory]
    segments: SegmentLocation = SegmentLocation::default(), "WEIR_SEGMENTS";
    /// Address of that storage, such as https://s3.example.org [default: the one of Amazon in the region]
    segments_endpoint: PublicUrl = PublicUrl::default(), "WEIR_SEGMENTS_ENDPOINT";
    /// Region of the bucket [default: us-east-1]
    segments_region: String = "us-east-1".to_owned(), "WEIR_SEGMENTS_REGION";
    /// Access key of the bucket [default: none]
    segments_access_key: String = String::new(), "WEIR_SEGMENTS_ACCESS_KEY";
    /// Secret of the access key; better in the settings file or the environment than as a flag, which other users of the machine see [default: none]
    segments_secret_key: SecretText = SecretText::default(), "WEIR_SEGMENTS_SECRET_KEY";
    /// Copies of the files of events that are kept in the data directory, if these are in a bucket [default: 4GiB]
    segment_cache: ByteSize = ByteSize(4 << 30), "WEIR_SEGMENT_CACHE";
    /// Where the server stores backups: a directory outside the data directory, or s3://bucket/prefix in a storage with the protocol of S3 [default: none, the server makes no backups]
    backup_to: PathBuf = PathBuf::new(), "WEIR_BACKUP_TO";
    /// Time between two of these backups, such as 24h, 30m or 7d [default: 24h]
    backup_every: BackupInterval = BackupInterval::default(), "WEIR_BACKUP_EVERY";
    /// Backups that stay there: after each backup the server removes older ones beyond this number, also those that were made by hand; 0: all stay [default: 0]
    backup_keep: u32 = 0, "WEIR_BACKUP_KEEP";
    /// Address of the storage of backups in a bucket, such as https://s3.example.org [default: the one of Amazon in the region]
    backup_endpoint: PublicUrl = PublicUrl::default(), "WEIR_BACKUP_ENDPOINT";
    /// Region of that bucket [default: us-east-1]
    backup_region: String = "us-east-1".to_owned(), "WEIR_BACKUP_REGION";
    /// Access key of that bucket [default: none]
    backup_access_key: String = String::new(), "WEIR_BACKUP_ACCESS_KEY";
    /// Secret of that access key; better in the settings file or the environment than as a flag, which other users of the machine see [default: none]
    backup_secret_key: SecretText = SecretText::default(), "WEIR_BACKUP_SECRET_KEY";
    /// Events that an organization may send in a calendar month, and what happens beyond: a number and `warn`, `drop` or `reject`, such as `1000000 reject` [default: no limit]
    limit_events_per_month: EventsPerMonthLimit = EventsPerMonthLimit::default(), "WEIR_LIMIT_EVENTS_PER_MONTH";
    /// The same for events in a second, with bursts of ten times as many [default: no limit]
    limit_events_per_second: EventsPerSecondLimit = EventsPerSecondLimit::default(), "WEIR_LIMIT_EVENTS_PER_SECOND";
    /// The same for the disk space of stored events, such as `20GiB drop` [default: no limit]
    limit_disk: DiskLimit = DiskLimit::default(), "WEIR_LIMIT_DISK";
    /// Members that an organization may have, and what happens beyond: a number and `warn` or `reject` [default: no limit]
    limit_members: MembersLimit = MembersLimit::default(), "WEIR_LIMIT_MEMBERS";
    /// The same for its batch exports [default: no limit]
    limit_exports: ExportsLimit = ExportsLimit::default(), "WEIR_LIMIT_EXPORTS";
    /// Management requests per minute and personal API key; 0 for no limit [default: 480]
    rate_per_minute: u32 = 480, "WEIR_RATE_PER_MINUTE";
    /// Management requests per hour and personal API key; 0 for no limit [default: 4800]
    rate_per_hour: u32 = 4800, "WEIR_RATE_PER_HOUR";
    /// Memory of all questions about events together, at least 16MiB [default: 128MiB]
    query_memory: ByteSize = ByteSize(128 << 20), "WEIR_QUERY_MEMORY";
    /// Memory for answers to questions that are given again [default: 4MiB]
    query_cache: ByteSize = ByteSize(4 << 20), "WEIR_QUERY_CACHE";
    /// Seconds that a question may take, 5 to 300 [default: 30]
    query_seconds: u64 = 30, "WEIR_QUERY_SECONDS";
    /// Questions that are answered at a time, 1 to 64; the others wait [default: 2]
    query_concurrency: u32 = 2, "WEIR_QUERY_CONCURRENCY";
    /// Open connections in total [default: 4096]
    max_connections: u32 = 4096, "WEIR_MAX_CONNECTIONS";
    /// Open connections per client network: one IPv4 address or an IPv6 /64 [default: 256]
    max_connections_per_network: u32 = 256, "WEIR_MAX_CONNECTIONS_PER_NETWORK";
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the settings file `{path}`")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML, has an unknown key or an unusable value.
    #[error("the settings file `{path}` is not usable: {detail}")]
    Unusable {
        /// Path of the file.
        path: PathBuf,
        /// The position and the problem.
        detail: String,
    },
    /// A setting has an impossible value, or two conflict.
    #[error("{0}")]
    Contradiction(&'static str),
}

impl Config {
    /// The settings of a command: `given` by flags and environment, the others from
    /// `file`, or from [`FILE`] if that exists.
    ///
    /// # Errors
    /// [`ConfigError`] with the reason.
    pub fn load(given: Settings, file: Option<&Path>) -> Result<Self, ConfigError> {
        let from_file = match file {
            Some(path) => read(path)?,
            None if Path::new(FILE).exists() => read(Path::new(FILE))?,
            None => Settings::default(),
        };
        given.over(from_file).checked()
    }

    fn checked(self) -> Result<Self, ConfigError> {
        if self.disk_low.0 > self.disk_high.0 {
            return Err(ConfigError::Contradiction("disk_low must not be above disk_high"));
        }
        if !(1..=1_000_000).contains(&self.seal_events) {
            return Err(ConfigError::Contradiction("seal_events must be from 1 to 1000000"));
        }
        if self.seal_seconds == 0 {
            return Err(ConfigError::Contradiction("seal_seconds must be at least 1"));
        }
        if let Some(fault) = self.segment_bucket().and_then(|bucket| bucket.access.fault()) {
            return Err(ConfigError::Contradiction(fault));
        }
        if !(2..=1000).contains(&self.store_connections) {
            return Err(ConfigError::Contradiction("store_connections must be from 2 to 1000"));
        }
        if let Some(fault) = self.fault_of_questions() {
            return Err(ConfigError::Contradiction(fault));
        }
        if let Some(fault) = self.fault_of_connections() {
            return Err(ConfigError::Contradiction(fault));
        }
        if let Some(fault) = self.fault_of_backups() {
            return Err(ConfigError::Contradiction(fault));
        }
        Ok(self)
    }

    /// Settings with which no question could be answered.
    fn fault_of_questions(&self) -> Option<&'static str> {
        if self.query_memory.0 < 16 << 20 {
            return Some("query_memory must be at least 16MiB");
        }
        if !(5..=300).contains(&self.query_seconds) {
            return Some("query_seconds must be from 5 to 300");
        }
        if !(1..=64).contains(&self.query_concurrency) {
            return Some("query_concurrency must be from 1 to 64");
        }
        None
    }

    /// Settings with which the server could never make a backup.
    fn fault_of_backups(&self) -> Option<&'static str> {
        let to = self.backup_to.to_string_lossy();
        if to.is_empty() {
            return None;
        }
        if to.contains("://") {
            if to.parse::<BucketLocation>().is_err() {
                return Some("backup_to must be a directory or s3://bucket/prefix");
            }
            if let Some(fault) = self.backup_access().fault() {
                return Some(fault);
            }
        }
        match self.store {
            StoreKind::RocksDb => None,
            StoreKind::Postgres(_) => {
                Some("backup_to needs a store with files; back the database up with its own tools")
            }
            StoreKind::Memory => {
                Some("backup_to needs a store with files, and this store is in memory")
            }
        }
    }

    /// Settings of connections that contradict each other.
    fn fault_of_connections(&self) -> Option<&'static str> {
        let (certificate, key) = (&self.tls_certificate, &self.tls_key);
        let has_files = !certificate.as_os_str().is_empty();
        if has_files == key.as_os_str().is_empty() {
            return Some("tls_certificate and tls_key need each other");
        }
        if has_files && !self.acme_domains.all().is_empty() {
            return Some("set either tls_certificate or acme_domains");
        }
        if self.serves_tls() && !self.public_url.is_https() {
            return Some(
                "with tls_certificate or acme_domains, set public_url to the address that \
                 people open, which begins with https://",
            );
        }
        if self.redirect_listen.0.is_some() && !self.serves_tls() {
            return Some("redirect_listen needs tls_certificate or acme_domains");
        }
        if self.proxy_protocol && self.trusted_proxies.all().is_empty() {
            return Some("proxy_protocol needs trusted_proxies");
        }
        if self.traces_parent && self.trusted_proxies.all().is_empty() {
            return Some("traces_parent needs trusted_proxies");
        }
        None
    }

    /// Whether the address of `listen` speaks https.
    pub fn serves_tls(&self) -> bool {
        !self.tls_certificate.as_os_str().is_empty() || !self.acme_domains.all().is_empty()
    }

    /// The value of `Strict-Transport-Security`, if answers have it (SEC-12).
    pub fn hsts(&self) -> Option<HeaderValue> {
        let is_sent = self.public_url.is_https() && self.hsts_seconds > 0;
        let value = is_sent.then(|| format!("max-age={}", self.hsts_seconds))?;
        HeaderValue::from_str(&value).ok()
    }

    /// The effective settings in the form of a settings file. Secrets, such as the
    /// password in `smtp_url`, are replaced by stars.
    ///
    /// # Errors
    /// When a path is not UTF-8 and cannot be written.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// When stored events are moved into files, and the time between two searches for them.
    pub fn sealing(&self) -> (SealBounds, Duration) {
        let bounds = SealBounds { events: self.seal_events, ..SealBounds::default() };
        (bounds, Duration::from_secs(self.seal_seconds))
    }

    /// The bucket of the files of events; `None`: they are in the data directory.
    pub fn segment_bucket(&self) -> Option<SegmentBucket> {
        let location = self.segments.0.clone()?;
        let access = Access {
            endpoint: self.segments_endpoint.origin(),
            region: self.segments_region.clone(),
            key: self.segments_access_key.clone(),
            secret: self.segments_secret_key.0.clone(),
        };
        Some(SegmentBucket { location, access, cache: self.segment_cache.0 })
    }

    /// How a bucket of backups is reached.
    pub fn backup_access(&self) -> Access {
        Access {
            endpoint: self.backup_endpoint.origin(),
            region: self.backup_region.clone(),
            key: self.backup_access_key.clone(),
            secret: self.backup_secret_key.0.clone(),
        }
    }

    /// The limits of organizations for which the operator has chosen no others.
    pub fn organization_limits(&self) -> LimitSet {
        LimitSet {
            events_per_month: self.limit_events_per_month.0,
            events_per_second: self.limit_events_per_second.0,
            disk_bytes: self.limit_disk.0,
            members: self.limit_members.0,
            exports: self.limit_exports.0,
        }
    }

    /// The thresholds of free disk space.
    pub fn disk_marks(&self) -> DiskMarks {
        DiskMarks { high: self.disk_high.0, low: self.disk_low.0 }
    }
}

fn read(path: &Path) -> Result<Settings, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| ConfigError::Unusable {
        path: path.to_owned(),
        detail: described(&text, &error),
    })
}

/// The message of an error and its position. The line itself may hold a secret.
fn described(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let Some(before) = before else { return error.message().to_owned() };
    let line = before.split('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

/// Reads a value of the file with the parser of the command line.
fn setting<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(i64),
        Share(f64),
        Flag(bool),
        List(Vec<String>),
    }
    let text = match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Number(number) => number.to_string(),
        Written::Share(share) => share.to_string(),
        Written::Flag(flag) => flag.to_string(),
        Written::List(items) => items.join(","),
    };
    text.parse().map(Some).map_err(D::Error::custom)
}

/// Writes a setting as the text that its `FromStr` reads.
macro_rules! written_as_text {
    ($($kind:ty),+) => {$(
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

written_as_text!(
    AcmeContact,
    AcmeDirectory,
    BackupInterval,
    HostNames,
    CapturePrefix,
    PublicUrl,
    StoreKind,
    LogFormat,
    OptionalAddress,
    TracesEndpoint,
    TracesHeaders,
    TraceShare,
    Networks,
    NameServers,
    ByteSize,
    SegmentLocation,
    SecretText,
    SignInProviders,
    EventsPerMonthLimit,
    EventsPerSecondLimit,
    DiskLimit,
    MembersLimit,
    ExportsLimit
);

#[cfg(test)]
mod tests;
