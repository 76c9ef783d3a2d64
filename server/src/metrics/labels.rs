//! The labels of metrics. They come from closed lists, never from input, so that a sender cannot
//! fill the memory with them.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use weir_model::exports::Status;
use weir_model::limits::{LimitAction, LimitName};
use weir_model::outcomes::{DropReason, Warning};
use weir_plugins::{Effect, Ending};
use weir_service::questions;

use crate::dispatcher::Surface;

/// Labels of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The surface that answered.
    pub surface: Surface,
    /// Status of the answer.
    pub status: u16,
}

/// Label of a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SurfaceLabel {
    /// The surface that answered.
    pub surface: Surface,
}

/// Label of a drop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabel {
    /// The drop reason.
    pub reason: Reason,
}

/// Labels of events beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OverLimitLabels {
    /// The limit.
    pub limit: OfEvents,
    /// What happened to the events.
    pub action: BeyondLimit,
}

/// Label of an ingestion warning.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WarningLabel {
    /// The warning.
    pub warning: Altered,
}

/// Label of the status of an ended run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StatusLabel {
    /// The status.
    pub status: Ended,
}

/// Labels of a call of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PluginLabels {
    /// The effect of the call.
    pub effect: PluginEffect,
    /// The outcome of the call.
    pub outcome: PluginEnding,
}

/// Labels of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct QueryLabels {
    /// The word of its kind.
    pub kind: &'static str,
    /// How it ended.
    pub outcome: QueryOutcome,
}

/// Label of the kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabel {
    /// The word of the kind.
    pub kind: &'static str,
}

/// Label of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CacheLabel {
    /// `hit`: it was computed before. `miss`: it was not.
    pub cache: &'static str,
}

/// Label of a check of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CheckLabel {
    /// The word of its outcome.
    pub outcome: &'static str,
}

/// Label of a subscription that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DeliveryLabel {
    /// The word of its outcome.
    pub outcome: &'static str,
}

/// The outcome of a question as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueryOutcome(pub questions::Outcome);

impl EncodeLabelValue for QueryOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// The effect of a plugin as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PluginEffect(pub Effect);

impl EncodeLabelValue for PluginEffect {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// The outcome of a call as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PluginEnding(pub Ending);

impl EncodeLabelValue for PluginEnding {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// A status as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ended(pub Status);

impl EncodeLabelValue for Ended {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// A drop reason as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(pub DropReason);

impl EncodeLabelValue for Reason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.code(), encoder)
    }
}

/// A warning as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Altered(pub Warning);

impl EncodeLabelValue for Altered {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.code(), encoder)
    }
}

/// A limit as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OfEvents(pub LimitName);

impl EncodeLabelValue for OfEvents {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.code(), encoder)
    }
}

/// What happens beyond a limit, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BeyondLimit(pub LimitAction);

impl EncodeLabelValue for BeyondLimit {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.word(), encoder)
    }
}

impl EncodeLabelValue for Surface {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.text(), encoder)
    }
}
