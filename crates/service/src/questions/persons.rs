//! The persons behind a number, for pages and files that show them.

use serde_json::Value;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, Timestamp};
use weir_questions::Query;
use weir_questions::results::Actor;

use super::{Asking, Questions};
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::error::Error;

/// Some of the persons behind a number.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberPersons {
    /// How many are behind it.
    pub total: u64,
    /// Those of the page.
    pub persons: Vec<NumberPerson>,
    /// The offset of the next page, if there is one.
    pub next: Option<u32>,
}

/// A person behind a number.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberPerson {
    /// The person. Without a record, it has a distinct id of one of its events.
    pub person: PersonRef,
    /// Whether there is a record of it.
    pub has_record: bool,
    /// How many of its events the number counts, if the question has this column.
    pub events: Option<u64>,
}

impl Questions {
    /// Answers a question for persons, the first column of which is `person`, and the second one
    /// `event_count` if it has one.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn persons(&self, project: &ProjectCtx, query: Query) -> Result<NumberPersons> {
        let found = self.ask(project, query, Asking::default()).await?;
        let rows: Vec<Vec<Value>> = serde_json::from_str(found.answer.results.get())
            .map_err(|error| Error::Internal(error.to_string()))?;
        let has_more = found.answer.has_more == Some(true);
        let next = found.rows.as_ref().filter(|_| has_more);
        Ok(NumberPersons {
            next: next.map(|rows| rows.offset.saturating_add(rows.limit)),
            total: found.rows.and_then(|rows| rows.actors).map_or(0, |actors| actors.count),
            persons: rows.into_iter().filter_map(person).collect(),
        })
    }
}

/// `None`: it is a group.
fn person(row: Vec<Value>) -> Option<NumberPerson> {
    let mut row = row.into_iter();
    let actor: Actor = serde_json::from_value(row.next()?).ok()?;
    let events = row.next().and_then(|events| events.as_u64());
    let Actor::Person { id, properties, is_identified, created_at, distinct_ids } = actor else {
        return None;
    };
    let person = PersonRef {
        id: id.parse::<PersonId>().ok()?,
        distinct_ids,
        properties: Value::Object(properties).to_string(),
        created_at: created_at.unwrap_or_else(|| Timestamp::from_micros(0)),
        is_identified,
    };
    Some(NumberPerson { person, has_record: created_at.is_some(), events })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_persons_with_or_without_a_record() {
        let actor = |created_at: Value| {
            json!({ "id": "018f3c5a-0000-7000-8000-000000000001", "properties": { "name": "Ada" },
                "is_identified": true, "created_at": created_at, "distinct_ids": ["a"] })
        };
        let known = person(vec![actor(json!("2026-08-21T14:05:00Z")), json!(7)]).unwrap();
        assert_eq!((known.has_record, known.events), (true, Some(7)));
        assert_eq!(known.person.properties, r#"{"name":"Ada"}"#);
        let unknown = person(vec![actor(Value::Null)]).unwrap();
        assert_eq!((unknown.has_record, unknown.events), (false, None));
        assert_eq!(unknown.person.distinct_ids, ["a"]);
        let group = json!({ "id": "acme", "type": "group", "properties": {}, "group_key": "acme",
            "group_type_index": 0, "created_at": null, "group_properties": {} });
        assert_eq!(person(vec![group]), None);
    }
}
