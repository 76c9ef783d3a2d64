//! Sessions of the web app: opening, finding, listing, ending.

use uuid::Uuid;
use weir_model::{Timestamp, UserId};
use weir_store::sessions::{self, Proved, SessionRow};

use super::sign_in::wrong;
use super::{Identity, NewSession, Peer};
use crate::ctx::{Actor, Ctx};
use crate::error::{Error, NO_KEYS, NOT_FOUND};
use crate::{Result, secrets};

/// A session ends after this many seconds without use.
const IDLE_SECONDS: i64 = 12 * 60 * 60;
/// A session ends after this many seconds whatever happens.
const ABSOLUTE_SECONDS: i64 = 14 * 24 * 60 * 60;
/// Use is noted at most this often, in seconds.
const TOUCH_SECONDS: i64 = 60;
/// Longest user agent that is kept, in characters.
const AGENT_MAX: usize = 256;
/// Digits of a session's hash by which its owner names it.
const NAME_DIGITS: usize = 16;

/// A session as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSession {
    /// What it is named by. It opens nothing.
    pub id: String,
    /// When the person last proved in it who they are.
    pub signed_in_at: Timestamp,
    /// When it was last used, to the minute.
    pub seen_at: Timestamp,
    /// Client address at sign-in.
    pub address: Option<String>,
    /// User agent at sign-in.
    pub agent: Option<String>,
    /// Whether it is the one that asks.
    pub is_this: bool,
}

impl Identity {
    /// The context of the person whose session has this token; `None` when
    /// there is none (any more).
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn session(&self, token: &str, request_id: String) -> Result<Option<Ctx>> {
        if !secrets::is_token(token) {
            return Ok(None);
        }
        let store = &self.core.store;
        let now = self.core.clock.now();
        let hash = secrets::sha256_hex(token);
        let Some(row) = sessions::of_active_user(store, &hash).await? else { return Ok(None) };
        if has_ended(&row, now) {
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

    /// Refuses a caller whose session has ended meanwhile, and one whose account may not
    /// act any more. Does not count as use of the session.
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`].
    pub async fn check_session(&self, ctx: &Ctx) -> Result<()> {
        let Actor::Session { session, .. } = &ctx.actor else { return Ok(()) };
        let row = sessions::of_active_user(&self.core.store, session).await?;
        let is_open = row.is_some_and(|row| !has_ended(&row, self.core.clock.now()));
        if is_open { Ok(()) } else { Err(Error::NotAuthenticated) }
    }

    /// The user who signed in last in the browser with this cookie, which outlives the
    /// session. It opens nothing.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn returning(&self, browser: &str) -> Result<Option<UserId>> {
        let user = browser.split_once('.').and_then(|(_, user)| Uuid::try_parse(user).ok());
        let (Some(token), Some(user)) = (BrowserToken::sent(browser), user.map(UserId)) else {
            return Ok(None);
        };
        let is_known = sessions::is_known_browser(&self.core.store, user, &token.hash()).await?;
        Ok(is_known.then_some(user))
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

    /// The caller's sessions that have not ended: this one first, then the one that
    /// was used last.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn own_sessions(&self, ctx: &Ctx) -> Result<Vec<OwnSession>> {
        let this = of_person(ctx)?;
        let mut rows = sessions::of_user(&self.core.store, ctx.user()).await?;
        rows.retain(|row| !has_ended(row, ctx.now));
        rows.sort_by_key(|row| (row.hash != this, std::cmp::Reverse(row.seen_at)));
        let shown = |row: SessionRow| OwnSession {
            id: name(&row.hash),
            signed_in_at: row.signed_in_at,
            seen_at: row.seen_at,
            is_this: row.hash == this,
            address: row.address,
            agent: row.agent,
        };
        Ok(rows.into_iter().map(shown).collect())
    }

    /// Ends one of the caller's sessions, named as [`Identity::own_sessions`] does.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::NotFound`] when there is none.
    pub async fn end_session(&self, ctx: &Ctx, id: &str) -> Result<()> {
        of_person(ctx)?;
        let rows = sessions::of_user(&self.core.store, ctx.user()).await?;
        let row = rows.into_iter().find(|row| name(&row.hash) == id);
        let row = row.ok_or(Error::NotFound(NOT_FOUND))?;
        Ok(sessions::delete(&self.core.store, row.user, &row.hash).await?)
    }

    /// Ends the caller's sessions but this one, and sign-ins that wait for a second
    /// factor.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn end_other_sessions(&self, ctx: &Ctx) -> Result<()> {
        let this = of_person(ctx)?;
        Ok(sessions::delete_others(&self.core.store, ctx.user(), this).await?)
    }

    /// Opens a session, in place of `replaced` if given.
    ///
    /// `proved` is what the account had when whoever opens it proved themselves.
    ///
    /// # Errors
    /// The refusal of a wrong password, when the account has another by now, or
    /// another second factor.
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
        // It goes on where the one before was; without this it begins as any other.
        if let Some(current) = current
            && let Err(error) = sessions::set_current(store, &row.hash, current).await
        {
            tracing::warn!(%error, "the current project of a session was not stored");
        }
        Ok(session)
    }

    /// A session that is about to be opened: what is stored, and what its owner
    /// gets.
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
        };
        let browser = browser.cookie(user);
        Ok((row, NewSession { token: token.reveal(), browser, user, expires_at }))
    }
}

/// The session of a person in the web app.
///
/// # Errors
/// [`Error::Forbidden`] for keys.
pub(super) fn of_person(ctx: &Ctx) -> Result<&str> {
    match &ctx.actor {
        Actor::Session { session, .. } => Ok(session),
        Actor::Key { .. } => Err(Error::Forbidden(NO_KEYS.to_owned())),
    }
}

/// The token that tells a browser from others. Its cookie has the user beside it who
/// signed in there last.
pub(super) struct BrowserToken(String);

impl BrowserToken {
    /// That of this peer: its own, else a new one.
    pub(super) fn of(peer: &Peer) -> Result<Self> {
        match peer.browser.as_deref().and_then(Self::sent) {
            Some(token) => Ok(token),
            None => Ok(Self(secrets::token()?.reveal())),
        }
    }

    /// The one in a cookie.
    pub(super) fn sent(cookie: &str) -> Option<Self> {
        let token = cookie.split_once('.').map_or(cookie, |(token, _)| token);
        secrets::is_token(token).then(|| Self(token.to_owned()))
    }

    /// The form that is stored.
    pub(super) fn hash(&self) -> String {
        secrets::sha256_hex(&self.0)
    }

    /// The cookie, once this user has signed in.
    pub(super) fn cookie(&self, user: UserId) -> String {
        format!("{}.{}", self.0, user.0.simple())
    }
}

fn has_ended(row: &SessionRow, now: Timestamp) -> bool {
    now >= row.expires_at || now > row.seen_at.plus_seconds(IDLE_SECONDS)
}

fn name(hash: &str) -> String {
    hash.chars().take(NAME_DIGITS).collect()
}
