//! Accounts at providers that are linked to a user: listing, adding and removing them
//! (SSO-30).
//!
//! What belongs here: what the user may do with them. What does not: signing in with one
//! (`flow`).

use weir_model::Timestamp;
use weir_model::mail::UserChange;
use weir_model::sso::Connection;
use weir_store::proofs::SignInMethods;
use weir_store::sso::identities::{self, IdentityRow, Linked, Unlinking};
use weir_store::update::lock;
use weir_store::users::{self as user_rows, UserRow};

use crate::activity::Changes;
use crate::ctx::Ctx;
use crate::error::{Error, NOT_FOUND};
use crate::identity::Identity;
use crate::identity::sessions::session_of_user;
use crate::{Result, mail, policy, users};

/// Most accounts that a user may link.
pub(super) const LINKS_MAX: usize = 20;

/// An account at a provider that signs the user in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedAccount {
    /// Its id.
    pub id: String,
    /// The connection, as text.
    pub connection: String,
    /// The name of the connection for people.
    pub name: String,
    /// The issuer or entity id of the provider.
    pub issuer: String,
    /// The address that the provider named last.
    pub email: Option<String>,
    /// When it was linked.
    pub linked_at: Timestamp,
    /// When it last signed the user in.
    pub used_at: Timestamp,
}

impl Identity {
    /// The accounts that are linked to the caller, oldest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn linked_accounts(&self, ctx: &Ctx) -> Result<Vec<LinkedAccount>> {
        policy::person_only(ctx)?;
        let rows = identities::of_user(&self.core.store, ctx.user()).await?;
        let names = self.core.connection_names().await?;
        let name = |text: &str| Connection::parse(text).map(|connection| names.of(connection));
        let shown = |row: IdentityRow| LinkedAccount {
            name: name(&row.connection).unwrap_or_default(),
            id: row.hash,
            connection: row.connection,
            issuer: row.issuer,
            email: row.email,
            linked_at: row.linked_at,
            used_at: row.used_at,
        };
        Ok(rows.into_iter().map(shown).collect())
    }

    /// Removes an account that is linked to the caller. All other sessions end: this
    /// account may have opened them.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`]; [`Error::NotFound`];
    /// [`Error::Conflict`] when the caller could not sign in any more.
    pub async fn unlink(&self, ctx: &Ctx, id: &str) -> Result<()> {
        policy::recent_person_only(ctx)?;
        let store = &self.core.store;
        let _permit = lock::<UserRow>(store, &ctx.user()).await;
        let user = user_rows::get(store, ctx.user()).await?.ok_or(Error::NotAuthenticated)?;
        let rows = identities::of_user(store, user.id).await?;
        let row = rows.iter().find(|row| row.hash == id).ok_or(Error::NotFound(NOT_FOUND))?;
        let methods = self.sign_in_methods(&user).await?.without(&row.hash);
        if methods.as_ref().is_some_and(SignInMethods::is_empty) {
            return Err(last_method());
        }
        let name = self.name_of(&row.connection).await?;
        let changes = Changes::none().field("linked_account", &name, &None);
        let activities = users::audit_entry(&self.core, ctx, &user, changes).await?;
        let news = mail::of_change(&user, UserChange::AccountUnlinked, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [news]);
        let removal = Unlinking {
            user: user.id,
            hash: &row.hash,
            session: session_of_user(ctx)?,
            methods: methods.as_ref(),
            mails: &mails,
            activities: &activities,
        };
        if !identities::unlink(store, removal).await? {
            return Err(last_method());
        }
        self.core.mailing.wake();
        Ok(())
    }

    /// Stores an identity of the caller, with the mail about it.
    pub(super) async fn store_link(
        &self,
        ctx: &Ctx,
        user: &UserRow,
        session: &str,
        identity: &IdentityRow,
    ) -> Result<Linked> {
        let name = self.name_of(&identity.connection).await?;
        let changes = Changes::none().field("linked_account", &None, &name);
        let activities = users::audit_entry(&self.core, ctx, user, changes).await?;
        let news = mail::of_change(user, UserChange::AccountLinked, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [news]);
        let store = &self.core.store;
        let linked =
            identities::link(store, session, identity, LINKS_MAX, &mails, &activities).await?;
        self.core.mailing.wake();
        Ok(linked)
    }

    /// The name of a stored connection for people.
    async fn name_of(&self, text: &str) -> Result<Option<String>> {
        Ok(match Connection::parse(text) {
            Some(connection) => Some(self.core.connection_name(connection).await?),
            None => None,
        })
    }
}

/// The refusal to remove what the caller needs to sign in.
pub(in crate::identity) fn last_method() -> Error {
    let detail = "This is your only way to sign in. Add another one first.";
    Error::Conflict { code: "last_way", detail: detail.to_owned() }
}
