//! Questions as API clients send them (QRY-1 to QRY-5).
//!
//! What belongs here: the shape of each kind of question, reading it leniently, and its one
//! canonical form. Reading is `read`, writing is serde. What does not: the answer
//! (`evaluate`, `results`).
//!
//! A fault names its field as the API does, such as `series__0__math`. A field that would
//! change the answer and is not supported is refused, so no answer is to another question.

mod actors;
mod breakdown;
mod common;
mod dashboards;
mod events;
mod filters;
mod funnels;
mod hogql;
mod input;
mod lifecycle;
mod paths;
mod retention;
mod series;
mod stickiness;
mod trends;
mod web;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use weir_model::errors::FieldError;

pub use actors::{
    ACTORS_LIMIT, ACTORS_LIMIT_MAX, ActorColumn, ActorOrder, ActorsQuery, Cell, FunnelStep,
};
pub use breakdown::{
    BREAKDOWN_LIMIT, BREAKDOWN_LIMIT_MAX, BREAKDOWNS_MAX, Breakdown, BreakdownFilter,
};
pub use common::{CompareFilter, DateRange, Scope};
pub use dashboards::DashboardFilters;
pub use events::{EVENTS_LIMIT, EVENTS_LIMIT_MAX, EventsQuery};
pub use filters::{
    FILTER_DEPTH_MAX, FILTER_VALUES_MAX, FILTERS_MAX, Filter, FilterGroup, FilterValue, Logic,
    NAME_MAX, Operator, PropertyFilter, PropertyOwner, VALUE_MAX,
};
pub use funnels::{
    Attribution, AttributionKind, Exclusion, FunnelOrder, FunnelVisualization, FunnelWindow,
    FunnelWindowUnit, FunnelsFilter, FunnelsQuery,
};
pub use hogql::{HogQLFilters, HogQLQuery};
pub use lifecycle::{LifecycleQuery, LifecycleStatus};
pub use paths::{PathEvents, PathKey, PathKeys, PathsFilter, PathsQuery};
pub use retention::{RetentionEntity, RetentionFilter, RetentionKind, RetentionQuery};
pub use series::{EventsNode, Math, PropertyMath, SERIES_MAX};
pub use stickiness::{StickinessCriteria, StickinessFilter, StickinessOperator, StickinessQuery};
pub use trends::{Display, TrendsFilter, TrendsFormula, TrendsQuery};
pub use web::{
    SESSION_FILTERS_MAX, SessionFilter, SessionProperty, WEB_ROWS, WEB_ROWS_MAX, WebBreakdown,
    WebColumn, WebDirection, WebMetric, WebOrder, WebOverviewQuery, WebScope, WebTableQuery,
    WebTrendsQuery, WebView,
};

use input::Input;

/// A question. `kind` names its variant in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind")]
pub enum Query {
    /// Numbers over time.
    #[serde(rename = "TrendsQuery")]
    Trends(TrendsQuery),
    /// How many persons do one step after another.
    #[serde(rename = "FunnelsQuery")]
    Funnels(FunnelsQuery),
    /// How many persons come back.
    #[serde(rename = "RetentionQuery")]
    Retention(RetentionQuery),
    /// What persons do after what.
    #[serde(rename = "PathsQuery")]
    Paths(PathsQuery),
    /// In how many intervals persons are active.
    #[serde(rename = "StickinessQuery")]
    Stickiness(StickinessQuery),
    /// How many persons are new, come back, or stay away.
    #[serde(rename = "LifecycleQuery")]
    Lifecycle(LifecycleQuery),
    /// The visitors, views and sessions of a site.
    #[serde(rename = "WebOverviewQuery")]
    WebOverview(WebOverviewQuery),
    /// The same for each page, browser, or the like.
    #[serde(rename = "WebStatsTableQuery")]
    WebTable(WebTableQuery),
    /// The same over time.
    #[serde(rename = "WebTrendsQuery")]
    WebTrends(WebTrendsQuery),
    /// A list of events.
    #[serde(rename = "EventsQuery")]
    Events(EventsQuery),
    /// SQL.
    #[serde(rename = "HogQLQuery")]
    HogQL(HogQLQuery),
    /// The persons or groups behind a number of an answer.
    #[serde(rename = "ActorsQuery")]
    Actors(ActorsQuery),
}

/// Kinds whose `source` is the question: they say how it is drawn.
const FRAMES: [&str; 3] = ["InsightVizNode", "DataTableNode", "DataVisualizationNode"];

impl Query {
    /// Reads a question, also within a node that says how it is drawn.
    ///
    /// # Errors
    /// The first fault with the path of its field.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let outer = Input::root(value);
        let fields = outer.object()?;
        let kind = fields.required("kind")?;
        let is_frame = kind.value.as_str().is_some_and(|kind| FRAMES.contains(&kind));
        let input = if is_frame { fields.required("source")? } else { outer };
        let fields = input.object()?;
        let kind = fields.required("kind")?;
        match kind.value.as_str() {
            Some("TrendsQuery") => TrendsQuery::read(&fields).map(Self::Trends),
            Some("FunnelsQuery") => FunnelsQuery::read(&fields).map(Self::Funnels),
            Some("RetentionQuery") => RetentionQuery::read(&fields).map(Self::Retention),
            Some("PathsQuery") => PathsQuery::read(&fields).map(Self::Paths),
            Some("StickinessQuery") => StickinessQuery::read(&fields).map(Self::Stickiness),
            Some("LifecycleQuery") => LifecycleQuery::read(&fields).map(Self::Lifecycle),
            Some("WebOverviewQuery") => WebOverviewQuery::read(&fields).map(Self::WebOverview),
            Some("WebStatsTableQuery") => WebTableQuery::read(&fields).map(Self::WebTable),
            Some("WebTrendsQuery") => WebTrendsQuery::read(&fields).map(Self::WebTrends),
            Some("EventsQuery") => EventsQuery::read(&fields).map(Self::Events),
            Some("HogQLQuery") => HogQLQuery::read(&fields).map(Self::HogQL),
            Some("ActorsQuery") => ActorsQuery::read(&fields).map(Self::Actors),
            _ => Err(kind.no_choice()),
        }
    }

    /// The word of its kind in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Trends(_) => "TrendsQuery",
            Self::Funnels(_) => "FunnelsQuery",
            Self::Retention(_) => "RetentionQuery",
            Self::Paths(_) => "PathsQuery",
            Self::Stickiness(_) => "StickinessQuery",
            Self::Lifecycle(_) => "LifecycleQuery",
            Self::WebOverview(_) => "WebOverviewQuery",
            Self::WebTable(_) => "WebStatsTableQuery",
            Self::WebTrends(_) => "WebTrendsQuery",
            Self::Events(_) => "EventsQuery",
            Self::HogQL(_) => "HogQLQuery",
            Self::Actors(_) => "ActorsQuery",
        }
    }
}

/// Reads leniently, as [`Query::read`].
impl<'de> Deserialize<'de> for Query {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).map_err(|fault| match fault.attr {
            Some(attr) => D::Error::custom(format!("{attr}: {}", fault.detail)),
            None => D::Error::custom(fault.detail),
        })
    }
}

#[cfg(test)]
mod tests;
