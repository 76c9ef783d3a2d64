//! Persons as they are exported: one row for each distinct id (EXP-14).
//!
//! What belongs here: the columns, the key of a row, and the columns that decide which
//! row is newer. What does not: which persons a run exports (`engine`), statements
//! (`destinations`).

use crate::columns::{Columns, Source};
use crate::destination::Failure;
use crate::rows::{Column, Kind};

/// The key of a row.
pub(crate) const KEY: [&str; 2] = ["team_id", "distinct_id"];
/// The version columns: a row with greater values is newer.
pub(crate) const VERSIONS: [&str; 2] = ["person_version", "person_distinct_id_version"];

/// The columns, the same for every destination. Changes of the distinct ids change the
/// record of the person, so both versions are that of the record.
pub fn columns() -> Columns {
    Columns::of(&[
        ("team_id", Kind::Integer, Source::TeamId),
        ("distinct_id", Kind::Text, Source::DistinctId),
        ("person_id", Kind::Uuid, Source::PersonId),
        ("properties", Kind::Json, Source::PersonProperties),
        ("person_distinct_id_version", Kind::Integer, Source::PersonVersion),
        ("person_version", Kind::Integer, Source::PersonVersion),
        ("created_at", Kind::Timestamp, Source::PersonCreatedAt),
        ("is_deleted", Kind::Boolean, Source::PersonIsDeleted),
        ("_inserted_at", Kind::Timestamp, Source::PersonSeenAt),
    ])
}

/// Fails unless a table has the key and version columns. `there` returns whether it has a
/// column.
pub(crate) fn check_table(there: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let missing = KEY.into_iter().chain(VERSIONS).find(|name| !there(name));
    match missing {
        None => Ok(()),
        Some(name) => Err(Failure::permanent(
            "NoPersonsTable",
            format!(
                "The table has no column `{name}`, so it cannot hold persons. Use another table."
            ),
        )),
    }
}

/// The statement that merges rows of persons from `source` into a table, in the common
/// dialect of warehouses. It takes the newest row of each key, and only if that row is
/// newer than the present one. A second execution changes nothing.
pub(crate) fn merge(
    table: &str,
    source: &str,
    columns: &[Column],
    quoted: impl Fn(&str) -> String,
) -> String {
    let each = |made: &dyn Fn(&str) -> String| -> Vec<String> {
        columns.iter().map(|column| made(&quoted(&column.name))).collect()
    };
    let names = each(&|name| name.to_owned()).join(", ");
    let values = each(&|name| format!("here.{name}")).join(", ");
    let changes = each(&|name| format!("{name} = here.{name}")).join(", ");
    let key = KEY.map(&quoted);
    let same = key.each_ref().map(|name| format!("there.{name} = here.{name}")).join(" AND ");
    let versions = VERSIONS.map(&quoted);
    let newest = versions.each_ref().map(|name| format!("{name} DESC")).join(", ");
    let newer = versions.each_ref().map(|name| format!("here.{name} > there.{name}")).join(" OR ");
    format!(
        "MERGE INTO {table} there USING (SELECT {names} FROM {source} WHERE TRUE \
         QUALIFY ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {newest}) = 1) here ON {same} \
         WHEN MATCHED AND ({newer}) THEN UPDATE SET {changes} \
         WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})",
        key.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use weir_model::persons::PersonRef;
    use weir_model::{PersonId, ProjectId, Timestamp};

    use super::*;
    use crate::rows::{Cell, PersonRecord};

    #[test]
    fn a_row_says_who_a_distinct_id_is() {
        let person = PersonRef {
            id: PersonId(Uuid::from_u128(9)),
            distinct_ids: vec!["ada".to_owned(), "anon".to_owned()],
            properties: r#"{"n":9007199254740993}"#.to_owned(),
            created_at: Timestamp::from_micros(5),
            is_identified: true,
        };
        let record = PersonRecord { distinct_id: "anon", person: &person, version: 4, seen_at: 8 };
        let row = columns().row_of_person(ProjectId(3), record);
        assert_eq!(
            row,
            [
                Cell::Integer(3),
                Cell::Text("anon".to_owned()),
                Cell::Uuid(Uuid::from_u128(9)),
                Cell::Json(r#"{"n":9007199254740993}"#.to_owned()),
                Cell::Integer(4),
                Cell::Integer(4),
                Cell::Timestamp(5),
                Cell::Boolean(false),
                Cell::Timestamp(8),
            ]
        );
    }

    #[test]
    fn a_table_of_events_takes_no_persons() {
        let events = ["uuid", "team_id", "distinct_id", "properties"];
        let failure = check_table(|name| events.contains(&name)).unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), ("NoPersonsTable", false));
        assert!(failure.message.contains("`person_version`"), "{failure}");
        assert_eq!(check_table(|_| true), Ok(()));
    }

    #[test]
    fn a_merge_takes_what_is_newer() {
        let column = |name: &str| Column { name: name.to_owned(), kind: Kind::Text };
        let columns = KEY.into_iter().chain(VERSIONS).map(column).collect::<Vec<_>>();
        assert_eq!(
            merge("T", "S", &columns, |name| format!("`{name}`")),
            "MERGE INTO T there USING (SELECT `team_id`, `distinct_id`, `person_version`, \
             `person_distinct_id_version` FROM S WHERE TRUE QUALIFY ROW_NUMBER() OVER \
             (PARTITION BY `team_id`, `distinct_id` ORDER BY `person_version` DESC, \
             `person_distinct_id_version` DESC) = 1) here ON there.`team_id` = here.`team_id` \
             AND there.`distinct_id` = here.`distinct_id` WHEN MATCHED AND \
             (here.`person_version` > there.`person_version` OR \
             here.`person_distinct_id_version` > there.`person_distinct_id_version`) THEN \
             UPDATE SET `team_id` = here.`team_id`, `distinct_id` = here.`distinct_id`, \
             `person_version` = here.`person_version`, \
             `person_distinct_id_version` = here.`person_distinct_id_version` WHEN NOT MATCHED \
             THEN INSERT (`team_id`, `distinct_id`, `person_version`, \
             `person_distinct_id_version`) VALUES (here.`team_id`, here.`distinct_id`, \
             here.`person_version`, here.`person_distinct_id_version`)"
        );
    }
}
