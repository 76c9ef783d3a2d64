use std::io::Read as _;

use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::record::{Field, Row};
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::rows::Kind;

const KINDS: [(&str, Kind); 7] = [
    ("uuid", Kind::Uuid),
    ("event", Kind::Text),
    ("properties", Kind::Json),
    ("n", Kind::Integer),
    ("x", Kind::Float),
    ("b", Kind::Boolean),
    ("timestamp", Kind::Timestamp),
];

const LINE_KINDS: [Option<Codec>; 3] = [None, Some(Codec::Gzip), Some(Codec::Brotli)];
const PARQUET_KINDS: [Option<Codec>; 6] = [
    None,
    Some(Codec::Gzip),
    Some(Codec::Brotli),
    Some(Codec::Zstd),
    Some(Codec::Lz4),
    Some(Codec::Snappy),
];

fn columns() -> Vec<Column> {
    KINDS.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect()
}

fn rows() -> Vec<Vec<Cell>> {
    vec![
        vec![
            Cell::Uuid(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_00AB)),
            Cell::Text("a \"quoted\"\n\u{1}\u{0} naïve 🦀".to_owned()),
            Cell::Json(
                "{\"n\": 9007199254740993,\n \"deep\":{\"a\":[1.10,1e400,null]}}".to_owned(),
            ),
            Cell::Integer(i64::MIN),
            Cell::Float(0.1),
            Cell::Boolean(true),
            Cell::Timestamp(1_787_320_800_000_001),
        ],
        vec![Cell::Null; KINDS.len()],
    ]
}

fn written(kind: FileKind, rows: &[Vec<Cell>], slice: usize) -> Vec<u8> {
    let mut file = Encoder::new(kind, &columns()).unwrap();
    let mut bytes = Vec::new();
    for rows in rows.chunks(slice) {
        file.write(rows).unwrap();
        bytes.extend(file.take().concat());
    }
    bytes.extend(file.finish().unwrap().concat());
    bytes
}

#[expect(clippy::disallowed_methods, reason = "the tests compressed it themselves")]
fn unpacked(codec: Option<Codec>, bytes: &[u8]) -> String {
    let mut text = String::new();
    match codec {
        Some(Codec::Gzip) => {
            flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        }
        Some(Codec::Brotli) => {
            brotli::Decompressor::new(bytes, 4096).read_to_string(&mut text).unwrap();
        }
        _ => text.push_str(std::str::from_utf8(bytes).unwrap()),
    }
    text
}

#[test]
fn a_line_is_an_object_whose_numbers_are_as_they_were_stored() {
    let expected = concat!(
        r#"{"uuid":"01900000-0000-7000-8000-0000000000ab","#,
        r#""event":"a \"quoted\"\n\u0001\u0000 naïve 🦀","#,
        r#""properties":{"n": 9007199254740993,  "deep":{"a":[1.10,1e400,null]}},"#,
        r#""n":-9223372036854775808,"x":0.1,"b":true,"#,
        r#""timestamp":"2026-08-21T14:00:00.000001Z"}"#,
        "\n",
        r#"{"uuid":null,"event":null,"properties":null,"n":null,"x":null,"b":null,"#,
        r#""timestamp":null}"#,
        "\n",
    );
    for codec in LINE_KINDS {
        let kind = FileKind::new(Format::JsonLines, codec).unwrap();
        assert_eq!(unpacked(codec, &written(kind, &rows(), 1)), expected, "{codec:?}");
    }
    for number in [f64::NAN, f64::INFINITY] {
        let column = [Column { name: "x".to_owned(), kind: Kind::Float }];
        let mut file = JsonLines::new(None, &column).unwrap();
        file.write(&[vec![Cell::Float(number)]]).unwrap();
        assert_eq!(file.finish().unwrap().concat(), b"{\"x\":null}\n");
    }
}

#[test]
fn parquet_reads_back_with_types_whatever_the_codec() {
    for codec in PARQUET_KINDS {
        let kind = FileKind::new(Format::Parquet, codec).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(written(kind, &rows(), 1))).unwrap();
        let rows_read: Vec<Row> =
            reader.get_row_iter(None).unwrap().collect::<Result<_, _>>().unwrap();
        let fields = |row: &Row| -> Vec<(String, Field)> {
            row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
        };
        let stored = &rows()[0];
        let text = |at: usize| match &stored[at] {
            Cell::Text(text) | Cell::Json(text) => Field::Str(text.clone()),
            other => panic!("{other:?}"),
        };
        let values = [
            Field::Str("01900000-0000-7000-8000-0000000000ab".to_owned()),
            text(1),
            text(2),
            Field::Long(i64::MIN),
            Field::Double(0.1),
            Field::Bool(true),
            Field::TimestampMicros(1_787_320_800_000_001),
        ];
        let named = KINDS.iter().map(|(name, _)| (*name).to_owned());
        assert_eq!(fields(&rows_read[0]), named.clone().zip(values).collect::<Vec<_>>());
        let nulls = named.map(|name| (name, Field::Null)).collect::<Vec<_>>();
        assert_eq!(fields(&rows_read[1]), nulls, "{codec:?}");
        assert_eq!(rows_read.len(), 2);
    }
}

#[test]
fn codecs_suit_formats_and_show_in_names() {
    let extension = |format, codec| FileKind::new(format, codec).map(FileKind::extension);
    let named = |format, codecs: &[Option<Codec>]| -> Vec<Option<String>> {
        codecs.iter().map(|codec| extension(format, *codec)).collect()
    };
    let known =
        |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
    assert_eq!(named(Format::JsonLines, &LINE_KINDS), known(&["jsonl", "jsonl.gz", "jsonl.br"]));
    assert_eq!(
        named(Format::Parquet, &PARQUET_KINDS),
        known(&["parquet", "parquet.gz", "parquet.br", "parquet.zst", "parquet.lz4", "parquet.sz"])
    );
    for codec in [Codec::Zstd, Codec::Lz4, Codec::Snappy] {
        assert_eq!(FileKind::new(Format::JsonLines, Some(codec)), None);
    }
    // The words of the setting.
    for word in weir_model::exports::destinations::PARQUET_CODECS {
        serde_json::from_value::<Codec>(Value::from(*word)).unwrap();
    }
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let rows: Vec<Vec<Cell>> = std::iter::repeat_n(rows(), 500).flatten().collect();
    for (format, codecs) in
        [(Format::JsonLines, &LINE_KINDS[..]), (Format::Parquet, &PARQUET_KINDS[..])]
    {
        for codec in codecs {
            let kind = FileKind::new(format, *codec).unwrap();
            assert!(written(kind, &rows, 128) == written(kind, &rows, 128), "{kind:?}");
        }
    }
}

#[test]
fn a_large_file_is_handed_on_while_it_grows() {
    // Random data, which does not compress.
    let mut state = 1_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{state:016x}")
    };
    let column = [Column { name: "x".to_owned(), kind: Kind::Text }];
    for (format, most) in [(Format::JsonLines, 1 << 20), (Format::Parquet, parquet::GROUP_BYTES)] {
        let kind = FileKind::new(format, None).unwrap();
        let mut file = Encoder::new(kind, &column).unwrap();
        let (mut whole, mut largest) = (0, 0);
        for _ in 0..700 {
            let text: String = std::iter::repeat_with(&mut noise).take(64).collect();
            let rows: Vec<Vec<Cell>> =
                (0..100).map(|_| vec![Cell::Text(noise() + &text)]).collect();
            file.write(&rows).unwrap();
            let chunks = file.take();
            assert!(chunks.iter().all(|chunk| chunk.len() <= output::CHUNK));
            let bytes: usize = chunks.iter().map(Bytes::len).sum();
            whole += bytes;
            largest = largest.max(bytes);
        }
        let size = usize::try_from(file.size()).unwrap();
        assert!(whole > 32 << 20, "{format:?}: {whole}");
        assert!(largest <= most + most / 8, "{format:?}: {largest}");
        assert!(size >= whole && size - whole <= most, "{format:?}: {size} {whole}");
    }
}
