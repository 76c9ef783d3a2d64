//! Sessions of the web app: opening, finding, listing and ending them.

use tokio::sync::broadcast::Receiver;
use uuid::Uuid;
use weir_model::sso::OpenedBy;
use weir_model::{Timestamp, UserId};
use weir_store::sessions::{self, Proved, SessionRow};

use super::sign_in::wrong;
use super::{Identity, NewSession, Peer};
use crate::ctx::{Actor, Ctx};
use crate::error::{Error, NO_KEYS, NOT_FOUND};
use crate::{Result, secrets};

/// Seconds without use after which a session ends.
const IDLE_SECONDS: i64 = 12 * 60 * 60;
/// Seconds after which a session ends in any case.
const ABSOLUTE_SECONDS: i64 = 14 * 24 * 60 * 60;
/// The use of a session is stored at most once in this time, in seconds.
const TOUCH_SECONDS: i64 = 60;
/// Maximum length of a stored user agent, in characters.
const AGENT_MAX: usize = 256;
/// How many digits of a session's hash are its id for its owner.
const NAME_DIGITS: usize = 16;

/// A session as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSession {
    /// Its id: a part of the hash. It does not open the session.
    pub id: String,
    /// When the user last proved their identity in it.
    pub signed_in_at: Timestamp,
    /// When it was last used, to the minute.
    pub seen_at: Timestamp,
    /// Client address at sign-in.
    pub address: Option<String>,
    /// User agent at sign-in.
    pub agent: Option<String>,
    /// How the user signed in, for people.
    pub opened_by: String,
    /// Whether it is the session of this request.
    pub is_this: bool,
}

impl Identity {
    /// The context of the user whose session has this token; `None` when there is no
    /// such session, it has ended, or the domain of the user requires another way of
    /// signing in.
    pub async fn session(&self, token: &str, request_id: String) -> Result<Option<Ctx>> {
        if !secrets::is_token(token) {
            return Ok(None);
        }
        let store = &self.core.store;
        let now = self.core.clock.now();
        let hash = secrets::sha256_hex(token);
        let Some(row) = self.core.valid_session(&hash).await? else { return Ok(None) };
        if has_ended(&row, now) {
            // The session has ended for good, even if deleting the record fails now.
            if let Err(error) = sessions::delete(store, row.user, &hash).await {
                tracing::warn!(%error, "a session that ended was not removed");
            }
            return Ok(None);
        }
        if now >= row.seen_at.plus_seconds(TOUCH_SECONDS) {
            // A page must load even when this write fails (disk guard).
            if let Err(error) = sessions::touch(store, &hash, now).await {
                tracing::warn!(%error, "the use of a session was not noted");
            }
        }
        let actor =
            Actor::Session { user: row.user, session: hash, signed_in_at: row.signed_in_at };
        Ok(Some(Ctx { actor, now, request_id }))
    }

    /// Refuses a caller whose session has ended since the request began, or whose user
    /// is not active any more. Does not count as use of the session.
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`].
    pub async fn check_session(&self, ctx: &Ctx) -> Result<()> {
        let Actor::Session { session, .. } = &ctx.actor else { return Ok(()) };
        let row = self.core.valid_session(session).await?;
        let is_open = row.is_some_and(|row| !has_ended(&row, self.core.clock.now()));
        if is_open { Ok(()) } else { Err(Error::NotAuthenticated) }
    }

    /// The users whom an identity provider deactivates from now on.
    pub fn deactivated_users(&self) -> Receiver<UserId> {
        self.core.store.deactivated_users()
    }

    /// The user who last signed in in the browser with this cookie. The cookie outlives
    /// the session, and does not open one.
    pub async fn returning(&self, browser: &str) -> Result<Option<UserId>> {
        let user = browser.split_once('.').and_then(|(_, user)| Uuid::try_parse(user).ok());
        let (Some(token), Some(user)) = (BrowserToken::sent(browser), user.map(UserId)) else {
            return Ok(None);
        };
        let is_known = sessions::is_known_browser(&self.core.store, user, &token.hash()).await?;
        Ok(is_known.then_some(user))
    }

    /// Ends the session. A key has no session, so nothing happens for it.
    pub async fn sign_out(&self, ctx: &Ctx) -> Result<()> {
        if let Actor::Session { user, session, .. } = &ctx.actor {
            sessions::delete(&self.core.store, *user, session).await?;
        }
        Ok(())
    }

    /// The caller's sessions that have not ended: this one first, then by last use,
    /// newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn own_sessions(&self, ctx: &Ctx) -> Result<Vec<OwnSession>> {
        let this = session_of_user(ctx)?;
        let mut rows = sessions::of_user(&self.core.store, ctx.user()).await?;
        rows.retain(|row| !has_ended(row, ctx.now));
        rows.sort_by_key(|row| (row.hash != this, std::cmp::Reverse(row.seen_at)));
        let names = self.core.connection_names().await?;
        let shown = |row: SessionRow| OwnSession {
            id: name(&row.hash),
            signed_in_at: row.signed_in_at,
            seen_at: row.seen_at,
            is_this: row.hash == this,
            opened_by: match row.opened_by {
                OpenedBy::Password => "Password".to_owned(),
                OpenedBy::Operator => "Link of the operator".to_owned(),
                OpenedBy::Passkey => "Passkey".to_owned(),
                OpenedBy::Connection(connection) => names.of(connection),
            },
            address: row.address,
            agent: row.agent,
        };
        Ok(rows.into_iter().map(shown).collect())
    }

    /// Ends one of the caller's sessions, by its id from [`Identity::own_sessions`].
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::NotFound`] when there is no such
    /// session.
    pub async fn end_session(&self, ctx: &Ctx, id: &str) -> Result<()> {
        session_of_user(ctx)?;
        let rows = sessions::of_user(&self.core.store, ctx.user()).await?;
        let row = rows.into_iter().find(|row| name(&row.hash) == id);
        let row = row.ok_or(Error::NotFound(NOT_FOUND))?;
        Ok(sessions::delete(&self.core.store, row.user, &row.hash).await?)
    }

    /// Ends all sessions of the caller except this one, and the sign-ins that wait for
    /// a second factor.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn end_other_sessions(&self, ctx: &Ctx) -> Result<()> {
        let this = session_of_user(ctx)?;
        Ok(sessions::delete_others(&self.core.store, ctx.user(), this).await?)
    }

    /// Opens a session. It replaces the session `replaced`, if there is one.
    ///
    /// `proved` is the password and second factor that the user had when they proved
    /// their identity.
    ///
    /// # Errors
    /// The refusal of a wrong password, when the password or the second factor of the
    /// user has changed since.
    pub(super) async fn open_session(
        &self,
        user: UserId,
        peer: &Peer,
        replaced: Option<&str>,
        proved: Proved<'_>,
    ) -> Result<NewSession> {
        let store = &self.core.store;
        let (row, session) = self.new_session(user, peer)?;
        let current = match replaced {
            Some(replaced) => sessions::current(store, replaced).await?,
            None => None,
        };
        if !sessions::create(store, &row, replaced, proved).await? {
            return Err(wrong());
        }
        if let Some(current) = current {
            self.keep_current(&row.hash, current).await;
        }
        Ok(session)
    }

    /// Gives a new session the current project of the one before. If this fails it begins
    /// with the default, like any other session.
    pub(super) async fn keep_current(&self, session: &str, current: sessions::Current) {
        if let Err(error) = sessions::set_current(&self.core.store, session, current).await {
            tracing::warn!(%error, "the current project of a session was not stored");
        }
    }

    /// A session that replaces another one of this user, opened in the same way.
    pub(super) async fn renewed_session(
        &self,
        user: UserId,
        peer: &Peer,
        replaced: &str,
    ) -> Result<(SessionRow, NewSession)> {
        let (mut row, session) = self.new_session(user, peer)?;
        if let Some(before) = sessions::get(&self.core.store, replaced).await? {
            row.opened_by = before.opened_by;
            row.proves = before.proves;
        }
        Ok((row, session))
    }

    /// A new session that is not stored yet: the row, and the value for its owner.
    pub(super) fn new_session(
        &self,
        user: UserId,
        peer: &Peer,
    ) -> Result<(SessionRow, NewSession)> {
        let token = secrets::token()?;
        let browser = BrowserToken::of(peer)?;
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
            browser: Some(browser.hash()),
            opened_by: OpenedBy::Password,
            proves: None,
        };
        let browser = browser.cookie(user);
        Ok((row, NewSession { token: token.reveal(), browser, user, expires_at }))
    }
}

/// The id of the session of a user in the web app.
///
/// # Errors
/// [`Error::Forbidden`] for keys.
pub(super) fn session_of_user(ctx: &Ctx) -> Result<&str> {
    match &ctx.actor {
        Actor::Session { session, .. } => Ok(session),
        Actor::Key { .. } => Err(Error::Forbidden(NO_KEYS.to_owned())),
    }
}

/// The token that identifies a browser. Its cookie also names the user who last signed
/// in there.
pub(super) struct BrowserToken(String);

impl BrowserToken {
    /// The token of this peer's browser, or a new one.
    pub(super) fn of(peer: &Peer) -> Result<Self> {
        match peer.browser.as_deref().and_then(Self::sent) {
            Some(token) => Ok(token),
            None => Ok(Self(secrets::token()?.reveal())),
        }
    }

    /// The token in a cookie, if the cookie has the right form.
    pub(super) fn sent(cookie: &str) -> Option<Self> {
        let token = cookie.split_once('.').map_or(cookie, |(token, _)| token);
        secrets::is_token(token).then(|| Self(token.to_owned()))
    }

    /// The hash, which is stored.
    pub(super) fn hash(&self) -> String {
        secrets::sha256_hex(&self.0)
    }

    /// The value of the cookie after this user has signed in.
    pub(super) fn cookie(&self, user: UserId) -> String {
        format!("{}.{}", self.0, user.0.simple())
    }
}

pub(super) fn has_ended(row: &SessionRow, now: Timestamp) -> bool {
    now >= row.expires_at || now > row.seen_at.plus_seconds(IDLE_SECONDS)
}

fn name(hash: &str) -> String {
    hash.chars().take(NAME_DIGITS).collect()
}
