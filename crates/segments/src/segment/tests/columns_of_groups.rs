//! Reading segments column by column.

use std::collections::HashMap;
use std::ops::ControlFlow;

use memchr::memmem::Finder;
use serde_json::{Map, Value};

use super::*;
use crate::Bits;
use crate::checked::{CHUNK, CheckedWriter};

/// The columns whose texts lie one after another.
const PLAIN: [ColumnName; 4] =
    [ColumnName::Uuid, ColumnName::DistinctId, ColumnName::ElementsChain, ColumnName::Properties];

/// What a property has in each row, as a reader of columns says it.
type TypedValues = HashMap<String, Vec<Option<Value>>>;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn texts_of(codes: &Codes) -> Vec<Option<String>> {
    let of = |code: &u32| (*code != NONE).then(|| text(&codes.values[*code as usize]));
    codes.codes.iter().map(of).collect()
}

fn all_texts(reader: &mut GroupReader<'_>, column: &ColumnName) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    reader.each_text(column, |row, bytes| {
        assert_eq!(row as usize, texts.len());
        texts.push(text(bytes));
        ControlFlow::Continue(())
    })?;
    Ok(texts)
}

/// All events of a segment, read by columns. They have no warnings.
fn events_of(columns: &Columns) -> Result<Vec<OwnedEvent>> {
    let mut events = Vec::new();
    for group in columns.groups() {
        let mut reader = columns.group(*group);
        let [mut arrivals, mut times, mut received] = [Vec::new(), Vec::new(), Vec::new()];
        reader.numbers(&ColumnName::Arrival, &mut arrivals)?;
        reader.numbers(&ColumnName::Timestamp, &mut times)?;
        reader.numbers(&ColumnName::ReceivedAt, &mut received)?;
        let (mut historical, mut valid) = (Bits::default(), Bits::default());
        reader.booleans(&ColumnName::Historical, &mut historical, &mut valid)?;
        assert_eq!(valid.count(), group.rows as usize);
        let names = reader.codes(&ColumnName::Event)?;
        let mut texts = PLAIN.iter().map(|column| all_texts(&mut reader, column));
        let [uuids, ids, chains, properties] = std::array::from_fn(|_| texts.next().unwrap());
        let (uuids, ids, chains, properties) = (uuids?, ids?, chains?, properties?);
        for (row, name) in texts_of(&names).into_iter().enumerate() {
            events.push(OwnedEvent {
                arrival: arrivals[row].cast_unsigned(),
                uuid: Uuid::try_parse(&uuids[row]).unwrap_or_default(),
                event: name.unwrap(),
                distinct_id: ids[row].clone(),
                timestamp: times[row],
                received_at: received[row],
                properties: properties[row].clone(),
                elements_chain: chains[row].clone(),
                historical: historical.get(row),
                warnings: Vec::new(),
            });
        }
    }
    Ok(events)
}

/// The values of all typed columns.
fn typed_of(columns: &Columns, typed: &[TypedColumn]) -> Result<TypedValues> {
    let mut values = TypedValues::new();
    for TypedColumn { property, kind } in typed {
        let values = values.entry(property.clone()).or_default();
        assert_eq!(columns.typed(property).unwrap().0, *kind);
        let column = ColumnName::Typed(property.clone());
        for group in columns.groups() {
            let mut reader = columns.group(*group);
            let rows = group.rows as usize;
            let mut valid = Bits::default();
            match kind {
                ColumnType::Text => {
                    let texts = texts_of(&reader.codes(&column)?);
                    values.extend(texts.into_iter().map(|text| text.map(Value::from)));
                }
                ColumnType::Number => {
                    let mut numbers = vec![1.0; 3];
                    reader.doubles(property, &mut numbers, &mut valid)?;
                    let of = |row| valid.get(row).then(|| Value::from(numbers[row]));
                    values.extend((0..rows).map(of));
                }
                ColumnType::Boolean => {
                    let mut set = Bits::default();
                    reader.booleans(&column, &mut set, &mut valid)?;
                    let of = |row| valid.get(row).then(|| Value::from(set.get(row)));
                    values.extend((0..rows).map(of));
                }
            }
        }
    }
    Ok(values)
}

/// What the typed columns of these events hold, by the text of their properties.
fn typed_in(events: &[OwnedEvent], typed: &[TypedColumn]) -> TypedValues {
    let objects = events.iter().map(|event| serde_json::from_str(&event.properties));
    let objects: Vec<Map<String, Value>> =
        objects.map(|object| object.unwrap_or_default()).collect();
    let value = |object: &Map<String, Value>, column: &TypedColumn| {
        let value = object.get(&column.property)?;
        match column.kind {
            ColumnType::Text => value.as_str().map(Value::from),
            ColumnType::Number => value.as_f64().map(Value::from),
            ColumnType::Boolean => value.as_bool().map(Value::from),
        }
    };
    let column = |column: &TypedColumn| {
        let values = objects.iter().map(|object| value(object, column)).collect();
        (column.property.clone(), values)
    };
    typed.iter().map(column).collect()
}

/// Whether each reader of columns gives what `Segment::block` gives.
#[track_caller]
fn assert_columns(file: &File) -> Columns {
    let segment = file.open();
    let mut events = segment.block(0, u32::try_from(segment.rows()).unwrap()).unwrap();
    events.iter_mut().for_each(|event| event.warnings.clear());
    let columns = segment.columns(&[]).unwrap();
    assert!(events_of(&columns).unwrap() == events);
    let typed = &file.written.typed;
    assert!(typed_of(&columns, typed).unwrap() == typed_in(&events, typed));
    let mut first = 0;
    for (number, group) in columns.groups().iter().enumerate() {
        assert_eq!((group.number, group.first_row), (number, first as u64));
        let events = &events[first..first + group.rows as usize];
        first += events.len();
        let times = events.iter().map(|event| event.timestamp);
        assert_eq!(group.times, (times.clone().min().unwrap(), times.max().unwrap()));
        let arrivals = events.iter().map(|event| event.arrival);
        assert_eq!(group.arrivals, (arrivals.clone().min().unwrap(), arrivals.max().unwrap()));
        let mut reader = columns.group(*group);
        for column in &PLAIN {
            let texts = all_texts(&mut reader, column).unwrap();
            for (at, step) in [(0, 1), (0, 3), (texts.len() / 2, 900), (texts.len() - 1, 1)] {
                let rows: Vec<u32> = (at as u32..group.rows).step_by(step).collect();
                let mut found = Vec::new();
                let see = |row: u32, bytes: &[u8]| found.push((row, text(bytes)));
                reader.texts_at(column, &rows, see).unwrap();
                let wanted = rows.iter().map(|row| (*row, texts[*row as usize].clone()));
                assert!(found == wanted.collect::<Vec<_>>(), "{column} from {at} by {step}");
            }
        }
    }
    assert_eq!(first, events.len());
    columns
}

fn with(arrival: u64, properties: &str) -> OwnedEvent {
    OwnedEvent { properties: properties.to_owned(), ..event(arrival) }
}

#[test]
fn every_column_has_what_blocks_have() {
    let mixed = |n: u64| match n % 5 {
        0 => with(n, r#"{"n":1.5,"text":"a","yes":true}"#),
        1 => with(n, r#"{"n":"1","text":"\u00e4 \"","yes":null}"#),
        2 => with(n, "{}"),
        3 => with(n, r#"{"n":-0.25,"n":7,"text":"","yes":false}"#),
        _ => with(n, r#"{"n":[1],"text":1,"yes":"true"}"#),
    };
    let first: Vec<OwnedEvent> =
        (1..=16_000).map(|n| with(n, r#"{"n":1,"text":"a","yes":true}"#)).collect();
    // The last ones are a group of their own.
    let nothing = |from, to| -> Vec<OwnedEvent> { (from..to).map(|n| with(n, "{}")).collect() };
    let texts =
        (1..=20_000).map(|n| with(n, &format!(r#"{{"text":"{}"}}"#, "x".repeat(n as usize % 97))));
    for blocks in [
        vec![odd_events(1), events(100, 1), odd_events(i64::MAX as u64 - 100)],
        (0..70).map(|n| events(n * 1_001 + 1, 1_001)).collect(),
        vec![
            first,
            (20_000..23_000).map(mixed).collect(),
            nothing(40_000, 84_000),
            nothing(90_000, 92_000),
        ],
        vec![texts.collect()],
    ] {
        assert_columns(&File::of(&blocks));
    }
}

#[test]
fn texts_of_many_values_are_codes_too() {
    // The dictionary of names ends at 32 KiB, that of a property at 256 KiB.
    let odd = |n: u64| OwnedEvent {
        event: format!("a name of an event {}", n % 4_000),
        ..with(n, &format!(r#"{{"text":"a text that is rather long: {}"}}"#, n % 16_000))
    };
    let blocks: Vec<Vec<OwnedEvent>> = (0..40)
        .map(|block| (block * 1_000 + 1..=block * 1_000 + 1_000).map(odd).collect())
        .collect();
    let known = vec![TypedColumn { property: "text".to_owned(), kind: ColumnType::Text }];
    let file = File::with(&blocks, &Options { known, ..Options::default() });
    let columns = assert_columns(&file);
    let mut reader = columns.group(columns.groups()[0]);
    for (column, count) in
        [(ColumnName::Event, 4_000), (ColumnName::Typed("text".to_owned()), 16_000)]
    {
        let codes = reader.codes(&column).unwrap();
        assert_eq!(codes.values.len(), count, "each text once");
        assert_eq!(reader.dictionary(&column).unwrap(), None, "{column}");
    }
}

#[test]
fn a_dictionary_has_all_texts_of_its_column() {
    let file = File::of(&[events(1, 3_000)]);
    let columns = assert_columns(&file);
    let mut reader = columns.group(columns.groups()[0]);
    for (column, expected) in [
        (ColumnName::Event, &["$autocapture", "signed up", "$pageview"][..]),
        (ColumnName::Typed("$browser".to_owned()), &["Firefox"]),
    ] {
        assert_eq!(reader.dictionary(&column).unwrap().unwrap(), expected);
        assert_eq!(reader.codes(&column).unwrap().values, expected);
    }
}

#[test]
fn a_search_finds_the_texts_with_a_needle_and_no_others() {
    // A length of 92 is a backslash, 34 is a quotation mark.
    let mut texts: Vec<String> = (0..400).map(|length| "x".repeat(length)).collect();
    texts.extend(
        ["ab", "b", "aab", "abab", "a\\b", "\\", "", "b\\\"", "\"n\"", "a"].map(str::to_owned),
    );
    texts.extend((0..3_000).map(|n| format!("{}{n}", ["ab", "a", "\"n\"", "\\"][n % 4])));
    let block = |(texts, block): (&[String], u64)| -> Vec<OwnedEvent> {
        (block * 1_000 + 1..).zip(texts).map(|(n, text)| with(n, text)).collect()
    };
    let blocks: Vec<Vec<OwnedEvent>> = texts.chunks(700).zip(0..).map(block).collect();
    let file = File::of(&blocks);
    let columns = file.open().columns(&[]).unwrap();
    let mut reader = columns.group(columns.groups()[0]);
    for needles in [
        &["ab"][..],
        &["\\"],
        &["\"n\"", "\\"],
        &["\"", "a", "b"],
        &["aab", "ab"],
        &["x", "xxxxxxxxxx"],
        &["absent"],
        &["\0"],
        &["", "a"],
        &[],
    ] {
        let finders: Vec<Finder<'_>> = needles.iter().map(Finder::new).collect();
        let mut found = Vec::new();
        let see = |row: u32, bytes: &[u8]| found.push((row, text(bytes)));
        reader.each_with(&ColumnName::Properties, &finders, see).unwrap();
        let is_in = |(_, text): &(u32, String)| needles.iter().any(|needle| text.contains(needle));
        let expected: Vec<(u32, String)> = (0..).zip(texts.clone()).filter(is_in).collect();
        assert!(found == expected, "{needles:?}");
    }
}

#[test]
fn texts_are_read_until_the_reader_has_enough() {
    let file = File::of(&[events(1, 3_000)]);
    let columns = file.open().columns(&[]).unwrap();
    let mut reader = columns.group(columns.groups()[0]);
    let mut last = None;
    let see = |row: u32, _: &[u8]| {
        last = Some(row);
        if row == 1_234 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    reader.each_text(&ColumnName::DistinctId, see).unwrap();
    assert_eq!(last, Some(1_234));
}

#[test]
fn rows_and_columns_that_are_not_there_are_an_error() {
    let file = File::of(&[events(1, 10)]);
    let columns = file.open().columns(&[]).unwrap();
    let group = columns.groups()[0];
    let mut reader = columns.group(group);
    let typed = |property: &str| ColumnName::Typed(property.to_owned());
    let (mut numbers, mut doubles) = (Vec::new(), Vec::new());
    let (mut set, mut valid) = (Bits::default(), Bits::default());
    let mut refused = Vec::new();
    for column in [ColumnName::Event, ColumnName::Properties, typed("count"), typed("absent")] {
        refused.push(reader.numbers(&column, &mut numbers));
        refused.push(reader.booleans(&column, &mut set, &mut valid));
    }
    for property in ["$browser", "paying", "absent", "arrival"] {
        refused.push(reader.doubles(property, &mut doubles, &mut valid));
    }
    for column in [ColumnName::Properties, ColumnName::Arrival, typed("count"), typed("absent")] {
        refused.push(reader.codes(&column).map(|_| ()));
        refused.push(reader.dictionary(&column).map(|_| ()));
    }
    for column in [ColumnName::Event, ColumnName::Timestamp, typed("$browser")] {
        refused.push(reader.each_text(&column, |_, _| ControlFlow::Continue(())));
        refused.push(reader.each_with(&column, &[], |_, _| ()));
        refused.push(reader.texts_at(&column, &[0], |_, _| ()));
    }
    for refused in refused {
        assert!(matches!(refused, Err(Error::NoSuchColumn { .. })), "{refused:?}");
    }
    let error = reader.doubles("absent", &mut doubles, &mut valid).unwrap_err().to_string();
    assert!(error.ends_with(" has no such values in the column of the property absent"), "{error}");
    let mut at = |rows: &[u32]| reader.texts_at(&ColumnName::Uuid, rows, |_, _| ()).unwrap_err();
    assert!(matches!(at(&[3, 2]), Error::NotInOrder { .. }));
    assert!(matches!(at(&[3, 10]), Error::NoSuchRows { first: 10, end: 11, .. }));
    let elsewhere = RowGroup { number: 1, ..group };
    let error = columns.group(elsewhere).numbers(&ColumnName::Arrival, &mut numbers).unwrap_err();
    assert!(matches!(error, Error::NoSuchRows { .. }), "{error}");
}

#[test]
fn columns_have_their_names() {
    use ColumnName::{Arrival, DistinctId, ElementsChain, Event, Historical, Properties};
    for column in [
        Arrival,
        ColumnName::Uuid,
        Event,
        DistinctId,
        ColumnName::Timestamp,
        ColumnName::ReceivedAt,
        ElementsChain,
        Historical,
        Properties,
    ] {
        assert_eq!(format!("{column:?}").to_lowercase(), column.to_string().replace('_', ""));
    }
}

/// What the columns of these properties say about themselves.
fn completeness(segment: &Segment, properties: &[&str]) -> Vec<Option<Complete>> {
    let columns = segment.columns(&[]).unwrap();
    properties.iter().map(|property| Some(columns.typed(property)?.1)).collect()
}

#[test]
fn the_file_says_which_typed_columns_hold_every_value() {
    // The first events decide about the columns.
    let first = |n| with(n, r#"{"a,b:%":1,"half":"","n":1,"ö":"a","text":"a","yes":true}"#);
    let first: Vec<OwnedEvent> = (1..=16_000).map(first).collect();
    let properties = ["a,b:%", "half", "n", "ö", "text", "yes"];
    let (yes, no) = (Some(Complete::Yes), Some(Complete::No));
    for (later, expected) in [
        (r#"{"a,b:%":null,"text":"","n":9007199254740993}"#, [yes; 6]),
        (r#"{"a,b:%":[],"half":"\ud800","n":1e400}"#, [no, no, no, yes, yes, yes]),
        (r#"{"n":"1","ö":2,"text":{},"yes":"true"}"#, [yes, yes, no, no, no, no]),
        // The last value of a name counts.
        (r#"{"n":"1","n":2,"ö":1,"ö":null,"yes":true,"yes":1}"#, [yes, yes, yes, yes, yes, no]),
        (r#"{"\u006e":"1"}"#, [yes, yes, no, yes, yes, yes]),
        // What follows a name that is no text is not seen.
        (r#"{"n":1,"\ud800":1,"n":2}"#, [no; 6]),
    ] {
        let file = File::of(&[first.clone(), vec![with(20_000, later)]]);
        assert_eq!(completeness(&file.open(), &properties), expected, "{later}");
    }
    let file = File::of(&[vec![with(1, "{}")]]);
    assert_eq!(completeness(&file.open(), &["n"]), [None]);
}

#[test]
fn a_value_in_a_column_is_the_last_one_of_its_name_or_null() {
    let first: Vec<OwnedEvent> = (1..=16_000).map(|n| with(n, r#"{"n":1}"#)).collect();
    let later = [r#"{"n":1,"n":2}"#, r#"{"n":1,"n":"x"}"#, r#"{"n":1,"\ud800":1,"n":2}"#];
    let later: Vec<OwnedEvent> = (20_000..).zip(later).map(|(n, text)| with(n, text)).collect();
    let file = File::of(&[first, later]);
    assert_eq!(file.typed("properties_n")[16_000..], ["2.0", "null", "null"]);
}

/// The same file, as an older version has written it.
fn without_typed(file: &File) -> File {
    let mut bytes = fs::read(&file.path).unwrap();
    let key = columns::TYPED_KEY.as_bytes();
    let at: Vec<usize> = memchr::memmem::find_iter(&bytes, key).collect();
    bytes[at[0]..at[0] + key.len()].copy_from_slice(b"weir.other");
    assert_eq!(at.len(), 1);
    again(file, &bytes)
}

/// A file of these bytes, with checksums of them.
fn again(file: &File, bytes: &[u8]) -> File {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("segment.parquet");
    let mut writer = CheckedWriter::create(&path).unwrap();
    writer.push(bytes).unwrap();
    let (bytes, sums) = writer.finish(&[]).unwrap();
    let written = Written { bytes, sums, ..file.written.clone() };
    File { _directory: directory, path, written }
}

#[test]
fn a_column_of_an_older_file_belongs_to_the_property_that_the_table_says() {
    let text =
        |property: &str| TypedColumn { property: property.to_owned(), kind: ColumnType::Text };
    let number = TypedColumn { property: "a b".to_owned(), kind: ColumnType::Number };
    let events: Vec<OwnedEvent> =
        (1..=20).map(|n| with(n, r#"{"a b":1,"c":"x","a_b":2}"#)).collect();
    let file = File::of(&[events]);
    assert_eq!(file.written.typed, [number.clone(), text("c")]);
    let older = without_typed(&file);
    let known = [number.clone(), text("c"), text("a.b"), text("absent")];
    let columns = older.open().columns(&known).unwrap();
    let unknown = |kind| Some((kind, Complete::Unknown));
    assert_eq!(columns.typed("a b"), unknown(ColumnType::Number));
    assert_eq!(columns.typed("c"), unknown(ColumnType::Text));
    assert_eq!([columns.typed("a_b"), columns.typed("a.b"), columns.typed("absent")], [None; 3]);
    assert_eq!(older.open().columns(&[]).unwrap().typed("c"), None, "nothing says whose it is");
    assert_eq!(typed_of(&columns, &file.written.typed).unwrap()["a b"], vec![Some(1.0.into()); 20]);
    // A new file says it, whatever the table says.
    let columns = file.open().columns(&[text("a b"), text("a.b")]).unwrap();
    assert_eq!(columns.typed("a b"), Some((ColumnType::Number, Complete::Yes)));
    assert_eq!([columns.typed("a_b"), columns.typed("a.b")], [None; 2]);
    // A merge and a rewrite keep the column, and write what was missing.
    let options = Options { known: known.to_vec(), ..Options::default() };
    let older = older.open();
    let path = file.path.with_file_name("merged");
    let merged = merge(&[&older], &path, &options).unwrap();
    let merged = Segment::open(&path, merged.bytes, &merged.sums).unwrap();
    assert_eq!(completeness(&merged, &["a b", "c"]), [Some(Complete::Yes); 2]);
    let change = |_: BlockRows, mut events: Vec<OwnedEvent>| {
        events[3].properties = r#"{"c":1}"#.to_owned();
        events
    };
    let path = file.path.with_file_name("rewritten");
    let rewritten = rewrite(&older, &path, &options, change).unwrap().unwrap();
    let rewritten = Segment::open(&path, rewritten.bytes, &rewritten.sums).unwrap();
    let expected = [Some(Complete::Yes), Some(Complete::No)];
    assert_eq!(completeness(&rewritten, &["a b", "c"]), expected);
}

#[test]
fn a_list_of_typed_columns_that_does_not_fit_is_damage() {
    let file = File::of(&[events(1, 20)]);
    let bytes = fs::read(&file.path).unwrap();
    let list = b"%24browser:0,%24lib:0,count:0,paying:0";
    let at = memchr::memmem::find(&bytes, list).unwrap();
    for other in [
        b"%24brovser:0,%24lib:0,count:0,paying:0",
        b"%24browser:0,%24lib:0,count:0;paying:0",
        b"%24browser:x,%24lib:0,count:0,paying:0",
        b"%24browser:0,%24lib:0,count:0,paying,,",
        b"%24browser:0,%24lib:0,count:0,pay:0,n:",
        b"%ffbrowser:0,%24lib:0,count:0,paying:0",
    ] {
        let mut bytes = bytes.clone();
        bytes[at..at + list.len()].copy_from_slice(other);
        let error = again(&file, &bytes).open().columns(&[]).err().unwrap();
        assert!(matches!(error, Error::Damaged { part: Part::Content(_), .. }), "{error}");
    }
}

#[test]
fn each_flipped_bit_is_found_before_a_value_is_returned() {
    let block: Vec<OwnedEvent> = [odd_events(1)[..8].to_vec(), events(100, 200)].concat();
    let file = File::of(&[block, events(1_000, 1_500)]);
    let typed = &file.written.typed;
    let segment = file.open();
    let columns = segment.columns(&[]).unwrap();
    let (events, values) = (events_of(&columns).unwrap(), typed_of(&columns, typed).unwrap());
    let bytes = fs::read(&file.path).unwrap();
    let mut found = 0;
    for at in (0..bytes.len()).step_by(61) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file.path, &flipped).unwrap();
        let is_damaged = |error: Error| {
            let Error::Damaged { file: named, part: Part::Bytes { first, end } } = &error else {
                panic!("{at}: {error}");
            };
            assert_eq!(named, &file.path);
            assert!((*first..*end).contains(&(at as u64)), "{at}: {error}");
        };
        for columns in [Ok(columns.clone()), segment.columns(&[])] {
            let read =
                columns.and_then(|columns| Ok((events_of(&columns)?, typed_of(&columns, typed)?)));
            match read {
                Ok(read) => assert!(read == (events.clone(), values.clone()), "{at}"),
                Err(error) => {
                    is_damaged(error);
                    found += 1;
                }
            }
        }
    }
    assert!(found > bytes.len() / 61, "{found} of {}", bytes.len());
}

#[test]
fn each_flipped_byte_of_one_chunk_is_found_by_every_reader() {
    let file = File::of(&[events(1, 40)]);
    let bytes = fs::read(&file.path).unwrap();
    assert!(bytes.len() < CHUNK);
    let segment = file.open();
    let columns = segment.columns(&[]).unwrap();
    let mut reader = columns.group(columns.groups()[0]);
    let typed = |property: &str| ColumnName::Typed(property.to_owned());
    let (mut numbers, mut doubles) = (Vec::new(), Vec::new());
    let (mut set, mut valid) = (Bits::default(), Bits::default());
    for at in (0..bytes.len()).step_by(11) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs::write(&file.path, &flipped).unwrap();
        let reads = [
            reader.numbers(&ColumnName::Arrival, &mut numbers),
            reader.doubles("count", &mut doubles, &mut valid),
            reader.booleans(&ColumnName::Historical, &mut set, &mut valid),
            reader.booleans(&typed("paying"), &mut set, &mut valid),
            reader.codes(&ColumnName::Event).map(|_| ()),
            reader.codes(&typed("$lib")).map(|_| ()),
            reader.dictionary(&ColumnName::Event).map(|_| ()),
            reader.each_text(&ColumnName::Uuid, |_, _| panic!("a text was returned")),
            reader.each_with(&ColumnName::Uuid, &[Finder::new("-")], |_, _| {
                panic!("a text was returned")
            }),
            reader.texts_at(&ColumnName::Uuid, &[0], |_, _| panic!("a text was returned")),
            segment.columns(&[]).map(|_| ()),
        ];
        for read in reads {
            assert!(matches!(read, Err(Error::Damaged { .. })), "{at}");
        }
    }
}

#[test]
fn what_cannot_be_decoded_is_damage_also_if_the_checksums_are_right() {
    let file = File::of(&[[odd_events(1)[..8].to_vec(), events(100, 100)].concat()]);
    let bytes = fs::read(&file.path).unwrap();
    let footer = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
    let mut found = 0;
    // The footer has its own decoder.
    for at in (4..bytes.len() - footer - 8).step_by(11) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let file = again(&file, &flipped);
        let read = file.try_open().and_then(|segment| {
            let columns = segment.columns(&[])?;
            events_of(&columns)?;
            typed_of(&columns, &file.written.typed)
        });
        if let Err(error) = read {
            assert!(matches!(error, Error::Damaged { .. }), "{at}: {error}");
            found += 1;
        }
    }
    assert!(found > 50, "{found}");
}

#[test]
fn the_memory_of_columns_is_what_the_footer_takes() {
    let file = File::of(&[events(1, 1_000)]);
    let columns = file.open().columns(&[]).unwrap();
    assert!((5_000..50_000).contains(&columns.memory()), "{}", columns.memory());
}
