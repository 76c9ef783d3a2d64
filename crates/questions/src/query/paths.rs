//! Paths: what persons do after what.

use serde::Serialize;
use weir_model::errors::FieldError;

use super::common::{SCOPE, SCOPE_REFUSED, Scope};
use super::filters::NAME_MAX;
use super::input::Fields;
use crate::choices::choices;

/// Most names in a list.
const NAMES_MAX: usize = 100;
/// Steps by default.
const STEPS: i64 = 5;
/// Most steps.
const STEPS_MAX: i64 = 20;
/// Edges of the result by default.
const EDGES: i64 = 50;
/// Most edges of the result.
const EDGES_MAX: i64 = 1000;

choices! {
    /// Which events are steps of a path.
    PathEvents {
        /// Views of pages, by their address.
        Pageviews = "$pageview",
        /// Views of screens, by their name.
        Screens = "$screen",
        /// Events whose name does not begin with `$`.
        Custom = "custom_event",
    }
}

/// What paths alone have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathsFilter {
    /// Which events are steps. Empty: all events.
    #[serde(rename = "includeEventTypes")]
    pub events: Vec<PathEvents>,
    /// Steps that are skipped, by their name.
    #[serde(rename = "excludeEvents", skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// Paths begin at the first step of this name.
    #[serde(rename = "startPoint", skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Paths end at the first step of this name.
    #[serde(rename = "endPoint", skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Steps that match a pattern with `*` have its name.
    #[serde(rename = "pathGroupings", skip_serializing_if = "Vec::is_empty")]
    pub groupings: Vec<String>,
    /// Most steps of a path: 2 to 20.
    #[serde(rename = "stepLimit")]
    pub steps: u32,
    /// Most edges of the result, those with most persons first.
    #[serde(rename = "edgeLimit")]
    pub edges: u32,
    /// Edges with fewer are omitted.
    #[serde(rename = "minEdgeWeight", skip_serializing_if = "Option::is_none")]
    pub least: Option<u32>,
    /// Edges with more are omitted.
    #[serde(rename = "maxEdgeWeight", skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

/// A question about what persons do after what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathsQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: Scope,
    /// Steps and edges.
    #[serde(rename = "pathsFilter")]
    pub filter: PathsFilter,
}

impl PathsQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let own = ["pathsFilter"];
        let read: Vec<&str> = SCOPE.iter().chain(&own).copied().collect();
        let funnels = ["funnelPathsFilter"];
        let refused: Vec<&str> = SCOPE_REFUSED.iter().chain(&funnels).copied().collect();
        fields.check(&read, &refused)?;
        let (scope, _) = Scope::read(fields)?;
        Ok(Self { scope, filter: PathsFilter::read(fields)? })
    }
}

impl PathsFilter {
    fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        const READ: [&str; 10] = [
            "edgeLimit",
            "includeEventTypes",
            "startPoint",
            "endPoint",
            "pathGroupings",
            "excludeEvents",
            "stepLimit",
            "minEdgeWeight",
            "maxEdgeWeight",
            "pathsHogQLExpression",
        ];
        const REFUSED: [&str; 5] = [
            "pathReplacements",
            "localPathCleaningFilters",
            "pathStartKey",
            "pathEndKey",
            "pathDropoffKey",
        ];
        let fields = fields.required("pathsFilter")?.object()?;
        fields.check(&READ, &REFUSED)?;
        let events = match fields.get("includeEventTypes") {
            Some(input) => input
                .list(NAMES_MAX)?
                .iter()
                .map(|item| item.choice())
                .collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        // Clients also send the expression when it is not used.
        if let Some(input) = fields.get("pathsHogQLExpression").filter(|_| events.is_empty())
            && !matches!(input.value.as_str(), Some("" | "event"))
        {
            return Err(input.invalid("Weir does not support this field."));
        }
        let number = |name: &str, least: i64, most: i64| -> Result<Option<u32>, FieldError> {
            let Some(input) = fields.get(name) else { return Ok(None) };
            Ok(u32::try_from(input.integer(least, most)?).ok())
        };
        let or = |number: Option<u32>, default: i64| {
            number.unwrap_or_else(|| u32::try_from(default).unwrap_or_default())
        };
        Ok(Self {
            events,
            excluded: names(&fields, "excludeEvents")?,
            start: point(&fields, "startPoint")?,
            end: point(&fields, "endPoint")?,
            groupings: names(&fields, "pathGroupings")?,
            steps: or(number("stepLimit", 2, STEPS_MAX)?, STEPS),
            edges: or(number("edgeLimit", 1, EDGES_MAX)?, EDGES),
            least: number("minEdgeWeight", 0, i64::from(u32::MAX))?,
            most: number("maxEdgeWeight", 0, i64::from(u32::MAX))?,
        })
    }
}

fn names(fields: &Fields<'_>, name: &str) -> Result<Vec<String>, FieldError> {
    let Some(input) = fields.get(name) else { return Ok(Vec::new()) };
    input.list(NAMES_MAX)?.iter().map(|item| item.name(NAME_MAX)).collect()
}

/// The name of a step, without the slash at its end, as steps have it.
fn point(fields: &Fields<'_>, name: &str) -> Result<Option<String>, FieldError> {
    let text = fields.optional_text(name, NAME_MAX)?;
    Ok(text.filter(|text| !text.is_empty()).map(|text| match text.strip_suffix('/') {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => text,
    }))
}
