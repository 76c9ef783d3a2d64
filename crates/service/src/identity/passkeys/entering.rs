//! What a passkey opens (SSO-61 to SSO-65): a session, the second step of a sign-in, and
//! what asks for the identity once more.
//!
//! A passkey cannot be guessed, so attempts are counted by network alone.

use weir_model::UserId;
use weir_model::activity::{AuditAction, Subject};
use weir_model::sso::OpenedBy;
use weir_store::passkeys::{self as rows, PasskeyRow, PasskeyUse};
use weir_store::second_factor::{self as factor_rows, Proof, Used};
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{organizations, sessions};
use weir_webauthn::{Assertion, Challenge, Refusal};

use super::{
    PasskeyChallenge, Purpose, StoredChallenge, challenge, credential, hash, made_for, party,
    refused, written,
};
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
    /// [`Error::Forbidden`] at a site without a host name; [`Error::Throttled`].
    pub async fn begin_passkey_sign_in(&self, from: Origin<'_>) -> Result<PasskeyChallenge> {
        self.count_beginning(from.peer).await?;
        let challenge = challenge()?;
        let options = party(from.site)?.request_options(&challenge, &[]);
        let waits = StoredChallenge::new(challenge, None, None, from);
        self.await_answer(Purpose::SignIn, None, options, waits, from).await
    }

    /// Opens a session with a passkey. The authenticator has verified its user, so no second
    /// factor is requested.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `passkey_expired` or `passkey_refused`, and with
    /// `sso_enforced` where the domain of the address requires a provider;
    /// [`Error::NotConfirmed`]; [`Error::Throttled`].
    pub async fn sign_in_with_passkey(&self, answer: &str, from: Origin<'_>) -> Result<NewSession> {
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
    /// [`Error::NotFound`] when the user has no passkey for this site.
    pub async fn begin_passkey_step(
        &self,
        token: &str,
        from: Origin<'_>,
    ) -> Result<PasskeyChallenge> {
        let found = self.find_pending(token).await?.ok_or_else(expired)?;
        let challenge = challenge()?;
        let options = self.request_options_of(found.user, &challenge, from).await?;
        let waits = StoredChallenge::new(challenge, Some(found.hash), None, from);
        self.await_answer(Purpose::SecondStep, None, options, waits, from).await
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
    /// this site.
    pub async fn begin_passkey_confirmation(
        &self,
        ctx: &Ctx,
        from: Origin<'_>,
    ) -> Result<PasskeyChallenge> {
        session_of_user(ctx)?;
        let challenge = challenge()?;
        let options = self.request_options_of(ctx.user(), &challenge, from).await?;
        let waits = StoredChallenge::new(challenge, None, None, from);
        self.await_answer(Purpose::Confirm, Some(ctx), options, waits, from).await
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

    /// The options for a passkey of this user that was made for this site.
    async fn request_options_of(
        &self,
        user: UserId,
        challenge: &Challenge,
        from: Origin<'_>,
    ) -> Result<String> {
        let party = party(from.site)?;
        let rows = rows::of_user(&self.core.store, user).await?;
        let usable = made_for(&party, &rows)?;
        if usable.is_empty() {
            return Err(Error::NotFound(NOT_FOUND));
        }
        Ok(party.request_options(challenge, &usable))
    }

    /// Checks the answer to a challenge: the user who proved to have a passkey, and its use,
    /// which the caller stores together with what it opens. `owner` is the user whose
    /// passkey it must be; `None`: the passkey says whose it is.
    async fn prove_passkey(
        &self,
        answer: &str,
        waits: &StoredChallenge,
        owner: Option<UserId>,
        from: Origin<'_>,
    ) -> Result<(UserRow, PasskeyUse)> {
        let store = &self.core.store;
        let party = party(from.site)?;
        let answer = Assertion::read(answer).map_err(|refusal| self.logged(&refusal))?;
        let unknown = || self.logged(&"it is not known");
        let row = rows::get(store, &hash(answer.credential_id())).await?.ok_or_else(unknown)?;
        let is_of_owner = owner.is_none_or(|owner| row.user == owner);
        let names_owner = match answer.handle() {
            Some(handle) => handle == row.handle.as_bytes(),
            // Only where the user is known already.
            None => owner.is_some(),
        };
        if !is_of_owner || !names_owner || row.rp_id != party.id() {
            return Err(self.logged(&"it belongs to another user or site"));
        }
        let user = user_rows::get(store, row.user).await?.filter(|user| user.is_active);
        let user = user.ok_or_else(unknown)?;
        let after = match party.verify(&answer, &waits.challenge, &credential(&row)?) {
            Ok(after) => after,
            Err(refusal) => {
                if refusal == Refusal::CounterWentBack {
                    self.record_copy(&user, &row).await?;
                }
                return Err(self.logged(&refusal));
            }
        };
        // After the check: a visitor without the passkey learns nothing about its user.
        self.refuse_password(&emails::normalise(&user.email)).await?;
        let at = self.core.clock.now();
        let used =
            PasskeyUse { hash: row.hash, before: row.credential, after: written(&after)?, at };
        Ok((user, used))
    }

    /// Records that the counter of a passkey went back, for its user and for the
    /// administrators of the user's organizations.
    async fn record_copy(&self, user: &UserRow, row: &PasskeyRow) -> Result<()> {
        let store = &self.core.store;
        let now = self.core.clock.now();
        let changes = Changes::none().field("passkey", &None, &Some(&row.name)).field(
            "reason",
            &None,
            &Some("The counter went back: there may be a copy."),
        );
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

    /// The refusal, after its reason is in the log and counted.
    fn logged(&self, why: &dyn std::fmt::Display) -> Error {
        tracing::info!(%why, "a passkey was refused");
        self.count_refusal();
        refused()
    }
}
