//! The set-up of an empty instance from the host: `weir setup` and `weir setup-link`.
//! Both work on the data directory while no server runs.
//!
//! The last link is in a file of that directory. A server uses it again when it starts,
//! so that a link that was passed on stays valid.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_model::keys::PersonalKeyInput;
use weir_model::scopes::Scope;
use weir_model::{OrganizationId, ProjectId, UserId};
use weir_service::identity::SetupInput;
use weir_service::mail::Mailing;
use weir_service::{Error as ServiceError, Services};

use crate::config::{Config, StoreKind};
use crate::serve::{open_store, reachable};

/// Label of the personal API key of the set-up.
const KEY_LABEL: &str = "setup";
/// The part of a link before its token.
const TOKEN: &str = "/setup?token=";

/// Why the set-up failed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A store in memory ends with its process.
    #[error(
        "a store in memory cannot be set up from outside; use the link that `weir serve` prints"
    )]
    InMemory,
    /// Another process uses the data directory and has no link.
    #[error(
        "the data directory `{0}` is in use by another process that keeps no set-up link: either \
         this instance is set up already, or that process has only just begun"
    )]
    NoLink(PathBuf),
    /// The link cannot be written, so a server that starts would replace it.
    #[error("cannot write the set-up link to `{file}`")]
    Unkept {
        /// Path of the file.
        file: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The instance has a user already.
    #[error("this instance has a user already; nothing was changed")]
    AlreadySetUp,
    /// An entered value is invalid.
    #[error("{attr}: {detail}")]
    Invalid {
        /// Name of the value.
        attr: String,
        /// The reason, as text.
        detail: String,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    /// The service failed.
    #[error("the set-up failed")]
    Service(#[source] ServiceError),
}

/// The result of the set-up, printed as one JSON object.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Id of the organization.
    pub organization_id: OrganizationId,
    /// Id of the project.
    pub project_id: ProjectId,
    /// The project API key. It is public and only allows sending events.
    pub project_api_key: String,
    /// A personal API key with all scopes. It is shown only here.
    pub personal_api_key: String,
    /// Id of the owner.
    pub user_uuid: UserId,
}

/// Creates the first owner, organization, project and key.
///
/// # Errors
/// [`SetupError`] with the reason.
pub async fn set_up(config: &Config, input: SetupInput) -> Result<Summary, SetupError> {
    if config.store == StoreKind::Memory {
        return Err(SetupError::InMemory);
    }
    let store = open_store(config).await?;
    let services = Services::offline(store.clone(), Mailing::new(false));
    let outcome = create(&services, input).await;
    store.close_at_end().await?;
    let summary = outcome?;
    forget_link(&link_file(config));
    Ok(summary)
}

/// The same with open services.
pub(crate) async fn create(services: &Services, input: SetupInput) -> Result<Summary, SetupError> {
    let made = services.identity.setup_with_key(input, first_key()).await;
    let (outcome, key) = made.map_err(|error| match error {
        ServiceError::NotFound(_) => SetupError::AlreadySetUp,
        error => reason(error),
    })?;
    Ok(Summary {
        organization_id: outcome.organization,
        project_id: outcome.project,
        project_api_key: outcome.project_api_key,
        personal_api_key: key.value.unwrap_or_default(),
        user_uuid: outcome.user.uuid,
    })
}

/// A key with all scopes.
fn first_key() -> PersonalKeyInput {
    PersonalKeyInput {
        label: KEY_LABEL.to_owned(),
        scopes: vec![Scope::All],
        scoped_teams: Vec::new(),
        scoped_organizations: Vec::new(),
        expires_at: None,
    }
}

fn reason(error: ServiceError) -> SetupError {
    match error {
        ServiceError::Invalid(fault) => SetupError::Invalid {
            attr: fault.attr.unwrap_or_else(|| "input".to_owned()),
            detail: fault.detail,
        },
        error => SetupError::Service(error),
    }
}

/// A link that sets up the instance once. The next start of the server uses it. While the
/// server runs, the link is the one that the server has stored in the data directory.
///
/// # Errors
/// [`SetupError`] with the reason.
pub async fn new_link(config: &Config) -> Result<String, SetupError> {
    if config.store == StoreKind::Memory {
        return Err(SetupError::InMemory);
    }
    let file = link_file(config);
    let store = match open_store(config).await {
        Ok(store) => store,
        Err(weir_store::Error::InUse { .. }) => {
            return kept_link(&file).ok_or_else(|| SetupError::NoLink(config.data.clone()));
        }
        Err(error) => return Err(error.into()),
    };
    let services = Services::offline(store.clone(), Mailing::new(false));
    let issued = services.identity.issue_setup_token().await;
    store.close_at_end().await?;
    let token = issued.map_err(reason)?.ok_or(SetupError::AlreadySetUp)?;
    let link = link(&origin(config, None), &token.token);
    keep_link(&file, &link).map_err(|source| SetupError::Unkept { file, source })?;
    Ok(link)
}

/// The file that contains the last link.
pub fn link_file(config: &Config) -> PathBuf {
    config.data.join("setup-link")
}

/// The public URL, or else the address of the listener.
pub fn origin(config: &Config, address: Option<SocketAddr>) -> String {
    config.public_url.origin().unwrap_or_else(|| match address.or(config.listen.parse().ok()) {
        Some(address) => format!("http://{}", reachable(address)),
        None => format!("http://{}", config.listen),
    })
}

/// The link for a token.
pub fn link(origin: &str, token: &str) -> String {
    format!("{origin}{TOKEN}{token}")
}

/// The link in this file.
pub fn kept_link(file: &Path) -> Option<String> {
    let link = std::fs::read_to_string(file).ok()?;
    Some(link.trim().to_owned()).filter(|link| !link.is_empty())
}

/// The token of a link.
pub fn token_of(link: &str) -> Option<&str> {
    link.split_once(TOKEN).map(|(_, token)| token)
}

/// Writes the link to a file that only the owner of the directory can read.
///
/// # Errors
/// Errors of the file system.
pub fn keep_link(file: &Path, link: &str) -> std::io::Result<()> {
    // An existing file might be readable for others and would keep its mode.
    forget_link(file);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{link}")
}

/// Removes the link, because it is used or invalid.
pub fn forget_link(file: &Path) {
    if let Err(error) = std::fs::remove_file(file)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, file = %file.display(), "the set-up link could not be removed");
    }
}
