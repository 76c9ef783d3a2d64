//! An event with its person as input of the query evaluator.
//!
//! What belongs here: reading values of an event. What does not: the query language
//! (`weir-query`), columns (`columns`).

use std::cell::OnceCell;

use weir_json::Members;
use weir_model::ProjectId;
use weir_query::{Field, QueryInput, Value, WorkLimit};

use crate::rows::EventWithPerson;

/// An event whose properties are parsed when the first of them is read.
#[derive(Debug)]
pub struct EventInput<'a> {
    project: ProjectId,
    event_with_person: &'a EventWithPerson,
    properties: OnceCell<Members<'a>>,
    person_properties: OnceCell<Members<'a>>,
    work_limit: WorkLimit,
}

impl<'a> EventInput<'a> {
    /// An event of a project.
    pub fn new(project: ProjectId, event_with_person: &'a EventWithPerson) -> Self {
        Self {
            project,
            event_with_person,
            properties: OnceCell::new(),
            person_properties: OnceCell::new(),
            work_limit: WorkLimit::default(),
        }
    }

    /// The JSON text of a property of the event.
    pub(crate) fn property_json(&self, name: &str) -> Option<&'a str> {
        self.properties().get(name)
    }

    fn properties(&self) -> &Members<'a> {
        self.properties.get_or_init(|| Members::of(&self.event_with_person.event.properties))
    }

    fn person_properties(&self) -> &Members<'a> {
        self.person_properties.get_or_init(|| {
            let person = self.event_with_person.person.as_deref();
            person.map(|person| Members::of(&person.properties)).unwrap_or_default()
        })
    }
}

impl QueryInput for EventInput<'_> {
    fn field(&self, field: Field) -> Value<'_> {
        let (event, person) =
            (&self.event_with_person.event, self.event_with_person.person.as_deref());
        match field {
            Field::TeamId => Value::Integer(self.project.0),
            Field::Timestamp => Value::Timestamp(event.timestamp),
            Field::CreatedAt => Value::Timestamp(event.received_at),
            Field::Event => Value::Text(event.event.as_str().into()),
            Field::DistinctId => Value::Text(event.distinct_id.as_str().into()),
            Field::ElementsChain => Value::Text(event.elements_chain.as_str().into()),
            Field::Uuid => Value::Uuid(event.uuid),
            Field::PersonId => person.map_or(Value::Null, |person| Value::Uuid(person.id.0)),
            Field::Properties => Value::Json(event.properties.as_str().into()),
            Field::PersonProperties => {
                person.map_or(Value::Null, |person| Value::Json(person.properties.as_str().into()))
            }
            // The query of an export cannot name these.
            Field::SessionId | Field::GroupProperties(_) => Value::Null,
        }
    }

    fn property(&self, field: Field, path: &[String]) -> Value<'_> {
        let members = match field {
            Field::Properties => self.properties(),
            Field::PersonProperties => self.person_properties(),
            _ => return Value::Null,
        };
        // Finding a member compares each name.
        self.work_limit.charge(members.count());
        if let [first, rest @ ..] = path
            && !rest.is_empty()
        {
            // Each further step parses the value again, which may be as long as the first one.
            let value = members.get(first).unwrap_or_default();
            self.work_limit.charge(rest.len().saturating_mul(value.len()));
            if self.work_limit.is_used_up() {
                return Value::Null;
            }
        }
        members.at(path).map_or(Value::Null, Value::of_json)
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work_limit
    }
}
