//! Mails of the service as data: what happened, and the recipient.
//!
//! What belongs here: the data of each kind of mail, as the outbox stores it. What does
//! not: texts, layout and delivery (`weir-mail`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{InviteId, UserId};
use crate::invites::LinkToken;
use crate::limits::{LimitAction, LimitName};
use crate::organizations::Level;
use crate::reports::Digest;
use crate::time::Timestamp;

/// A mail to one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The address of the recipient. It is empty in the outbox for a mail that confirms an
    /// address or resets a password: the service reads the address from the user when it
    /// sends the mail.
    pub to: String,
    /// The content.
    pub news: MailContent,
}

/// The content of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MailContent {
    /// An invite to an organization.
    Invited {
        /// The invite whose link the mail has.
        invite: InviteId,
        /// The token of its link, created when the mail is sent.
        #[serde(skip)]
        token: Option<LinkToken>,
        /// First name of the invited person; may be empty.
        first_name: String,
        /// First name of the inviter.
        inviter_name: String,
        /// Mail address of the inviter, for replies.
        inviter_email: String,
        /// Name of the organization.
        organization: String,
        /// Message of the inviter.
        message: Option<String>,
        /// When the link expires.
        expires_at: Timestamp,
    },
    /// A user joined the organization of the recipient.
    Joined {
        /// First name of the new member.
        member_name: String,
        /// Mail address of the new member.
        member_email: String,
        /// Name of the organization.
        organization: String,
    },
    /// A run of a batch export failed after a successful one.
    ExportFailed {
        /// The export whose run failed.
        export: ExportNamed,
        /// Start of the range of the run (inclusive); `None`: from the beginning.
        start: Option<Timestamp>,
        /// End of the range (exclusive).
        end: Timestamp,
        /// The error, as a message for members.
        error: Option<String>,
    },
    /// A batch export was paused because its runs failed repeatedly.
    ExportPaused {
        /// The export that was paused.
        export: ExportNamed,
        /// Number of failed runs among its newest runs.
        failed: u32,
        /// Number of newest runs that were checked.
        of: u32,
        /// The last error, as a message for members.
        error: Option<String>,
    },
    /// A plugin was disabled in a project because it failed repeatedly.
    PluginDisabled {
        /// Name of the config, or of the plugin.
        plugin: String,
        /// Name of the project.
        project: String,
        /// Name of the organization.
        organization: String,
        /// The last error, as a message for members.
        error: String,
    },
    /// A request to a user to confirm an address.
    ConfirmAddress {
        /// The user whose pending address the link confirms.
        user: UserId,
        /// The link, created when the mail is sent.
        #[serde(skip)]
        link: Option<OneTimeLink>,
    },
    /// A request for a new password. Whether the user exists is checked only when the
    /// mail is sent, so that the answer to the request does not reveal it.
    ResetPassword {
        /// The entered mail address, in the form in which addresses are compared. Stored
        /// mails have this name, so it stays.
        account: String,
        /// The link, created when the mail is sent.
        #[serde(skip)]
        link: Option<OneTimeLink>,
    },
    /// Sign-in data of a user was changed.
    UserChanged {
        /// First name of the user.
        first_name: String,
        /// Which sign-in data was changed.
        change: UserChange,
        /// Time of the change.
        at: Timestamp,
    },
    /// How users sign in was changed: a provider of the instance, or the rules of a domain.
    SignInChanged {
        /// First name of the recipient.
        first_name: String,
        /// Which provider or rule was changed.
        change: SignInChange,
        /// Address of the user who made the change; `None`: the operator of the instance.
        by: Option<String>,
        /// Time of the change.
        at: Timestamp,
        /// The page that shows what is stored now, as a path.
        path: String,
    },
    /// An alert began to fire, or its checks fail.
    Alert {
        /// First name of the recipient.
        first_name: String,
        /// Name of the alert.
        alert: String,
        /// Name of the project.
        project: String,
        /// What happened.
        news: AlertNews,
        /// The page of the alert, as a path.
        path: String,
    },
    /// The answers of a subscription.
    Subscription {
        /// First name of the recipient.
        first_name: String,
        /// Whether a member asked for it as a test.
        is_test: bool,
        /// The answers.
        digest: Digest,
    },
    /// An organization uses most of a limit, or all of it.
    LimitReached {
        /// First name of the recipient.
        first_name: String,
        /// Name of the organization.
        organization: String,
        /// The limit that the use comes close to.
        limit: LimitName,
        /// The share of it, in percent, that this mail is about: 80 or 100.
        percent: u64,
        /// How much is used.
        used: u64,
        /// The number that may be reached.
        most: u64,
        /// What happens beyond it.
        action: LimitAction,
        /// The page that shows the limits, as a path.
        path: String,
    },
}

/// What a mail about an alert says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertNews {
    /// The number is beyond a bound. The sentence says which number.
    Fires(String),
    /// Several checks in a row failed. The sentence says why.
    Fails(String),
}

/// A change of how users sign in, for owners and staff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInChange {
    /// A provider of the instance was added or changed.
    ProviderSaved {
        /// The name of the provider in settings and URLs.
        name: String,
    },
    /// A provider of the instance was removed.
    ProviderRemoved {
        /// The name of the provider in settings and URLs.
        name: String,
    },
    /// The sign-in rules or the SAML provider of a domain changed.
    DomainRules {
        /// The name of the domain whose rules changed.
        domain: String,
        /// Name of its organization.
        organization: String,
        /// The changed fields, with their names in the API.
        fields: Vec<String>,
    },
    /// A domain was verified, and its stored SAML provider acts.
    DomainVerified {
        /// The name that was verified.
        domain: String,
        /// Name of its organization.
        organization: String,
    },
    /// A verified domain got another name, and lost its rules.
    DomainRenamed {
        /// The new name.
        domain: String,
        /// The old name.
        before: String,
        /// Name of its organization.
        organization: String,
    },
    /// The rules of a domain were suspended because its record is missing, or act again.
    RulesSuspended {
        /// The name of the domain whose rules are suspended or act.
        domain: String,
        /// Name of its organization.
        organization: String,
        /// Whether they are suspended now.
        is_suspended: bool,
    },
    /// The last certificate of the SAML provider of a domain expires soon.
    CertificateExpires {
        /// The name of the domain with the certificate.
        domain: String,
        /// Name of its organization.
        organization: String,
        /// When it expires.
        expires_at: Timestamp,
    },
    /// The token with which an identity provider changes users.
    ScimToken {
        /// The name of the domain that the token is for.
        domain: String,
        /// Name of its organization.
        organization: String,
        /// What happened to it.
        change: TokenChange,
    },
    /// The level that a group of an identity provider gives.
    GroupLevel {
        /// The name of the domain whose provider has the group.
        domain: String,
        /// Name of its organization.
        organization: String,
        /// Name of the group.
        group: String,
        /// The level; `None`: it changes no level.
        level: Option<Level>,
    },
    /// The identity provider of a domain deactivated a user.
    UserDeactivated {
        /// The name of the domain whose provider deactivated the user.
        domain: String,
        /// Name of its organization.
        organization: String,
        /// Address of the user.
        email: String,
    },
    /// A domain with sign-in rules or a SAML provider was removed.
    DomainRemoved {
        /// The name of the removed domain.
        domain: String,
        /// Name of its organization.
        organization: String,
    },
}

/// What happened to a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenChange {
    /// It was made.
    Made,
    /// It was made in place of another one.
    Replaced,
    /// It was revoked.
    Revoked,
}

/// A change of sign-in data that the user is notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserChange {
    /// The mail address changed. The mail goes to the previous address.
    Address,
    /// The password changed.
    Password,
    /// The second factor was switched off.
    SecondFactorOff,
    /// The second factor was removed by the operator of the instance.
    SecondFactorTakenAway,
    /// An account at a provider was linked.
    AccountLinked,
    /// A linked account was removed.
    AccountUnlinked,
    /// A passkey was added.
    PasskeyAdded,
    /// A passkey was removed, and others or an authenticator app are left.
    PasskeyRemoved,
    /// The last passkey was removed, and with it the second factor.
    LastPasskeyRemoved,
    /// An authenticator app was added, with new recovery codes.
    AuthenticatorAppAdded,
    /// The authenticator app was removed, and passkeys are left.
    AuthenticatorAppRemoved,
    /// The recovery codes were replaced.
    RecoveryCodesReplaced,
    /// A link of the operator signed in.
    OperatorSignIn,
}

/// A batch export, described with the names that users know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportNamed {
    /// Name of the export.
    pub name: String,
    /// Type of its destination, such as `S3`.
    pub destination: String,
    /// Name of the project.
    pub project: String,
    /// Name of the organization.
    pub organization: String,
}

/// A link that works once. It is created when its mail is sent, and is never stored in
/// the outbox.
#[derive(Clone, PartialEq, Eq)]
pub struct OneTimeLink {
    /// The user whom the link is for.
    pub user: UserId,
    /// First name of the user.
    pub first_name: String,
    /// Whether sign-in is impossible until the address is confirmed.
    pub must_confirm: bool,
    /// The secret token of the link.
    pub token: String,
    /// When the link expires.
    pub expires_at: Timestamp,
}

/// Prints no token.
impl fmt::Debug for OneTimeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneTimeLink").field("user", &self.user).finish_non_exhaustive()
    }
}

impl MailContent {
    /// Removes the answers, which can have data of persons, from a mail that is not sent.
    pub fn forget_answers(&mut self) {
        if let Self::Subscription { digest, .. } = self {
            digest.reports.clear();
        }
    }

    /// The invite that the mail is about. A mail of a deleted invite is not sent.
    pub fn invite(&self) -> Option<InviteId> {
        match self {
            Self::Invited { invite, .. } => Some(*invite),
            Self::Joined { .. }
            | Self::ExportFailed { .. }
            | Self::ExportPaused { .. }
            | Self::PluginDisabled { .. }
            | Self::ConfirmAddress { .. }
            | Self::ResetPassword { .. }
            | Self::UserChanged { .. }
            | Self::SignInChanged { .. }
            | Self::Alert { .. }
            | Self::Subscription { .. }
            | Self::LimitReached { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{Mail, MailContent, OneTimeLink};
    use crate::reports::{Digest, Report};
    use crate::{Timestamp, UserId};

    #[test]
    fn a_mail_that_is_given_up_has_no_answers() {
        let report = Report { name: "Payments".to_owned(), ..Report::default() };
        let digest = Digest { reports: vec![report], ..Digest::default() };
        let first_name = "Grace".to_owned();
        let mut news = MailContent::Subscription { first_name, is_test: false, digest };
        news.forget_answers();
        let text = serde_json::to_string(&news).unwrap();
        assert!(!text.contains("Payments"), "{text}");
    }

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
        let news = MailContent::ConfirmAddress { user, link: Some(link) };
        let mail = Mail { to: "grace@mail.example".to_owned(), news };
        let text = serde_json::to_string(&mail).unwrap();
        assert!(!text.contains("secret") && !text.contains("link"), "{text}");
        let read: Mail = serde_json::from_str(&text).unwrap();
        assert!(matches!(read.news, MailContent::ConfirmAddress { link: None, .. }));
    }
}
