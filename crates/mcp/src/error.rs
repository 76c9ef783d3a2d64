//! Why the bridge cannot begin, or ends.

use std::io;

/// An error that ends `weir mcp`. A host that does not answer is none: the client gets an
/// answer that says so.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The address of the host cannot be used.
    #[error("`{url}` is not the address of a host: {detail}")]
    Address {
        /// The address.
        url: String,
        /// The fault.
        detail: String,
    },
    /// The key cannot be used.
    #[error("the variable WEIR_API_KEY has no usable key: {0}")]
    Key(&'static str),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
    /// Standard input or output failed.
    #[error("standard input or output failed")]
    Stream(#[from] io::Error),
}
