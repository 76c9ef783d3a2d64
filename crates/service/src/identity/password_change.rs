//! Changing the password, with the present one.

use weir_model::errors::FieldError;
use weir_model::mail::UserChange;
use weir_store::user_links::password::{self as rows, NewPassword};
use weir_store::{organizations, users as user_rows};

use super::confirm::changed_meanwhile;
use super::passwords::PasswordContext;
use super::sessions::session_of_user;
use super::{Identity, NewSession, Peer, emails};
use crate::activity::Changes;
use crate::ctx::Ctx;
use crate::error::Error;
use crate::{Result, mail, users};

/// The message for a wrong present password.
const WRONG: &str = "This is not the present password of your account.";

impl Identity {
    /// Changes the caller's password. All other sessions and all links from mails end.
    /// This session gets a new token, and the user gets a mail.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys; [`Error::Invalid`] at `current_password` when it
    /// is wrong, at `password` when the new one is not accepted, with `sso_enforced`
    /// where the domain of the address allows none; [`Error::Throttled`];
    /// [`Error::Conflict`] when the user was changed at the same time;
    /// [`Error::Unavailable`] when too many users sign in at the same time.
    pub async fn change_password(
        &self,
        ctx: &Ctx,
        current: &str,
        chosen: &str,
        peer: &Peer,
    ) -> Result<NewSession> {
        let current_session = session_of_user(ctx)?;
        let store = &self.core.store;
        let row = user_rows::get(store, ctx.user()).await?.ok_or(Error::NotAuthenticated)?;
        let proved =
            self.prove(&emails::normalise(&row.email), current, peer, Some(current_session)).await;
        let user = proved.map_err(|error| match error {
            Error::Invalid(fault) if fault.code == "invalid_credentials" => {
                FieldError::new("current_password", &fault.code, WRONG).into()
            }
            other => other,
        })?;
        let memberships = organizations::of_user(store, user.id).await?;
        let organization_names: Vec<&str> =
            memberships.iter().map(|membership| membership.row.name.as_str()).collect();
        let about = PasswordContext {
            email: &user.email,
            organizations: &organization_names,
            first_name: &user.first_name,
        };
        let password = self.hasher.queue()?.choose(chosen, &about).await?;
        let hash = self.hasher.queue()?.hash(password).await?;
        let changes = Changes::none().secret("password");
        let audit_entry = users::audit_entry(&self.core, ctx, &user, changes).await?;
        let (new, session) = self.new_session(user.id, peer)?;
        let mail = mail::of_change(&user, UserChange::Password, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [mail]);
        let change = NewPassword {
            user: user.id,
            present: user.password.as_ref().ok_or_else(changed_meanwhile)?,
            chosen: &hash,
            replaced: current_session,
            session: &new,
            mails: &mails,
            activities: &audit_entry,
        };
        if !rows::change(store, change).await? {
            return Err(changed_meanwhile());
        }
        self.core.mailing.wake();
        tracing::info!(user.id = %user.id, request.id = ctx.request_id, "a password was changed");
        Ok(session)
    }
}
