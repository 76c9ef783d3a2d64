//! The command line. Its commands are stable: scripts rely on them.

use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand};
use weir_import::ImportError;
use weir_mcp::BridgeError;
use weir_model::Timestamp;
use weir_service::Clock;
use weir_service::identity::SetupInput;

use crate::backup::check::{self, CheckError, Checked};
use crate::backup::{self, BackupError, Which};
use crate::config::{Config, ConfigError, Settings};
use crate::demo::{self, DemoArguments, DemoError};
use crate::doctor::{self, DoctorError, Sources};
use crate::domains::{self, DomainCommand, DomainError};
use crate::log_tools::{self, LogCommand, LogToolError};
use crate::logs::{self, BadFilter};
use crate::master_key::{self, RotateError};
use crate::organizations::{self, OrganizationCommand, OrganizationError};
use crate::seal::{self, SealError};
use crate::serve::{self, ServeError};
use crate::setup::{self, SetupError, Summary};
use crate::traces::Traces;
use crate::upgrade::{self, UpgradeError};
use crate::users::{self, UserCommand, UserError};

/// The options of settings that cannot have every value, and may hold a secret.
const SECRET: [&str; 4] =
    ["--sign-in-providers ", "--smtp-url ", "--traces-endpoint ", "--traces-headers "];

/// Self-hosted product analytics: takes the events of your product and keeps them.
#[derive(Debug, Parser)]
#[command(name = "weir", version)]
pub struct Cli {
    /// Settings file [default: weir.toml, if it exists]
    #[arg(long, env = "WEIR_CONFIG", global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: AnyCommand,
}

#[derive(Debug, Subcommand)]
enum AnyCommand {
    #[command(flatten)]
    OfInstance(Command),
    /// Serve a temporary instance that is filled with a month of a made-up shop
    Demo(DemoArguments),
    /// Let a model ask questions: speak the Model Context Protocol on standard input and output, and pass requests to a host
    Mcp(weir_mcp::Arguments),
}

/// The commands that work with the settings of an instance.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service
    Serve,
    /// Create the first owner, organization, project and key of an empty instance
    Setup(SetupArguments),
    /// Print a link that sets up an empty instance in the browser
    SetupLink,
    /// Import history: send files of events to a host
    Import(weir_import::Arguments),
    /// Administer the domains of organizations, while no server runs
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Administer organizations, while no server runs
    #[command(subcommand)]
    Organization(OrganizationCommand),
    /// Administer users, while no server runs
    #[command(subcommand)]
    User(UserCommand),
    /// Inspect the ingest log, or apply its records again
    #[command(subcommand)]
    Log(LogCommand),
    /// Move all stored events into files that other programs can read, while no server runs
    Seal(SealArguments),
    /// Store a backup in a directory or a bucket; a server may run
    Backup(BackupArguments),
    /// Restore a backup to the data directory, which must not exist or be empty
    Restore(RestoreArguments),
    /// Check the data directory, or the backups in a directory or a bucket; a server may run; exits with 1 if there are faults
    Check(CheckArguments),
    /// Say what an upgrade of a data directory would do; a server may run; exits with 3 if a newer program wrote it, and with 4 if the disk has too little space
    Upgrade(UpgradeArguments),
    /// Print a report about the instance, secrets hidden; a server may run
    Doctor(DoctorArguments),
    /// Seal the stored secrets with a new master key, while no server runs
    RotateKey(RotateKeyArguments),
    /// Print the effective settings, secrets hidden
    Config,
}

#[derive(Debug, Args)]
struct SealArguments {
    /// Also write a snapshot of the persons of every project
    #[arg(long)]
    persons: bool,
}

#[derive(Debug, Args)]
struct BackupArguments {
    /// Directory of backups, created if it is missing, or s3://bucket/prefix with the settings backup_endpoint, backup_region, backup_access_key and backup_secret_key
    directory: PathBuf,
}

#[derive(Debug, Args)]
struct RestoreArguments {
    /// Directory of backups, or s3://bucket/prefix
    directory: PathBuf,
    /// Name of the backup [default: the newest]
    #[arg(long, value_name = "NAME")]
    backup: Option<String>,
    /// Take the newest backup that began at this time or before, such as 2026-06-01T10:00Z; without a zone it is UTC
    #[arg(long, value_name = "TIME", conflicts_with = "backup", value_parser = time)]
    at: Option<Timestamp>,
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// Directory of backups, or s3://bucket/prefix [default: the data directory is checked]
    directory: Option<PathBuf>,
    /// Name of the backup that is opened [default: the newest]
    #[arg(long, value_name = "NAME", requires = "directory")]
    backup: Option<String>,
}

#[derive(Debug, Args)]
struct UpgradeArguments {
    /// Change nothing; the next start of the server upgrades
    #[arg(long, required = true)]
    check: bool,
    /// Data directory [default: that of the settings]
    directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct DoctorArguments {
    /// Write the report to this new file [default: it is printed]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// File with log lines, whose last errors and warnings are in the report
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct RotateKeyArguments {
    /// File of the new key, created if it is missing [default: the new key replaces the present one]
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct SetupArguments {
    /// E-mail address of the owner
    #[arg(long)]
    email: String,
    /// First name of the owner
    #[arg(long)]
    name: String,
    /// Name of the organization
    #[arg(long)]
    organization: String,
    /// Name of the project
    #[arg(long)]
    project: String,
    /// Read the password of the owner from standard input
    #[arg(long, required = true)]
    password_stdin: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The log filter cannot be used.
    #[error(transparent)]
    Log(#[from] BadFilter),
    /// `serve` failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// `setup` or `setup-link` failed.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// `rotate-key` failed.
    #[error(transparent)]
    RotateKey(#[from] RotateError),
    /// `seal` failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// `backup` or `restore` failed.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// `check` failed, or found faults.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// `upgrade --check` failed, or an upgrade is not possible.
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    /// `doctor` failed.
    #[error(transparent)]
    Doctor(#[from] DoctorError),
    /// `demo` failed.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// `import` failed.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// `mcp` failed.
    #[error(transparent)]
    Mcp(#[from] BridgeError),
    /// A command on domains failed.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// A command on organizations failed.
    #[error(transparent)]
    Organization(#[from] OrganizationError),
    /// A command on users failed.
    #[error(transparent)]
    User(#[from] UserError),
    /// A command on the ingest log failed.
    #[error(transparent)]
    LogTools(#[from] LogToolError),
    /// The settings cannot be written as text.
    #[error("the settings cannot be printed")]
    Unprintable(#[from] toml::ser::Error),
    /// Standard input or output failed.
    #[error("standard input or output failed")]
    Stream(#[from] std::io::Error),
}

impl CommandError {
    /// The exit code of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Upgrade(error) => error.exit_code(),
            _ => 1,
        }
    }
}

impl Cli {
    /// Reads the arguments of the program, and variables of its environment.
    ///
    /// # Errors
    /// If they cannot be read, or ask for help. The error is often printed to a log, so it
    /// does not show a value that may hold a secret (SEC-40).
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(arguments).map_err(|mut error| {
            let is_secret = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(option)) => {
                    SECRET.iter().any(|secret| option.starts_with(secret))
                }
                _ => false,
            };
            if is_secret {
                let stars = ContextValue::String("***".to_owned());
                error.insert(ContextKind::InvalidValue, stars);
            }
            error
        })
    }

    /// Runs the command.
    ///
    /// # Errors
    /// [`CommandError`] with the reason.
    pub async fn run(self) -> Result<(), CommandError> {
        let Self { config: file, settings: given, command } = self;
        let command = match command {
            AnyCommand::OfInstance(command) => command,
            AnyCommand::Demo(arguments) => return Ok(demo::run(given, arguments).await?),
            AnyCommand::Mcp(arguments) => return Ok(weir_mcp::run(&arguments).await?),
        };
        let named = file.clone();
        let settings = move || Config::load(given.clone(), file.as_deref());
        let config = settings()?;
        let traces = matches!(command, Command::Serve).then(|| Traces::of(&config)).flatten();
        logs::start(&config, traces.as_ref().map(Traces::recorder))?;
        match command {
            Command::Serve => serve::run(config, settings, traces).await?,
            Command::Import(arguments) => {
                weir_import::run(&arguments, Clock::default().now()).await?;
            }
            Command::Domain(command) => print(&domains::run(&config, command).await?)?,
            Command::Organization(command) => print(&organizations::run(&config, command).await?)?,
            Command::User(command) => print(&users::run(&config, command).await?)?,
            Command::Log(command) => log_tools::run(&config, command).await?,
            Command::RotateKey(arguments) => {
                print(&master_key::rotate(&config, arguments.new_key_file).await?)?;
            }
            Command::Seal(arguments) => print(&seal::run(&config, arguments.persons).await?)?,
            Command::Backup(BackupArguments { directory }) => {
                let now = Clock::default().now();
                print(&backup::back_up(&config, directory, now).await?)?;
            }
            Command::Restore(arguments) => {
                let which = arguments.which();
                print(&backup::restore(&config, arguments.directory, which).await?)?;
            }
            Command::Check(CheckArguments { directory, backup }) => {
                let Checked { faults, failure } = check::run(&config, directory, backup).await;
                faults.iter().try_for_each(|fault| print(&fault.to_string()))?;
                if let Some(failure) = failure {
                    return Err(failure.into());
                }
                if !faults.is_empty() {
                    return Err(CheckError::Faulty(faults.len()).into());
                }
                print("No faults found")?;
            }
            Command::Upgrade(UpgradeArguments { directory, .. }) => {
                let upgrade::Checked { text, failure } = upgrade::check(&config, directory).await?;
                print(&text)?;
                if let Some(failure) = failure {
                    return Err(failure.into());
                }
            }
            Command::Doctor(DoctorArguments { output, log_file }) => {
                let sources =
                    Sources { settings_file: named.as_deref(), log_file: log_file.as_deref() };
                let report = doctor::report(&config, sources).await;
                match output {
                    Some(file) => {
                        doctor::write(&file, &report)?;
                        print(&format!("The report is in {}", file.display()))?;
                    }
                    None => print(report.trim_end())?,
                }
            }
            Command::Config => print(config.to_toml()?.trim_end())?,
            Command::SetupLink => print(&setup::new_link(&config).await?)?,
            Command::Setup(arguments) => {
                let json = arguments.json;
                let input = arguments.with_password(read_password()?);
                let summary = setup::set_up(&config, input).await?;
                print(&reason(&summary, json))?;
            }
        }
        Ok(())
    }
}

impl RestoreArguments {
    fn which(&self) -> Which {
        match (&self.backup, self.at) {
            (Some(name), _) => Which::Named(name.clone()),
            (None, Some(time)) => Which::At(time),
            (None, None) => Which::Newest,
        }
    }
}

fn time(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse_lenient(text).ok_or("expected a date and a time, such as 2026-06-01T10:00Z")
}

impl SetupArguments {
    fn with_password(self, password: String) -> SetupInput {
        SetupInput {
            first_name: self.name,
            email: self.email,
            password,
            organization: self.organization,
            project: self.project,
        }
    }
}

/// One line of standard input, without the end of the line.
fn read_password() -> std::io::Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn reason(summary: &Summary, json: bool) -> String {
    if json {
        // Ids and keys are texts and numbers, so this cannot fail.
        return serde_json::to_string(summary).unwrap_or_default();
    }
    format!(
        "Organization  {}\nProject       {}\nProject key   {}\nPersonal key  {}\nUser          {}",
        summary.organization_id,
        summary.project_id,
        summary.project_api_key,
        summary.personal_api_key,
        summary.user_uuid,
    )
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory as _;

    use super::{Cli, SECRET};

    #[test]
    fn the_declaration_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn values_that_may_be_secret_are_in_no_error() {
        let fault = |option: &str, value: &str| {
            let arguments = ["weir", option, value, "serve"].map(OsString::from);
            Cli::read(arguments).unwrap_err().to_string()
        };
        for option in SECRET.map(str::trim_end) {
            let shown = fault(option, "name: hushed");
            assert!(shown.contains(option) && !shown.contains("hushed"), "{shown}");
        }
        let shown = fault("--traces-share", "much");
        assert!(shown.contains("'much' for '--traces-share"), "{shown}");
    }
}
