//! PostgreSQL 15 with a data directory of its own. It refuses to run as root, so under
//! root it runs as the user that comes with its package.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Process, free_address};

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Changes the user without a process in between.
const AS_USER: &str = "/usr/bin/setpriv";
const USER: &str = "postgres";
/// The parts of Redshift that PostgreSQL lacks, and Redshift's meaning of a backslash.
const LIKE_REDSHIFT: &str = "CREATE DOMAIN super AS jsonb; \
    CREATE FUNCTION json_parse(text) RETURNS super LANGUAGE sql AS 'SELECT $1::jsonb::super'; \
    ALTER DATABASE postgres SET standard_conforming_strings = off; \
    ALTER DATABASE postgres SET escape_string_warning = off";

/// A database server. Its superuser is `weir` with the password `correct horse`.
pub struct Postgres {
    address: SocketAddr,
    directory: tempfile::TempDir,
    process: Option<Process>,
    kind: Kind,
}

/// What a server is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    WithTls,
    Durable,
}

impl Postgres {
    /// Starts the server without TLS.
    pub async fn start() -> Self {
        Self::started(Kind::Plain).await
    }

    /// Starts the server with a self-signed certificate.
    pub async fn with_tls() -> Self {
        Self::started(Kind::WithTls).await
    }

    /// Starts a server that keeps what it acknowledges: it syncs its files, and its pages
    /// have checksums.
    pub async fn durable() -> Self {
        Self::started(Kind::Durable).await
    }

    /// Starts the server without TLS, and makes it accept the SQL of Redshift that
    /// exports use.
    pub async fn like_redshift() -> Self {
        let server = Self::started(Kind::Plain).await;
        // The answer holds nothing of interest; `ask` fails if the statement fails.
        let _ = server.ask(LIKE_REDSHIFT);
        server
    }

    async fn started(kind: Kind) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The other user must be able to enter the directory.
        let passable = fs::Permissions::from_mode(0o711);
        fs::set_permissions(directory.path(), passable).unwrap();
        let data = directory.path().join("data");
        let password = directory.path().join("password");
        fs::write(&password, "correct horse").unwrap();
        fs::create_dir(&data).unwrap();
        give(&[data.as_path(), password.as_path()]);
        let data_text = data.to_str().unwrap();
        call(
            &program_of("initdb"),
            &[
                "--pgdata",
                data_text,
                "--username=weir",
                "--pwfile",
                password.to_str().unwrap(),
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
                match kind {
                    Kind::Durable => "--data-checksums",
                    Kind::Plain | Kind::WithTls => "--no-instructions",
                },
            ],
        );
        if kind == Kind::WithTls {
            sign(&data);
        }
        let mut server = Self { address: free_address(), directory, process: None, kind };
        server.go_on().await;
        server
    }

    /// Kills the server immediately, as a crash would.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts the server again with its stored data, at the same address.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn go_on(&mut self) {
        let data = self.directory.path().join("data");
        // A killed server leaves its lock file.
        let _ = fs::remove_file(data.join("postmaster.pid"));
        let port = self.address.port().to_string();
        let tls = if self.kind == Kind::WithTls { "ssl=on" } else { "ssl=off" };
        let fsync = if self.kind == Kind::Durable { "fsync=on" } else { "fsync=off" };
        let mut arguments = vec!["-D", data.to_str().unwrap(), "-p", &port, "-c", tls];
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            fsync,
            "logging_collector=off",
            "max_connections=60",
        ] {
            arguments.extend(["-c", setting]);
        }
        let (program, arguments) = as_user(&program_of("postgres"), &arguments);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut process = Process::start(&program, &arguments, self.directory.path());
        process.listens(self.address).await;
        // The server listens before it is ready.
        let is_ready = || {
            let mut asked = Command::new(program_of("pg_isready"));
            asked.args(["-q", "-h", "127.0.0.1", "-p", &port]).status().unwrap().success()
        };
        crate::until(async || is_ready()).await;
        self.process = Some(process);
    }

    /// The address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of a database of this server, with the credentials of the superuser.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://weir:correct%20horse@{}/{database}", self.address)
    }

    /// Runs a statement and returns its rows as lines, with `|` between the columns.
    ///
    /// # Panics
    /// When the statement fails, with the server's error.
    pub fn ask(&self, statement: &str) -> Vec<String> {
        let port = self.address.port().to_string();
        let mut psql = Command::new(program_of("psql"));
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "-h", "127.0.0.1", "-p", &port])
            .args(["-U", "weir", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-c", statement])
            .env("PGPASSWORD", "correct horse");
        let done = psql.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

fn program_of(name: &str) -> PathBuf {
    let program = Path::new(PROGRAMS).join(name);
    assert!(program.exists(), "{} is missing: run scripts/setup test", program.display());
    program
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The command that runs a program as a user that the server accepts.
fn as_user(program: &Path, arguments: &[&str]) -> (PathBuf, Vec<String>) {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    if !is_root() {
        return (program.to_owned(), arguments.collect());
    }
    let user = ["--reuid", USER, "--regid", USER, "--clear-groups", "--"].map(str::to_owned);
    let program = program.to_str().unwrap().to_owned();
    (AS_USER.into(), user.into_iter().chain([program]).chain(arguments).collect())
}

fn call(program: &Path, arguments: &[&str]) {
    let (program, arguments) = as_user(program, arguments);
    let done = Command::new(program).args(arguments).env("LC_ALL", "C").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Makes the server's user the owner of files.
fn give(files: &[&Path]) {
    if is_root() {
        let owner = format!("{USER}:{USER}");
        let done = Command::new("chown").arg(owner).args(files).status().unwrap();
        assert!(done.success(), "chown failed");
    }
}

fn sign(data: &Path) {
    let (key, certificate) = (data.join("server.key"), data.join("server.crt"));
    call(
        Path::new("/usr/bin/openssl"),
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-keyout",
            key.to_str().unwrap(),
            "-out",
            certificate.to_str().unwrap(),
        ],
    );
}
