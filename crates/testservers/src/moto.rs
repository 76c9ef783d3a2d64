//! S3, emulated by moto.

use std::net::SocketAddr;

use super::{Server, free_address, python_program};

/// A server of S3 without buckets. It accepts any credentials.
pub struct Moto(Server);

impl Moto {
    /// Starts the emulator.
    pub async fn start() -> Self {
        let address = free_address();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let arguments = ["-H", &host, "-p", &port];
        Self(Server::start(&python_program("moto_server"), &arguments, address).await)
    }

    /// The address that the emulator listens at.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        self.0.url()
    }
}
