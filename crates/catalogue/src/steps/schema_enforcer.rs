//! Drops or marks events whose properties do not match a schema.

use std::collections::HashMap;

use serde_json::Value;

use crate::config::{Config, ConfigError, PATTERNS_MAX, shown};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};
use crate::schema::Schema;

const SCHEMAS: &str = "schemas";
/// The property with the faults of an event.
const FAULTS: &str = "$schema_faults";
/// Matches all events without a separate schema.
const OTHERS: &str = "*";

pub(crate) const ENTRY: Entry = Entry {
    id: "schema-enforcer",
    name: "Schema enforcer",
    description: "Drops or marks events whose properties do not match a JSON Schema.",
    icon: Some("check"),
    direction: Direction::Filtering,
    items: &[
        Item::json(
            SCHEMAS,
            "Schemas",
            "An object: the name of an event, and the JSON Schema of its properties; * for all others.",
        )
        .required(),
        Item::choice(
            "onFault",
            "What happens to events that do not match",
            &["mark", "drop"],
            "mark",
            "Marked events get the property $schema_faults.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let wrong = |text: String| ConfigError::new(SCHEMAS, text);
    let Some(Value::Object(sent)) = config.json(SCHEMAS)? else {
        return Err(wrong("This must be an object with a schema by event.".to_owned()));
    };
    let mut schemas = HashMap::new();
    for (name, schema) in &sent {
        let schema = Schema::read(SCHEMAS, schema)
            .map_err(|fault| wrong(format!("{}: {fault}", shown(name))))?;
        schemas.insert(name.clone(), schema);
    }
    if schemas.is_empty() {
        return Err(wrong("There must be a schema for at least one event.".to_owned()));
    }
    if schemas.values().map(Schema::patterns).sum::<usize>() > PATTERNS_MAX {
        return Err(wrong(format!("At most {PATTERNS_MAX} patterns are possible.")));
    }
    let drops = match config.needed("onFault")?.as_str() {
        "drop" => true,
        "mark" => false,
        _ => return Err(ConfigError::new("onFault", "This must be \"mark\" or \"drop\".")),
    };
    Ok(Box::new(SchemaEnforcer { schemas, drops }))
}

struct SchemaEnforcer {
    schemas: HashMap<String, Schema>,
    drops: bool,
}

impl Step for SchemaEnforcer {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let Some(schema) = self.schemas.get(event.name()).or_else(|| self.schemas.get(OTHERS))
        else {
            return Flow::Keep;
        };
        let faults = schema.faults(event.properties());
        if faults.is_empty() {
            return Flow::Keep;
        }
        if self.drops {
            return Flow::Drop;
        }
        event.properties_mut().set_raw(FAULTS, Value::from(faults).to_string());
        Flow::Keep
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{after_named, fault};

    fn config(on_fault: &str) -> Value {
        json!({
            "schemas": {
                "order": {
                    "required": ["id"],
                    "properties": {"id": {"type": "integer"}, "größe": {"enum": ["S", "L"]}},
                },
                "*": {"properties": {"debug": {"const": false}}},
            },
            "onFault": on_fault,
        })
    }

    #[test]
    fn what_is_right_stays() {
        for (name, sent) in [
            ("order", r#"{"id": 12345678901234567890, "größe": "S", "x": null}"#),
            ("other", r#"{"id": "x", "debug": false}"#),
            ("other", "{}"),
        ] {
            let after = after_named("schema-enforcer", &config("drop"), name, sent);
            assert_eq!(after.as_deref(), Some(sent));
        }
    }

    #[test]
    fn what_is_wrong_is_dropped_or_marked() {
        for (name, sent, fault) in [
            ("order", "{}", "id: is missing"),
            ("order", r#"{"id":null}"#, "id: is no integer"),
            ("order", r#"{"id":1,"größe":["S"]}"#, "größe: is none of the values"),
            ("other", r#"{"debug":true}"#, "debug: is none of the values"),
        ] {
            assert_eq!(after_named("schema-enforcer", &config("drop"), name, sent), None);
            let marked = after_named("schema-enforcer", &config("mark"), name, sent).unwrap();
            let marked: Value = serde_json::from_str(&marked).unwrap();
            assert_eq!(marked["$schema_faults"], json!([fault]));
        }
    }

    #[test]
    fn faults() {
        for schemas in [json!(null), json!({}), json!("{"), json!([]), json!({"a": {"type": "x"}})]
        {
            assert_eq!(
                fault("schema-enforcer", &json!({"schemas": schemas})).0,
                "schemas",
                "{schemas}"
            );
        }
        let properties: serde_json::Map<_, _> =
            (0..20).map(|number| (number.to_string(), json!({"pattern": "x"}))).collect();
        let many = json!({"schemas": {"a": {"properties": properties}}});
        assert!(fault("schema-enforcer", &many).1.contains("patterns"));
        let config = json!({"schemas": {"a": {}}, "onFault": "cry"});
        assert_eq!(fault("schema-enforcer", &config).0, "onFault");
    }
}
