//! The activity log: what was changed, by whom (API-45, SEC-24).
//!
//! What belongs here: an entry as it is stored and shown. Secrets never get
//! here: whoever compares before and after leaves them out.

mod filter;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use filter::{ActivityFilter, BY_SERVICE};

use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::time::Timestamp;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The words on the wire, in order.
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// The word on the wire.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        // Not derived: a derive does not see the words through this macro.
        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                crate::schema::words(Self::WORDS)
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}
    };
}

words! {
    /// What kind of thing was changed.
    Subject {
        /// An organization.
        Organization => "Organization",
        /// A membership.
        Member => "OrganizationMembership",
        /// An invite.
        Invite => "OrganizationInvite",
        /// A domain.
        Domain => "OrganizationDomain",
        /// A role.
        Role => "Role",
        /// A project.
        Project => "Team",
        /// A plugin record.
        Plugin => "Plugin",
        /// A transformation config.
        PluginConfig => "PluginConfig",
        /// A batch export.
        BatchExport => "BatchExport",
        /// A personal API key.
        PersonalApiKey => "PersonalAPIKey",
        /// An account.
        User => "User",
    }
}

words! {
    /// What was done to it.
    Deed {
        /// It is new.
        Created => "created",
        /// Its fields changed.
        Updated => "updated",
        /// It is gone.
        Deleted => "deleted",
        /// A secret or a token was replaced.
        Rotated => "rotated",
        /// A claim was proved.
        Verified => "verified",
        /// An invite was taken up.
        Accepted => "accepted",
        /// Work was started by hand.
        Triggered => "triggered",
        /// A plugin is new.
        Installed => "installed",
        /// A plugin is gone.
        Uninstalled => "uninstalled",
        /// It is run from now on.
        Enabled => "enabled",
        /// It is not run any more.
        Disabled => "disabled",
        /// The values of its settings changed.
        ConfigUpdated => "config_updated",
        /// It stands elsewhere among the others.
        OrderChanged => "order_changed",
        /// A job of it was started by hand.
        JobTriggered => "job_triggered",
        /// A file was attached to it.
        AttachmentCreated => "attachment_created",
        /// An attached file was replaced.
        AttachmentUpdated => "attachment_updated",
        /// An attached file was removed.
        AttachmentDeleted => "attachment_deleted",
    }
}

/// One changed field. Values are as the API shows them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FieldChange {
    /// The kind of thing that the field is of.
    #[serde(rename = "type")]
    pub subject: Subject,
    /// `created`, `changed` or `deleted`: whether the field had and has a value.
    pub action: String,
    /// Name of the field.
    pub field: String,
    /// What it was; null: it was not there.
    pub before: Value,
    /// What it is now; null: it is not there any more.
    pub after: Value,
}

/// What was changed, for people and programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Detail {
    /// Its name at that time.
    pub name: Option<String>,
    /// The fields that changed.
    pub changes: Vec<FieldChange>,
}

/// The personal API key that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsedKey {
    /// Its id.
    pub id: String,
    /// Its label at that time.
    pub label: String,
    /// First four and last four characters.
    pub mask_value: Option<String>,
}

/// An entry as it is stored: it names its user by id only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Id, in order of time.
    pub id: Uuid,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The project that it is about, if it is about one.
    pub team_id: Option<ProjectId>,
    /// Who did it; null: the service itself.
    pub user: Option<UserId>,
    /// The key it was done with; null: in the web app.
    pub personal_api_key: Option<UsedKey>,
    /// What was done.
    pub activity: Deed,
    /// To what kind of thing.
    pub scope: Subject,
    /// Id of the thing.
    pub item_id: String,
    /// What was changed.
    pub detail: Detail,
    /// When.
    pub created_at: Timestamp,
    /// The request's id, as in the answer's `x-request-id`.
    pub request_id: String,
}

/// The person of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActivityUser {
    /// Id.
    pub uuid: UserId,
    /// First name.
    pub first_name: String,
    /// Last name; may be empty.
    pub last_name: String,
    /// Address.
    pub email: String,
}

/// An entry as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Activity {
    /// Id, in order of time.
    pub id: Uuid,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The project that it is about, if it is about one.
    pub team_id: Option<ProjectId>,
    /// Who did it; null when the service did, or when the account is gone.
    pub user: Option<ActivityUser>,
    /// Whether the service did it by itself.
    pub is_system: bool,
    /// The key it was done with; null: in the web app.
    pub personal_api_key: Option<UsedKey>,
    /// What was done.
    pub activity: Deed,
    /// To what kind of thing.
    pub scope: Subject,
    /// Id of the thing.
    pub item_id: String,
    /// What was changed.
    pub detail: Detail,
    /// When.
    pub created_at: Timestamp,
    /// The request's id, as in the answer's `x-request-id`.
    pub request_id: String,
}

/// Which entries are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivityQuery {
    /// Only about this kind of thing (the word on the wire).
    pub scope: Option<String>,
    /// Only about the thing with this id.
    pub item_id: Option<String>,
    /// Only by this user.
    pub user: Option<UserId>,
    /// Only what the service did by itself.
    pub by_service: bool,
    /// Only this deed (the word on the wire).
    pub activity: Option<String>,
    /// Only at or after this time.
    pub since: Option<Timestamp>,
    /// Only before this time.
    pub until: Option<Timestamp>,
    /// Only the entry with this id.
    pub id: Option<Uuid>,
}

impl ActivityQuery {
    /// Whether every entry is wanted.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an entry is wanted.
    #[must_use]
    pub fn wants(&self, entry: &Entry) -> bool {
        self.scope.as_deref().is_none_or(|scope| scope == entry.scope.text())
            && self.item_id.as_deref().is_none_or(|id| id == entry.item_id)
            && self.user.is_none_or(|user| entry.user == Some(user))
            && (!self.by_service || entry.user.is_none())
            && self.activity.as_deref().is_none_or(|deed| deed == entry.activity.text())
            && self.since.is_none_or(|time| entry.created_at >= time)
            && self.until.is_none_or(|time| entry.created_at < time)
            && self.id.is_none_or(|id| id == entry.id)
    }
}
