//! S3, as moto plays it.

use std::net::SocketAddr;

use super::{Process, free_address, python_program};

/// A server of S3 without buckets, that takes any credentials.
pub struct Moto {
    address: SocketAddr,
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Moto {
    /// Starts it.
    pub async fn start() -> Self {
        let address = free_address();
        let directory = tempfile::tempdir().unwrap();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let mut process = Process::start(
            &python_program("moto_server"),
            &["-H", &host, "-p", &port],
            directory.path(),
        );
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
