//! Reading the bodies of operations on transformation configs.

use serde_json::{Map, Value, json};
use weir_model::errors::FieldError;
use weir_model::json::{self, Unparsed, VALUES};
use weir_model::plugin_configs::{
    ANY_MEDIA, DESCRIPTION_MAX, DryRunInput, JOB_MAX, JobInput, NAME_MAX, ORDER, OnFailure,
    PluginConfigInput, PluginConfigPatch, RearrangeInput, SentAttachment, SentConfig, SingleMove,
};
use weir_model::{Patch, PluginConfigId, PluginId, validate};

use crate::http::input::{Fields, Input, kind, missing, no_object, no_text, null, to_integer};

/// The operation on a job if the body names none.
const START: &str = "start";
/// Form fields that add and remove attachments: `add_attachment[key]`.
const ADD: &str = "add_attachment";
const REMOVE: &str = "remove_attachment";

/// Fields are checked in the order in which the resource shows them.
impl Input for PluginConfigInput {
    const EXAMPLE: &'static str = r#"{
        "plugin": 1, "enabled": false, "order": 1, "config": {"percentage": "10"},
        "name": "Keep a tenth", "description": "For the free plan"
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let plugin = integer(fields, "plugin", true, (i64::MIN, i64::MAX))?;
        let Patch::Set(plugin) = plugin else { return Err(missing("plugin")) };
        let rest = rest(fields, true)?;
        let Patch::Set(order) = rest.order else { return Err(missing("order")) };
        Ok(Self { plugin: PluginId(plugin), order, rest })
    }
}

impl Input for PluginConfigPatch {
    const EXAMPLE: &'static str = r#"{"enabled": false, "config": {"percentage": "20"}}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let plugin = match integer(fields, "plugin", false, (i64::MIN, i64::MAX))? {
            Patch::Set(plugin) => Some(PluginId(plugin)),
            Patch::Keep | Patch::Clear => None,
        };
        Ok(Self { plugin, ..rest(fields, false)? })
    }
}

/// All fields except the plugin.
fn rest(fields: &Fields, is_new: bool) -> Result<PluginConfigPatch, FieldError> {
    Ok(PluginConfigPatch {
        enabled: fields.boolean("enabled")?,
        order: integer(fields, "order", is_new, ORDER)?,
        config: config(fields)?,
        add_attachments: added(fields),
        remove_attachments: removed(fields),
        name: fields.nullable_text("name", NAME_MAX)?,
        description: fields.nullable_text("description", DESCRIPTION_MAX)?,
        deleted: fields.boolean("deleted")?,
        on_failure: on_failure(fields)?,
        plugin: None,
    })
}

fn on_failure(fields: &Fields) -> Result<Patch<OnFailure>, FieldError> {
    const NAME: &str = "on_failure";
    let schema = || {
        let mut words: Vec<Value> = OnFailure::WORDS.iter().map(|word| json!(word)).collect();
        words.push(Value::Null);
        json!({
            "type": ["string", "null"],
            "enum": words,
            "description": "What becomes of events for which it cannot be run; null: what is usual for the plugin.",
        })
    };
    match fields.value(NAME, false, schema) {
        None => Ok(Patch::Keep),
        Some(Value::Null) => Ok(Patch::Clear),
        Some(value) => {
            let word = text(NAME, value)?;
            let policy = OnFailure::of(word).ok_or_else(|| validate::invalid_choice(NAME, &word));
            policy.map(Patch::Set)
        }
    }
}

/// A whole number that is not null.
fn integer(
    fields: &Fields,
    name: &str,
    is_required: bool,
    (least, most): (i64, i64),
) -> Result<Patch<i64>, FieldError> {
    let schema = || match least {
        i64::MIN => json!({"type": "integer"}),
        least => json!({"type": "integer", "minimum": least, "maximum": most}),
    };
    fields.value(name, is_required, schema);
    match fields.nullable_integer(name, least, most)? {
        Patch::Keep if is_required => Err(missing(name)),
        Patch::Clear => Err(null(name)),
        read => Ok(read),
    }
}

/// An object or its JSON text. Values in the form of answers are accepted.
fn config(fields: &Fields) -> Result<Option<SentConfig>, FieldError> {
    const NAME: &str = "config";
    let wrong = || {
        let detail = "Expected an object, or a string with the JSON text of one.";
        FieldError::new(NAME, "invalid_input", detail)
    };
    let schema = || json!({"oneOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}]});
    match fields.value(NAME, false, schema) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(sent)) => Ok(Some(SentConfig(sent.clone()))),
        Some(Value::String(text)) => match json::parse(text, VALUES) {
            Ok(Value::Object(sent)) => Ok(Some(SentConfig(sent))),
            Ok(Value::Null) => Ok(None),
            Ok(_) | Err(Unparsed::Malformed(_)) => Err(wrong()),
            Err(fault) => Err(FieldError::new(NAME, "invalid_input", fault.sentence())),
        },
        Some(_) => Err(wrong()),
    }
}

/// The key in `verb[key]`.
fn key<'a>(name: &'a str, verb: &str) -> Option<&'a str> {
    let key = name.strip_prefix(verb)?.strip_prefix('[')?.strip_suffix(']')?;
    (!key.is_empty()).then_some(key)
}

fn added(fields: &Fields) -> Vec<SentAttachment> {
    let uploads = fields.uploads().iter();
    let attachment = |upload: &crate::http::input::Upload| {
        Some(SentAttachment {
            key: key(&upload.field, ADD)?.to_owned(),
            name: upload.file_name.clone(),
            media_type: upload.media_type.clone().unwrap_or_else(|| ANY_MEDIA.to_owned()),
            contents: upload.contents.to_vec(),
        })
    };
    uploads.filter_map(attachment).collect()
}

/// The presence of the field counts, not its value.
fn removed(fields: &Fields) -> Vec<String> {
    fields.names().filter_map(|name| key(name, REMOVE)).map(str::to_owned).collect()
}

/// The body of `job/`. Fields of the config are ignored there.
#[derive(Debug)]
pub struct JobBody(pub(super) Option<JobInput>);

impl Input for JobBody {
    const EXAMPLE: &'static str =
        r#"{"job": {"type": "import", "payload": {"day": "2026-06-01"}}}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let schema = || {
            json!({
                "type": ["object", "null"],
                "properties": {
                    "type": {"type": "string", "description": "One of the plugin's jobs."},
                    "payload": {"type": ["object", "null"]},
                    "operation": {"type": ["string", "null"], "description": "`start` unless something else is said."},
                },
                "required": ["type"],
            })
        };
        let sent = match fields.value("job", false, schema) {
            None | Some(Value::Null) => return Ok(Self(None)),
            Some(Value::Object(sent)) => sent,
            Some(other) => {
                let detail =
                    format!("Invalid data. Expected a dictionary, but got {}.", kind(other));
                return Err(FieldError::new("job__non_field_errors", "invalid_input", detail));
            }
        };
        let kind = match sent.get("type") {
            None => return Err(missing("job__type")),
            Some(Value::Null) => return Err(null("job__type")),
            Some(value) => validate::text("job__type", text("job__type", value)?, JOB_MAX)?,
        };
        let payload = match sent.get("payload") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(payload)) => payload.clone(),
            Some(other) => return Err(no_object("job__payload", other)),
        };
        let operation = match sent.get("operation") {
            None | Some(Value::Null) => START.to_owned(),
            Some(value) => {
                validate::text("job__operation", text("job__operation", value)?, JOB_MAX)?
            }
        };
        Ok(Self(Some(JobInput { kind, payload, operation })))
    }
}

fn text<'a>(attr: &str, value: &'a Value) -> Result<&'a str, FieldError> {
    value.as_str().ok_or_else(|| no_text(attr))
}

impl Input for DryRunInput {
    const EXAMPLE: &'static str = r#"{
        "event": {"event": "$pageview", "distinct_id": "ada", "properties": {"$browser": "Firefox"}}
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let schema = || {
            json!({
                "type": ["object", "null"],
                "description": "Omitted fields get sample values.",
                "properties": {
                    "event": {"type": ["string", "null"]},
                    "distinct_id": {"type": ["string", "null"]},
                    "uuid": {"type": ["string", "null"]},
                    "timestamp": {"type": ["string", "null"]},
                    "properties": {"type": ["object", "null"]},
                },
            })
        };
        match fields.value("event", false, schema) {
            None | Some(Value::Null) => Ok(Self { event: None }),
            Some(Value::Object(event)) => Ok(Self { event: Some(event.clone()) }),
            Some(other) => Err(no_object("event", other)),
        }
    }
}

impl Input for RearrangeInput {
    const EXAMPLE: &'static str = r#"{"orders": {"3": 1, "5": 2}}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let schema = || {
            json!({
                "type": ["object", "null"],
                "description": "From the id of a config to its new `order`.",
                "additionalProperties": {"type": "integer"},
            })
        };
        let orders = match fields.value("orders", false, schema) {
            None | Some(Value::Null) => None,
            Some(Value::Object(sent)) => Some(orders(sent)?),
            Some(other) => return Err(no_object("orders", other)),
        };
        let plugin = integer(fields, "plugin", false, (i64::MIN, i64::MAX))?;
        // It has a meaning only together with a plugin.
        let order = integer(fields, "order", false, ORDER)?;
        let id = integer(fields, "id", false, (i64::MIN, i64::MAX))?;
        let name = fields.nullable_text("name", NAME_MAX)?;
        let single = match (plugin, order) {
            (Patch::Set(plugin), Patch::Set(order)) => Some(SingleMove {
                plugin: PluginId(plugin),
                order,
                id: id.over(None).map(PluginConfigId),
                name: name.over(None),
            }),
            (Patch::Set(_), _) => return Err(missing("order")),
            (Patch::Keep | Patch::Clear, _) => None,
        };
        match (orders, single) {
            (None, None) => {
                let detail = "Say the new places in `orders`, or that of one config with `plugin` \
                              and `order`.";
                Err(FieldError::new("orders", "required", detail))
            }
            (orders, single) => Ok(Self { orders: orders.unwrap_or_default(), single }),
        }
    }
}

/// Malformed ids are ignored.
fn orders(sent: &Map<String, Value>) -> Result<Vec<(PluginConfigId, i64)>, FieldError> {
    let mut orders = Vec::new();
    for (id, order) in sent {
        let attr = format!("orders__{id}");
        let order = to_integer(&attr, order, ORDER.0, ORDER.1)?;
        if let Ok(id) = id.parse() {
            orders.push((id, order));
        }
    }
    Ok(orders)
}
