//! Identifiers. Every resource has a separate type, so that an id of one kind cannot be
//! passed for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                crate::schema::uuid()
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}
    )+};
}

uuid_ids! {
    /// An organization.
    OrganizationId,
    /// A user: the `uuid` of the user object, used in paths of members.
    UserId,
    /// A membership of a user in an organization; not used in paths.
    MembershipId,
    /// An invite. Its link contains a separate token.
    InviteId,
    /// A domain of an organization.
    DomainId,
    /// A group of the identity provider of a domain.
    ScimGroupId,
    /// A role of an organization.
    RoleId,
    /// The assignment of a role to a member.
    RoleMembershipId,
    /// A mail in the outbox.
    MailId,
    /// A person that events belong to.
    PersonId,
    /// A batch export.
    BatchExportId,
    /// One run of a batch export.
    RunId,
    /// A backfill of a batch export.
    BackfillId,
}

macro_rules! number_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// The id in a path; accepts only its canonical form.
            pub fn in_path(text: &str) -> Option<Self> {
                let id: Self = text.parse().ok()?;
                (id.0 > 0 && id.to_string() == text).then_some(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )+};
}

number_ids! {
    /// A project (the `team` of the wire protocol): a small positive integer.
    ProjectId,
    /// A plugin record: a small positive integer.
    PluginId,
    /// A transformation config of a project: a small positive integer.
    PluginConfigId,
    /// A saved insight of a project: a small positive integer.
    InsightId,
    /// A dashboard of a project: a small positive integer.
    DashboardId,
    /// An annotation of a project: a small positive integer.
    AnnotationId,
    /// An alert of a project: a small positive integer.
    AlertId,
    /// A subscription of a project: a small positive integer.
    SubscriptionId,
}

/// A personal API key's record id: a random token, not the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub String);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
