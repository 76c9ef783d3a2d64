//! Mails that the service sends, before they have words: what happened, and to
//! whom it is told.
//!
//! What belongs here: the facts of each kind of mail, as they wait in the store.
//! What does not: texts, forms and delivery (`weir-mail`).

use serde::{Deserialize, Serialize};

use crate::ids::InviteId;
use crate::time::Timestamp;

/// A mail to one person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The one address that it goes to.
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
        /// The invite, whose link the mail carries.
        invite: InviteId,
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
}

impl News {
    /// The invite that the mail is for; a mail whose invite is gone is not sent.
    #[must_use]
    pub fn invite(&self) -> Option<InviteId> {
        match self {
            Self::Invited { invite, .. } => Some(*invite),
            Self::Joined { .. } => None,
        }
    }
}
