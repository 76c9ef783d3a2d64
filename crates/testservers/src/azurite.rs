//! Azure Blob Storage, emulated by azurite.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Server, free_address};

/// The account name and key of every azurite. Its documentation contains them.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server of Azure Blob Storage without containers.
pub struct Azurite(Server);

impl Azurite {
    /// Starts the emulator.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        let address = free_address();
        let program = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../end2end/node_modules/azurite/dist/src/blob/main.js"
        ));
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let arguments = [
            "--blobHost",
            &host,
            "--blobPort",
            &port,
            "--silent",
            "--inMemoryPersistence",
            "--skipApiVersionCheck",
            "--disableTelemetry",
        ];
        // The first line of the script looks for `node` in the path.
        Self(Server::start(&program, &arguments, address).await)
    }

    /// The address that the emulator listens at.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The value of the setting `connection_string`.
    pub fn connection_string(&self) -> String {
        Self::connection_string_at(self.0.address)
    }

    /// The value of the setting `connection_string` for another address, such as that
    /// of a proxy.
    pub fn connection_string_at(address: SocketAddr) -> String {
        format!(
            "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};\
             BlobEndpoint=http://{address}/{ACCOUNT};"
        )
    }
}
