//! Answers to requests, and the results that are the same for every host.

use serde::Serialize;
use serde_json::Value;

use crate::message::Id;

/// The answer to a request: a result or a fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reply<R> {
    jsonrpc: &'static str,
    /// `null` if the request has none that can be read.
    id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

impl<R> Reply<R> {
    /// The result of a request.
    pub const fn result(id: Id, result: R) -> Self {
        Self { jsonrpc: "2.0", id: Some(id), result: Some(result), error: None }
    }
}

impl Reply<Empty> {
    /// The fault of a request.
    pub const fn fault(id: Option<Id>, fault: Fault) -> Self {
        Self { jsonrpc: "2.0", id, result: None, error: Some(fault) }
    }
}

/// A result without members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Empty {}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// The code for programs.
    pub code: i64,
    /// A sentence for people.
    pub message: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Fault {
    /// The code of a text that is not JSON.
    pub const PARSE_ERROR: i64 = -32_700;
    /// The code of JSON that is no request.
    pub const INVALID_REQUEST: i64 = -32_600;
    /// The code of a method that the host does not have.
    pub const METHOD_NOT_FOUND: i64 = -32_601;
    /// The code of parameters that a method cannot use.
    pub const INVALID_PARAMS: i64 = -32_602;
    /// The code of a refusal before the method is known, such as one for a missing key.
    pub const REFUSED: i64 = -32_000;

    /// A fault without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// JSON that is no request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    /// Parameters that the method cannot use.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// A method that the host does not have.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("There is no method `{method}`."))
    }
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input_schema: Value,
    annotations: Annotations,
}

/// What a client may tell its user about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    read_only_hint: bool,
    open_world_hint: bool,
}

impl Tool {
    /// A tool that changes nothing, and reads the data of this host alone. `input_schema` is
    /// the JSON Schema of its arguments.
    pub const fn reading(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        input_schema: Value,
    ) -> Self {
        let annotations = Annotations { read_only_hint: true, open_world_hint: false };
        Self { name, title, description, input_schema, annotations }
    }
}

/// The result of `tools/list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolList {
    /// All tools.
    pub tools: Vec<Tool>,
}

/// The result of `tools/call`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    content: [Text; 1],
    is_error: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Text {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

impl ToolResult {
    /// What a tool has found.
    pub const fn found(text: String) -> Self {
        Self { content: [Text { kind: "text", text }], is_error: false }
    }

    /// Why a tool has found nothing.
    pub const fn failed(text: String) -> Self {
        Self { content: [Text { kind: "text", text }], is_error: true }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id() -> Id {
        Id::read(json!("one")).unwrap()
    }

    fn shown<R: Serialize>(reply: &Reply<R>) -> Value {
        serde_json::to_value(reply).unwrap()
    }

    #[test]
    fn a_reply_has_a_result_or_a_fault() {
        let reply = shown(&Reply::result(id(), Empty {}));
        assert_eq!(reply, json!({"jsonrpc": "2.0", "id": "one", "result": {}}));
        let reply = shown(&Reply::fault(None, Fault::new(-1, "no")));
        let expected =
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -1, "message": "no"}});
        assert_eq!(reply, expected);
        let reply = shown(&Reply::result(id(), ToolResult::failed("no".to_owned())));
        let expected = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(reply["result"], expected);
    }

    #[test]
    fn a_tool_says_that_it_reads() {
        let schema = json!({"type": "object"});
        let tool = serde_json::to_value(Tool::reading("a", "A", "Lists a.", schema)).unwrap();
        let expected = json!({
            "name": "a", "title": "A", "description": "Lists a.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        });
        assert_eq!(tool, expected);
    }
}
