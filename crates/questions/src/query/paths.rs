//! Paths: what persons do after what.

use std::fmt;

use serde::Serialize;
use weir_model::errors::FieldError;

use super::common::{OTHERS, SCOPE, SCOPE_REFUSED, Scope, without};
use super::filters::NAME_MAX;
use super::input::{Fields, Input};
use crate::choices::choices;

/// Most names in a list.
const NAMES_MAX: usize = 100;
/// Steps by default.
const STEPS: i64 = 5;
/// Most steps.
const STEPS_MAX: i64 = 20;
/// The number of the last step.
const LAST: u32 = STEPS_MAX as u32;
/// Most characters of a key: names in results are as long as addresses.
const KEY_MAX: usize = 4_000;
/// Most digits of the number in a key.
const KEY_DIGITS: usize = 4;
/// The names of the keys of a list of persons.
const FROM: &str = "pathStartKey";
const TO: &str = "pathEndKey";
const DROPOFF: &str = "pathDropoffKey";
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

/// A step of a path: its number from 1, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathKey {
    /// The number.
    pub step: u32,
    /// The name.
    pub name: String,
}

impl PathKey {
    /// A key such as `1_/home`.
    fn read(input: &Input<'_>) -> Result<Self, FieldError> {
        let text = input.text(KEY_MAX)?;
        let key = text.split_once('_').and_then(|(step, name)| {
            let is_number = step.len() <= KEY_DIGITS && step.bytes().all(|b| b.is_ascii_digit());
            let step = step.parse().ok().filter(|step| is_number && (1..=LAST).contains(step))?;
            Some(Self { step, name: name.to_owned() })
        });
        key.ok_or_else(|| {
            input.invalid("Enter the number and the name of a step, such as 1_/home.")
        })
    }
}

/// As results write it.
impl fmt::Display for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.step, self.name)
    }
}

/// Which paths persons took, for a list of them. Without a key, they took any path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathKeys {
    /// They continued from this step.
    pub from: Option<PathKey>,
    /// They came to this step from the one before.
    pub to: Option<PathKey>,
    /// This step was their last one.
    pub dropoff: Option<PathKey>,
}

impl PathKeys {
    fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let key = |name| fields.get(name).map(|input| PathKey::read(&input)).transpose();
        let keys = Self { from: key(FROM)?, to: key(TO)?, dropoff: key(DROPOFF)? };
        if let (Some(from), Some(to)) = (&keys.from, &keys.to)
            && to.step != from.step + 1
        {
            return Err(fields.fault(TO, "invalid_input", "The steps do not follow each other."));
        }
        if keys.dropoff.is_some() && (keys.from.is_some() || keys.to.is_some()) {
            let detail = "The last step of a path has no other one beside it.";
            return Err(fields.fault(DROPOFF, "invalid_input", detail));
        }
        Ok(keys)
    }

    /// The keys by their names in JSON.
    pub(super) fn named(&self) -> [(&'static str, Option<&PathKey>); 3] {
        let Self { from, to, dropoff } = self;
        [(FROM, from.as_ref()), (TO, to.as_ref()), (DROPOFF, dropoff.as_ref())]
    }
}

impl PathsQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let (query, keys) = Self::read_with_keys(fields)?;
        match keys.named().into_iter().find(|(_, key)| key.is_some()) {
            Some((name, _)) => {
                let fields = fields.required("pathsFilter")?.object()?;
                let detail = "Only a list of persons has this field.";
                Err(fields.fault(name, "invalid_input", detail))
            }
            None => Ok(query),
        }
    }

    /// Reads the question and the keys of a list of persons, which are beside its filter.
    pub(super) fn read_with_keys(fields: &Fields<'_>) -> Result<(Self, PathKeys), FieldError> {
        let own = ["pathsFilter"];
        let read: Vec<&str> = SCOPE.iter().chain(&own).chain(&OTHERS).copied().collect();
        let funnels = ["funnelPathsFilter"];
        let refused: Vec<&str> = SCOPE_REFUSED.iter().chain(&funnels).copied().collect();
        fields.check(&read, &refused)?;
        without(fields, &OTHERS)?;
        let (scope, _) = Scope::read(fields)?;
        let query = Self { scope, filter: PathsFilter::read(fields)? };
        let keys = PathKeys::read(&fields.required("pathsFilter")?.object()?)?;
        Ok((query, keys))
    }
}

impl PathsFilter {
    fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        const READ: [&str; 13] = [
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
            FROM,
            TO,
            DROPOFF,
        ];
        const REFUSED: [&str; 2] = ["pathReplacements", "localPathCleaningFilters"];
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
