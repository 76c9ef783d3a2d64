//! An issuer of OpenID Connect: npm's `oidc-provider`, with one user who signs in without a
//! form.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Server, free_address};

/// The issuer. Ends when dropped.
pub struct OidcProvider(Server);

impl OidcProvider {
    /// The id of the client.
    pub const CLIENT_ID: &str = "weir-client";
    /// The secret of the client. It needs escapes.
    pub const CLIENT_SECRET: &str = "hidden/client+secret%";

    /// Starts the issuer, which signs with this algorithm. `options` are those of
    /// `end2end/issuer.mjs`.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(redirect_uri: &str, algorithm: &str, options: &[&str]) -> Self {
        let address = free_address();
        let listen = address.to_string();
        let program =
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../end2end/issuer.mjs"));
        let mut arguments =
            vec!["--listen", &listen, "--redirect-uri", redirect_uri, "--algorithm", algorithm];
        arguments.extend(options);
        Self(Server::start(&program, &arguments, address).await)
    }

    /// The address that the issuer listens at.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The issuer, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        self.0.url()
    }
}
