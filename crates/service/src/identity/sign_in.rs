//! Signing in with address and password.

use weir_model::errors::FieldError;
use weir_store::sessions::{self, Proved};
use weir_store::users::{self, PasswordHash, UserRow};

use super::passwords::{Password, Verdict};
use super::sessions::of_person;
use super::{Identity, NewSession, Peer, emails};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::{Result, secrets};

impl Identity {
    /// Opens a session for the owner of this address and password, who may be asked
    /// for a second factor first.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced` where the address's domain allows no
    /// password; the same [`Error::Invalid`] for an unknown address, a wrong
    /// password and an account that may not act; [`Error::Throttled`] after too many of
    /// them; [`Error::NotConfirmed`] when all is right but the address not yet
    /// confirmed; [`Error::SecondFactor`] when all is right but the account has a
    /// second factor; [`Error::Unavailable`] when too many people sign in at once.
    pub async fn sign_in(&self, email: &str, password: &str, peer: &Peer) -> Result<NewSession> {
        let user = self.prove(&emails::normalise(email), password, peer).await?;
        self.refuse_unconfirmed(&user).await?;
        self.open_or_ask(&user, peer).await
    }

    /// Lets a person prove once more who they are. The session gets a new
    /// token; the old one is dead. A second factor, which the session has seen, is
    /// not asked for again.
    ///
    /// # Errors
    /// As [`Identity::sign_in`]; [`Error::Forbidden`] for a key.
    pub async fn sign_in_again(
        &self,
        ctx: &Ctx,
        password: &str,
        peer: &Peer,
    ) -> Result<NewSession> {
        let session = of_person(ctx)?;
        let store = &self.core.store;
        let row = users::get(store, ctx.user()).await?.ok_or(Error::NotAuthenticated)?;
        let proved = self.prove(&emails::normalise(&row.email), password, peer).await?;
        // It may have ended meanwhile by a second factor that it has not seen.
        if sessions::of_active_user(store, session).await?.is_none() {
            return Err(Error::NotAuthenticated);
        }
        self.open_session(proved.id, peer, Some(session), Proved::of(&proved)).await
    }

    /// The account of this address, with the password that was proved.
    pub(super) async fn prove(
        &self,
        email_key: &str,
        password: &str,
        peer: &Peer,
    ) -> Result<UserRow> {
        // Before anything else: no password helps here, so none is looked at.
        self.refuse_password(email_key).await?;
        // The queue first: who is turned away there has not used up a try.
        let turn = self.hasher.queue()?;
        let counted = self.count_try(email_key, peer).await?;
        let user =
            users::by_email(&self.core.store, email_key).await?.filter(|user| user.is_active);
        let stored = user.as_ref().and_then(|user| user.password.clone());
        let (verdict, typed) = turn.verify(Password::typed(password), stored.clone()).await?;
        let (Some(mut user), Verdict::Right { outdated }) = (user, verdict) else {
            tracing::info!(account = account_label(email_key), "sign-in refused");
            return Err(wrong());
        };
        self.try_succeeded(counted).await?;
        if let (true, Some(stored)) = (outdated, stored) {
            // Worth a second hash, not worth failing for.
            let renewed = match self.hasher.queue() {
                Ok(turn) => turn.hash(typed).await,
                Err(error) => Err(error),
            };
            match renewed {
                Ok(after) => {
                    let store = &self.core.store;
                    let replaced = users::replace_hash(store, user.id, &stored, &after).await?;
                    user.password = match replaced {
                        true => Some(after),
                        false => self.renewed_elsewhere(&user, password).await?,
                    };
                }
                Err(error) => tracing::warn!(%error, "the password hash was not renewed"),
            }
        }
        Ok(user)
    }

    /// The hash that took the place of the one that was proved, if it is of the
    /// same password: another sign-in renewed it first.
    async fn renewed_elsewhere(
        &self,
        user: &UserRow,
        password: &str,
    ) -> Result<Option<PasswordHash>> {
        let turn = self.hasher.queue()?;
        let stored = users::get(&self.core.store, user.id).await?.and_then(|user| user.password);
        match turn.verify(Password::typed(password), stored.clone()).await? {
            (Verdict::Right { .. }, _) => Ok(stored),
            (Verdict::Wrong, _) => Err(wrong()),
        }
    }
}

/// The one answer to everything that is wrong at sign-in.
pub(super) fn wrong() -> Error {
    Error::Invalid(FieldError::body("invalid_credentials", "Invalid email or password."))
}

/// What logs say of an account: enough to see that tries belong together.
fn account_label(email_key: &str) -> String {
    secrets::sha256_hex(email_key).chars().take(12).collect()
}
