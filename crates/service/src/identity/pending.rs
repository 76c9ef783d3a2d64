//! Sign-ins with a right password that wait for the second factor.
//!
//! What belongs here: beginning such a sign-in, and completing it with a code. What
//! does not: checking a code (`second_factor`), completing it with a passkey (`passkeys`).
//!
//! There is no session until code or passkey is right: the token of a waiting sign-in opens
//! nothing. A waiting sign-in ends after ten minutes, and with any change of the
//! password or of the factor.

use std::fmt;

use uuid::Uuid;
use weir_model::errors::FieldError;
use weir_model::{Timestamp, UserId};
use weir_store::passkeys;
use weir_store::second_factor::{self as rows, NewPending, Used};
use weir_store::sessions::Proved;
use weir_store::users::{self as user_rows, UserRow};

use super::second_factor::wrong_code;
use super::sign_in::wrong;
use super::throttle::Caller;
use super::{Identity, NewSession, Peer, emails};
use crate::error::Error;
use crate::{Result, secrets};

/// Seconds for which a sign-in waits.
const SECONDS: i64 = 10 * 60;
/// Maximum length of the secret of a token, in bytes.
const SECRET_MAX: usize = 64;
/// The message when a sign-in does not wait any more.
const EXPIRED: &str = "This sign-in waited too long, or does not count any more. Sign in again.";

/// A sign-in that waits for the second factor.
#[derive(Clone, PartialEq, Eq)]
pub struct PendingSignIn {
    /// The token, for the cookie. It is not stored.
    pub token: String,
    /// When it stops waiting.
    pub expires_at: Timestamp,
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSignIn")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The state of a waiting sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// How many wrong codes were entered.
    pub failures: u64,
    /// Whether the user has an authenticator app.
    pub has_app: bool,
    /// Whether the user has a passkey.
    pub has_passkey: bool,
}

/// A waiting sign-in, found by its token.
pub(super) struct Found {
    pub(super) user: UserId,
    pub(super) hash: String,
    pub(super) factor: Uuid,
    failures: i64,
}

impl Identity {
    /// Opens a session for a user whose password was right, or asks for the second
    /// factor.
    ///
    /// # Errors
    /// [`Error::SecondFactor`]; the refusal of a wrong password, when password or
    /// factor were changed at the same time.
    pub(super) async fn open_or_ask(&self, user: &UserRow, peer: &Peer) -> Result<NewSession> {
        let Some(factor) = user.second_factor else {
            return self.open_session(user.id, peer, None, Proved::of(user)).await;
        };
        let secret = secrets::token()?;
        let now = self.core.clock.now();
        let expires_at = now.plus_seconds(SECONDS);
        let hash = secret.hash();
        let new = NewPending {
            user: user.id,
            hash: &hash,
            password: user.password.as_ref(),
            factor,
            expires_at,
        };
        if !rows::await_code(&self.core.store, new, now).await? {
            return Err(wrong());
        }
        let token = format!("{}.{}", user.id, secret.reveal());
        Err(Error::SecondFactor(PendingSignIn { token, expires_at }))
    }

    /// The state of the sign-in with this token, while it waits.
    pub async fn waiting(&self, token: &str) -> Result<Option<Waiting>> {
        let store = &self.core.store;
        let Some(found) = self.find_pending(token).await? else { return Ok(None) };
        let factor = rows::get(store, found.user).await?;
        Ok(Some(Waiting {
            failures: u64::try_from(found.failures).unwrap_or(0),
            has_app: factor.is_some_and(|factor| factor.confirmed_at.is_some()),
            has_passkey: !passkeys::of_user(store, found.user).await?.is_empty(),
        }))
    }

    /// Completes a waiting sign-in with a code or a recovery code, and opens its
    /// session.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `2fa_expired` when the sign-in does not wait (any more),
    /// with `2fa_invalid` for a code that is wrong or was used before, with
    /// `sso_enforced` when the domain of the address does not allow a password any
    /// more; [`Error::Throttled`].
    pub async fn end_sign_in(&self, token: &str, code: &str, peer: &Peer) -> Result<NewSession> {
        let store = &self.core.store;
        let found = self.find_pending(token).await?.ok_or_else(expired)?;
        let user = user_rows::get(store, found.user).await?.filter(|user| user.is_active);
        let user = user.ok_or_else(expired)?;
        self.refuse_password(&emails::normalise(&user.email)).await?;
        let browser = self.trusted_browser(Some(user.id), peer).await?;
        let caller = browser.as_deref().map_or(Caller::Unknown, Caller::Recognized);
        let counted = self.count_typed_code(user.id, code, peer, caller).await?;
        let Some(proof) = self.proof(user.id, found.factor, code).await? else {
            rows::failed(store, user.id, &found.hash).await?;
            tracing::info!(user.id = %user.id, "a second factor was refused");
            self.count_refusal();
            return Err(wrong_code());
        };
        let (row, session) = self.new_session(user.id, peer)?;
        match rows::sign_in(store, &found.hash, found.factor, &proof, &row).await? {
            Used::Yes => {}
            Used::Before => return Err(wrong_code()),
            Used::Void => return Err(expired()),
        }
        self.attempt_succeeded(counted).await?;
        Ok(session)
    }

    pub(super) async fn find_pending(&self, token: &str) -> Result<Option<Found>> {
        let Some((user, secret)) = token.split_once('.') else { return Ok(None) };
        let (Ok(user), true) = (user.parse::<UserId>(), secret.len() <= SECRET_MAX) else {
            return Ok(None);
        };
        let hash = secrets::sha256_hex(secret);
        let row = rows::pending(&self.core.store, user, &hash).await?;
        let row = row.filter(|row| self.core.clock.now() < row.expires_at);
        Ok(row.map(|row| Found { user, hash, factor: row.factor, failures: row.failures }))
    }
}

/// The refusal of a sign-in that does not wait.
pub(super) fn expired() -> Error {
    Error::Invalid(FieldError::body("2fa_expired", EXPIRED))
}
