//! The set-up link of an instance that is not set up yet.
//!
//! What belongs here: when it is shown, and until when. What does not: the link and its file
//! (`setup`).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use weir_service::identity::SetupToken;

use super::say;
use crate::app::App;
use crate::config::StoreKind;
use crate::setup;

/// Time between two checks whether the set-up link was used.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Shows a set-up link until the instance is set up: first the link from before this
/// start while it is valid, then a new one whenever the last has expired.
pub(super) async fn announce_setup(app: App, address: SocketAddr) {
    let file = match app.config.store {
        StoreKind::RocksDb | StoreKind::Postgres(_) => Some(setup::link_file(&app.config)),
        StoreKind::Memory => None,
    };
    let mut kept = file.as_deref().and_then(setup::kept_link);
    loop {
        let expires_at = match setup_token(&app, kept.take()).await {
            Ok(Some(token)) => {
                let origin = setup::origin(&app.config, Some(address));
                show_link(&setup::link(&origin, &token.token), file.as_ref());
                token.expires_at
            }
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "no set-up link could be made");
                app.services.clock.now().plus_seconds(60)
            }
        };
        while app.services.clock.now() < expires_at {
            tokio::time::sleep(POLL_INTERVAL).await;
            if app.services.identity.is_set_up().await.unwrap_or(false) {
                break;
            }
        }
    }
    if let Some(file) = file {
        setup::forget_link(&file);
    }
}

/// The token of the stored link if it is still valid, else a new one; `None` when the
/// instance is set up.
async fn setup_token(
    app: &App,
    kept: Option<String>,
) -> Result<Option<SetupToken>, weir_service::Error> {
    let identity = &app.services.identity;
    if let Some(token) = kept.as_deref().and_then(setup::token_of)
        && let Some(token) = identity.resume_setup_token(token).await?
    {
        return Ok(Some(token));
    }
    identity.issue_setup_token().await
}

/// The file is written first, so that a reader of the line finds it.
fn show_link(link: &str, file: Option<&PathBuf>) {
    if let Some(file) = file
        && let Err(error) = setup::keep_link(file, link)
    {
        tracing::warn!(%error, file = %file.display(), "the set-up link could not be written");
    }
    if let Err(error) = say(&format!("Set up Weir at {link}")) {
        tracing::warn!(%error, "the set-up link could not be printed");
    }
}
