//! S3, emulated by moto.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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

    /// Creates a bucket in the region us-east-1.
    pub async fn create_bucket(&self, name: &str) {
        self.ask("PUT", &format!("/{name}"), "").await;
    }

    /// Accepts known credentials only from now on. None are known.
    pub async fn check_credentials(&self) {
        self.ask("POST", "/moto-api/reset-auth", "0").await;
    }

    /// Sends a request that is not signed, which must succeed.
    async fn ask(&self, method: &str, path: &str, body: &str) {
        let (address, length) = (self.address(), body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains(" 200 "), "{answer}");
    }
}
