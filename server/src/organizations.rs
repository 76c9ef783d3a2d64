//! `weir organization`: commands on organizations for the operator of the host. They work
//! on the data directory while no server runs.

use clap::{Subcommand, ValueEnum};
use weir_model::OrganizationId;
use weir_model::plugins::PluginsAccess;
use weir_service::mail::Mailing;
use weir_service::{Error as ServiceError, Services};

use crate::config::{Config, StoreKind};
use crate::serve::open_store;

/// Commands on organizations.
#[derive(Debug, Subcommand)]
pub enum OrganizationCommand {
    /// Set what an organization may do with plugins
    PluginsAccess {
        /// Id of the organization
        organization: OrganizationId,
        /// How much
        #[arg(value_enum)]
        access: Access,
    },
}

/// The permissions of an organization on plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Access {
    /// Nothing
    None,
    /// Configure visible plugins
    Config,
    /// Also install its own plugins
    Install,
    /// Also offer plugins to all organizations
    Root,
}

impl From<Access> for PluginsAccess {
    fn from(access: Access) -> Self {
        match access {
            Access::None => Self::None,
            Access::Config => Self::Config,
            Access::Install => Self::Install,
            Access::Root => Self::Root,
        }
    }
}

/// Why a command on organizations failed.
#[derive(Debug, thiserror::Error)]
pub enum OrganizationError {
    /// A store in memory ends with its process.
    #[error("a store in memory cannot be worked on from outside")]
    InMemory,
    /// No organization has this id.
    #[error("there is no organization `{0}`")]
    Unknown(OrganizationId),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    /// The service failed.
    #[error("the organization was not changed")]
    Service(#[source] ServiceError),
}

/// Runs a command and returns the line to print.
///
/// # Errors
/// [`OrganizationError`] with the reason.
pub async fn run(
    config: &Config,
    command: OrganizationCommand,
) -> Result<String, OrganizationError> {
    if config.store == StoreKind::Memory {
        return Err(OrganizationError::InMemory);
    }
    let OrganizationCommand::PluginsAccess { organization, access } = command;
    let access = PluginsAccess::from(access);
    let store = open_store(config).await?;
    let services = Services::offline(store.clone(), Mailing::new(false));
    let now = services.clock.now();
    let changed = services.organizations.set_plugins_access(organization, access, now).await;
    store.close_at_end().await?;
    if !changed.map_err(OrganizationError::Service)? {
        return Err(OrganizationError::Unknown(organization));
    }
    Ok(format!("The plugins access level of {organization} is {}", i64::from(access)))
}
