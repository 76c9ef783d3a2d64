//! The columns of a segment: names, types, and how each is encoded.
//!
//! | column | type | |
//! |---|---|---|
//! | `arrival` | 64-bit integer | below 2^63 |
//! | `uuid` | text | 36 characters |
//! | `event` | text | with a dictionary |
//! | `distinct_id` | text | with a Bloom filter |
//! | `timestamp`, `received_at` | microseconds, UTC | |
//! | `elements_chain` | text | |
//! | `historical` | boolean | |
//! | `warnings` | list of texts | |
//! | `properties` | text | a JSON object |
//! | `properties_<name>` | text, double or boolean, or null | a typed column (`typed`) |
//!
//! All types are those that every reader has: some know no UUID, no number without sign, or
//! take a column of JSON apart. The names of typed columns have letters, digits, `_` and `$`
//! only. Readers take a dot for the way into a structure, and Delta Lake refuses spaces.

use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};

use super::typed::{ColumnType, TypedColumn};

/// The columns that an event consists of, in the order of the file. Typed columns follow.
pub(super) const BASE: [&str; 10] = [
    "arrival",
    "uuid",
    "event",
    "distinct_id",
    "timestamp",
    "received_at",
    "elements_chain",
    "historical",
    "warnings.list.element",
    "properties",
];
/// The key of the version of the format in the metadata of the file.
pub(super) const VERSION_KEY: &str = "weir.segment";
/// The version of the format.
pub(super) const VERSION: &str = "1";
/// The key of the blocks in the metadata of the file.
pub(super) const BLOCKS_KEY: &str = "weir.blocks";
/// The key of the typed columns in the metadata of the file. Files of version 0.1.0 have
/// none.
pub(super) const TYPED_KEY: &str = "weir.typed";
/// Rows after which a page ends, with the block that reaches it.
const PAGE_ROWS: usize = 1_000;
/// Bytes before compression after which a page ends. A block has about as many.
const PAGE_BYTES: usize = 1 << 20;
/// Bytes of a dictionary. A column with more distinct values continues without it.
const DICTIONARY: usize = 256 << 10;
/// The same for columns that are read with each block, and their dictionary with them.
const SMALL_DICTIONARY: usize = 32 << 10;
/// Distinct ids in a group of rows that the Bloom filter has room for. It is folded to a
/// smaller one where there are fewer.
const DISTINCT_IDS: u64 = 65_536;
/// The share of absent distinct ids that the Bloom filter does not exclude.
const BLOOM: f64 = 0.02;

/// The columns of a file with these typed columns.
pub(super) fn schema(typed: &[TypedColumn]) -> Result<TypePtr, ParquetError> {
    let text = LogicalType::String;
    let time = || LogicalType::timestamp(true, TimeUnit::MICROS);
    let mut fields = vec![
        required("arrival", Physical::INT64, None)?,
        required("uuid", Physical::BYTE_ARRAY, Some(text.clone()))?,
        required("event", Physical::BYTE_ARRAY, Some(text.clone()))?,
        required("distinct_id", Physical::BYTE_ARRAY, Some(text.clone()))?,
        required("timestamp", Physical::INT64, Some(time()))?,
        required("received_at", Physical::INT64, Some(time()))?,
        required("elements_chain", Physical::BYTE_ARRAY, Some(text.clone()))?,
        required("historical", Physical::BOOLEAN, None)?,
        list("warnings")?,
        required("properties", Physical::BYTE_ARRAY, Some(text.clone()))?,
    ];
    for column in typed {
        let (physical, logical) = match column.kind {
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(text.clone())),
            ColumnType::Number => (Physical::DOUBLE, None),
            ColumnType::Boolean => (Physical::BOOLEAN, None),
        };
        fields.push(field(&column.name(), physical, logical, Repetition::OPTIONAL)?);
    }
    Ok(Arc::new(Type::group_type_builder("events").with_fields(fields).build()?))
}

pub(crate) fn required(
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
) -> Result<TypePtr, ParquetError> {
    field(name, physical, logical, Repetition::REQUIRED)
}

fn field(
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
    repetition: Repetition,
) -> Result<TypePtr, ParquetError> {
    let field = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// A list of texts, in the three levels that all readers expect.
pub(crate) fn list(name: &str) -> Result<TypePtr, ParquetError> {
    let element = required("element", Physical::BYTE_ARRAY, Some(LogicalType::String))?;
    let repeated = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![element])
        .build()?;
    let list = Type::group_type_builder(name)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(repeated)])
        .build()?;
    Ok(Arc::new(list))
}

/// How the columns are encoded. All blocks begin a batch, and pages end with batches: so
/// almost every page begins with a block.
pub(super) fn properties(
    schema: &SchemaDescriptor,
    level: i32,
    group_rows: usize,
) -> Result<WriterPropertiesPtr, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
        .set_created_by(format!("weir-segments {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            VERSION_KEY.to_owned(),
            VERSION.to_owned(),
        )]))
        .set_write_batch_size(group_rows)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_dictionary_page_size_limit(DICTIONARY);
    for column in schema.columns() {
        let path: ColumnPath = column.path().clone();
        let without_dictionary = match column.name() {
            "arrival" | "timestamp" | "received_at" => Some(Encoding::DELTA_BINARY_PACKED),
            "uuid" | "distinct_id" | "elements_chain" | "properties" | "historical" => {
                Some(Encoding::PLAIN)
            }
            _ => None,
        };
        if let Some(encoding) = without_dictionary {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), encoding);
        }
        properties = match column.name() {
            "event" | "element" => {
                properties.set_column_dictionary_page_size_limit(path, SMALL_DICTIONARY)
            }
            // No reader searches for the smallest of them.
            "uuid" | "elements_chain" | "properties" => {
                properties.set_column_statistics_enabled(path, EnabledStatistics::None)
            }
            "distinct_id" => properties
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_fpp(path.clone(), BLOOM)
                .set_column_bloom_filter_max_ndv(path, DISTINCT_IDS),
            _ => properties,
        };
    }
    Ok(Arc::new(properties.build()))
}
