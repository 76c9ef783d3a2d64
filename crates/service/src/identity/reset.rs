//! Setting a new password without the old one, with a link from a mail (API-43).
//!
//! What belongs here: which users may ask, and what a new password ends. What does not:
//! whether a link works (`links`), which passwords are accepted (`passwords`).

use weir_model::mail::{MailContent, UserChange};
use weir_model::user_links::LinkKind;
use weir_store::update::lock;
use weir_store::user_links::{self as rows, Changed, Use};
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{ids, organizations, sessions};

use super::links::{Opened, void};
use super::passwords::PasswordContext;
use super::sessions::BrowserToken;
use super::{Identity, Peer, emails};
use crate::activity::Changes;
use crate::{Result, mail, users};

/// The counter of mails with links to set a password.
const COUNTED: &str = "reset";

/// The result of setting a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Reset {
    /// The address of the user.
    pub email: String,
    /// The cookie of the browser. It opens nothing, and is not stored.
    pub browser: String,
}

impl Identity {
    /// Sends a mail with a link to the user with this address, if there is one. The
    /// answer and its time do not reveal whether there is: the user is looked up when
    /// the mail is sent.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) with `email_not_available`, or
    /// `sso_enforced` for the address's domain;
    /// [`Error::Throttled`](crate::Error::Throttled).
    pub async fn ask_reset(&self, email: &str, peer: &Peer) -> Result<()> {
        self.refuse_without_mail()?;
        let account = emails::normalise(email);
        self.refuse_password_reset(&account).await?;
        self.count_mail(COUNTED, &account, Some(peer)).await?;
        self.add_mail(mail::to("", MailContent::ResetPassword { account, link: None })).await
    }

    /// Sets a new password with a link, and ends all sessions of the user. The user
    /// gets a mail, and can sign in from this browser without waiting for the attempts
    /// of unknown clients.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) with `invalid_token`, `sso_enforced`,
    /// or the reason why the password is refused: the link still works then;
    /// [`Error::Throttled`](crate::Error::Throttled);
    /// [`Error::Unavailable`](crate::Error::Unavailable) when too many users sign in at
    /// the same time.
    pub async fn reset_password(
        &self,
        user: &str,
        token: &str,
        password: &str,
        peer: &Peer,
        request_id: &str,
    ) -> Result<Reset> {
        let opened = self.open_link(LinkKind::Reset, user, token, peer).await?;
        self.refuse_password_reset(&opened.email_key()).await?;
        let Opened { user, link, hash } = opened;
        let store = &self.core.store;
        let memberships = organizations::of_user(store, user.id).await?;
        let organization_names: Vec<&str> =
            memberships.iter().map(|membership| membership.row.name.as_str()).collect();
        let about = PasswordContext {
            email: &link.email,
            organizations: &organization_names,
            first_name: &user.first_name,
        };
        let password = self.hasher.queue_of(peer)?.choose(password, &about).await?;
        let password = self.hasher.queue_of(peer)?.hash(password).await?;
        let _permit = lock::<UserRow>(store, &user.id).await;
        let user = user_rows::get(store, user.id).await?.ok_or_else(void)?;
        let ctx = self.owner(&user, request_id);
        let changes = Changes::none()
            .secret("password")
            .field("is_email_verified", &user.is_email_verified, &true)
            .field("pending_email", &user.pending_email, &None);
        let activities = users::audit_entry(&self.core, &ctx, &user, changes).await?;
        let mail = mail::of_change(&user, UserChange::Password, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [mail]);
        let with = Use {
            user: user.id,
            hash: &hash,
            attempt: ids::time_ordered(ctx.now),
            now: ctx.now,
            mails: &mails,
            activities: &activities,
        };
        match rows::reset(store, with, &password).await? {
            Changed::Yes => {}
            Changed::Void | Changed::EmailTaken => return Err(void()),
        }
        self.core.mailing.wake();
        let browser = BrowserToken::of(peer)?;
        sessions::know_browser(store, user.id, &browser.hash(), ctx.now).await?;
        tracing::info!(user.id = %user.id, request.id = request_id, "a password was set by a link");
        Ok(Reset { email: link.email, browser: browser.cookie(user.id) })
    }
}
