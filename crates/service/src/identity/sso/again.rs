//! Confirming the identity of a user whose session is open (SSO-41).
//!
//! What belongs here: which methods the user has, and whether the answer of a provider confirms
//! the session. What does not: how long a sign-in counts as recent (`policy`).

use weir_model::UserId;
use weir_model::domains::SsoEnforcement;
use weir_model::sso::{Connection, OpenedBy};
use weir_store::sso::identities;
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{passkeys, sessions};

use super::flow::{Purpose, Waiting};
use crate::Result;
use crate::ctx::Ctx;
use crate::error::Error;
use crate::identity::sessions::session_of_user;
use crate::identity::{Identity, emails};
use crate::sso::Verified;

/// The code for a provider that let the user in without a new sign-in.
const NOT_RECENT: &str = "sign_in_not_recent";
/// Seconds by which the clock of a provider may differ.
const LEEWAY: i64 = 60;

/// How a user can confirm their identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirming {
    /// The address of the user.
    pub email: String,
    /// A provider, and its name for people.
    pub provider: Option<(Connection, String)>,
    /// Whether the user has a password that may be used.
    pub has_password: bool,
    /// Whether the user has a passkey that may be used.
    pub has_passkey: bool,
    /// Whether a link of the operator opened the session. Another link confirms too.
    pub by_operator: bool,
}

impl Identity {
    /// How the caller can confirm their identity.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn confirming(&self, ctx: &Ctx) -> Result<Confirming> {
        let session = session_of_user(ctx)?;
        let store = &self.core.store;
        let user = user_rows::get(store, ctx.user()).await?.ok_or(Error::NotAuthenticated)?;
        let found = sessions::get(store, session).await?;
        let opened_by = found.map(|session| session.opened_by);
        let [has_password, has_passkey] = self.own_methods(&user).await?;
        let connection = match opened_by {
            Some(OpenedBy::Connection(connection)) => Some(connection),
            _ if has_password || has_passkey => None,
            _ => self.other_connection(&user).await?,
        };
        let provider = match connection {
            Some(connection) => Some((connection, self.core.connection_name(connection).await?)),
            None => None,
        };
        Ok(Confirming {
            email: user.email,
            provider,
            has_password,
            has_passkey,
            by_operator: opened_by == Some(OpenedBy::Operator),
        })
    }

    /// Whether the user has a password and a passkey that may be used: where the domain of
    /// the address requires a provider, neither may.
    async fn own_methods(&self, user: &UserRow) -> Result<[bool; 2]> {
        if self.enforcement(&emails::normalise(&user.email)).await?.is_some() {
            return Ok([false; 2]);
        }
        let passkeys = passkeys::of_user(&self.core.store, user.id).await?;
        Ok([user.password.is_some(), !passkeys.is_empty()])
    }

    /// The provider that a user without a password and a passkey can use: the required one,
    /// or one that is linked.
    async fn other_connection(&self, user: &UserRow) -> Result<Option<Connection>> {
        let row = self.acting_domain(&emails::normalise(&user.email)).await?;
        if let Some(row) = row {
            match self.core.in_force(&row).await? {
                Some(SsoEnforcement::Provider(name)) => {
                    return Ok(Some(Connection::Provider(name)));
                }
                Some(SsoEnforcement::Saml) => return Ok(Some(Connection::Saml(row.id))),
                Some(SsoEnforcement::Off) | None => {}
            }
        }
        let linked = identities::of_user(&self.core.store, user.id).await?;
        Ok(linked.iter().find_map(|row| Connection::parse(&row.connection)))
    }

    /// Why the answer of a provider does not confirm the open session of this user; `None`:
    /// it does, or it is the sign-in of another user.
    ///
    /// A provider that does not say when the user signed in, such as GitHub, confirms only
    /// for a user who has no other method.
    pub(super) async fn unconfirmed(
        &self,
        waiting: &Waiting,
        user: UserId,
        verified: &Verified,
    ) -> Result<Option<&'static str>> {
        if waiting.purpose != Purpose::Confirm || waiting.row.user != Some(user) {
            return Ok(None);
        }
        let confirms = match verified.signed_in_at {
            Some(at) => at >= waiting.begun().plus_seconds(-LEEWAY),
            None => match user_rows::get(&self.core.store, user).await? {
                Some(user) => self.own_methods(&user).await? == [false; 2],
                None => false,
            },
        };
        Ok((!confirms).then_some(NOT_RECENT))
    }
}
