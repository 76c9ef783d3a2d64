//! A search by POST (RFC 7644, 3.4.3): the parameters of a list in a body.

use serde_json::Value;

use crate::fault::{Fault, FaultKind};
use crate::member;

/// The parameters that a list reads.
const PARAMETERS: [&str; 5] = ["filter", "startIndex", "count", "attributes", "excludedAttributes"];

/// A search, whose parameters have the form that they have in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest(Vec<(&'static str, String)>);

impl SearchRequest {
    /// Reads the body of a search. Sorting is not supported, so its parameters are ignored.
    ///
    /// # Errors
    /// `invalidSyntax`, `invalidValue`.
    pub fn read(body: &Value) -> Result<Self, Fault> {
        if !body.is_object() {
            return Err(Fault::new(FaultKind::InvalidSyntax, "The body must be an object."));
        }
        let mut parameters = Vec::new();
        for name in PARAMETERS {
            let text = match member(body, name) {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                Some(Value::Array(names)) => {
                    let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
                    let wrong = || Fault::value(format!("`{name}` must be a list of texts."));
                    names.ok_or_else(wrong)?.join(",")
                }
                Some(_) => return Err(Fault::value(format!("`{name}` cannot be read."))),
            };
            parameters.push((name, text));
        }
        Ok(Self(parameters))
    }

    /// A parameter, as a query has it.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(given, _)| *given == name);
        found.map(|(_, text)| text.as_str())
    }
}
