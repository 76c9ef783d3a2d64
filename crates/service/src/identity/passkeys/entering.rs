//! What a passkey opens (SSO-61 to SSO-65): a session, the second step of a sign-in, and
//! what asks for the identity once more.
//!
//! A passkey cannot be guessed, so attempts are counted by network alone.

use weir_model::activity::{AuditAction, Subject};
use weir_model::sso::OpenedBy;
use weir_model::UserId;
use weir_store::passkeys::{self as rows, PasskeyRow, PasskeyUse};
use weir_store::second_factor::{self as factor_rows, Proof, Used};
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{organizations, sessions};

use super::ceremony::{Answer, Fault};
use super::{PasskeyChallenge, Purpose, Waits, party, refused};
use crate::Result;
use crate::activity::{self, About, Changes};
use crate::ctx::Ctx;
use crate::error::{Error, NOT_FOUND};
use crate::identity::pending::expired;
use crate::identity::second_factor::recent_session;
use crate::identity::sessions::session_of_user;
use crate::identity::{Identity, NewSession, Origin, emails};

impl Identity {
    /// Begins a sign-in with a passkey. The visitor enters no address: the passkey says
    /// whose it is.
    ///
    /// # Errors
    /// [`Error::Forbidden`] at an address without a host name; [`Error::Throttled`].
    pub async fn begin_passkey_sign_in(&self, from: Origin<'_>) -> Result<PasskeyChallenge> {
        self.count_precheck(from.peer).await?;
        let begun = party(from.site)?.begin(&[])?;
        self.await_answer(Purpose::SignIn, None, begun, None, None, from).await
    }

    /// Opens a session with a passkey. The authenticator has verified its user, so no second
    /// factor is asked for.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `passkey_expired` or `passkey_refused`, and with
    /// `sso_enforced` where the domain of the address requires a provider;
    /// [`Error::NotConfirmed`]; [`Error::Throttled`].
    pub async fn sign_in_with_passkey(
        &self,
        answer: &str,
        from: Origin<'_>,
    ) -> Result<NewSession> {
        let counted = self.count_by_network(from.peer).await?;
        let waits = self.take_challenge(Purpose::SignIn, None, None, from).await?;
        let (user, used) = self.prove_passkey(answer, &waits, None, from).await?;
        self.refuse_unconfirmed(&user).await?;
        let (mut row, session) = self.new_session(user.id, from.peer)?;
        row.opened_by = OpenedBy::Passkey;
        if !rows::sign_in(&self.core.store, &used, &row, None).await? {
            return Err(refused());
        }
        self.attempt_succeeded(counted).await?;
        Ok(session)
    }

    /// Begins the second step of a sign-in with a passkey of its user.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `2fa_expired` when the sign-in does not wait (any more);
    /// [`Error::NotFound`] when the user has no passkey for this address.
    pub async fn begin_passkey_step(
        &self,
        token: &str,
        from: Origin<'_>,
    ) -> Result<PasskeyChallenge> {
        let found = self.find_pending(token).await?.ok_or_else(expired)?;
        let rows = self.usable(found.user, from).await?;
        let begun = party(from.site)?.begin(&rows)?;
        self.await_answer(Purpose::SecondStep, None, begun, Some(found.hash), None, from).await
    }

    /// Completes a waiting sign-in with a passkey, and opens its session.
    ///
    /// # Errors
    /// As [`Identity::sign_in_with_passkey`]; [`Error::Invalid`] with `2fa_expired`.
    pub async fn end_sign_in_with_passkey(
        &self,
        token: &str,
        answer: &str,
        from: Origin<'_>,
    ) -> Result<NewSession> {
        let store = &self.core.store;
        let found = self.find_pending(token).await?.ok_or_else(expired)?;
        let counted = self.count_by_network(from.peer).await?;
        let sign_in = Some(found.hash.as_str());
        let waits = self.take_challenge(Purpose::SecondStep, None, sign_in, from).await?;
        let (user, used) = self.prove_passkey(answer, &waits, Some(found.user), from).await?;
        let (row, session) = self.new_session(user.id, from.peer)?;
        let proof = Proof::Passkey(used);
        match factor_rows::sign_in(store, &found.hash, found.factor, &proof, &row).await? {
            Used::Yes => {}
            Used::Before => return Err(refused()),
            Used::Void => return Err(expired()),
        }
        self.attempt_succeeded(counted).await?;
        Ok(session)
    }

    /// Begins a proof of the caller's identity with one of the caller's passkeys.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys; [`Error::NotFound`] when the caller has no passkey for
    /// this address.
    pub async fn begin_passkey_confirmation(
        &self,
        ctx: &Ctx,
        from: Origin<'_>,
    ) -> Result<PasskeyChallenge> {
        session_of_user(ctx)?;
        let rows = self.usable(ctx.user(), from).await?;
        let begun = party(from.site)?.begin(&rows)?;
        self.await_answer(Purpose::Confirm, Some(ctx), begun, None, None, from).await
    }

    /// Like [`Identity::sign_in_again`], with a passkey. The session gets a new token.
    ///
    /// # Errors
    /// As [`Identity::sign_in_with_passkey`]; [`Error::Forbidden`] for keys.
    pub async fn sign_in_again_with_passkey(
        &self,
        ctx: &Ctx,
        answer: &str,
        from: Origin<'_>,
    ) -> Result<NewSession> {
        let session = session_of_user(ctx)?;
        let store = &self.core.store;
        let waits = self.take_challenge(Purpose::Confirm, Some(ctx), None, from).await?;
        let (user, used) = self.prove_passkey(answer, &waits, Some(ctx.user()), from).await?;
        let current = sessions::current(store, session).await?;
        let (row, opened) = self.renewed_session(user.id, from.peer, session).await?;
        // The session may have ended since.
        if !rows::sign_in(store, &used, &row, Some(session)).await? {
            return Err(Error::NotAuthenticated);
        }
        if let Some(current) = current {
            self.keep_current(&row.hash, current).await;
        }
        Ok(opened)
    }

    /// Like [`Identity::renew_recovery_codes`], with a passkey.
    ///
    /// # Errors
    /// As [`Identity::sign_in_with_passkey`]; [`Error::Forbidden`] for keys,
    /// [`Error::SignInAgain`].
    pub async fn renew_recovery_codes_with_passkey(
        &self,
        ctx: &Ctx,
        answer: &str,
        from: Origin<'_>,
    ) -> Result<Vec<String>> {
        recent_session(ctx)?;
        let waits = self.take_challenge(Purpose::Confirm, Some(ctx), None, from).await?;
        let (user, used) = self.prove_passkey(answer, &waits, Some(ctx.user()), from).await?;
        let factor = user.second_factor.ok_or_else(refused)?;
        self.renew_with(ctx, &user, factor, &Proof::Passkey(used)).await
    }

    /// The passkeys of a user that were made for this address.
    async fn usable(&self, user: UserId, from: Origin<'_>) -> Result<Vec<PasskeyRow>> {
        let party = party(from.site)?;
        let mut rows = rows::of_user(&self.core.store, user).await?;
        rows.retain(|row| row.rp_id == party.id());
        if rows.is_empty() { Err(Error::NotFound(NOT_FOUND)) } else { Ok(rows) }
    }

    /// Checks the answer to a challenge: the user who proved to have a passkey, and its use,
    /// which the caller stores together with what it opens. `owner` is the user whose
    /// passkey it must be; `None`: the passkey says whose it is.
    async fn prove_passkey(
        &self,
        answer: &str,
        waits: &Waits,
        owner: Option<UserId>,
        from: Origin<'_>,
    ) -> Result<(UserRow, PasskeyUse)> {
        let store = &self.core.store;
        let party = party(from.site)?;
        let answer = Answer::read(answer).map_err(|fault| logged(&fault))?;
        let unknown = || logged(&Fault::Refused("it is not known".to_owned()));
        let row = rows::get(store, &answer.hash).await?.ok_or_else(unknown)?;
        let is_owner = match (owner, answer.handle) {
            (Some(owner), None) => row.user == owner,
            (Some(owner), Some(handle)) => row.user == owner && row.handle == handle,
            (None, handle) => handle == Some(row.handle),
        };
        if !is_owner {
            return Err(logged(&Fault::Refused("it belongs to another user".to_owned())));
        }
        let user = user_rows::get(store, row.user).await?.filter(|user| user.is_active);
        let user = user.ok_or_else(unknown)?;
        let used = match party.finish(&answer, &waits.state, &row, self.core.clock.now()) {
            Ok(used) => used,
            Err(fault) => {
                if matches!(fault, Fault::CounterWentBack) {
                    self.record_copy(&user, &row).await?;
                }
                return Err(logged(&fault));
            }
        };
        // After the check: the answer reveals nothing to a visitor without the passkey.
        self.refuse_password(&emails::normalise(&user.email)).await?;
        Ok((user, used))
    }

    /// Records that the counter of a passkey went back, for its user and for the
    /// administrators of the user's organizations.
    async fn record_copy(&self, user: &UserRow, row: &PasskeyRow) -> Result<()> {
        let store = &self.core.store;
        let now = self.core.clock.now();
        let changes = Changes::none()
            .field("passkey", &None, &Some(&row.name))
            .field("reason", &None, &Some("The counter went back: there may be a copy."));
        let entry = |membership: &organizations::Belonging| {
            let about = About {
                subject: Subject::User,
                id: user.id.to_string(),
                name: Some(&user.email),
                project: None,
            };
            let action = AuditAction::SignInRefused;
            activity::own_entry(now, membership.row.id, about, action, changes.clone())
        };
        let memberships = organizations::of_user(store, user.id).await?;
        let entries: Vec<_> = memberships.iter().map(entry).collect();
        tracing::warn!(user.id = %user.id, "the counter of a passkey went back");
        Ok(rows::refuse(store, &row.hash, now, &entries).await?)
    }
}

/// The refusal, after its reason is in the log.
fn logged(fault: &Fault) -> Error {
    tracing::info!(?fault, "a passkey was refused");
    refused()
}
