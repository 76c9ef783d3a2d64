use super::super::postgres::Found;
use super::*;

fn plan(json: &str) -> Plan {
    let column = |cell, name: &str, sql: &str, target| Matched {
        cell,
        found: Found { name: name.to_owned(), sql: sql.to_owned(), target },
    };
    let json_target = if json == "super" { Target::Json } else { Target::Text(Some(TEXT_MAX)) };
    Plan {
        table: "\"public\".\"events\"".to_owned(),
        model: ExportModel::Events,
        columns: vec![
            column(0, "uuid", "character varying(200)", Target::Text(Some(200))),
            column(1, "properties", json, json_target),
            column(2, "team_id", "integer", Target::Integer(32)),
            column(3, "yes", "boolean", Target::Boolean),
            column(4, "timestamp", "timestamp with time zone", Target::Timestamp),
        ],
        key: vec!["uuid".to_owned(), "team_id".to_owned()],
        uuid: Some(0),
    }
}

fn row(properties: &str) -> Vec<Cell> {
    vec![
        Cell::Text("00000000-0000-0000-0000-000000000001".to_owned()),
        Cell::Json(properties.to_owned()),
        Cell::Integer(7),
        Cell::Boolean(true),
        Cell::Timestamp(0),
    ]
}

#[test]
fn a_missing_table_is_made_with_the_chosen_type_of_json() {
    let table = Table { schema: "public".to_owned(), name: "events".to_owned() };
    let columns = Columns::of(&[
        ("uuid", Kind::Text, Source::Uuid),
        ("Event", Kind::Text, Source::Event),
        ("properties", Kind::Json, Source::Properties),
        ("team_id", Kind::Integer, Source::TeamId),
        ("n", Kind::Integer, Source::TeamId),
        ("id", Kind::Uuid, Source::Uuid),
        ("timestamp", Kind::Timestamp, Source::Timestamp),
    ]);
    let made = |json| create(&table, &columns, json);
    assert_eq!(
        made(Json::Super),
        "CREATE TABLE IF NOT EXISTS \"public\".\"events\" (\"uuid\" VARCHAR(200), \
         \"event\" VARCHAR(65535), \"properties\" SUPER, \"team_id\" INTEGER, \"n\" BIGINT, \
         \"id\" VARCHAR(36), \"timestamp\" TIMESTAMP WITH TIME ZONE)"
    );
    assert!(made(Json::Varchar).contains("\"properties\" VARCHAR(65535)"));
}

#[test]
fn rows_become_values() {
    let (mut sql, mut changed) = (String::new(), Vec::new());
    let plan = plan("super");
    assert_eq!(
        plan.head(),
        "INSERT INTO weir_rows (\"uuid\", \"properties\", \"team_id\", \"yes\", \"timestamp\") \
         VALUES "
    );
    plan.push_row(&mut sql, &row(r#"{"it's":"a\\b\n"}"#), &mut changed);
    assert_eq!(
        sql,
        "('00000000-0000-0000-0000-000000000001','{\"it''s\":\"a\\\\\\\\b\\\\n\"}',7,true,\
         '1970-01-01 00:00:00.000000+00')"
    );
    assert_eq!(changed, []);
}

#[test]
fn what_is_too_long_is_omitted_or_cut() {
    let (mut sql, mut changed) = (String::new(), Vec::new());
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(TEXT_MAX));
    for json in ["super", "character varying(65535)"] {
        plan(json).push_row(&mut sql, &row(&long), &mut changed);
    }
    let values = "('00000000-0000-0000-0000-000000000001',NULL,7,true,\
                  '1970-01-01 00:00:00.000000+00')";
    assert_eq!(sql, [values, values].concat());
    let columns: Vec<&str> = changed.iter().map(|altered| altered.column.as_str()).collect();
    assert_eq!(columns, ["properties", "properties"]);
}

#[test]
fn a_run_replaces_its_own_rows() {
    assert_eq!(
        plan("super").stage(),
        "CREATE TEMPORARY TABLE weir_rows (\"uuid\" character varying(200), \
         \"properties\" VARCHAR(65535), \"team_id\" integer, \"yes\" boolean, \
         \"timestamp\" timestamp with time zone)"
    );
    let insert = "INSERT INTO \"public\".\"events\" (\"uuid\", \"properties\", \"team_id\", \
                  \"yes\", \"timestamp\") SELECT \"uuid\", JSON_PARSE(\"properties\"), \
                  \"team_id\", \"yes\", \"timestamp\" FROM weir_rows";
    assert_eq!(
        plan("super").merge(),
        [
            "DELETE FROM \"public\".\"events\" USING weir_rows WHERE \
             \"public\".\"events\".\"uuid\" = weir_rows.\"uuid\" AND \
             \"public\".\"events\".\"team_id\" = weir_rows.\"team_id\"",
            insert,
        ]
    );
    let keyless = Plan { key: Vec::new(), ..plan("super") };
    assert_eq!(keyless.merge(), [insert]);
}

#[test]
fn persons_replace_what_is_older() {
    let column = |cell, name: &str| Matched {
        cell,
        found: Found {
            name: name.to_owned(),
            sql: "bigint".to_owned(),
            target: Target::Integer(64),
        },
    };
    let plan = Plan {
        table: "\"public\".\"persons\"".to_owned(),
        model: ExportModel::Persons,
        columns: vec![
            column(0, "team_id"),
            column(1, "distinct_id"),
            column(4, "person_distinct_id_version"),
            column(5, "person_version"),
        ],
        key: vec!["team_id".to_owned(), "distinct_id".to_owned()],
        uuid: None,
    };
    assert_eq!(
        plan.merge(),
        [
            "DELETE FROM \"public\".\"persons\" USING weir_rows WHERE \
             \"public\".\"persons\".\"team_id\" = weir_rows.\"team_id\" AND \
             \"public\".\"persons\".\"distinct_id\" = weir_rows.\"distinct_id\" AND \
             (weir_rows.\"person_version\" > \"public\".\"persons\".\"person_version\" OR \
             weir_rows.\"person_distinct_id_version\" > \
             \"public\".\"persons\".\"person_distinct_id_version\")",
            "INSERT INTO \"public\".\"persons\" (\"team_id\", \"distinct_id\", \
             \"person_distinct_id_version\", \"person_version\") SELECT \"team_id\", \
             \"distinct_id\", \"person_distinct_id_version\", \"person_version\" FROM \
             (SELECT *, ROW_NUMBER() OVER (PARTITION BY \"team_id\", \"distinct_id\" ORDER BY \
             \"person_version\" DESC, \"person_distinct_id_version\" DESC) AS weir_row \
             FROM weir_rows) AS here WHERE weir_row = 1 AND NOT EXISTS (SELECT 1 FROM \
             \"public\".\"persons\" WHERE \"public\".\"persons\".\"team_id\" = here.\"team_id\" \
             AND \"public\".\"persons\".\"distinct_id\" = here.\"distinct_id\")",
        ]
    );
}
