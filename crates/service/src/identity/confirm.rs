//! Confirming an address: the address of a new user, or a changed address (API-42).
//!
//! What belongs here: which users must confirm, asking for a mail, using its link,
//! changing the address. What does not: whether a link works (`links`).

use uuid::Uuid;
use weir_model::errors::FieldError;
use weir_model::mail::{Mail, MailContent, UserChange};
use weir_model::user_links::LinkKind;
use weir_model::{UserId, validate};
use weir_store::ids;
use weir_store::update::lock;
use weir_store::user_links::{self as rows, Address, Changed, Use};
use weir_store::users::{self as user_rows, UserRow};

use super::links::{Opened, void};
use super::{Identity, NewSession, Peer, emails};
use crate::activity::Changes;
use crate::ctx::{Actor, Ctx};
use crate::error::Error;
use crate::{Result, mail, policy, users};

/// The counter of mails with links to confirm addresses that anyone can request.
const COUNTED: &str = "confirm";
/// The counter of such mails that the signed-in user requests. Unknown clients cannot
/// use it up.
const COUNTED_OWN: &str = "confirm_own";
/// The message for the address of another user.
const EMAIL_TAKEN: &str = "There is already an account with this email address.";

impl Identity {
    /// Whether mail is set up, and with it everything that needs a link.
    pub fn sends_mail(&self) -> bool {
        self.core.mailing.is_open()
    }

    /// Sends the mail with the link again, if the user must confirm an address. The
    /// answer reveals neither that nor whether there is such a user.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `email_not_available`; [`Error::Throttled`].
    pub async fn ask_confirmation(&self, user: &str, peer: &Peer) -> Result<()> {
        self.refuse_without_mail()?;
        let user = user.parse().unwrap_or(UserId(Uuid::nil()));
        self.count_mail(COUNTED, &user.to_string(), Some(peer)).await?;
        self.add_mail(to_confirm(user)).await
    }

    /// Confirms an address with a link, and signs the user in. When the link changes
    /// the address, the earlier address gets a mail.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `invalid_token`, with `sso_enforced` where the domain of
    /// this address or of the earlier one does not allow it, and with
    /// `invalid_credentials` when the password was changed at the same time;
    /// [`Error::SecondFactor`] when the address is confirmed but the user has a second
    /// factor; [`Error::Throttled`].
    pub async fn confirm(
        &self,
        user: &str,
        token: &str,
        peer: &Peer,
        request_id: &str,
    ) -> Result<NewSession> {
        let opened = self.open_link(LinkKind::Confirm, user, token, peer).await?;
        let email_key = opened.email_key();
        self.refuse_password(&email_key).await?;
        let Opened { user, link, hash } = opened;
        let store = &self.core.store;
        let permit = lock::<UserRow>(store, &user.id).await;
        let user = user_rows::get(store, user.id).await?.ok_or_else(void)?;
        let before_key = emails::normalise(&user.email);
        let moves = link.email != user.email;
        if moves {
            // The rule may be newer than the request for the change.
            self.refuse_address_change(&before_key).await?;
        }
        let ctx = self.owner(&user, request_id);
        let pending = user.pending_email.clone().filter(|_| !moves);
        let changes = Changes::none()
            .field("email", &user.email, &link.email)
            .field("pending_email", &user.pending_email, &pending)
            .field("is_email_verified", &user.is_email_verified, &true);
        let activities = users::audit_entry(&self.core, &ctx, &user, changes).await?;
        let audit_entry = moves.then(|| mail::of_change(&user, UserChange::Address, ctx.now));
        let mails = self.core.mailing.rows(ctx.now, audit_entry);
        let with = Use {
            user: user.id,
            hash: &hash,
            attempt: ids::time_ordered(ctx.now),
            now: ctx.now,
            mails: &mails,
            activities: &activities,
        };
        let address = Address {
            email: &link.email,
            email_key: &email_key,
            before: &user.email,
            before_key: &before_key,
        };
        match rows::confirm(store, with, address).await? {
            Changed::Yes => {}
            // Another user was created with this address since.
            Changed::Void | Changed::EmailTaken => return Err(void()),
        }
        drop(permit);
        self.core.mailing.wake();
        tracing::info!(user.id = %user.id, request.id = request_id, "an address was confirmed");
        self.open_or_ask(&user, peer).await
    }

    /// Changes the address that the caller signs in with: when it is confirmed, or
    /// immediately where no mail is sent. Entering the present address cancels a
    /// waiting change.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`]; [`Error::Invalid`] at
    /// `email`, also where a domain says how its users sign in; [`Error::Throttled`]
    /// after too many mails.
    pub async fn change_address(&self, ctx: &Ctx, email: &str) -> Result<()> {
        policy::recent_person_only(ctx)?;
        let email = validate::email("email", email)?;
        let store = &self.core.store;
        let _permit = lock::<UserRow>(store, &ctx.user()).await;
        let user = user_rows::get(store, ctx.user()).await?.ok_or(Error::NotAuthenticated)?;
        if email == user.email {
            return self.keep_address(ctx, &user).await;
        }
        let (before_key, email_key) = (emails::normalise(&user.email), emails::normalise(&email));
        self.refuse_address_change(&before_key).await?;
        self.refuse_address_change(&email_key).await?;
        let changed = if self.sends_mail() {
            self.count_mail(COUNTED_OWN, &user.id.to_string(), None).await?;
            let after = Some(email.clone());
            let changes = Changes::none().field("pending_email", &user.pending_email, &after);
            let activities = users::audit_entry(&self.core, ctx, &user, changes).await?;
            let mails = self.core.mailing.rows(ctx.now, [to_confirm(user.id)]);
            let (before, pending) = (user.email.as_str(), Some(email.as_str()));
            rows::await_address(store, user.id, before, pending, &mails, &activities, ctx.now)
                .await?
        } else {
            let changes = Changes::none()
                .field("email", &user.email, &email)
                .field("pending_email", &user.pending_email, &None)
                .field("is_email_verified", &user.is_email_verified, &false);
            let activities = users::audit_entry(&self.core, ctx, &user, changes).await?;
            let address = Address {
                email: &email,
                email_key: &email_key,
                before: &user.email,
                before_key: &before_key,
            };
            rows::move_address(store, user.id, address, &activities, ctx.now).await?
        };
        match changed {
            Changed::Yes => {
                self.core.mailing.wake();
                Ok(())
            }
            Changed::EmailTaken => Err(FieldError::new("email", "unique", EMAIL_TAKEN).into()),
            Changed::Void => Err(changed_meanwhile()),
        }
    }

    /// Cancels a change of the address that waits to be confirmed. The caller holds the
    /// lock of the user.
    async fn keep_address(&self, ctx: &Ctx, user: &UserRow) -> Result<()> {
        if user.pending_email.is_none() {
            return Ok(());
        }
        let changes = Changes::none().field("pending_email", &user.pending_email, &None);
        let activities = users::audit_entry(&self.core, ctx, user, changes).await?;
        let store = &self.core.store;
        let kept =
            rows::await_address(store, user.id, &user.email, None, &[], &activities, ctx.now);
        match kept.await? {
            Changed::Yes => Ok(()),
            Changed::Void | Changed::EmailTaken => Err(changed_meanwhile()),
        }
    }

    /// Refuses a user who must confirm the address first, as long as mail is set up.
    /// Sends a new mail unless too many were sent.
    pub(super) async fn refuse_unconfirmed(&self, user: &UserRow) -> Result<()> {
        if !user.must_confirm || !self.sends_mail() {
            return Ok(());
        }
        match self.count_mail(COUNTED_OWN, &user.id.to_string(), None).await {
            Ok(()) => self.add_mail(to_confirm(user.id)).await?,
            Err(Error::Throttled { .. }) => {}
            Err(other) => return Err(other),
        }
        Err(Error::NotConfirmed { user: user.id })
    }

    /// Refuses an operation that needs mail where no mail is sent.
    pub(super) fn refuse_without_mail(&self) -> Result<()> {
        if self.sends_mail() {
            return Ok(());
        }
        let detail = "This instance sends no mail. Ask the operator.";
        Err(FieldError::body("email_not_available", detail).into())
    }

    /// Adds a mail to the outbox.
    pub(super) async fn add_mail(&self, mail: Mail) -> Result<()> {
        let mails = self.core.mailing.rows(self.core.clock.now(), [mail]);
        weir_store::mail::add(&self.core.store, &mails).await?;
        self.core.mailing.wake();
        Ok(())
    }

    /// The context of a user who proved their identity with a link.
    pub(super) fn owner(&self, user: &UserRow, request_id: &str) -> Ctx {
        let now = self.core.clock.now();
        let actor = Actor::Session { user: user.id, session: String::new(), signed_in_at: now };
        Ctx { actor, now, request_id: request_id.to_owned() }
    }
}

/// The mail with which a user confirms the address. The address is read from the user
/// when the mail is sent.
pub(super) fn to_confirm(user: UserId) -> Mail {
    mail::to("", MailContent::ConfirmAddress { user, link: None })
}

/// The refusal of a change that lost against a concurrent one.
pub(super) fn changed_meanwhile() -> Error {
    Error::Conflict {
        code: "conflict",
        detail: "Your user was changed in the meantime. Check it again.".to_owned(),
    }
}
