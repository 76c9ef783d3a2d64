//! One-time links to users: adding them to mails, and opening them. Links of invites
//! are added to mails here too.
//!
//! What belongs here: which mail gets which link, and whether a link works. What does
//! not: using a link (`confirm`, `reset`).
//!
//! A token is made when its mail is sent. Until then the outbox holds only the request
//! for one, so that no store and no backup contains a token. Of a token only its hash
//! is stored. A mail that is sent again gets a new token.

use weir_model::errors::FieldError;
use weir_model::mail::{Mail, MailContent, OneTimeLink};
use weir_model::user_links::{LinkKind, TOKEN_MAX};
use weir_model::{InviteId, UserId};
use weir_store::invites as invite_rows;
use weir_store::user_links::{self as rows, Changed, LinkRow, NewLink};
use weir_store::users::{self, UserRow};

use super::{Identity, Peer, emails};
use crate::error::Error;
use crate::{Core, Result, invites, secrets};

/// The message for a link that does not work.
const VOID: &str = "This link does not work any more, or never did. Ask for a new one.";

/// The data that a page shows about a link that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingLink {
    /// The address that the link was sent to.
    pub email: String,
    /// Whether nothing can sign in to this user before the address is confirmed,
    /// because the password was chosen by a person who had not proved to own the
    /// address.
    pub must_confirm: bool,
}

/// A link that works, and its user.
pub(super) struct Opened {
    pub(super) user: UserRow,
    pub(super) link: LinkRow,
    /// SHA-256 of its token.
    pub(super) hash: String,
}

impl Opened {
    /// The canonical form of the link's address.
    pub(super) fn email_key(&self) -> String {
        emails::normalise(&self.link.email)
    }
}

impl Identity {
    /// The data that a page shows about a link, if it works. This does not use up the
    /// link.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `invalid_token`; [`Error::Throttled`].
    pub async fn check_link(
        &self,
        kind: LinkKind,
        user: &str,
        token: &str,
        peer: &Peer,
    ) -> Result<WorkingLink> {
        let Opened { user, link, .. } = self.open_link(kind, user, token, peer).await?;
        Ok(WorkingLink { email: link.email, must_confirm: user.must_confirm })
    }

    /// Opens a link. The refusal is the same for every reason.
    pub(super) async fn open_link(
        &self,
        kind: LinkKind,
        user: &str,
        token: &str,
        peer: &Peer,
    ) -> Result<Opened> {
        let counted = self.count_link(peer).await?;
        let opened = self.find_link(kind, user, token).await?.ok_or_else(void)?;
        self.attempt_succeeded(counted).await?;
        Ok(opened)
    }

    async fn find_link(&self, kind: LinkKind, user: &str, token: &str) -> Result<Option<Opened>> {
        let (Ok(user), true) = (user.parse::<UserId>(), token.len() <= TOKEN_MAX) else {
            return Ok(None);
        };
        let (store, now) = (&self.core.store, self.core.clock.now());
        let hash = secrets::sha256_hex(token);
        let Some(link) = rows::link(store, user, &hash).await? else { return Ok(None) };
        let Some(user) = users::get(store, user).await? else { return Ok(None) };
        let is_pending =
            kind == LinkKind::Confirm && user.pending_email.as_deref() == Some(link.email.as_str());
        let works = link.kind == Some(kind)
            && !link.is_used
            && now < link.expires_at
            && user.is_active
            && (user.email == link.email || is_pending);
        Ok(works.then_some(Opened { user, link, hash }))
    }
}

/// The refusal of a link that does not work.
pub(super) fn void() -> Error {
    FieldError::new("token", "invalid_token", VOID).into()
}

/// The mail with the data that it needs when it is sent; `None`: there is no reason to
/// send it any more, or there never was.
pub(crate) async fn filled(core: &Core, mail: &Mail) -> Result<Option<Mail>> {
    let (kind, user) = match &mail.news {
        MailContent::Invited { invite, .. } => return invited(core, *invite, mail).await,
        MailContent::ConfirmAddress { user, .. } => {
            (LinkKind::Confirm, users::get(&core.store, *user).await?)
        }
        MailContent::ResetPassword { account, .. } => {
            (LinkKind::Reset, users::by_email(&core.store, account).await?)
        }
        MailContent::Joined { .. }
        | MailContent::ExportFailed { .. }
        | MailContent::ExportPaused { .. }
        | MailContent::PluginDisabled { .. }
        | MailContent::UserChanged { .. }
        | MailContent::SignInChanged { .. }
        | MailContent::Alert { .. }
        | MailContent::Subscription { .. }
        | MailContent::LimitReached { .. } => return Ok(Some(mail.clone())),
    };
    let Some(user) = user.filter(|user| user.is_active) else { return Ok(None) };
    let address = match kind {
        LinkKind::Confirm => to_confirm(core, &user).await?,
        // The stored address of the user, not the one that was typed.
        LinkKind::Reset => Some(user.email.clone()),
        // The operator hands it over.
        LinkKind::SignIn => None,
    };
    let Some(to) = address else { return Ok(None) };
    let link = made(core, kind, &user, &to).await?;
    if link.is_none() {
        return Ok(None);
    }
    let news = match kind {
        LinkKind::Confirm => MailContent::ConfirmAddress { user: user.id, link },
        LinkKind::Reset | LinkKind::SignIn => {
            MailContent::ResetPassword { account: emails::normalise(&user.email), link }
        }
    };
    Ok(Some(Mail { to, news }))
}

/// The mail of an invite with a link; `None`: the invite is gone, or is void.
async fn invited(core: &Core, invite: InviteId, mail: &Mail) -> Result<Option<Mail>> {
    let Some(row) = invite_rows::get_any(&core.store, invite).await? else { return Ok(None) };
    let inviter = invites::inviter(core, row.organization, row.created_by).await?;
    if inviter.level.is_none_or(|level| level < row.level) {
        return Ok(None);
    }
    let Some(link) = invites::mailed_link(core, row.id).await? else { return Ok(None) };
    let mut mail = mail.clone();
    if let MailContent::Invited { token, .. } = &mut mail.news {
        *token = Some(link);
    }
    Ok(Some(mail))
}

/// The address that a user is to confirm. An address of another user gets no mail, and
/// the person who entered it does not learn why.
async fn to_confirm(core: &Core, user: &UserRow) -> Result<Option<String>> {
    if let Some(pending) = &user.pending_email {
        let owner = users::by_email(&core.store, &emails::normalise(pending)).await?;
        let is_free = owner.is_none_or(|owner| owner.id == user.id);
        return Ok(is_free.then(|| pending.clone()));
    }
    Ok((!user.is_email_verified).then(|| user.email.clone()))
}

/// A link for this user; `None`: the user was changed at the same time.
async fn made(
    core: &Core,
    kind: LinkKind,
    user: &UserRow,
    to: &str,
) -> Result<Option<OneTimeLink>> {
    let now = core.clock.now();
    let token = secrets::token()?;
    let expires_at = now.plus_seconds(kind.seconds());
    let hash = token.hash();
    let link =
        NewLink { user_row: user, hash: &hash, kind, email: to, expires_at, activities: &[] };
    Ok(match rows::put_link(&core.store, link, now).await? {
        Changed::Yes => Some(OneTimeLink {
            user: user.id,
            first_name: user.first_name.clone(),
            must_confirm: user.must_confirm,
            token: token.reveal(),
            expires_at,
        }),
        Changed::Void | Changed::EmailTaken => None,
    })
}
