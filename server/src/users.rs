//! `weir user`: commands on users for the operator of the host. They work on the data
//! directory while no server runs.

use clap::Subcommand;
use weir_service::mail::Mailing;
use weir_service::{Error as ServiceError, Services};

use crate::config::{Config, StoreKind};
use crate::mail::MailWorker;
use crate::serve::open_store;
use crate::setup;

/// Commands on users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Remove the second factor of a user, for an owner who is locked out
    #[command(name = "disable-2fa")]
    DisableSecondFactor {
        /// E-mail address of the user
        #[arg(long)]
        email: String,
    },
    /// Activate a user again whom an identity provider deactivated
    Activate {
        /// E-mail address of the user
        #[arg(long)]
        email: String,
    },
    /// Print a link that signs a user in, for an owner whom a provider locks out
    SignInLink {
        /// E-mail address of the user
        #[arg(long)]
        email: String,
    },
}

/// Why a command on users failed.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// A store in memory ends with its process.
    #[error("a store in memory cannot be worked on from outside")]
    InMemory,
    /// No user has this address.
    #[error("no user has the address `{0}`")]
    Unknown(String),
    /// The user is active.
    #[error("the user `{0}` is active")]
    Active(String),
    /// The user has no second factor.
    #[error("the user `{0}` has no second factor")]
    NoSecondFactor(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    /// The service failed.
    #[error("the user was not changed")]
    Service(#[source] ServiceError),
}

/// Runs a command and returns the line to print.
///
/// # Errors
/// [`UserError`] with the reason.
pub async fn run(config: &Config, command: UserCommand) -> Result<String, UserError> {
    if config.store == StoreKind::Memory {
        return Err(UserError::InMemory);
    }
    match command {
        UserCommand::DisableSecondFactor { email } => disable_second_factor(config, email).await,
        UserCommand::Activate { email } => activate(config, email).await,
        UserCommand::SignInLink { email } => sign_in_link(config, email).await,
    }
}

/// Lets a user sign in again whom an identity provider deactivated.
async fn activate(config: &Config, email: String) -> Result<String, UserError> {
    let store = open_store(config).await?;
    let services = Services::offline(store.clone(), Mailing::new(false));
    let activated = services.identity.activate(&email).await;
    store.close_at_end().await?;
    match activated.map_err(UserError::Service)? {
        Some(true) => Ok(format!("{email} is active again.")),
        Some(false) => Err(UserError::Active(email)),
        None => Err(UserError::Unknown(email)),
    }
}

/// A link that opens a session for this user once, within an hour.
async fn sign_in_link(config: &Config, email: String) -> Result<String, UserError> {
    let store = open_store(config).await?;
    let services = Services::offline(store.clone(), Mailing::new(false));
    let made = services.identity.sign_in_link(&email).await;
    store.close_at_end().await?;
    let path = made.map_err(UserError::Service)?.ok_or(UserError::Unknown(email))?;
    Ok(format!("{}{path}", setup::origin(config, None)))
}

async fn disable_second_factor(config: &Config, email: String) -> Result<String, UserError> {
    // A mail that cannot be sent must not keep the user locked out.
    let (is_notified, reason) = match MailWorker::of(config) {
        Ok(Some(_)) => (true, "A mail tells of it once the server runs again.".to_owned()),
        Ok(None) => (false, "No mail tells of it: these settings send none.".to_owned()),
        Err(error) => (false, format!("No mail tells of it: {error}.")),
    };
    let store = open_store(config).await?;
    // The server sends the mail when it runs again.
    let services = Services::offline(store.clone(), Mailing::new(is_notified));
    let removed = services.identity.remove_second_factor(&email).await;
    store.close_at_end().await?;
    match removed.map_err(UserError::Service)? {
        Some(true) => {
            Ok(format!("{email} signs in with the password alone; all sessions ended. {reason}"))
        }
        Some(false) => Err(UserError::NoSecondFactor(email)),
        None => Err(UserError::Unknown(email)),
    }
}
