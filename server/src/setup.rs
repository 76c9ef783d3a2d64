//! The set-up of an empty instance from the host: `weir setup` and
//! `weir setup-link`. Both work on the data directory while no server runs.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_model::keys::PersonalKeyInput;
use weir_model::scopes::Scope;
use weir_model::{OrganizationId, ProjectId, UserId};
use weir_service::identity::{Peer, SetupInput, SetupOutcome};
use weir_service::{Actor, Ctx, Error as ServiceError, Services};

use crate::config::{Config, StoreKind};
use crate::http::request_id::RequestId;
use crate::serve::{open_store, reachable};

/// Label of the key that the set-up makes.
const KEY_LABEL: &str = "setup";

/// Why the set-up did not happen.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Nothing of it would survive.
    #[error(
        "a store in memory cannot be set up from outside; use the link that `weir serve` prints"
    )]
    InMemory,
    /// Somebody was faster.
    #[error("this instance has a user already; nothing was changed")]
    AlreadySetUp,
    /// Something that was entered cannot be used.
    #[error("{attr}: {detail}")]
    Invalid {
        /// What.
        attr: String,
        /// Why.
        detail: String,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    /// The service failed.
    #[error("the set-up failed")]
    Service(#[source] ServiceError),
}

/// What the set-up made; printed as one JSON object.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The organization.
    pub organization_id: OrganizationId,
    /// The project.
    pub project_id: ProjectId,
    /// The project's key: public, write only.
    pub project_api_key: String,
    /// A key with all scopes; shown only here.
    pub personal_api_key: String,
    /// The owner.
    pub user_uuid: UserId,
}

/// Creates the first owner, organization, project and key.
///
/// # Errors
/// [`SetupError`].
pub async fn set_up(config: &Config, input: SetupInput) -> Result<Summary, SetupError> {
    if config.store == StoreKind::Memory {
        return Err(SetupError::InMemory);
    }
    let store = open_store(config).await?;
    let services = Services::new(store.clone(), weir_service::Clock::default());
    let outcome = create(&services, input).await;
    store.close().await?;
    let summary = outcome?;
    forget_link(&link_file(config));
    Ok(summary)
}

async fn create(services: &Services, input: SetupInput) -> Result<Summary, SetupError> {
    let peer = Peer::default();
    let outcome =
        services.identity.setup(None, input, &peer).await.map_err(|error| match error {
            ServiceError::NotFound(_) => SetupError::AlreadySetUp,
            error => told(error),
        })?;
    let personal_api_key = first_key(services, &outcome).await.map_err(told)?;
    Ok(Summary {
        organization_id: outcome.organization,
        project_id: outcome.project,
        project_api_key: outcome.project_api_key,
        personal_api_key,
        user_uuid: outcome.user.uuid,
    })
}

/// A key with all scopes. The set-up itself was the proof of who asks.
///
/// # Errors
/// Whatever the service says.
pub async fn first_key(
    services: &Services,
    outcome: &SetupOutcome,
) -> Result<String, ServiceError> {
    let now = services.clock.now();
    let ctx = Ctx {
        actor: Actor::Session {
            user: outcome.user.uuid,
            session: String::new(),
            signed_in_at: now,
        },
        now,
        request_id: RequestId::at(now).to_string(),
    };
    let input = PersonalKeyInput {
        label: KEY_LABEL.to_owned(),
        scopes: vec![Scope::All],
        scoped_teams: Vec::new(),
        scoped_organizations: Vec::new(),
        expires_at: None,
    };
    let key = services.keys.create(&ctx, input).await?;
    key.value.ok_or_else(|| ServiceError::Internal("a new key came without its value".to_owned()))
}

fn told(error: ServiceError) -> SetupError {
    match error {
        ServiceError::Invalid(fault) => SetupError::Invalid {
            attr: fault.attr.unwrap_or_else(|| "input".to_owned()),
            detail: fault.detail,
        },
        error => SetupError::Service(error),
    }
}

/// A link that sets up the instance once. While the server runs, the link that
/// it keeps in the data directory.
///
/// # Errors
/// [`SetupError`].
pub async fn new_link(config: &Config) -> Result<String, SetupError> {
    if config.store == StoreKind::Memory {
        return Err(SetupError::InMemory);
    }
    let file = link_file(config);
    let store = match open_store(config).await {
        Ok(store) => store,
        Err(in_use @ weir_store::Error::InUse { .. }) => {
            return std::fs::read_to_string(&file)
                .map(|link| link.trim().to_owned())
                .map_err(|_| in_use.into());
        }
        Err(error) => return Err(error.into()),
    };
    let services = Services::new(store.clone(), weir_service::Clock::default());
    let issued = services.identity.issue_setup_token().await;
    store.close().await?;
    let token = issued.map_err(told)?.ok_or(SetupError::AlreadySetUp)?;
    Ok(link(&origin(config, None), &token.token))
}

/// Where the running server keeps its link.
#[must_use]
pub fn link_file(config: &Config) -> PathBuf {
    config.data.join("setup-link")
}

/// The public URL, else the address of the listener.
#[must_use]
pub fn origin(config: &Config, address: Option<SocketAddr>) -> String {
    config.public_url.origin().unwrap_or_else(|| match address.or(config.listen.parse().ok()) {
        Some(address) => format!("http://{}", reachable(address)),
        None => format!("http://{}", config.listen),
    })
}

/// The link for a token.
#[must_use]
pub fn link(origin: &str, token: &str) -> String {
    format!("{origin}/setup?token={token}")
}

/// Writes the link for the owner of the directory only.
///
/// # Errors
/// Whatever the file system says.
pub fn keep_link(file: &Path, link: &str) -> std::io::Result<()> {
    // A file from elsewhere might be readable for others: its mode would stay.
    forget_link(file);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{link}")
}

/// Removes the link: it is used or void.
pub fn forget_link(file: &Path) {
    if let Err(error) = std::fs::remove_file(file)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, file = %file.display(), "the set-up link could not be removed");
    }
}
