use uuid::Uuid;
use weir_model::PersonId;
use weir_query::parse;
use weir_store::events::StoredEvent;

use super::*;
use crate::rows::Person;

const NOW: i64 = 1_800_000_000_000_000;

fn record(properties: &str) -> EventWithPerson {
    EventWithPerson {
        event: StoredEvent {
            arrival: 7,
            uuid: Uuid::from_u128(1),
            event: "paid".to_owned(),
            distinct_id: "ada".to_owned(),
            timestamp: 1_700_000_000_123_456,
            received_at: 1_700_000_001_000_000,
            properties: properties.to_owned(),
            elements_chain: String::new(),
            historical: false,
            warnings: Vec::new(),
        },
        person: Some(Arc::new(Person {
            id: PersonId(Uuid::from_u128(2)),
            properties: r#"{"email":"ada@example.com"}"#.to_owned(),
        })),
    }
}

fn cells(columns: &Columns, record: EventWithPerson) -> Vec<Cell> {
    let made = columns.row_if_included(ProjectId(3), NOW, &record).unwrap().unwrap();
    assert_eq!(made.altered, None);
    made.cells
}

fn of_query(text: &str) -> Columns {
    Columns::of_query(Arc::new(parse(text).unwrap()))
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

#[test]
fn each_source_has_its_value() {
    let columns = Columns::of(&[
        ("uuid", Kind::Uuid, Source::Uuid),
        ("uuid_text", Kind::Text, Source::Uuid),
        ("event", Kind::Text, Source::Event),
        ("distinct_id", Kind::Text, Source::DistinctId),
        ("team_id", Kind::Integer, Source::TeamId),
        ("timestamp", Kind::Timestamp, Source::Timestamp),
        ("created_at", Kind::Timestamp, Source::InsertedAt),
        ("properties", Kind::Json, Source::Properties),
        ("properties_text", Kind::Text, Source::Properties),
        ("elements_chain", Kind::Text, Source::ElementsChain),
        ("elements", Kind::Json, Source::ElementsChain),
        ("person_id", Kind::Text, Source::PersonId),
        ("person_properties", Kind::Json, Source::PersonProperties),
        ("site_url", Kind::Text, Source::Empty),
        ("now", Kind::Timestamp, Source::Now),
    ]);
    let id = "00000000-0000-0000-0000-000000000001";
    let properties = r#"{"n":9007199254740993}"#;
    let mut event = record(properties);
    event.event.elements_chain = r#"a:href="x""#.to_owned();
    assert_eq!(
        cells(&columns, event),
        [
            Cell::Uuid(Uuid::from_u128(1)),
            text(id),
            text("paid"),
            text("ada"),
            Cell::Integer(3),
            Cell::Timestamp(1_700_000_000_123_456),
            Cell::Timestamp(1_700_000_001_000_000),
            Cell::Json(properties.to_owned()),
            text(properties),
            text(r#"a:href="x""#),
            Cell::Json(r#""a:href=\"x\"""#.to_owned()),
            text("00000000-0000-0000-0000-000000000002"),
            Cell::Json(r#"{"email":"ada@example.com"}"#.to_owned()),
            text(""),
            Cell::Timestamp(NOW),
        ]
    );
    assert_eq!(columns.position_of(Field::TeamId), Some(4));

    let without_person = EventWithPerson { person: None, ..record("{}") };
    let cells = cells(&columns, without_person);
    assert_eq!((&cells[11], &cells[12]), (&Cell::Null, &Cell::Null));
    assert_eq!(cells[9], text(""));
}

#[test]
fn what_is_set_and_the_address_come_from_the_properties() {
    let columns = Columns::of(&[
        ("set", Kind::Json, Source::Set),
        ("set_once", Kind::Json, Source::SetOnce),
        ("ip", Kind::Text, Source::Ip),
    ]);
    let found = |properties: &str| cells(&columns, record(properties));
    let json = |json: &str| Cell::Json(json.to_owned());
    assert_eq!(
        found(
            r#"{"$set": {"id": 9007199254740993, "a": [1, {"b": null}]}, "$set_once": {}, "$ip": "::1"}"#
        ),
        [json(r#"{"id": 9007199254740993, "a": [1, {"b": null}]}"#), json("{}"), text("::1")],
    );
    let none = [Cell::Null, Cell::Null, Cell::Null];
    assert_eq!(found("{}"), none);
    assert_eq!(found(r#"{"$set": null, "$set_once": null, "$ip": ""}"#), none);
    assert_eq!(found(r#"{"$ip": 7}"#), none);
    assert_eq!(found("not json"), none);
    // Of several members with the same name the last one counts, and names may have
    // escapes.
    assert_eq!(found(r#"{"$ip": "a", "\u0024ip": "b"}"#)[2], text("b"));
}

#[test]
fn a_query_has_its_own_columns_and_events() {
    let columns = of_query(
        "SELECT event, uuid AS id, team_id + 1 AS next, properties.n AS n, \
         toInt(properties.n) AS whole, properties.o AS properties, \
         toFloat(properties.n) / 0 AS nothing, person.properties.email AS email, \
         toDate(timestamp) AS day FROM events WHERE properties.n > 9007199254740992",
    );
    let kinds: Vec<(&str, Kind)> =
        columns.columns.iter().map(|column| (column.name.as_str(), column.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("event", Kind::Text),
            ("id", Kind::Uuid),
            ("next", Kind::Integer),
            ("n", Kind::Text),
            ("whole", Kind::Integer),
            ("properties", Kind::Json),
            ("nothing", Kind::Float),
            ("email", Kind::Text),
            ("day", Kind::Timestamp),
        ]
    );
    let taken = record(r#"{"n": 9007199254740993, "o": "text"}"#);
    let expected = vec![
        text("paid"),
        Cell::Uuid(Uuid::from_u128(1)),
        Cell::Integer(4),
        text("9007199254740993"),
        Cell::Integer(9_007_199_254_740_993),
        Cell::Json("\"text\"".to_owned()),
        Cell::Null,
        text("ada@example.com"),
        Cell::Timestamp(1_699_920_000_000_000),
    ];
    assert_eq!(cells(&columns, taken), expected);

    assert_eq!(columns.position_of(Field::Uuid), Some(1));
    assert_eq!(columns.position_of(Field::TeamId), None, "it is not there as it is");

    let omitted = record(r#"{"n": 9007199254740992}"#);
    assert_eq!(columns.row_if_included(ProjectId(3), NOW, &omitted), Ok(None));
    let all = Columns::of(&[]).row_if_included(ProjectId(3), NOW, &omitted);
    let none = BuiltRow { cells: Vec::new(), altered: None };
    assert_eq!(all, Ok(Some(none)), "without a query all are taken");
}

/// The omitted part of the row of an event with a megabyte of text.
fn altered(columns: &Columns) -> (Vec<Cell>, String) {
    let large = record(&format!(r#"{{"x":"{}"}}"#, "y".repeat(1 << 20)));
    let made = columns.row_if_included(ProjectId(3), NOW, &large).unwrap().unwrap();
    let altered = made.altered.unwrap();
    assert_eq!(altered.uuid, Some(large.event.uuid));
    (made.cells, format!("{} {}", altered.column, altered.what))
}

#[test]
fn a_row_has_a_bound() {
    // Each of these columns has two megabytes.
    let columns = of_query(
        "SELECT concat(properties.x, properties.x) AS a, concat(properties.x, properties.x) AS b, \
         concat(properties.x, properties.x) AS c, concat(properties.x, properties.x) AS d, \
         concat(properties.x, properties.x) AS e, event FROM events",
    );
    let (cells, altered) = altered(&columns);
    let sizes: Vec<usize> = cells.iter().map(|cell| cell.size() >> 10).collect();
    assert_eq!(sizes, [2_048, 2_048, 2_048, 0, 0, 0]);
    assert_eq!((&cells[3], &cells[5]), (&Cell::Null, &text("paid")));
    assert_eq!(altered, "d it would make the row larger than 8 MiB and was omitted");
}

#[test]
fn the_work_for_a_row_has_a_bound() {
    let many = ["lower(properties.x) = 'a'"; 40].join(" OR ");
    let columns =
        of_query(&format!("SELECT uuid, {many} AS a, upper(event) AS b, event FROM events"));
    let (cells, altered) = altered(&columns);
    let uuid = Cell::Uuid(Uuid::from_u128(1));
    assert_eq!(cells, [uuid, Cell::Null, Cell::Null, text("paid")]);
    assert_eq!(altered, "a it takes too long to be computed and was omitted");

    // Paths into a text cost time too.
    let mut nested = "1".to_owned();
    for _ in 0..15 {
        nested = format!(r#"{{"a":{nested},"x":"{}"}}"#, "y".repeat(60_000));
    }
    let path = ["a"; 15].join(".");
    let few = vec![format!("properties.{path} = 2"); 2].join(" OR ");
    let many = vec![format!("properties.{path} = 2"); 20].join(" OR ");
    let columns = of_query(&format!("SELECT {few} AS few, {many} AS many FROM events"));
    let made = columns.row_if_included(ProjectId(3), NOW, &record(&nested)).unwrap().unwrap();
    assert_eq!(made.cells, [Cell::Boolean(false), Cell::Null]);
}

#[test]
fn an_event_whose_condition_takes_too_long_is_not_passed_over_in_silence() {
    let large = record(&format!(r#"{{"x":"{}"}}"#, "y".repeat(1 << 20)));
    let asked = |times: usize, event: &EventWithPerson| {
        let condition = vec!["lower(properties.x) = 'a'"; times].join(" OR ");
        let columns = of_query(&format!("SELECT uuid FROM events WHERE {condition}"));
        columns.row_if_included(ProjectId(3), NOW, event).map(|made| made.is_some())
    };
    assert_eq!(asked(40, &large), Err(WorkLimitReached));
    assert_eq!(asked(1, &large), Ok(false));
    assert_eq!(asked(40, &record(r#"{"x":"y"}"#)), Ok(false));
    assert_eq!(asked(40, &record(r#"{"x":"A"}"#)), Ok(true));
}
