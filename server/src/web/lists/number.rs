//! The persons behind a number of an answer.

use std::collections::BTreeMap;

use weir_app::filters;
use weir_service::Error as ServiceError;
use weir_service::persons::display_name;
use weir_service::questions::NumberPerson;

use super::{Asked, Project};
use crate::web::csv::{Column, CsvList, by_cursor, optional};

/// The maximum number of thousands of persons of one file. Each read answers the question.
const THOUSANDS_OF_PERSONS: usize = 10;
/// The maximum number of persons of one read.
const PERSONS_PER_READ: u32 = 1_000;

const PERSONS: &[Column<NumberPerson>] = &[
    ("id", |it| it.person.id.to_string()),
    ("name", |it| display_name(&it.person)),
    ("distinct_ids", |it| it.person.distinct_ids.join("; ")),
    ("identified", |it| it.person.is_identified.to_string()),
    ("first_seen", |it| optional(it.has_record.then_some(&it.person.created_at))),
    ("events", |it| optional(it.events.as_ref())),
    ("properties", |it| it.person.properties.clone()),
];

pub(super) fn persons(asked: &Asked<'_>, within: Project) -> CsvList {
    let name = within.name.clone();
    let parameters: BTreeMap<String, String> = asked.values();
    let pages = by_cursor(0, move |offset| {
        let Project { services, project, .. } = within.clone();
        let query = filters::persons_of_number(&parameters, PERSONS_PER_READ, offset);
        async move {
            let query = query.map_err(ServiceError::from)?;
            let found = services.questions.persons(&project, query).await?;
            Ok((found.persons, found.next))
        }
    });
    CsvList::new("persons-behind-a-number", &name, PERSONS, pages)
        .at_most_thousands(THOUSANDS_OF_PERSONS)
}
