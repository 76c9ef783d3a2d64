//! Files of Parquet, read back.

use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use weir_model::Timestamp;

/// The rows of a file of Parquet, with each value as the API writes one of its type.
pub fn parquet_rows(file: &Bytes) -> Vec<Map<String, Value>> {
    let reader = SerializedFileReader::new(file.clone()).expect("a file of Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let row = |row: parquet::record::Row| {
        let columns = row.get_column_iter();
        columns.map(|(name, field)| (name.clone(), value(field))).collect()
    };
    rows.map(|found| row(found.expect("a row"))).collect()
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => json!(flag),
        Field::Long(number) => json!(number),
        Field::Double(number) => json!(number),
        Field::Str(text) => json!(text),
        Field::TimestampMicros(micros) => json!(Timestamp::from_micros(*micros).to_string()),
        other => json!(other.to_string()),
    }
}
