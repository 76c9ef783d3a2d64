//! The XML interface of Google Cloud Storage, as far as it is that of S3: moto without a
//! check of signatures. The emulators of Google Cloud Storage support neither uploads in
//! parts nor deletion over this interface.

use std::net::SocketAddr;

use super::{Server, free_address, python_program};

/// Google's tokens are not signatures of S3, so moto must not check them.
const SCRIPT: &str = "
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
moto = DomainDispatcherApplication(create_backend_app)
def anyone(environ, start):
    environ['HTTP_AUTHORIZATION'] = (
        'AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, '
        'SignedHeaders=host, Signature=b')
    return moto(environ, start)
run_simple(sys.argv[1], int(sys.argv[2]), anyone, threaded=True)
";

/// A server of Google Cloud Storage without buckets.
pub struct GoogleStorage(Server);

impl GoogleStorage {
    /// The value of the setting `service_account_key`. It contains no key to sign with.
    pub const KEY: &'static str =
        r#"{"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": true}"#;

    /// Starts the emulator.
    pub async fn start() -> Self {
        let address = free_address();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let arguments = ["-c", SCRIPT, &host, &port];
        Self(Server::start(&python_program("python"), &arguments, address).await)
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
