//! Third-party servers that a test starts on a free port. They end when the test ends,
//! also when it is killed. `scripts/setup test` installs them.
//!
//! What belongs here: starting a server, waiting until it answers or until another
//! condition holds, ending it. What does not: what a test does with it. One file per
//! server, and one for the devices of users. Only tests and benchmarks depend on this
//! crate.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test support fails by panicking")]

mod authenticator;
mod azurite;
mod fakesnow;
mod google_storage;
mod holding_proxy;
mod moto;
mod npm;
mod oidc_provider;
mod pebble;
mod postgres;
mod python;
mod receiver;
mod redshift_copy;
mod stub;
mod switched_proxy;
mod wait;

pub use authenticator::SoftPasskey;
pub use azurite::Azurite;
pub use fakesnow::Fakesnow;
pub use google_storage::GoogleStorage;
pub use holding_proxy::{Hold, HoldingProxy};
pub use moto::Moto;
pub use npm::Npm;
pub use oidc_provider::OidcProvider;
pub use pebble::Pebble;
pub use postgres::Postgres;
pub use python::python;
pub use receiver::{Receiver, Reception, Receptions};
pub use redshift_copy::RedshiftCopy;
pub use stub::{StandIn, Stub, StubAnswer, StubRequest};
pub use switched_proxy::SwitchedProxy;
pub use wait::{Look, slow_work, until};

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port of these servers, and their number. The ports are below the range that
/// the system chooses from. So no other server of the test program gets the port before
/// the server listens or while it is down.
const FIRST_PORT: u32 = 20_000;
const PORTS: u32 = 12_000;

/// Ends the server when the test program has ended, also when it was killed: then its end of
/// the pipe is closed. No other code removes the directory in that case.
const GUARD: &str = r#"
    directory=$1; shift
    "$@" </dev/null & server=$!
    cat >/dev/null; kill -KILL $server; rm -rf -- "$directory"
"#;

/// A server in a process of its own. Ends when dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program. Its output goes to a file below this directory, which is removed
    /// if the test program ends before the server does.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(program: &Path, arguments: &[&str], directory: &Path) -> Self {
        assert!(program.exists(), "{} is missing: run scripts/setup test", program.display());
        let name = program.file_name().unwrap().to_string_lossy().into_owned();
        let log = directory.join(format!("{name}.log"));
        let said = File::create(&log).unwrap();
        let mut bash = Command::new("bash");
        bash.args(["-c", GUARD, "guard"])
            .arg(directory)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .process_group(0);
        Self { child: bash.spawn().unwrap(), log }
    }

    /// Waits until a server listens at the address.
    ///
    /// # Panics
    /// When the process ends before, or no server listens in time.
    pub async fn listens(&mut self, address: SocketAddr) {
        until(async || {
            let said = || std::fs::read_to_string(&self.log).unwrap_or_default();
            assert!(self.child.try_wait().unwrap().is_none(), "the server ended: {}", said());
            TcpStream::connect(address).map_err(|error| format!("{address}: {error}: {}", said()))
        })
        .await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        // The process may have ended already.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A process that listens at one address, with a data directory. Ends when dropped.
struct Server {
    address: SocketAddr,
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Server {
    /// Starts a program whose arguments contain the address to listen at.
    async fn start(program: &Path, arguments: &[&str], address: SocketAddr) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Process::start(program, arguments, directory.path());
        process.listens(address).await;
        Self { address, _process: process, _directory: directory }
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// An address of this machine that no program listens at. Each call returns another one.
pub fn free_address() -> SocketAddr {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin with another port.
    let first = std::process::id().wrapping_mul(101);
    loop {
        let number = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = FIRST_PORT + number % PORTS;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap()));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// The directory where `scripts/setup` puts the tools of this project.
fn tools() -> PathBuf {
    if let Some(tools) = std::env::var_os("WEIR_TOOLS") {
        return tools.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("a home directory")).join(".cache")
    });
    cache.join("weir/tools")
}

/// A program of the Python environment of the export tests.
fn python_program(name: &str) -> PathBuf {
    program_of("exports", name)
}

/// The Python of an environment that `scripts/setup` may have installed.
pub fn python_of(environment: &str) -> PathBuf {
    program_of(environment, "python")
}

fn program_of(environment: &str, name: &str) -> PathBuf {
    tools().join(environment).join("bin").join(name)
}
