//! `weir domain`: commands on domains for the operator of the host. They work on the data
//! directory while no server runs.

use clap::Subcommand;
use weir_service::domains::Released;
use weir_service::mail::Mailing;
use weir_service::{Error as ServiceError, Services};

use crate::config::{Config, StoreKind};
use crate::serve::open_store;

/// Commands on domains.
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// Take a domain from the organization that has verified it, so that another one
    /// can verify it. Claims that are not verified hold nothing
    Release {
        /// Name of the domain
        name: String,
        /// Confirm that the domain is verified and its rules for signing in end
        #[arg(long)]
        verified_too: bool,
    },
}

/// Why a command on domains failed.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// A store in memory ends with its process.
    #[error("a store in memory cannot be worked on from outside")]
    InMemory,
    /// No organization has verified the domain.
    #[error("no organization has verified `{0}`, so there is nothing to release")]
    Unverified(String),
    /// The domain is verified, and the confirming flag is missing.
    #[error("`{0}` is verified; to release it all the same, add --verified-too")]
    Verified(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    /// The service failed.
    #[error("the domain was not released")]
    Service(#[source] ServiceError),
}

/// Runs a command and returns the line to print.
///
/// # Errors
/// [`DomainError`] with the reason.
pub async fn run(config: &Config, command: DomainCommand) -> Result<String, DomainError> {
    if config.store == StoreKind::Memory {
        return Err(DomainError::InMemory);
    }
    let DomainCommand::Release { name, verified_too } = command;
    let store = open_store(config).await?;
    let services = Services::offline(store.clone(), Mailing::new(false));
    let released = services.domains.release(&name, verified_too).await;
    store.close_at_end().await?;
    match released.map_err(DomainError::Service)? {
        Released::Yes => Ok(format!("Released {name}")),
        Released::Unverified => Err(DomainError::Unverified(name)),
        Released::Verified => Err(DomainError::Verified(name)),
    }
}
