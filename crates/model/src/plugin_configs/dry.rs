//! Trying transformations with one event that is not stored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::PluginConfigId;
use crate::json::JsonText;

/// What became of the event in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DryOutcome {
    /// The step changed it.
    Changed,
    /// The step left it as it was.
    Unchanged,
    /// The step dropped it: no later step sees it.
    Dropped,
    /// The step failed: the event goes on as it was.
    Failed,
}

/// One step of a try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryStep {
    /// The config.
    pub config: PluginConfigId,
    /// Its name, for people.
    pub name: String,
    /// What became of the event.
    pub outcome: DryOutcome,
    /// The event after the step; null: it was dropped.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub event: Option<JsonText>,
    /// What went wrong.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// What the plugin wrote into its log.
    pub logs: Vec<String>,
}

/// What transformations make of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryRun {
    /// The steps, in their order.
    pub results: Vec<DryStep>,
    /// The event after all of them; null: one dropped it.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub event: Option<JsonText>,
}

impl DryRun {
    /// What these steps made of this event.
    #[must_use]
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

/// What is to be tried.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DryRunInput {
    /// The event, or a part of one; none: the newest of the project.
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
