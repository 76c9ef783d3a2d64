//! Lines in the format of capture: `{"event", "distinct_id", "properties", "timestamp",
//! "uuid"}`, and the columns `set` and `set_once` of an export of events.

use crate::defect::Defect;
use crate::event::{Draft, Identity};
use crate::object::LineObject;

pub(super) fn draft(mut line: LineObject<'_>) -> Draft<'_> {
    let mut draft = Draft::default();
    draft.properties = match line.take("properties") {
        None => LineObject::default(),
        Some(json) => super::object(json).unwrap_or_else(|kind| {
            draft.defects.push(Defect::from(kind));
            LineObject::default()
        }),
    };
    draft.name = line.take("event");
    let from_properties = draft.properties.get("distinct_id").map(|id| id.to_owned().into());
    draft.distinct_id =
        line.take("distinct_id").or_else(|| line.take("$distinct_id")).or(from_properties);
    draft.time = line.take("timestamp");
    draft.identity = line.take("uuid").map_or(Identity::Content, Identity::Given);
    for name in ["$set", "$set_once"] {
        let Draft { beside, defects, .. } = &mut draft;
        super::add_person_update(beside, defects, name, line.take(name));
    }
    // A row of an export can lack the columns that it is detected by. Its updates of
    // persons must not be lost.
    for (column, name) in [("set", "$set"), ("set_once", "$set_once")] {
        let Draft { properties, defects, .. } = &mut draft;
        super::add_person_update(properties, defects, name, line.take(column));
    }
    if let Some(value) = line.take("$unset") {
        draft.beside.add("$unset", value);
    }
    draft
}
