//! Pebble, a certificate authority for tests of ACME. It checks names over real connections.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::{Process, free_address};

const PROGRAM: &str = "/usr/bin/pebble";
/// Sets the environment of the program.
const ENVIRONMENT: &str = "/usr/bin/env";

/// A certificate authority. Its keys are made at each start.
pub struct Pebble {
    address: SocketAddr,
    management: SocketAddr,
    _process: Process,
    _directory: TempDir,
}

impl Pebble {
    /// Starts the authority. It asks this name server for the names that it checks, and
    /// connects to these ports for checks over HTTP and TLS. The certificate and key are those
    /// of its own server, as PEM.
    pub async fn start(
        names: SocketAddr,
        http_port: u16,
        tls_port: u16,
        (certificate, key): (&str, &str),
    ) -> Self {
        assert!(Path::new(PROGRAM).exists(), "{PROGRAM} is missing: run scripts/setup test");
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let (address, management) = (free_address(), free_address());
        fs::write(path("certificate.pem"), certificate).unwrap();
        fs::write(path("key.pem"), key).unwrap();
        let settings = json!({"pebble": {
            "listenAddress": address.to_string(),
            "managementListenAddress": management.to_string(),
            "certificate": path("certificate.pem"),
            "privateKey": path("key.pem"),
            "httpPort": http_port,
            "tlsPort": tls_port,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
        }});
        fs::write(path("settings.json"), settings.to_string()).unwrap();
        let (settings, names) = (path("settings.json"), names.to_string());
        let arguments = [
            // Otherwise it waits up to 15 seconds before a check.
            "PEBBLE_VA_NOSLEEP=1",
            PROGRAM,
            "-config",
            settings.as_str(),
            "-dnsserver",
            names.as_str(),
        ];
        let mut process = Process::start(Path::new(ENVIRONMENT), &arguments, directory.path());
        process.listens(management).await;
        process.listens(address).await;
        Self { address, management, _process: process, _directory: directory }
    }

    /// The address of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// The address that answers `/roots/0` with its root certificate, over TLS.
    pub fn management(&self) -> SocketAddr {
        self.management
    }
}
