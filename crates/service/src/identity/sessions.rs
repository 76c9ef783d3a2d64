//! Sessions of the web app: opening, finding, ending.

use weir_model::UserId;
use weir_store::sessions::{self, SessionRow};
use weir_store::users::PasswordHash;

use super::sign_in::wrong;
use super::{Identity, NewSession, Peer};
use crate::ctx::{Actor, Ctx};
use crate::{Result, secrets};

/// A session ends after this many seconds without use.
const IDLE_SECONDS: i64 = 12 * 60 * 60;
/// A session ends after this many seconds whatever happens.
const ABSOLUTE_SECONDS: i64 = 14 * 24 * 60 * 60;
/// Use is noted at most this often, in seconds.
const TOUCH_SECONDS: i64 = 60;
/// Longest user agent that is kept, in characters.
const AGENT_MAX: usize = 256;

impl Identity {
    /// The context of the person whose session has this token; `None` when
    /// there is none (any more).
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn session(&self, token: &str, request_id: String) -> Result<Option<Ctx>> {
        if token.len() > 64 || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(None);
        }
        let store = &self.core.store;
        let now = self.core.clock.now();
        let hash = secrets::sha256_hex(token);
        let Some(row) = sessions::of_active_user(store, &hash).await? else { return Ok(None) };
        if now >= row.expires_at || now > row.seen_at.plus_seconds(IDLE_SECONDS) {
            // It cannot come back, whether or not the record goes now.
            if let Err(error) = sessions::delete(store, row.user, &hash).await {
                tracing::warn!(%error, "a session that ended was not removed");
            }
            return Ok(None);
        }
        if now >= row.seen_at.plus_seconds(TOUCH_SECONDS) {
            // A page must load even when this cannot be written (disk guard).
            if let Err(error) = sessions::touch(store, &hash, now).await {
                tracing::warn!(%error, "the use of a session was not noted");
            }
        }
        let actor =
            Actor::Session { user: row.user, session: hash, signed_in_at: row.signed_in_at };
        Ok(Some(Ctx { actor, now, request_id }))
    }

    /// Ends the session. A key has none: nothing happens.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn sign_out(&self, ctx: &Ctx) -> Result<()> {
        if let Actor::Session { user, session, .. } = &ctx.actor {
            sessions::delete(&self.core.store, *user, session).await?;
        }
        Ok(())
    }

    /// Opens a session, in place of `replaced` if given.
    ///
    /// `proved` is the account's password as whoever opens it proved it, or as it
    /// was when they proved themselves with a link.
    ///
    /// # Errors
    /// The refusal of a wrong password, when the account has another by now.
    pub(super) async fn open_session(
        &self,
        user: UserId,
        peer: &Peer,
        replaced: Option<&str>,
        proved: Option<&PasswordHash>,
    ) -> Result<NewSession> {
        let token = secrets::token()?;
        let now = self.core.clock.now();
        let expires_at = now.plus_seconds(ABSOLUTE_SECONDS);
        let row = SessionRow {
            hash: token.hash(),
            user,
            signed_in_at: now,
            seen_at: now,
            expires_at,
            address: peer.address.map(|address| address.to_canonical().to_string()),
            agent: peer.agent.as_ref().map(|agent| agent.chars().take(AGENT_MAX).collect()),
        };
        if !sessions::create(&self.core.store, &row, replaced, proved).await? {
            return Err(wrong());
        }
        Ok(NewSession { token: token.reveal(), user, expires_at })
    }
}
