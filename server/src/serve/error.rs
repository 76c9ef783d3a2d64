//! Why the service does not start, or ends.
//!
//! What belongs here: the reasons, as the command line says them. What does not: the reasons of
//! each part, which are in its module.

use weir_egress::BuildError;
use weir_ingest::location::LocationError;
use weir_service::sealing::KeyError;

use super::CertificateError;

/// Why the service did not start, or why it ended without a stop signal.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`; choose another address with --{setting}")]
    Bind {
        /// The address of the setting.
        address: String,
        /// Name of the setting.
        setting: &'static str,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    /// The ingest log cannot be used.
    #[error(transparent)]
    Ingest(#[from] weir_ingest::StartError),
    /// The location database cannot be used.
    #[error(transparent)]
    Locations(#[from] LocationError),
    /// The mail settings cannot be used.
    #[error(transparent)]
    Mail(#[from] weir_mail::SetUpError),
    /// The stored secrets cannot be opened.
    #[error(transparent)]
    MasterKey(#[from] KeyError),
    /// The state of the instance cannot be read.
    #[error("cannot read the state of the instance")]
    Instance(#[from] weir_service::Error),
    /// Connections to addresses that members enter cannot be set up.
    #[error(transparent)]
    Egress(#[from] BuildError),
    /// The process cannot receive signals.
    #[error("the process cannot be set up")]
    Process(#[from] std::io::Error),
    /// The engine or the ingest log failed while serving.
    #[error("storage failed while serving; what was acknowledged is safe, start again")]
    StorageFailed,
}
