//! The answer of capture protocol V1: the result for each event.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_json as json;
use weir_model::outcomes::{DropReason, Warning};

use crate::Decision;
use crate::shape::{RawEvent, present};

/// The result of each event of a request, by the uuid as sent. `shape` has checked that
/// every event has a uuid of its own. Serializes to the body of the answer.
///
/// The protocol also knows the result `retry`. It does not occur here: a request is stored
/// completely or refused completely.
#[derive(Debug, Clone, Default)]
pub struct Results(Vec<(String, Outcome)>);

#[derive(Debug, Clone)]
enum Outcome {
    Accepted(Vec<Warning>),
    Dropped(DropReason),
}

impl Results {
    /// Adds the decision on an event.
    pub fn push(&mut self, event: &RawEvent<'_>, decision: &Decision) {
        let uuid = present(event.uuid).and_then(json::string_lossy).unwrap_or_default();
        let outcome = match decision {
            Decision::Accept(accepted) => Outcome::Accepted(accepted.warnings.clone()),
            Decision::Drop(dropped) => Outcome::Dropped(dropped.reason),
        };
        self.0.push((uuid.into_owned(), outcome));
    }
}

/// The code of a reason in this protocol, which has its own name for one of them.
const fn tag(reason: DropReason) -> &'static str {
    match reason {
        DropReason::InvalidProperties => "malformed_event_properties",
        reason => reason.code(),
    }
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_map(Some(1))?;
        body.serialize_entry("results", &ByUuid(&self.0))?;
        body.end()
    }
}

struct ByUuid<'a>(&'a [(String, Outcome)]);

impl Serialize for ByUuid<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(uuid, outcome)| (uuid, outcome)))
    }
}

#[derive(Serialize)]
struct EventResult<'a> {
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a str>,
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let codes = match self {
            Self::Accepted(warnings) if warnings.is_empty() => None,
            Self::Accepted(warnings) => {
                let codes: Vec<_> = warnings.iter().map(|warning| warning.code()).collect();
                Some(codes.join(","))
            }
            Self::Dropped(reason) => Some(tag(*reason).to_owned()),
        };
        let result = match self {
            Self::Accepted(_) if codes.is_none() => "ok",
            Self::Accepted(_) => "warning",
            Self::Dropped(_) => "drop",
        };
        EventResult { result, details: codes.as_deref() }.serialize(serializer)
    }
}
