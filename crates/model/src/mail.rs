//! Mails that the service sends, before they have words: what happened, and to
//! whom it is told.
//!
//! What belongs here: the facts of each kind of mail, as they wait in the store.
//! What does not: texts, forms and delivery (`weir-mail`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{InviteId, UserId};
use crate::invites::LinkToken;
use crate::time::Timestamp;

/// A mail to one person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The one address that it goes to. Of a mail to the owner of an account the
    /// account decides, when the mail is sent.
    pub to: String,
    /// What it tells.
    pub news: News,
}

/// What a mail tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum News {
    /// Somebody is invited to an organization.
    Invited {
        /// The invite.
        invite: InviteId,
        /// What opens its link, from the moment in which the mail is sent.
        #[serde(skip)]
        token: Option<LinkToken>,
        /// First name of the invited person; may be empty.
        first_name: String,
        /// Who invites: first name.
        inviter_name: String,
        /// Who invites: address, for answers.
        inviter_email: String,
        /// Name of the organization.
        organization: String,
        /// Words of the inviter.
        message: Option<String>,
        /// When the link stops working.
        expires_at: Timestamp,
    },
    /// Somebody joined the organization of the reader.
    Joined {
        /// Who joined: first name.
        member_name: String,
        /// Who joined: address.
        member_email: String,
        /// Name of the organization.
        organization: String,
    },
    /// A run of a batch export failed, after others that did not.
    ExportFailed {
        /// Which export.
        export: ExportNamed,
        /// The first instant of the run; none: from the beginning.
        start: Option<Timestamp>,
        /// The instant after its last one.
        end: Timestamp,
        /// What went wrong, in words for members.
        error: Option<String>,
    },
    /// A batch export was paused because its runs failed over and over.
    ExportPaused {
        /// Which export.
        export: ExportNamed,
        /// How many of its newest runs failed.
        failed: u32,
        /// How many of its newest runs were looked at.
        of: u32,
        /// What went wrong last, in words for members.
        error: Option<String>,
    },
    /// A plugin was disabled in a project because it failed over and over.
    PluginDisabled {
        /// Name of the config, or of the plugin.
        plugin: String,
        /// Name of the project.
        project: String,
        /// Name of the organization.
        organization: String,
        /// What went wrong last, in words for members.
        error: String,
    },
    /// The owner of an account is to confirm an address.
    ConfirmAddress {
        /// The account.
        user: UserId,
        /// What the mail carries from the moment in which it is sent.
        #[serde(skip)]
        link: Option<OneTimeLink>,
    },
    /// Somebody asked for a new password. Whether there is such an account is
    /// looked at when the mail is sent: who asks is answered the same way.
    ResetPassword {
        /// The address that was entered, in the form in which addresses are
        /// compared.
        account: String,
        /// What the mail carries from the moment in which it is sent.
        #[serde(skip)]
        link: Option<OneTimeLink>,
    },
    /// What the owner of an account signs in with was changed.
    AccountChanged {
        /// First name of the owner.
        first_name: String,
        /// What was changed.
        change: AccountChange,
        /// When.
        at: Timestamp,
    },
}

/// A change of what somebody signs in with, which its owner is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountChange {
    /// The address is another one: the one before is told.
    Address,
    /// The password is another one.
    Password,
    /// No second factor is asked for any more.
    SecondFactorOff,
    /// The same, by whoever runs the instance.
    SecondFactorTakenAway,
}

/// A batch export in the words that people have for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportNamed {
    /// Its name.
    pub name: String,
    /// The kind of its destination, such as `S3`.
    pub destination: String,
    /// Name of the project.
    pub project: String,
    /// Name of the organization.
    pub organization: String,
}

/// A link that works once. It is made when its mail is sent, and is never part
/// of what waits in the store.
#[derive(Clone, PartialEq, Eq)]
pub struct OneTimeLink {
    /// The account.
    pub user: UserId,
    /// First name of its owner.
    pub first_name: String,
    /// Whether nobody signs in to the account before its address is confirmed.
    pub must_confirm: bool,
    /// What makes the link work.
    pub token: String,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// Without the token.
impl fmt::Debug for OneTimeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneTimeLink").field("user", &self.user).finish_non_exhaustive()
    }
}

impl News {
    /// The invite that the mail is for; a mail whose invite is gone is not sent.
    #[must_use]
    pub fn invite(&self) -> Option<InviteId> {
        match self {
            Self::Invited { invite, .. } => Some(*invite),
            Self::Joined { .. }
            | Self::ExportFailed { .. }
            | Self::ExportPaused { .. }
            | Self::PluginDisabled { .. }
            | Self::ConfirmAddress { .. }
            | Self::ResetPassword { .. }
            | Self::AccountChanged { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{Mail, News, OneTimeLink};
    use crate::{Timestamp, UserId};

    #[test]
    fn what_waits_in_the_store_has_no_link() {
        let user = UserId(Uuid::nil());
        let link = OneTimeLink {
            user,
            first_name: String::new(),
            must_confirm: false,
            token: "secret".to_owned(),
            expires_at: Timestamp::EPOCH,
        };
        let news = News::ConfirmAddress { user, link: Some(link) };
        let mail = Mail { to: "grace@mail.example".to_owned(), news };
        let text = serde_json::to_string(&mail).unwrap();
        assert!(!text.contains("secret") && !text.contains("link"), "{text}");
        let read: Mail = serde_json::from_str(&text).unwrap();
        assert!(matches!(read.news, News::ConfirmAddress { link: None, .. }));
    }
}
