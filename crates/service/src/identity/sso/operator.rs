//! The way in that no provider can close: a link that the operator makes on the host
//! (SSO-31).
//!
//! The session that it opens counts also where a domain requires a provider. The link
//! works once, for an hour. It asks for no second factor, because the operator can remove
//! that as well.

use weir_model::Timestamp;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::mail::UserChange;
use weir_model::sso::OpenedBy;
use weir_model::user_links::LinkKind;
use weir_store::user_links::{self as rows, Changed, NewLink, Use};
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{ids, members, organizations};

use crate::Result;
use crate::activity::{self, About, Changes};
use crate::identity::links::{Opened, void};
use crate::identity::{Identity, NewSession, Peer, emails};
use crate::secrets;
use crate::{mail, users};

impl Identity {
    /// A link that signs this user in, as a path, with an audit entry in each organization of
    /// the user. `None`: there is no active user with this address.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn sign_in_link(&self, email: &str) -> Result<Option<String>> {
        let store = &self.core.store;
        let user = user_rows::by_email(store, &emails::normalise(email)).await?;
        let Some(user) = user.filter(|user| user.is_active) else { return Ok(None) };
        let now = self.core.clock.now();
        let token = secrets::token()?;
        let hash = token.hash();
        let kind = LinkKind::SignIn;
        let expires_at = now.plus_seconds(kind.seconds());
        let changes = Changes::none().field("sign_in_link_until", &None, &Some(expires_at));
        let activities = self.operator_entries(&user, now, AuditAction::Updated, changes).await?;
        let link = NewLink {
            user_row: &user,
            hash: &hash,
            kind,
            email: &user.email,
            expires_at,
            activities: &activities,
        };
        let stored = rows::put_link(store, link, now).await?;
        if stored != Changed::Yes {
            return Ok(None);
        }
        tracing::warn!(user.id = %user.id, "the operator made a link that signs a user in");
        Ok(Some(kind.path(user.id, &token.reveal())))
    }

    /// Activates a user whom an identity provider deactivated, for the operator. `None`:
    /// there is no user with this address. Whether the user was not active.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn activate(&self, email: &str) -> Result<Option<bool>> {
        let store = &self.core.store;
        let found = user_rows::by_email(store, &emails::normalise(email)).await?;
        let Some(user) = found else { return Ok(None) };
        if user.is_active {
            return Ok(Some(false));
        }
        let now = self.core.clock.now();
        let changes = Changes::none().field("is_active", &false, &true);
        let activities = self.operator_entries(&user, now, AuditAction::Enabled, changes).await?;
        members::set_active(store, user.id, true, &activities, now).await?;
        // The only trace of a user without an organization: the instance has no activity log.
        tracing::warn!(user.id = %user.id, "activated by the operator");
        Ok(Some(true))
    }

    /// Audit entries about what the operator does with a user: one for each organization of
    /// the user.
    async fn operator_entries(
        &self,
        user: &UserRow,
        now: Timestamp,
        action: AuditAction,
        changes: Changes,
    ) -> Result<Vec<Entry>> {
        let memberships = organizations::of_user(&self.core.store, user.id).await?;
        let entry = |one: &organizations::Belonging| {
            let about = About {
                subject: Subject::User,
                id: user.id.to_string(),
                name: Some(&user.email),
                project: None,
            };
            activity::own_entry(now, one.row.id, about, action, changes.clone())
        };
        Ok(memberships.iter().map(entry).collect())
    }

    /// Opens a session with such a link.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) with `invalid_token`;
    /// [`Error::Throttled`](crate::Error::Throttled).
    pub async fn use_sign_in_link(
        &self,
        user: &str,
        token: &str,
        peer: &Peer,
        request_id: &str,
    ) -> Result<NewSession> {
        let Opened { user, hash, .. } = self.open_link(LinkKind::SignIn, user, token, peer).await?;
        let (mut row, session) = self.new_session(user.id, peer)?;
        row.opened_by = OpenedBy::Operator;
        let ctx = self.owner(&user, request_id);
        let changes = Changes::none().field("signed_in_by", &None, &Some("operator"));
        let activities = users::audit_entry(&self.core, &ctx, &user, changes).await?;
        let news = mail::of_change(&user, UserChange::OperatorSignIn, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [news]);
        let with = Use {
            user: user.id,
            hash: &hash,
            attempt: ids::time_ordered(ctx.now),
            now: ctx.now,
            mails: &mails,
            activities: &activities,
        };
        match rows::sign_in(&self.core.store, with, &row).await? {
            Changed::Yes => {}
            Changed::Void | Changed::EmailTaken => return Err(void()),
        }
        self.core.mailing.wake();
        tracing::warn!(user.id = %user.id, request.id = request_id, "signed in with a link of the operator");
        Ok(session)
    }
}
