//! Snowflake, emulated by fakesnow.

use std::net::SocketAddr;

use super::{Server, free_address, python_program};

/// A server of Snowflake's protocol without databases. It accepts any credentials.
pub struct Fakesnow(Server);

impl Fakesnow {
    /// Starts the emulator.
    pub async fn start() -> Self {
        let address = free_address();
        let port = address.port().to_string();
        let arguments = ["-s", "-p", &port];
        Self(Server::start(&python_program("fakesnow"), &arguments, address).await)
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
