//! Lifecycle: how many persons are new, come back, or stay away.

use serde::Serialize;
use weir_model::errors::FieldError;

use super::common::{OTHERS, SCOPE, SCOPE_REFUSED, Scope, interval, without};
use super::input::Fields;
use super::series::{EventsNode, series};
use crate::choices::choices;
use crate::time::Interval;

choices! {
    /// What a person is in an interval.
    LifecycleStatus {
        /// Seen for the first time.
        New = "new",
        /// Active, and active in the interval before.
        Returning = "returning",
        /// Active, and not active in the interval before.
        Resurrecting = "resurrecting",
        /// Not active, and active in the interval before.
        Dormant = "dormant",
    }
}

/// A question about the lifecycle of persons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LifecycleQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: Scope,
    /// The length of an interval.
    pub interval: Interval,
    /// The series: exactly one.
    pub series: Vec<EventsNode>,
}

impl LifecycleQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let own = ["interval", "series", "lifecycleFilter"];
        let read: Vec<&str> = SCOPE.iter().chain(&own).chain(&OTHERS).copied().collect();
        fields.check(&read, &SCOPE_REFUSED)?;
        without(fields, &OTHERS)?;
        if let Some(input) = fields.get("lifecycleFilter") {
            // Which statuses are drawn; all of them are in the result.
            input.object()?.check(&["toggledLifecycles"], &[])?;
        }
        let (scope, mut left) = Scope::read(fields)?;
        if scope.group_type.is_some() {
            let detail = "Weir does not support this field.";
            return Err(fields.fault("aggregation_group_type_index", "invalid_input", detail));
        }
        Ok(Self { scope, interval: interval(fields)?, series: series(fields, 1, 1, &mut left)? })
    }
}
