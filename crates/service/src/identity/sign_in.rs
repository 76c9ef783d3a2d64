//! Signing in with address and password.

use uuid::Uuid;
use weir_model::UserId;
use weir_model::errors::FieldError;
use weir_store::sessions::{self, Proved};
use weir_store::users::{self, PasswordHash, UserRow};

use super::passwords::{Password, Verdict};
use super::sessions::{BrowserToken, session_of_user};
use super::throttle::Caller;
use super::{Identity, NewSession, Peer, emails};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::{Result, secrets};

impl Identity {
    /// Opens a session for the user with this address and password. If the user has a
    /// second factor, it is requested first.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced` where the domain of the address allows no
    /// password; the same [`Error::Invalid`] for an unknown address, a wrong password
    /// and a user who is not active; [`Error::Throttled`] after too many of these;
    /// [`Error::NotConfirmed`] when the address is not confirmed yet;
    /// [`Error::SecondFactor`] when the user has a second factor;
    /// [`Error::Unavailable`] when too many users sign in at the same time.
    pub async fn sign_in(&self, email: &str, password: &str, peer: &Peer) -> Result<NewSession> {
        let user = self.prove(&emails::normalise(email), password, peer, None).await?;
        self.refuse_unconfirmed(&user).await?;
        self.open_or_ask(&user, peer).await
    }

    /// Like [`Identity::sign_in`], with a code of the second factor. The code is
    /// checked only when the attempt would have to wait. With the right password and
    /// the right code the owner does not have to wait for the attempts of others.
    ///
    /// # Errors
    /// As [`Identity::sign_in`].
    pub async fn sign_in_with_code(
        &self,
        email: &str,
        password: &str,
        code: &str,
        peer: &Peer,
    ) -> Result<NewSession> {
        match self.sign_in(email, password, peer).await {
            Err(Error::Throttled { wait_seconds }) => {
                let email_key = emails::normalise(email);
                let opened = self.sign_in_with_both(&email_key, password, code, peer).await?;
                opened.ok_or(Error::Throttled { wait_seconds })
            }
            other => other,
        }
    }

    /// `None`: password or code is wrong, or there is no such user or factor. The
    /// reason is not returned: it would answer attempts that have to wait.
    async fn sign_in_with_both(
        &self,
        email_key: &str,
        password: &str,
        code: &str,
        peer: &Peer,
    ) -> Result<Option<NewSession>> {
        let ticket = self.hasher.queue_of(peer)?;
        let counted = self.count_by_network(peer).await?;
        let user = self.active_user(email_key).await?;
        let stored = user.as_ref().and_then(|user| user.password.clone());
        let (verdict, _) = ticket.verify(Password::typed(password), stored).await?;
        let user = user.filter(|user| verdict != Verdict::Wrong && user.second_factor.is_some());
        let Some(user) = user else { return Ok(None) };
        self.refuse_unconfirmed(&user).await?;
        let Err(Error::SecondFactor(pending)) = self.open_or_ask(&user, peer).await else {
            return Ok(None);
        };
        match self.end_sign_in(&pending.token, code, peer).await {
            Ok(session) => {
                self.attempt_succeeded(counted).await?;
                Ok(Some(session))
            }
            Err(Error::Invalid(_) | Error::Throttled { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Lets a user prove their identity once more. The session gets a new token, and
    /// the old token stops working. The session has already seen the second factor, so
    /// it is not requested again.
    ///
    /// # Errors
    /// As [`Identity::sign_in`]; [`Error::Forbidden`] for a key.
    pub async fn sign_in_again(
        &self,
        ctx: &Ctx,
        password: &str,
        peer: &Peer,
    ) -> Result<NewSession> {
        let session = session_of_user(ctx)?;
        let store = &self.core.store;
        let row = users::get(store, ctx.user()).await?.ok_or(Error::NotAuthenticated)?;
        let email_key = emails::normalise(&row.email);
        let proved = self.prove(&email_key, password, peer, Some(session)).await?;
        // The session may have ended since, because a second factor was set up that it
        // has not seen.
        if self.core.valid_session(session).await?.is_none() {
            return Err(Error::NotAuthenticated);
        }
        self.open_session(proved.id, peer, Some(session), Proved::of(&proved)).await
    }

    /// The user with this address, whose password was proved. Within a session, the
    /// hash of the session identifies the caller as known.
    pub(super) async fn prove(
        &self,
        email_key: &str,
        password: &str,
        peer: &Peer,
        session: Option<&str>,
    ) -> Result<UserRow> {
        // First, because no password is accepted here: none is checked.
        self.refuse_password(email_key).await?;
        // The queue first: a caller who is refused there has not used up an attempt.
        let ticket = match session {
            Some(_) => self.hasher.queue()?,
            None => self.hasher.queue_of(peer)?,
        };
        let user = self.active_user(email_key).await?;
        let browser = match session {
            Some(_) => None,
            None => self.trusted_browser(user.as_ref().map(|user| user.id), peer).await?,
        };
        let caller = session.or(browser.as_deref()).map_or(Caller::Unknown, Caller::Recognized);
        let counted = self.count_password(email_key, peer, caller).await.inspect_err(|error| {
            if matches!(error, Error::Throttled { .. }) {
                self.count_refusal();
            }
        })?;
        let stored = user.as_ref().and_then(|user| user.password.clone());
        let (verdict, typed) = ticket.verify(Password::typed(password), stored.clone()).await?;
        let (Some(mut user), Verdict::Right { outdated }) = (user, verdict) else {
            tracing::info!(account = account_label(email_key), "sign-in refused");
            self.count_refusal();
            return Err(wrong());
        };
        self.attempt_succeeded(counted).await?;
        if let (true, Some(stored)) = (outdated, stored) {
            // A renewed hash is worth a second run, but the sign-in must not fail
            // because of it.
            let renewed = match self.hasher.queue() {
                Ok(ticket) => ticket.hash(typed).await,
                Err(error) => Err(error),
            };
            let replaced = match renewed {
                Ok(after) => {
                    let store = &self.core.store;
                    let replaced = users::replace_hash(store, user.id, &stored, &after).await;
                    replaced.map(|replaced| replaced.then_some(after)).map_err(Error::from)
                }
                Err(error) => Err(error),
            };
            match replaced {
                Ok(Some(after)) => user.password = Some(after),
                Ok(None) => user.password = self.renewed_elsewhere(&user, password).await?,
                Err(error) => tracing::warn!(%error, "the password hash was not renewed"),
            }
        }
        Ok(user)
    }

    async fn active_user(&self, email_key: &str) -> Result<Option<UserRow>> {
        let found = users::by_email(&self.core.store, email_key).await?;
        Ok(found.filter(|user| user.is_active))
    }

    /// The hash of the token of this peer's browser, if this user has signed in there.
    pub(super) async fn trusted_browser(
        &self,
        user: Option<UserId>,
        peer: &Peer,
    ) -> Result<Option<String>> {
        let token = peer.browser.as_deref().and_then(BrowserToken::sent);
        let Some(browser) = token.map(|token| token.hash()) else { return Ok(None) };
        // The same work whether or not there is such a user.
        let user = user.unwrap_or(UserId(Uuid::nil()));
        let is_known = sessions::is_known_browser(&self.core.store, user, &browser).await?;
        Ok(is_known.then_some(browser))
    }

    /// The hash that replaced the proved one, if it is a hash of the same password:
    /// another sign-in renewed it first.
    async fn renewed_elsewhere(
        &self,
        user: &UserRow,
        password: &str,
    ) -> Result<Option<PasswordHash>> {
        let ticket = self.hasher.queue()?;
        let stored = users::get(&self.core.store, user.id).await?.and_then(|user| user.password);
        match ticket.verify(Password::typed(password), stored.clone()).await? {
            (Verdict::Right { .. }, _) => Ok(stored),
            (Verdict::Wrong, _) => Err(wrong()),
        }
    }
}

/// The one answer to everything that is wrong at sign-in.
pub(super) fn wrong() -> Error {
    Error::Invalid(FieldError::body("invalid_credentials", "Invalid email or password."))
}

/// A label of the user for logs: enough to see that attempts belong together.
fn account_label(email_key: &str) -> String {
    secrets::sha256_hex(email_key).chars().take(12).collect()
}
