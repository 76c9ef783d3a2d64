//! The activity log: who changed what, and when (API-45, SEC-24).
//!
//! What belongs here: an audit entry as it is stored and shown. What does not: comparing
//! before and after, which the services do (`weir-service`). They omit secrets, so an
//! audit entry never contains one.

mod filter;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use filter::{ActivityFilter, BY_SERVICE};

use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::time::Timestamp;

/// What is recorded instead of a long value begins with this. Its SHA-256 in hexadecimal digits
/// follows.
pub const HASH: &str = "sha256:";

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// All values, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The words on the wire, in order.
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// The word on the wire.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of a word.
            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.text() == word)
            }
        }

        // Implemented by hand, because a derive does not see the words through this
        // macro.
        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                crate::schema::enumeration(Self::WORDS)
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}
    };
}
pub(crate) use words;

words! {
    /// The kind of object that was changed.
    Subject {
        /// An organization.
        Organization => "Organization",
        /// A membership.
        Member => "OrganizationMembership",
        /// An invite.
        Invite => "OrganizationInvite",
        /// A domain.
        Domain => "OrganizationDomain",
        /// A group of an identity provider.
        ScimGroup => "ScimGroup",
        /// A role.
        Role => "Role",
        /// A project.
        Project => "Team",
        /// A person.
        Person => "Person",
        /// A plugin record.
        Plugin => "Plugin",
        /// A transformation config.
        PluginConfig => "PluginConfig",
        /// A batch export.
        BatchExport => "BatchExport",
        /// A saved insight.
        Insight => "Insight",
        /// A dashboard.
        Dashboard => "Dashboard",
        /// An annotation.
        Annotation => "Annotation",
        /// An alert.
        Alert => "AlertConfiguration",
        /// A subscription.
        Subscription => "Subscription",
        /// A personal API key.
        PersonalApiKey => "PersonalAPIKey",
        /// A user.
        User => "User",
        /// A provider of single sign-on of the instance.
        SignInProvider => "SignInProvider",
    }
}

words! {
    /// The action that was done.
    AuditAction {
        /// The object was created.
        Created => "created",
        /// Fields of the object changed.
        Updated => "updated",
        /// The object was deleted.
        Deleted => "deleted",
        /// A secret or a token was replaced.
        Rotated => "rotated",
        /// A claim was proved.
        Verified => "verified",
        /// An invite was accepted.
        Accepted => "accepted",
        /// Work was started manually.
        Triggered => "triggered",
        /// A plugin was installed.
        Installed => "installed",
        /// A plugin was uninstalled.
        Uninstalled => "uninstalled",
        /// The object was enabled.
        Enabled => "enabled",
        /// The object was disabled.
        Disabled => "disabled",
        /// Values of its settings changed.
        ConfigUpdated => "config_updated",
        /// Its position in the order changed.
        OrderChanged => "order_changed",
        /// One of its jobs was started manually.
        JobTriggered => "job_triggered",
        /// A file was attached to it.
        AttachmentCreated => "attachment_created",
        /// An attached file was replaced.
        AttachmentUpdated => "attachment_updated",
        /// An attached file was removed.
        AttachmentDeleted => "attachment_deleted",
        /// A sign-in through a provider was refused.
        SignInRefused => "sign_in_refused",
    }
}

/// One changed field. Values are as the API shows them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FieldChange {
    /// The kind of object that the field belongs to.
    #[serde(rename = "type")]
    pub subject: Subject,
    /// `created`: the field had no value before. `deleted`: it has none now. Otherwise
    /// `changed`.
    pub action: String,
    /// Name of the field.
    pub field: String,
    /// The value before the change; null: there was none.
    pub before: Value,
    /// The value after the change; null: there is none.
    pub after: Value,
}

/// The changes of an audit entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Detail {
    /// Name of the object at that time.
    pub name: Option<String>,
    /// The fields that changed.
    pub changes: Vec<FieldChange>,
}

/// The personal API key or the SCIM token of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsedKey {
    /// Id of the key.
    pub id: String,
    /// Label of the key at that time.
    pub label: String,
    /// First four and last four characters of the key.
    pub mask_value: Option<String>,
}

/// An audit entry as it is stored. It contains only the id of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Id of the audit entry. Ids increase with time.
    pub id: Uuid,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The project that it is about, if any.
    pub team_id: Option<ProjectId>,
    /// The user who made the change; null: the service, or an identity provider.
    pub user: Option<UserId>,
    /// The personal API key of the request; null: the web app.
    pub personal_api_key: Option<UsedKey>,
    /// The SCIM token of a domain, if its identity provider made the change.
    // Missing in older entries, whose hashes must stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scim_token: Option<UsedKey>,
    /// The action.
    pub activity: AuditAction,
    /// The kind of object.
    pub scope: Subject,
    /// Id of the object.
    pub item_id: String,
    /// The changes.
    pub detail: Detail,
    /// Time of the change.
    pub created_at: Timestamp,
    /// Id of the request, as in the `x-request-id` header of its answer.
    pub request_id: String,
}

/// The user of an audit entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActivityUser {
    /// Id of the user.
    pub uuid: UserId,
    /// First name.
    pub first_name: String,
    /// Last name; may be empty.
    pub last_name: String,
    /// Mail address.
    pub email: String,
}

/// An audit entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Activity {
    /// Id of the audit entry. Ids increase with time.
    pub id: Uuid,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The project that it is about, if any.
    pub team_id: Option<ProjectId>,
    /// The user who made the change; null if the service or an identity provider made it,
    /// or if the user was deleted.
    pub user: Option<ActivityUser>,
    /// Whether the service made the change automatically.
    pub is_system: bool,
    /// The personal API key of the request; null: the web app.
    pub personal_api_key: Option<UsedKey>,
    /// The SCIM token of a domain, if its identity provider made the change. Its `id` is
    /// that of the domain, its `label` the name.
    pub scim_token: Option<UsedKey>,
    /// The action.
    pub activity: AuditAction,
    /// The kind of object.
    pub scope: Subject,
    /// Id of the object.
    pub item_id: String,
    /// The changes.
    pub detail: Detail,
    /// Time of the change.
    pub created_at: Timestamp,
    /// Id of the request, as in the `x-request-id` header of its answer.
    pub request_id: String,
}

/// A filter for audit entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivityQuery {
    /// Only entries about this kind of object (the word on the wire).
    pub scope: Option<String>,
    /// Only entries about the object with this id.
    pub item_id: Option<String>,
    /// Only entries of this user.
    pub user: Option<UserId>,
    /// Only changes that the service made automatically.
    pub by_service: bool,
    /// Only this action (the word on the wire).
    pub activity: Option<String>,
    /// Only entries at or after this time.
    pub since: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
    /// Only the entry with this id.
    pub id: Option<Uuid>,
}

impl ActivityQuery {
    /// Whether the filter accepts every entry.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the filter accepts an entry.
    pub fn wants(&self, entry: &Entry) -> bool {
        self.scope.as_deref().is_none_or(|scope| scope == entry.scope.text())
            && self.item_id.as_deref().is_none_or(|id| id == entry.item_id)
            && self.user.is_none_or(|user| entry.user == Some(user))
            && (!self.by_service || (entry.user.is_none() && entry.scim_token.is_none()))
            && self.activity.as_deref().is_none_or(|action| action == entry.activity.text())
            && self.since.is_none_or(|time| entry.created_at >= time)
            && self.until.is_none_or(|time| entry.created_at < time)
            && self.id.is_none_or(|id| id == entry.id)
    }
}
