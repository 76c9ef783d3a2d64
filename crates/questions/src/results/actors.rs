//! Results of lists of persons and groups.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_model::Timestamp;

use crate::query::ActorColumn;

/// A person or a group behind a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Actor {
    /// A group.
    Group {
        /// Its key.
        id: String,
        /// Always `group`.
        #[serde(rename = "type")]
        kind: String,
        /// Its properties, as they are now.
        properties: Map<String, Value>,
        /// Its key.
        group_key: String,
        /// The number of its type.
        group_type_index: u8,
        /// When it was first seen. `None`: there is no record of it.
        created_at: Option<Timestamp>,
        /// Its properties, as they are now.
        group_properties: Map<String, Value>,
    },
    /// A person.
    Person {
        /// Its id.
        id: String,
        /// Its properties, as they are now.
        properties: Map<String, Value>,
        /// Whether it was identified.
        is_identified: bool,
        /// When it was first seen. `None`: there is no record of it.
        created_at: Option<Timestamp>,
        /// Its distinct ids.
        distinct_ids: Vec<String>,
    },
}

impl Actor {
    /// A person without a record, such as one whose events came without a person: it has the
    /// distinct id of one of its events (QRY-24).
    pub fn without_record(id: String, distinct_id: String) -> Self {
        Self::Person {
            id,
            properties: Map::new(),
            is_identified: false,
            created_at: None,
            distinct_ids: vec![distinct_id],
        }
    }

    /// A group. Without a record, its key is all that is known.
    pub fn group(
        group_type_index: u8,
        key: &str,
        properties: Map<String, Value>,
        created_at: Option<Timestamp>,
    ) -> Self {
        Self::Group {
            id: key.to_owned(),
            kind: "group".to_owned(),
            group_properties: properties.clone(),
            properties,
            group_key: key.to_owned(),
            group_type_index,
            created_at,
        }
    }

    /// Its row: a value for each column. `event_count` is the number of its events that the
    /// number counts.
    pub fn row(&self, columns: &[ActorColumn], event_count: u64) -> Vec<Value> {
        let (Self::Group { id, created_at, .. } | Self::Person { id, created_at, .. }) = self;
        let value = |column: &ActorColumn| match column {
            ActorColumn::Actor | ActorColumn::Person | ActorColumn::Group => {
                serde_json::to_value(self).unwrap_or_default()
            }
            ActorColumn::Id => Value::from(id.as_str()),
            ActorColumn::CreatedAt => Value::from(created_at.map(|time| time.to_string())),
            ActorColumn::EventCount => Value::from(event_count),
        };
        columns.iter().map(value).collect()
    }
}

/// Rows of persons or groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActorsResult {
    /// The columns as the question named them.
    pub columns: Vec<String>,
    /// A value for each column.
    pub results: Vec<Vec<Value>>,
    /// Whether more rows follow.
    #[serde(rename = "hasMore")]
    pub has_more: bool,
    /// Most rows, or the number of rows if their bytes end the page.
    pub limit: u32,
    /// Rows that were skipped.
    pub offset: u32,
    /// How many of the rows are of persons or groups without a record.
    pub missing_actors_count: u64,
    /// How many persons or groups are behind the number.
    pub actors_count: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_person_without_a_record_has_its_distinct_id() {
        let actor = Actor::without_record("018f".to_owned(), "anon-7".to_owned());
        let expected = json!({ "id": "018f", "properties": {}, "is_identified": false,
            "created_at": null, "distinct_ids": ["anon-7"] });
        assert_eq!(serde_json::to_value(&actor).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Actor>(expected).unwrap(), actor);
    }

    #[test]
    fn rows_of_actors_have_the_published_members() {
        let time = Timestamp::parse("2026-08-21T14:05:00Z");
        let properties = Map::from_iter([("name".to_owned(), json!("Acme"))]);
        let group = Actor::group(1, "acme", properties, time);
        let expected = json!({ "id": "acme", "type": "group", "properties": { "name": "Acme" },
            "group_key": "acme", "group_type_index": 1, "created_at": "2026-08-21T14:05:00Z",
            "group_properties": { "name": "Acme" } });
        let columns = [ActorColumn::Actor, ActorColumn::Id, ActorColumn::CreatedAt];
        let row = group.row(&columns, 3);
        assert_eq!(row, [expected.clone(), json!("acme"), json!("2026-08-21T14:05:00Z")]);
        assert_eq!(serde_json::from_value::<Actor>(expected).unwrap(), group);
        assert_eq!(group.row(&[ActorColumn::EventCount], 3), [json!(3)]);
        let result = json!({ "columns": ["id"], "results": [["acme"]], "hasMore": false,
            "limit": 100, "offset": 0, "missing_actors_count": 0, "actors_count": 1 });
        let read: ActorsResult = serde_json::from_value(result.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), result);
    }
}
