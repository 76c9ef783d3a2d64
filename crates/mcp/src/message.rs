//! Messages of clients: JSON-RPC 2.0 without batches.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::reply::Fault;

/// Most bytes of an id, which the answer repeats.
pub const ID_MAX: usize = 256;
/// Most bytes of the name of a method.
const METHOD_MAX: usize = 128;

/// The id of a request: a text or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Id(Value);

impl Id {
    /// The id in a member of a message.
    pub(crate) fn read(value: Value) -> Option<Self> {
        let is_id = match &value {
            Value::String(text) => text.len() <= ID_MAX,
            Value::Number(number) => number.is_i64() || number.is_u64(),
            _ => false,
        };
        is_id.then_some(Self(value))
    }

    /// The id as JSON text.
    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A message that wants an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The id that its answer has.
    pub id: Id,
    /// The name of the method.
    pub method: String,
    /// The parameters by name.
    pub params: Map<String, Value>,
}

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// It wants an answer.
    Request(Request),
    /// It says something, and wants no answer.
    Notification {
        /// The name of the notification.
        method: String,
        /// The parameters by name.
        params: Map<String, Value>,
    },
}

/// A message that cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Its id, if that can be read.
    pub id: Option<Id>,
    /// What is wrong with it.
    pub fault: Fault,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: Value) -> Result<Self, Refused> {
        let refused = |id: Option<&Id>, detail: &str| Refused {
            id: id.cloned(),
            fault: Fault::invalid_request(detail),
        };
        let mut members = match value {
            Value::Object(members) => members,
            Value::Array(_) => {
                return Err(refused(None, "Batches are not supported. Send one message."));
            }
            _ => return Err(refused(None, "The message is not an object.")),
        };
        let id = match members.remove("id") {
            None => None,
            Some(value) => match Id::read(value) {
                Some(id) => Some(id),
                None => {
                    let detail = "`id` must be a short text or a whole number.";
                    return Err(refused(None, detail));
                }
            },
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(refused(id.as_ref(), "`jsonrpc` must be \"2.0\"."));
        }
        let method = match members.remove("method") {
            Some(Value::String(method)) if method.len() <= METHOD_MAX => method,
            _ => return Err(refused(id.as_ref(), "`method` must be a short text.")),
        };
        let params = match members.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(refused(id.as_ref(), "`params` must be an object.")),
        };
        Ok(match id {
            Some(id) => Self::Request(Request { id, method, params }),
            None => Self::Notification { method, params },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_and_notifications_are_read() {
        for id in [json!(0), json!(-7), json!(u64::MAX), json!("a-1"), json!("")] {
            let sent = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "a"}});
            let Ok(Message::Request(request)) = Message::read(sent) else { panic!("{id}") };
            assert_eq!(
                (request.id.text(), request.method.as_str()),
                (id.to_string(), "tools/call")
            );
            assert_eq!(request.params["name"], "a");
        }
        let sent = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let read = Message::read(sent);
        assert!(
            matches!(read, Ok(Message::Notification { method, .. }) if method == "notifications/initialized")
        );
    }

    #[test]
    fn other_messages_are_refused_with_their_id() {
        let long = "x".repeat(ID_MAX + 1);
        let request = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        for (sent, has_id) in [
            (json!([request(json!(1))]), false),
            (json!("ping"), false),
            (json!(null), false),
            (request(json!(null)), false),
            (request(json!(1.5)), false),
            (request(json!(1e30)), false),
            (request(json!([1])), false),
            (request(json!({"a": 1})), false),
            (request(json!(long)), false),
            (json!({"id": 1, "method": "ping"}), true),
            (json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), true),
            (json!({"jsonrpc": "2.0", "id": 1}), true),
            (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), true),
            (json!({"jsonrpc": "2.0", "id": 1, "method": 7}), true),
            (json!({"jsonrpc": "2.0", "id": 1, "method": long}), true),
            (json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}), true),
            (json!({"jsonrpc": "2.0", "method": "ping", "params": null}), false),
        ] {
            let refused = Message::read(sent.clone()).unwrap_err();
            assert_eq!(refused.id.is_some(), has_id, "{sent}");
            assert_eq!(refused.fault.code, Fault::INVALID_REQUEST, "{sent}");
        }
    }
}
