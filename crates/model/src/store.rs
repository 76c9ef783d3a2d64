//! The values of the database for types that are not records.
//!
//! What belongs here: how ids, times and levels are stored. What does not: records, which
//! derive `SurrealValue` in their modules; statements (`weir-store`). Only the store
//! enables the feature `store`, so that the engine is no part of the browser code.

use surrealdb_types::{Error, Kind, Object, SurrealValue, Value};
use uuid::Uuid;

use crate::alerts::{AlertState, CalculationInterval, ConditionKind, ThresholdKind};
use crate::domains::SsoEnforcement;
use crate::ids::{
    AlertId, AnnotationId, BackfillId, BatchExportId, DashboardId, DomainId, InsightId, InviteId,
    KeyId, MailId, MembershipId, OrganizationId, PersonId, PluginConfigId, PluginId, ProjectId,
    RoleId, RoleMembershipId, RunId, ScimGroupId, SubscriptionId, UserId,
};
use crate::limits::{LimitChoice, LimitChoices, LimitName};
use crate::organizations::Level;
use crate::plugin_configs::OnFailure;
use crate::plugins::PluginsAccess;
use crate::subscriptions::{Frequency, Weekday};
use crate::time::Timestamp;

/// Stores a type as a value of another one.
macro_rules! stored_as {
    ($($name:ty = $stored:ty: $into:expr, $from:expr;)+) => {$(
        impl SurrealValue for $name {
            fn kind_of() -> Kind {
                <$stored>::kind_of()
            }

            fn into_value(self) -> Value {
                let into: fn(Self) -> $stored = $into;
                into(self).into_value()
            }

            fn from_value(value: Value) -> Result<Self, Error> {
                let from: fn($stored) -> Self = $from;
                <$stored>::from_value(value).map(from)
            }
        }
    )+};
}

stored_as! {
    OrganizationId = Uuid: |id| id.0, Self;
    UserId = Uuid: |id| id.0, Self;
    MembershipId = Uuid: |id| id.0, Self;
    InviteId = Uuid: |id| id.0, Self;
    DomainId = Uuid: |id| id.0, Self;
    RoleId = Uuid: |id| id.0, Self;
    RoleMembershipId = Uuid: |id| id.0, Self;
    MailId = Uuid: |id| id.0, Self;
    PersonId = Uuid: |id| id.0, Self;
    BatchExportId = Uuid: |id| id.0, Self;
    RunId = Uuid: |id| id.0, Self;
    BackfillId = Uuid: |id| id.0, Self;
    ScimGroupId = Uuid: |id| id.0, Self;
    ProjectId = i64: |id| id.0, Self;
    PluginId = i64: |id| id.0, Self;
    PluginConfigId = i64: |id| id.0, Self;
    InsightId = i64: |id| id.0, Self;
    DashboardId = i64: |id| id.0, Self;
    AnnotationId = i64: |id| id.0, Self;
    AlertId = i64: |id| id.0, Self;
    SubscriptionId = i64: |id| id.0, Self;
    KeyId = String: |id| id.0, Self;
    Timestamp = i64: Timestamp::micros, Timestamp::from_micros;
    // A word of a newer program stores no event that a step did not see.
    OnFailure = String:
        |policy| policy.text().to_owned(),
        |word| Self::of(&word).unwrap_or(Self::HoldThenDrop);
    // A number of a newer program gives no access.
    PluginsAccess = i64: i64::from, |level| Self::try_from(level).unwrap_or(Self::None);
}

/// Stores words as texts. A word that is not known is an error.
macro_rules! stored_as_words {
    ($($name:ty),+ $(,)?) => {$(
        impl SurrealValue for $name {
            fn kind_of() -> Kind {
                String::kind_of()
            }

            fn into_value(self) -> Value {
                self.text().to_owned().into_value()
            }

            fn from_value(value: Value) -> Result<Self, Error> {
                let word = String::from_value(value)?;
                let unknown = || Error::internal(format!("unknown word `{word}`"));
                Self::of(&word).ok_or_else(unknown)
            }
        }
    )+};
}

stored_as_words! {
    AlertState, CalculationInterval, ConditionKind, Frequency, ThresholdKind, Weekday,
}

impl SurrealValue for Level {
    fn kind_of() -> Kind {
        i64::kind_of()
    }

    fn into_value(self) -> Value {
        i64::from(self).into_value()
    }

    fn from_value(value: Value) -> Result<Self, Error> {
        Self::try_from(i64::from_value(value)?).map_err(Error::internal)
    }
}

impl SurrealValue for SsoEnforcement {
    fn kind_of() -> Kind {
        String::kind_of()
    }

    fn into_value(self) -> Value {
        self.text().to_owned().into_value()
    }

    fn from_value(value: Value) -> Result<Self, Error> {
        Self::parse(&String::from_value(value)?).map_err(|fault| Error::internal(fault.detail))
    }
}

/// An object with the choices that are not [`LimitChoice::Default`], as texts.
impl SurrealValue for LimitChoices {
    fn kind_of() -> Kind {
        Kind::Object
    }

    fn into_value(self) -> Value {
        let chosen = LimitName::ALL.into_iter().filter_map(|name| {
            let choice = *self.get(name);
            let is_chosen = choice != LimitChoice::Default;
            is_chosen.then(|| (name.code().to_owned(), choice.to_string()))
        });
        Value::Object(chosen.collect::<Object>())
    }

    fn from_value(value: Value) -> Result<Self, Error> {
        let Value::Object(members) = value else {
            return Err(Error::internal("limits are not an object".to_owned()));
        };
        let mut choices = Self::default();
        for (name, choice) in members {
            let name = LimitName::of(&name)
                .ok_or_else(|| Error::internal(format!("unknown limit `{name}`")))?;
            let choice = String::from_value(choice)?.parse::<LimitChoice>();
            let choice = choice.map_err(Error::internal)?;
            *choices.get_mut(name) = choice;
        }
        Ok(choices)
    }
}
