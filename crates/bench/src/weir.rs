//! A Weir service as operators run it: the binary, a data directory, settings from the
//! environment.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::client::Connection;
use crate::process::{Process, free_address};

/// Pause between two checks whether it is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The output of `weir setup --json`.
#[derive(Debug, Clone, Deserialize)]
pub struct Instance {
    /// The id of the organization.
    pub organization_id: String,
    /// The id of the project.
    pub project_id: i64,
    /// The project key, for sending events.
    pub project_api_key: String,
    /// A personal API key with all scopes.
    pub personal_api_key: String,
}

/// A data directory, and the settings of the binary.
#[derive(Debug, Clone)]
pub struct Weir {
    binary: PathBuf,
    directory: PathBuf,
    /// The address of the service, the same after all restarts.
    pub address: SocketAddr,
    /// The address of its metrics.
    pub metrics: SocketAddr,
    /// Further settings: names of environment variables and values.
    pub settings: Vec<(&'static str, String)>,
}

impl Weir {
    /// A service with its data and its log below `directory`.
    ///
    /// # Errors
    /// If there is no such binary or no free port.
    pub fn new(binary: &Path, directory: &Path) -> Result<Self> {
        let binary = fs::canonicalize(binary)
            .with_context(|| format!("there is no program {}", binary.display()))?;
        fs::create_dir_all(directory)?;
        Ok(Self {
            binary,
            directory: directory.to_owned(),
            address: free_address()?,
            metrics: free_address()?,
            settings: Vec::new(),
        })
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The file with the log lines of all runs.
    pub fn log(&self) -> PathBuf {
        self.directory.join("weir.log")
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(&self.binary);
        // Settings in the environment of this process must not reach the service; the
        // site of a development build is not a setting.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("WEIR_") && text != "WEIR_SITE" {
                command.env_remove(&name);
            }
        }
        command
            .args(arguments)
            .current_dir(&self.directory)
            .env("WEIR_LISTEN", self.address.to_string())
            .env("WEIR_METRICS_LISTEN", self.metrics.to_string())
            .env("WEIR_DATA", self.data())
            .env("WEIR_LOG", "warn,weir=info")
            .env("WEIR_LOG_FORMAT", "json")
            .env("WEIR_RATE_PER_MINUTE", "0")
            .env("WEIR_RATE_PER_HOUR", "0")
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        Ok(command)
    }

    /// Creates owner, organization, project and key.
    ///
    /// # Errors
    /// If the set-up fails or prints other output.
    pub fn set_up(&self) -> Result<Instance> {
        let mut command = self.command(&[
            "setup",
            "--email=owner@weir.example",
            "--name=Owner",
            "--organization=Bench",
            "--project=Bench",
            "--password-stdin",
            "--json",
        ])?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(b"correct horse battery staple 17\n")?;
        }
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "`weir setup` failed: {}", self.last_lines());
        serde_json::from_slice(&output.stdout).context("`weir setup --json` printed something else")
    }

    /// Moves all stored events into files; returns the time that it took.
    ///
    /// # Errors
    /// If `weir seal` fails.
    pub fn seal(&self) -> Result<Duration> {
        self.run(&["seal"])
    }

    /// Runs a command on the data directory; returns the time that it took.
    ///
    /// # Errors
    /// If the command fails.
    pub fn run(&self, arguments: &[&str]) -> Result<Duration> {
        let began = Instant::now();
        let status = self.command(arguments)?.status()?;
        ensure!(status.success(), "`weir {}` failed: {}", arguments.join(" "), self.last_lines());
        Ok(began.elapsed())
    }

    /// Starts a command on the data directory without waiting for its end.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn begin(&self, arguments: &[&str]) -> Result<Process> {
        Process::start(&mut self.command(arguments)?)
    }

    /// Checks the files of the data directory; returns the faults, or why the check did not
    /// end.
    ///
    /// # Errors
    /// If `weir check` cannot be started.
    pub fn check(&self) -> Result<Vec<String>> {
        let output = self.command(&["check"])?.stdout(Stdio::piped()).output()?;
        if output.status.success() {
            return Ok(Vec::new());
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let faults: Vec<String> = printed.lines().map(str::to_owned).collect();
        Ok(if faults.is_empty() { vec![self.last_lines()] } else { faults })
    }

    /// Starts the service without waiting for it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> Result<Process> {
        self.begin(&["serve"])
    }

    /// Waits until the service reports that it is ready.
    ///
    /// # Errors
    /// If it ends instead, or takes longer than `patience`.
    pub async fn wait_ready(&self, process: &mut Process, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !self.is_ready().await {
            if let Some(status) = process.ended()? {
                bail!("the service ended at its start ({status}): {}", self.last_lines());
            }
            if Instant::now() > deadline {
                bail!("the service is not ready after {patience:?}: {}", self.last_lines());
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Starts the service and waits until it is ready; returns the time that it took.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start_ready(&self, patience: Duration) -> Result<(Process, Duration)> {
        let began = Instant::now();
        let mut process = self.start()?;
        self.wait_ready(&mut process, patience).await?;
        Ok((process, began.elapsed()))
    }

    async fn is_ready(&self) -> bool {
        let Ok(mut connection) = Connection::open(self.address).await else { return false };
        let asked = connection.send(b"GET /_readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
        asked.is_ok_and(|answer| answer.status == 200)
    }

    /// The bytes of the log from `begin` on. The last line may be incomplete.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn log_from(&self, begin: u64) -> Result<Vec<u8>> {
        let mut file = File::open(self.log())?;
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The end of the log of the service, for messages.
    pub fn last_lines(&self) -> String {
        let mut text = String::new();
        let read = File::open(self.log()).and_then(|mut file| file.read_to_string(&mut text));
        if read.is_err() {
            return "it left no log".to_owned();
        }
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}
