//! Trying transformations with one event that is not stored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::PluginConfigId;
use crate::json::JsonText;

/// The result of a step for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DryOutcome {
    /// The step changed it.
    Changed,
    /// The step did not change it.
    Unchanged,
    /// The step dropped it: no later step sees it.
    Dropped,
    /// The step failed: the next step gets the event unchanged.
    Failed,
}

/// One step of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryStep {
    /// The config.
    pub config: PluginConfigId,
    /// Display name of the config.
    pub name: String,
    /// The result for the event.
    pub outcome: DryOutcome,
    /// The event after the step; null: it was dropped.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub event: Option<JsonText>,
    /// The error, if the step failed.
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: f64,
    /// Log lines of the plugin.
    pub logs: Vec<String>,
}

/// The result of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryRun {
    /// The steps, in order.
    pub results: Vec<DryStep>,
    /// The event after all steps; null: a step dropped it.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub event: Option<JsonText>,
}

impl DryRun {
    /// The result of these steps for this event.
    pub fn of(event: JsonText, results: Vec<DryStep>) -> Self {
        let after = |event: Option<JsonText>, step: &DryStep| match step.outcome {
            DryOutcome::Dropped => None,
            DryOutcome::Changed | DryOutcome::Unchanged | DryOutcome::Failed => {
                step.event.clone().or(event)
            }
        };
        let event = results.iter().fold(Some(event), after);
        Self { results, event }
    }
}

/// Input of a dry run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DryRunInput {
    /// The event, or a part of one; `None`: the newest event of the project.
    pub event: Option<Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use super::{DryOutcome, DryRun, DryStep};
    use crate::ids::PluginConfigId;
    use crate::json::JsonText;

    fn step(outcome: DryOutcome, event: Option<JsonText>) -> DryStep {
        DryStep {
            config: PluginConfigId(1),
            name: "Tea".to_owned(),
            outcome,
            event,
            error: None,
            duration_ms: 0.5,
            logs: Vec::new(),
        }
    }

    #[test]
    fn the_event_goes_through_all_steps() {
        let text = |text: &str| JsonText::read(text.to_owned()).unwrap();
        let after = |steps: Vec<DryStep>| DryRun::of(text("0"), steps).event;
        let changed = || step(DryOutcome::Changed, Some(text("1")));
        let failed = || step(DryOutcome::Failed, None);
        assert_eq!(after(vec![]), Some(text("0")));
        assert_eq!(after(vec![changed(), failed()]), Some(text("1")));
        assert_eq!(after(vec![changed(), step(DryOutcome::Dropped, None)]), None);
    }
}
