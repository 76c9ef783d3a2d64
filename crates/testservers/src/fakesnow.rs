//! Snowflake, as fakesnow plays it.

use std::net::SocketAddr;

use super::{Process, free_address, python_program};

/// A server of Snowflake's protocol without databases, that takes any
/// credentials.
pub struct Fakesnow {
    address: SocketAddr,
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Fakesnow {
    /// Starts it.
    pub async fn start() -> Self {
        let address = free_address();
        let directory = tempfile::tempdir().unwrap();
        let port = address.port().to_string();
        let mut process =
            Process::start(&python_program("fakesnow"), &["-s", "-p", &port], directory.path());
        process.listens(address).await;
        Self { address, _process: process, _directory: directory }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:5000`
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}
