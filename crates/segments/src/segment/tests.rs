use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::{Error, Part};

mod columns_of_groups;

/// An event like those of a web page.
fn event(arrival: u64) -> OwnedEvent {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&arrival.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    OwnedEvent {
        arrival,
        uuid: Uuid::from_bytes(bytes),
        event: ["$pageview", "$autocapture", "signed up"][arrival as usize % 3].to_owned(),
        distinct_id: format!("person-{}", arrival % 50),
        timestamp: 1_700_000_000_000_000 + (arrival % 1_000_000_000) as i64 * 1_000,
        received_at: 1_700_000_000_500_000 + (arrival % 1_000_000_000) as i64 * 1_000,
        properties: format!(
            r#"{{"$browser":"Firefox","count":{},"$lib":"web","paying":{}}}"#,
            arrival % 7,
            arrival.is_multiple_of(2)
        ),
        elements_chain: String::new(),
        historical: false,
        warnings: Vec::new(),
    }
}

fn events(from: u64, count: u64) -> Vec<OwnedEvent> {
    (from..from + count).map(event).collect()
}

/// Events that are hard to store.
fn odd_events(from: u64) -> Vec<OwnedEvent> {
    let large = format!(r#"{{"text":"{}"}}"#, "large ".repeat(170_000));
    let texts =
        ["", "{}", "\0", "a\0b", "🦀 ∀ \u{10ffff}", "\r\n\t\"\\", "null", "{broken", &large];
    let times = [0, -1, i64::MIN, i64::MAX, i64::MIN + 1, 1];
    let warnings: [&[&str]; 4] = [&[], &["one"], &["a,b", "", "c"], &["\0"]];
    let mut events = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        events.push(OwnedEvent {
            event: texts[(at + 1) % 7].to_owned(),
            distinct_id: texts[(at + 2) % 7].to_owned(),
            elements_chain: texts[(at + 3) % 9].to_owned(),
            properties: (*text).to_owned(),
            timestamp: times[at % 6],
            received_at: times[(at + 1) % 6],
            historical: at % 2 == 0,
            warnings: warnings[at % 4].iter().map(|code| (*code).to_owned()).collect(),
            uuid: if at % 2 == 0 { Uuid::nil() } else { Uuid::max() },
            ..event(from + at as u64)
        });
    }
    events
}

struct File {
    _directory: TempDir,
    path: PathBuf,
    written: Written,
}

impl File {
    fn of(blocks: &[Vec<OwnedEvent>]) -> Self {
        Self::with(blocks, &Options::default())
    }

    fn with(blocks: &[Vec<OwnedEvent>], options: &Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("segment.parquet");
        let mut writer = Writer::create(&path, options).unwrap();
        for block in blocks {
            let events: Vec<SegmentEvent<'_>> = block.iter().map(SegmentEvent::from).collect();
            writer.push_block(&events).unwrap();
        }
        Self { _directory: directory, path, written: writer.finish().unwrap() }
    }

    fn open(&self) -> Segment {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<Segment> {
        Segment::open(&self.path, self.written.bytes, &self.written.sums)
    }

    /// The names of the columns.
    fn columns(&self) -> Vec<String> {
        use parquet::file::reader::FileReader as _;
        let file = fs::File::open(&self.path).unwrap();
        let file = parquet::file::reader::SerializedFileReader::new(file).unwrap();
        let schema = file.metadata().file_metadata().schema_descr();
        schema.columns().iter().map(|column| column.path().string()).collect()
    }

    /// The values of a typed column, as text.
    fn typed(&self, name: &str) -> Vec<String> {
        use parquet::file::reader::FileReader as _;
        let file = fs::File::open(&self.path).unwrap();
        let file = parquet::file::reader::SerializedFileReader::new(file).unwrap();
        let value = |row: parquet::record::Row| {
            let (_, value) = row.get_column_iter().find(|(column, _)| *column == name).unwrap();
            value.to_string()
        };
        file.get_row_iter(None).unwrap().map(|row| value(row.unwrap())).collect()
    }
}

/// Whether the segment has exactly these blocks, however they are read.
#[track_caller]
fn assert_has(segment: &Segment, written: &Written, blocks: &[Vec<OwnedEvent>]) {
    let all: Vec<&OwnedEvent> = blocks.iter().flatten().collect();
    assert_eq!(segment.rows(), all.len() as u64);
    assert_eq!(written.rows, all.len() as u64);
    assert_eq!(segment.blocks(), written.blocks);
    assert_eq!(written.from_time, all.iter().map(|event| event.timestamp).min().unwrap());
    assert_eq!(written.to_time, all.iter().map(|event| event.timestamp).max().unwrap());
    assert_eq!(written.from_arrival, all.iter().map(|event| event.arrival).min().unwrap());
    assert_eq!(written.to_arrival, all.iter().map(|event| event.arrival).max().unwrap());
    assert_eq!(segment.blocks().len(), blocks.len());
    for (found, block) in segment.blocks().iter().zip(blocks) {
        assert_eq!(found.first, block[0].arrival);
        assert_eq!(segment.find_block(found.first), Some(*found));
        assert_eq!(&segment.block(found.row, found.rows).unwrap(), block);
    }
    for row in (0..all.len()).step_by(all.len().div_ceil(60)) {
        assert_eq!(&segment.row(row as u64).unwrap(), all[row]);
    }
    segment.verify().unwrap();
}

#[test]
fn every_text_and_time_is_read_as_it_was_written() {
    let blocks = [odd_events(1), events(100, 1), odd_events(i64::MAX as u64 - 100)];
    let file = File::of(&blocks);
    assert_has(&file.open(), &file.written, &blocks);
}

#[test]
fn every_block_is_read_as_it_was_written_however_large_it_is() {
    let mut blocks = Vec::new();
    let mut first = 5;
    for count in [1_000, 1_499, 1, 2, 50, 50, 1_000, 999, 1_001, 3_000, 1_000, 17] {
        blocks.push(events(first, count));
        first += count + 3;
    }
    let file = File::of(&blocks);
    let segment = file.open();
    assert_has(&segment, &file.written, &blocks);
    // Any rows, over the bounds of blocks.
    let all: Vec<OwnedEvent> = blocks.concat();
    for (row, rows) in [(0, 0), (0, all.len()), (990, 20), (2_499, 3), (9_600, 19)] {
        let end = row + rows;
        assert_eq!(segment.block(row as u64, rows as u32).unwrap(), all[row..end]);
    }
    assert_eq!(segment.find_block(6), None);
}

#[test]
fn blocks_of_large_events_are_read_as_they_were_written() {
    let large = |first: u64| -> Vec<OwnedEvent> {
        let text = |n: u64| format!(r#"{{"n":{n},"text":"{}"}}"#, "x".repeat(60_000));
        (first..first + 20).map(|n| OwnedEvent { properties: text(n), ..event(n) }).collect()
    };
    // They reach the limits of the sample and of pages.
    let blocks: Vec<_> = (0..20).map(|n| large(n * 20 + 1)).collect();
    let file = File::of(&blocks);
    assert_has(&file.open(), &file.written, &blocks);
}

#[test]
fn a_block_is_in_one_group_of_rows() {
    let blocks: Vec<_> = (0..70).map(|n| events(n * 1_001 + 1, 1_001)).collect();
    let file = File::of(&blocks);
    let metadata = {
        use parquet::file::reader::FileReader as _;
        let file = fs::File::open(&file.path).unwrap();
        parquet::file::reader::SerializedFileReader::new(file).unwrap().metadata().clone()
    };
    let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [63 * 1_001, 7 * 1_001]);
    let segment = file.open();
    assert_has(&segment, &file.written, &blocks);
    // What its documentation says.
    assert!(segment.memory() < 70 * 400 + file.written.sums.len(), "{}", segment.memory());
}

#[test]
fn pages_begin_with_blocks() {
    let blocks: Vec<_> = (0..70).map(|n| events(n * 1_500 + 1, 1_000 + n * 7 % 500)).collect();
    let file = File::of(&blocks);
    let segment = file.open();
    let starts: Vec<u64> = segment.blocks().iter().map(|block| block.row).collect();
    assert_eq!(segment.first_rows_of_pages(), vec![starts; columns::BASE.len()]);
}

#[test]
fn rows_that_are_not_there_are_an_error() {
    let file = File::of(&[events(1, 10)]);
    let segment = file.open();
    for (row, rows) in [(0, 11), (10, 1), (11, 0), (u64::MAX, 1), (5, u32::MAX)] {
        let error = segment.block(row, rows).unwrap_err();
        assert!(matches!(error, Error::NoSuchRows { .. }), "{error}");
    }
}

#[test]
fn blocks_must_have_events_and_be_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("segment");
    let mut writer = Writer::create(&path, &Options::default()).unwrap();
    let events = events(1, 5);
    let events: Vec<SegmentEvent<'_>> = events.iter().map(SegmentEvent::from).collect();
    let refused = |result: Result<()>| assert!(matches!(result, Err(Error::NotInOrder { .. })));
    refused(writer.push_block(&[]));
    writer.push_block(&events[1..2]).unwrap();
    refused(writer.push_block(&events[1..]));
    refused(writer.push_block(&events[..1]));
    writer.push_block(&events[2..]).unwrap();
    assert_eq!(writer.finish().unwrap().rows, 4);
    let empty = Writer::create(&path, &Options::default()).unwrap();
    refused(empty.finish().map(|_| ()));
    let large = vec![events[0]; 64_001];
    let mut writer = Writer::create(&path, &Options::default()).unwrap();
    refused(writer.push_block(&large));
    for arrival in [1 << 63, u64::MAX] {
        let error = writer.push_block(&[events[0], SegmentEvent { arrival, ..events[0] }]);
        let Err(Error::ArrivalTooLarge { arrival: named, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(named, arrival);
    }
}

#[test]
fn a_merge_has_the_blocks_of_its_inputs() {
    let parts: Vec<Vec<Vec<OwnedEvent>>> = vec![
        (0..30).map(|n| events(n * 1_000 + 1, 1_000)).collect(),
        vec![odd_events(40_000)],
        (50..95).map(|n| events(n * 1_000 + 1, 1_000)).collect(),
    ];
    let files: Vec<File> = parts.iter().map(|blocks| File::of(blocks)).collect();
    let segments: Vec<Segment> = files.iter().map(File::open).collect();
    let segments: Vec<&Segment> = segments.iter().collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged");
    let written = merge(&segments, &path, &Options::default()).unwrap();
    let blocks = parts.concat();
    let merged = Segment::open(&path, written.bytes, &written.sums).unwrap();
    assert_has(&merged, &written, &blocks);
    let once = File::of(&blocks);
    assert_eq!(once.written.blocks, written.blocks);
    // Not after the one before.
    let error = merge(&[segments[2], segments[0]], &path, &Options::default()).unwrap_err();
    assert!(matches!(error, Error::NotInOrder { .. }), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left");
    let error = merge(&[], &path, &Options::default()).unwrap_err();
    assert!(matches!(error, Error::NotInOrder { .. }), "{error}");
}

#[test]
fn a_segment_is_written_again_without_some_events() {
    let blocks = [events(1, 10), events(20, 5), events(40, 7)];
    let file = File::of(&blocks);
    let input = file.open();
    let path = file.path.with_file_name("again.parquet");
    let is_kept = |event: &OwnedEvent| !matches!(event.arrival, 1 | 2 | 7 | 20..=24 | 46);
    let rewritten = rewrite(&input, &path, &Options::default(), |_, events| {
        events.into_iter().filter(|event| is_kept(event)).collect()
    });
    let written = rewritten.unwrap().unwrap();
    let segment = Segment::open(&path, written.bytes, &written.sums).unwrap();
    // The first event of the first block is gone, and all of the second block.
    let ids: Vec<(u64, u32)> = segment.blocks().iter().map(|of| (of.first, of.rows)).collect();
    assert_eq!(ids, [(1, 7), (40, 6)]);
    assert_eq!(segment.rows(), 13);
    for (block, before) in segment.blocks().iter().zip([&blocks[0], &blocks[2]]) {
        let kept: Vec<OwnedEvent> = before.iter().filter(|event| is_kept(event)).cloned().collect();
        assert_eq!(segment.block(block.row, block.rows).unwrap(), kept);
    }
    // A merge keeps the ids of blocks.
    let merged = path.with_file_name("merged.parquet");
    let later = File::of(&[events(60, 3)]);
    let merged_as = merge(&[&segment, &later.open()], &merged, &Options::default()).unwrap();
    let ids: Vec<u64> = merged_as.blocks.iter().map(|of| of.first).collect();
    assert_eq!(ids, [1, 40, 60]);
    let nothing = path.with_file_name("nothing.parquet");
    let rewritten = rewrite(&segment, &nothing, &Options::default(), |_, _| Vec::new());
    assert_eq!(rewritten.unwrap(), None);
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    let is_rest = |name: &str| name.starts_with("nothing");
    assert!(!names.flatten().any(|entry| is_rest(&entry.file_name().to_string_lossy())));
}

#[test]
fn each_flipped_bit_is_found_before_an_event_is_returned() {
    let block: Vec<OwnedEvent> = [odd_events(1)[..8].to_vec(), events(100, 200)].concat();
    let file = File::of(&[block.clone(), events(1_000, 1_500)]);
    let bytes = fs::read(&file.path).unwrap();
    let segment = file.open();
    let row = segment.row(0).unwrap();
    for at in (0..bytes.len()).step_by(61) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file.path, &flipped).unwrap();
        // The one that is open, and a new one. Neither returns anything else.
        for opened in [Ok(segment.clone()), file.try_open()] {
            let is_damaged = |error: &Error| {
                let Error::Damaged { file: named, part: Part::Bytes { first, end } } = error else {
                    return false;
                };
                named == &file.path && (*first..*end).contains(&(at as u64))
            };
            match opened {
                Ok(opened) => {
                    assert!(is_damaged(&opened.verify().unwrap_err()), "{at}");
                    match opened.block(0, block.len() as u32) {
                        Ok(found) => assert!(found == block, "{at}"),
                        Err(error) => assert!(is_damaged(&error), "{at}: {error}"),
                    }
                    match opened.row(0) {
                        Ok(found) => assert!(found == row, "{at}"),
                        Err(error) => assert!(is_damaged(&error), "{at}: {error}"),
                    }
                }
                Err(error) => assert!(is_damaged(&error), "{at}: {error}"),
            }
        }
    }
}

#[test]
fn each_flipped_byte_of_the_columns_is_found_on_reading() {
    // One chunk: no byte of it can be wrong without notice.
    let file = File::of(&[events(1, 40)]);
    let bytes = fs::read(&file.path).unwrap();
    assert!(bytes.len() < crate::checked::CHUNK);
    let segment = file.open();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs::write(&file.path, &flipped).unwrap();
        assert!(matches!(segment.block(0, 40), Err(Error::Damaged { .. })), "{at}");
        assert!(matches!(file.try_open(), Err(Error::Damaged { .. })), "{at}");
    }
}

#[test]
fn a_shorter_or_longer_file_is_found() {
    let file = File::of(&[events(1, 2_000)]);
    let bytes = fs::read(&file.path).unwrap();
    for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file.path, &bytes[..length]).unwrap();
        let error = file.try_open().err().unwrap();
        assert!(matches!(error, Error::Damaged { part: Part::Length { .. }, .. }), "{error}");
    }
    fs::write(&file.path, [&bytes[..], b"x"].concat()).unwrap();
    let error = file.try_open().err().unwrap();
    assert!(matches!(error, Error::Damaged { part: Part::Length { .. }, .. }), "{error}");
    fs::remove_file(&file.path).unwrap();
    let error = file.try_open().err().unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn a_sound_file_of_another_format_is_not_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let schema = columns::schema(&[]).unwrap();
    let file = crate::checked::CheckedWriter::create(&path).unwrap();
    let writer =
        parquet::file::writer::SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let (bytes, sums) = writer.into_inner().unwrap().finish(&[]).unwrap();
    let error = Segment::open(&path, bytes, &sums).err().unwrap();
    assert!(matches!(error, Error::UnknownFormat { .. }), "{error}");
    let mut file = crate::checked::CheckedWriter::create(&path).unwrap();
    file.push(b"something else").unwrap();
    let (bytes, sums) = file.finish(&[]).unwrap();
    let error = Segment::open(&path, bytes, &sums).err().unwrap();
    assert!(matches!(error, Error::Damaged { part: Part::Content(_), .. }), "{error}");
}

#[test]
fn frequent_properties_of_one_type_have_columns() {
    let file = File::of(&[events(1, 8)]);
    assert_eq!(
        file.columns()[columns::BASE.len()..],
        ["properties_$browser", "properties_$lib", "properties_count", "properties_paying"]
    );
    assert_eq!(file.columns()[..columns::BASE.len()], columns::BASE);
    let names: Vec<String> = file.written.typed.iter().map(TypedColumn::name).collect();
    assert_eq!(file.columns()[columns::BASE.len()..], names);
    assert_eq!(
        file.typed("properties_count"),
        ["1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "0E0", "1.0"]
    );
    assert_eq!(file.typed("properties_paying")[..2], ["false", "true"]);
    assert_eq!(file.typed("properties_$lib")[7], "\"web\"");
}

#[test]
fn a_later_value_of_another_type_is_null_in_its_column() {
    let with = |arrival: u64, properties: &str| OwnedEvent {
        properties: properties.to_owned(),
        ..event(arrival)
    };
    // The first events decide.
    let first: Vec<OwnedEvent> = (1..=16_000).map(|n| with(n, r#"{"n":1,"text":"a"}"#)).collect();
    let values = [
        r#"{"n":"2","text":"b","later":1}"#,
        r#"{"n":3,"text":null,"later":1}"#,
        "{}",
        "",
        r#"{"n":4,"n":5,"text":"\u0062"}"#,
        r#"{"n":true,"text":{}}"#,
        r#"{"n":1e400,"text":"\udead"}"#,
    ];
    let later: Vec<OwnedEvent> = (20_000..).zip(values).map(|(n, text)| with(n, text)).collect();
    let blocks = [first, later];
    let file = File::of(&blocks);
    assert_eq!(file.columns()[columns::BASE.len()..], ["properties_n", "properties_text"]);
    let null = "null".to_owned();
    let numbers = [&null, "3.0", &null, &null, "5.0", &null, &null];
    assert_eq!(file.typed("properties_n")[16_000..], numbers);
    let texts = ["\"b\"", &null, &null, &null, "\"b\"", &null, &null];
    assert_eq!(file.typed("properties_text")[16_000..], texts);
    let segment = file.open();
    assert_eq!(segment.block(16_000, 7).unwrap(), blocks[1], "the properties have all of them");
    // A merge samples all parts. A known column stays.
    let path = file.path.with_file_name("merged");
    let number = TypedColumn { property: "n".to_owned(), kind: ColumnType::Number };
    for (known, expected) in [(vec![number], vec!["properties_n"]), (Vec::new(), Vec::new())] {
        let options = Options { known: known.clone(), ..Options::default() };
        let written = merge(&[&segment], &path, &options).unwrap();
        let merged = File { _directory: tempfile::tempdir().unwrap(), path: path.clone(), written };
        assert_eq!(merged.columns()[columns::BASE.len()..], expected);
        assert_eq!(merged.written.typed, known);
    }
}

#[test]
fn a_column_that_the_table_has_keeps_its_type() {
    let column = |name: &str, kind| TypedColumn { property: name.to_owned(), kind };
    let known = vec![
        column("count", ColumnType::Text),
        column("absent", ColumnType::Number),
        column("$lib", ColumnType::Text),
    ];
    let options = Options { known, ..Options::default() };
    let file = File::with(&[events(1, 20)], &options);
    let expected = [
        column("$browser", ColumnType::Text),
        column("$lib", ColumnType::Text),
        column("paying", ColumnType::Boolean),
    ];
    assert_eq!(file.written.typed, expected, "numbers need another column");
    let names: Vec<String> = expected.iter().map(TypedColumn::name).collect();
    assert_eq!(file.columns()[columns::BASE.len()..], names);
}

#[test]
fn a_merge_keeps_a_known_column_however_rare_its_values_are() {
    let rare = TypedColumn { property: "a rare.one".to_owned(), kind: ColumnType::Number };
    let options = Options { known: vec![rare.clone()], ..Options::default() };
    let mut blocks: Vec<_> = (0..40).map(|n| events(n * 10 + 1, 10)).collect();
    // Not in a block that the merge samples.
    blocks[1][5].properties = r#"{"a rare.one":7}"#.to_owned();
    let files = blocks.chunks(20).map(|blocks| File::with(blocks, &options));
    let files: Vec<File> = files.collect();
    assert!(files[0].written.typed.contains(&rare));
    assert!(!files[1].written.typed.contains(&rare));
    let segments: Vec<Segment> = files.iter().map(File::open).collect();
    let inputs: Vec<&Segment> = segments.iter().collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged");
    let written = merge(&inputs, &path, &options).unwrap();
    assert!(written.typed.contains(&rare));
    let merged = File { _directory: directory, path, written };
    assert_eq!(merged.typed("properties_a_rare_one")[15], "7.0");
    // Without the column in the table it is too rare.
    let written = merge(&inputs, &merged.path, &Options::default()).unwrap();
    assert!(!written.typed.contains(&rare));
}

#[test]
fn an_open_segment_is_read_after_its_file_was_removed() {
    let blocks = [events(1, 1_000), events(1_001, 1_000)];
    let file = File::of(&blocks);
    let segment = file.open();
    fs::remove_file(&file.path).unwrap();
    assert_has(&segment, &file.written, &blocks);
}

#[test]
fn copies_are_read_by_several_threads() {
    let blocks: Vec<_> = (0..8).map(|n| events(n * 1_000 + 1, 1_000)).collect();
    let segment = File::of(&blocks);
    let (segment, blocks) = (segment.open(), &blocks);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let segment = segment.clone();
            scope.spawn(move || {
                for at in (0..8).cycle().skip(thread).take(16) {
                    assert_eq!(segment.block(at as u64 * 1_000, 1_000).unwrap(), blocks[at]);
                }
            });
        }
    });
}
