//! `weir demo`: a temporary instance with a month of a made-up shop (DUR-27).
//!
//! A child process fills a new data directory, with a clock that runs through the month
//! (`fill`). Then this process serves it with the clock of the system, and removes it at the
//! end. Two processes, because the data directory of a store stays locked until its process
//! ends.
//!
//! What belongs here: the temporary directory, and what is printed. What does not: what
//! happens in the shop (`weir-demo`).

mod fill;

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::signal::unix::SignalKind;
use weir_demo::DAYS_MAX;

use crate::config::{Config, OptionalAddress, Settings};
use crate::logs::{self, BadFilter};
use crate::serve::{self, Options, ServeError, Server, StopSignals, reachable, say};
use crate::setup::SetupError;

/// The directory for files of the batch export, in the data directory.
const EXPORTS: &str = "exports";
/// Longest output of the child, bytes.
const LONGEST_OUTPUT: u64 = 64 << 10;

/// Arguments of `weir demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Days that the demo covers, 1 to 30
    #[arg(
        long,
        default_value_t = DAYS_MAX,
        value_parser = clap::value_parser!(u8).range(1..=i64::from(DAYS_MAX))
    )]
    days: u8,
    /// Fill this new data directory, and do not serve it
    #[arg(long, value_name = "DIRECTORY")]
    into: Option<PathBuf>,
    /// Print one JSON object about the filled directory
    #[arg(long, requires = "into")]
    json: bool,
}

/// Why the demo ended.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The log filter cannot be used.
    #[error(transparent)]
    Log(#[from] BadFilter),
    /// The directory to fill has files.
    #[error("`{0}` is not an empty directory: the demo fills a new one")]
    NotEmpty(PathBuf),
    /// The temporary directory cannot be made or removed.
    #[error("the temporary directory cannot be {action}")]
    Directory {
        /// What was done.
        action: &'static str,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A process, or its input or output, failed.
    #[error("the demo cannot run")]
    Process(#[from] std::io::Error),
    /// The child failed. It has printed why.
    #[error("the demo was not filled")]
    Unfilled,
    /// The child, or a request, has an answer of another form.
    #[error("an answer of the demo cannot be read")]
    Unreadable(#[from] serde_json::Error),
    /// The service refused a request of the demo.
    #[error("{request} was answered with {status}: {answer}")]
    Refused {
        /// Method and path.
        request: String,
        /// The status.
        status: StatusCode,
        /// The body.
        answer: String,
    },
    /// Something did not happen in time.
    #[error("{0} did not happen in time")]
    TooLate(&'static str),
    /// The instance was not set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The instance cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// What the child has filled, as it prints it.
#[derive(Debug, Serialize, Deserialize)]
struct Filled {
    /// Address of the owner.
    email: String,
    /// Password of the owner and of the others.
    password: String,
    project_id: i64,
    project_api_key: String,
    /// A personal API key of the owner with all scopes.
    personal_api_key: String,
    /// Number of sent events.
    events: usize,
}

/// Runs the command. Of the settings only those count that name no data of other instances.
/// No settings file is read.
///
/// # Errors
/// [`DemoError`] with the reason.
pub async fn run(given: Settings, arguments: DemoArguments) -> Result<(), DemoError> {
    match arguments.into {
        Some(directory) => fill_only(given, directory, arguments.days, arguments.json).await,
        None => serve_month(given, arguments.days).await,
    }
}

/// The settings of an instance of the demo.
fn config(given: Settings, data: &Path) -> Config {
    let Settings { listen, public_url, log, log_format, metrics_listen, .. } = given;
    let own = Settings {
        listen: listen.or_else(|| Some("127.0.0.1:0".to_owned())),
        public_url,
        log: log.or_else(|| Some("warn".to_owned())),
        log_format,
        metrics_listen: metrics_listen.or(Some(OptionalAddress::OFF)),
        data: Some(data.to_owned()),
        local_exports: Some(data.join(EXPORTS)),
        ..Settings::default()
    };
    own.over(Settings::default())
}

async fn fill_only(
    given: Settings,
    directory: PathBuf,
    days: u8,
    json: bool,
) -> Result<(), DemoError> {
    // Nothing listens for others, and no client uses its public address.
    let given = Settings { listen: None, metrics_listen: None, public_url: None, ..given };
    let config = config(given, &directory);
    logs::start(&config, None)?;
    let is_empty = match std::fs::read_dir(&directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(error.into()),
    };
    if !is_empty {
        return Err(DemoError::NotEmpty(directory));
    }
    let filled = fill::fill(config, days).await?;
    match json {
        true => say(&serde_json::to_string(&filled)?)?,
        false => {
            say(&format!("Filled {} with {} events", directory.display(), filled.events))?;
            say_keys(&filled)?;
        }
    }
    Ok(())
}

async fn serve_month(given: Settings, days: u8) -> Result<(), DemoError> {
    let mut signals = StopSignals::with_hangup()?;
    let folder = tempfile::Builder::new()
        .prefix("weir-demo.")
        .tempdir()
        .map_err(|source| DemoError::Directory { action: "made", source })?;
    let config = config(given, &folder.path().join("data"));
    logs::start(&config, None)?;
    let served = fill_and_serve(config, days, &mut signals).await;
    let removed = folder.close();
    served?;
    removed.map_err(|source| DemoError::Directory { action: "removed", source })
}

async fn fill_and_serve(
    config: Config,
    days: u8,
    signals: &mut StopSignals,
) -> Result<(), DemoError> {
    // An address that cannot be used is noticed before the work.
    drop(serve::bind(&config.listen, "listen").await?);
    let Some(filled) = fill_in_child(&config, days, signals).await? else { return Ok(()) };
    // A stop signal that arrives meanwhile is seen after it.
    let server = Server::start(config, Options::default()).await?;
    say(&format!("Listening on http://{}", reachable(server.address)))?;
    say_keys(&filled)?;
    say("Everything is removed when the demo ends: press Ctrl+C")?;
    serve::watch(&server, signals).await?;
    Ok(serve::stop(server, None, signals).await?)
}

fn say_keys(filled: &Filled) -> std::io::Result<()> {
    say(&format!("Sign in as {} with the password {}", filled.email, filled.password))?;
    say(&format!("The key of the project is {}", filled.project_api_key))
}

/// Fills the data directory in a child process. `None`: a stop signal arrived.
async fn fill_in_child(
    config: &Config,
    days: u8,
    signals: &mut StopSignals,
) -> Result<Option<Filled>, DemoError> {
    let days = days.to_string();
    // This program, even if its file was replaced since the start.
    let mut child = Command::new("/proc/self/exe")
        .args([OsStr::new("demo"), OsStr::new("--json"), OsStr::new("--days"), OsStr::new(&days)])
        .args([OsStr::new("--log"), OsStr::new(&config.log)])
        .args([OsStr::new("--into"), config.data.as_os_str()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut output = String::new();
    if let Some(out) = child.stdout.take() {
        let mut out = out.take(LONGEST_OUTPUT);
        tokio::select! {
            read = out.read_to_string(&mut output) => {
                read?;
            }
            () = signals.stop() => {
                child.kill().await?;
                return Ok(None);
            }
        }
    }
    let status = child.wait().await?;
    if status.success() {
        return Ok(Some(serde_json::from_str(&output)?));
    }
    // A terminal sends its signals to both processes, and the child may end first.
    let stops = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()];
    match stops.iter().any(|stop| status.signal() == Some(stop.as_raw_value())) {
        true => Ok(None),
        false => Err(DemoError::Unfilled),
    }
}

/// A password that no other instance of the demo has.
fn password() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    let parts = random.as_bytes().chunks(5).take(4);
    let parts: Vec<_> = parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    parts.join("-")
}
