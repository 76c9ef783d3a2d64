//! Replaces values by their SHA-256.

use sha2::{Digest, Sha256};
use weir_json::string;

use super::OF_PERSON;
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, Object, StepEvent};

pub(crate) const ENTRY: Entry = Entry {
    id: "hash-properties",
    name: "Hash properties",
    description: "Replaces names, addresses and ids of people by a salted SHA-256.",
    icon: Some("key"),
    direction: Direction::Filtering,
    items: &[
        Item::text("salt", "Salt", "A long random text. With another salt all hashes change.")
            .required()
            .secret(),
        Item::text("fields", "Properties", "Names or dotted paths, separated by commas.")
            .or("distinct_id,name,userid,email")
            .required(),
        Item::yes_no(
            "includeSetProperties",
            "Properties of persons too",
            "Yes",
            "The same names in $set and $set_once.",
        ),
    ],
    code: Code::Native(Native(make)),
};

/// The field name that also selects the distinct id of the event.
const DISTINCT_ID: &str = "distinct_id";
/// Other properties with distinct ids. They are hashed in the same way, otherwise persons
/// would not be merged.
const OTHER_IDS: [&str; 2] = ["$anon_distinct_id", "$user_id"];
/// Events in which `alias` is also a distinct id.
const MERGES: [&str; 2] = ["$create_alias", "$merge_dangerously"];

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let fields = config.needed_list("fields")?;
    Ok(Box::new(HashProperties {
        salt: config.needed("salt")?,
        hashes_ids: fields.iter().any(|field| field == DISTINCT_ID),
        fields,
        of_person: config.yes("includeSetProperties")?,
    }))
}

struct HashProperties {
    salt: String,
    fields: Vec<String>,
    hashes_ids: bool,
    of_person: bool,
}

impl Step for HashProperties {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        if self.hashes_ids {
            event.set_distinct_id(self.hash(event.distinct_id()));
        }
        let merges = MERGES.contains(&event.name());
        let properties = event.properties_mut();
        if self.hashes_ids {
            for id in OTHER_IDS {
                self.replace(properties, id);
            }
            if merges {
                self.replace(properties, "alias");
            }
        }
        self.replace_fields(properties);
        if self.of_person {
            for name in OF_PERSON {
                if let Some(person) = properties.child(name) {
                    self.replace_fields(person);
                }
            }
        }
        Flow::Keep
    }
}

impl HashProperties {
    fn replace_fields(&self, object: &mut Object<'_>) {
        for field in &self.fields {
            if let Some((holder, key)) = object.at(field) {
                self.replace(holder, key);
            }
        }
    }

    fn replace(&self, object: &mut Object<'_>, key: &str) {
        let hashed = object.raw(key).and_then(|json| match json.as_bytes().first()? {
            b'"' => string(&json).filter(|text| !text.is_empty()).map(|text| self.hash(&text)),
            b'-' | b'0'..=b'9' => Some(self.hash(&json)),
            _ => None,
        });
        if let Some(hashed) = hashed {
            object.set_text(key, &hashed);
        }
    }

    fn hash(&self, value: &str) -> String {
        let digest = Sha256::new().chain_update(value).chain_update(&self.salt).finalize();
        format!("{digest:x}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{after, assert_same, event, fault, step};

    // printf %s a@example.orgpepper | sha256sum
    const HASHED: &str = "50d93e13340c900adf16f77e1046e3bd3735c1be9421eeed8cb7cb4e01d71861";

    fn hashed(config: Value, properties: &str) -> Value {
        serde_json::from_str(&after("hash-properties", &config, properties).unwrap()).unwrap()
    }

    #[test]
    fn values_are_hashed_with_the_salt_behind_them() {
        let config = json!({"salt": "pepper", "fields": "email, user.email"});
        let sent = r#"{"email":"a@example.org","user":{"email":"a@example.org","n":12345678901234567890},"$set":{"email":"a@example.org"},"$set_once":{"email":"a@example.org"}}"#;
        assert_eq!(
            hashed(config, sent),
            json!({
                "email": HASHED, "user": {"email": HASHED, "n": 12_345_678_901_234_567_890_u64},
                "$set": {"email": HASHED}, "$set_once": {"email": HASHED},
            })
        );
        let config = json!({"salt": "pepper", "fields": "email", "includeSetProperties": "No"});
        let sent = r#"{"email":"a@example.org","$set":{"email":"a@example.org"}}"#;
        assert_eq!(
            hashed(config, sent),
            json!({"email": HASHED, "$set": {"email": "a@example.org"}})
        );
    }

    #[test]
    fn ids_are_hashed_wherever_they_are() {
        let config = json!({"salt": "pepper"});
        let step = step("hash-properties", &config).unwrap();
        let mut event =
            event("$identify", r#"{"$anon_distinct_id":"user-1","distinct_id":"user-1"}"#);
        let _ = step.apply(&mut event);
        assert_eq!(event.distinct_id().len(), 64);
        assert!(event.is_changed());
        for name in ["$anon_distinct_id", "distinct_id"] {
            assert_eq!(event.properties().text(name).as_deref(), Some(event.distinct_id()));
        }
    }

    #[test]
    fn an_alias_is_an_id_where_persons_are_merged() {
        let step = step("hash-properties", &json!({"salt": "pepper"})).unwrap();
        for (name, is_hashed) in [("$create_alias", true), ("pageview", false)] {
            let mut event = event(name, r#"{"alias":"user-2"}"#);
            let _ = step.apply(&mut event);
            assert_eq!(event.properties().text("alias").unwrap().len() == 64, is_hashed);
        }
    }

    #[test]
    fn numbers_are_hashed_as_they_were_written() {
        let config = json!({"salt": "s", "fields": "id"});
        let as_number = hashed(config.clone(), r#"{"id":12345678901234567890}"#);
        let as_text = hashed(config, r#"{"id":"12345678901234567890"}"#);
        assert_eq!(as_number, as_text);
    }

    #[test]
    fn nothing_else_is_hashed() {
        let config = json!({"salt": "s", "fields": "email,a.b"});
        assert_same(
            "hash-properties",
            &config,
            &[
                "{}",
                r#"{"email": null}"#,
                r#"{"email": ""}"#,
                r#"{"email": true}"#,
                r#"{"email": ["a@example.org"], "a": 7}"#,
                r#"{"email": {"b": 1}, "a": {"c": 1e400}}"#,
            ],
        );
    }

    #[test]
    fn faults() {
        assert_eq!(fault("hash-properties", &json!({})).0, "salt");
        assert_eq!(fault("hash-properties", &json!({"salt": "s", "fields": " ,"})).0, "fields");
        let (key, message) = fault("hash-properties", &json!({"salt": ["geheim"]}));
        assert!(key == "salt" && !message.contains("geheim"));
    }
}
