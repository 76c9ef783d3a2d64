//! Reading the bodies of operations on batch exports.

use serde_json::{Map, Value, json};
use weir_model::errors::FieldError;
use weir_model::exports::destinations::{self, DestinationType};
use weir_model::exports::{
    BackfillInput, BatchExportInput, BatchExportPatch, ExportModel, Interval, LAST_DAY, LAST_HOUR,
    NAME_MAX, QUERY_MAX, SentConfig,
};
use weir_model::{Patch, ProjectId, validate};
use weir_service::exports::SentDestination;

use crate::http::input::{Fields, Input, kind};

/// Longest text of a time in a body, in characters.
const TIME_MAX: usize = 64;
/// Whether missed intervals are exported.
const ZONE_MAX: usize = 240;
const DESTINATION: &str = "destination";

/// The body of `unpause/`. Fields of the export are ignored there.
#[derive(Debug)]
pub struct UnpauseInput {
    /// Whether intervals that were missed during the pause are exported.
    pub backfill: bool,
}

impl Input for UnpauseInput {
    const EXAMPLE: &'static str = r#"{"backfill": true}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self { backfill: fields.boolean("backfill")?.apply(false, false) })
    }
}

impl Input for BackfillInput {
    const EXAMPLE: &'static str = "{}";

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let text = |name: &str| -> Result<Option<String>, FieldError> {
            Ok(match fields.nullable_text(name, TIME_MAX)? {
                Patch::Set(text) => Some(text),
                Patch::Keep | Patch::Clear => None,
            })
        };
        // Fields of an export that a backfill does not have.
        let has_export_fields = fields.has("interval") || fields.has(DESTINATION);
        Ok(Self { start_at: text("start_at")?, end_at: text("end_at")?, has_export_fields })
    }
}

/// Fields are checked in the order in which the resource shows them.
impl Input for BatchExportInput {
    const EXAMPLE: &'static str = r#"{
        "name": "Nightly", "interval": "day",
        "destination": {
            "type": "S3",
            "config": {
                "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/{year}/{month}/",
                "aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "example"
            }
        },
        "hogql_query": "SELECT event, distinct_id, timestamp, properties FROM events"
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let team_id = match fields.nullable_integer("team_id", 1, i64::MAX)? {
            Patch::Set(number) => Some(ProjectId(number)),
            Patch::Keep | Patch::Clear => None,
        };
        let name = fields.required_text("name", NAME_MAX)?;
        let sent = destination(fields, true)?;
        let sent = sent.ok_or_else(|| required(DESTINATION))?;
        let kind = sent.kind.ok_or_else(|| required("destination__type"))?;
        let config = sent.config.ok_or_else(|| required("destination__config"))?;
        let model = match model(fields)? {
            Patch::Set(model) => model,
            Patch::Keep | Patch::Clear => ExportModel::default(),
        };
        let interval = interval(fields, true)?;
        let Patch::Set(interval) = interval else { return Err(required("interval")) };
        let (timezone, offset_day, offset_hour) = offsets(fields)?;
        let paused = fields.boolean("paused")?.apply(false, false);
        let time = |name: &str| -> Result<_, FieldError> {
            Ok(match fields.nullable_time(name)? {
                Patch::Set(time) => Some(time),
                Patch::Keep | Patch::Clear => None,
            })
        };
        let last_paused_at = time("last_paused_at")?;
        let start_at = time("start_at")?;
        let end_at = time("end_at")?;
        let hogql_query = match fields.nullable_text("hogql_query", QUERY_MAX)? {
            Patch::Set(query) => Some(query),
            Patch::Keep | Patch::Clear => None,
        };
        Ok(Self {
            team_id,
            name,
            destination: kind,
            config,
            model,
            interval,
            timezone: timezone.over(None),
            offset_day: offset_day.over(None),
            offset_hour: offset_hour.over(None),
            paused,
            last_paused_at,
            start_at,
            end_at,
            hogql_query,
        })
    }
}

impl Input for BatchExportPatch {
    const EXAMPLE: &'static str =
        r#"{"name": "Hourly", "interval": "hour", "destination": {"config": {"prefix": "new/"}}}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let name = fields.text("name", NAME_MAX)?;
        let sent = destination(fields, false)?.unwrap_or_default();
        let model = model(fields)?;
        let interval = interval(fields, false)?;
        let (timezone, offset_day, offset_hour) = offsets(fields)?;
        Ok(Self {
            name,
            destination: sent.kind,
            config: sent.config,
            model,
            interval,
            timezone,
            offset_day,
            offset_hour,
            paused: fields.boolean("paused")?,
            last_paused_at: fields.nullable_time("last_paused_at")?,
            start_at: fields.nullable_time("start_at")?,
            end_at: fields.nullable_time("end_at")?,
            hogql_query: fields.nullable_text("hogql_query", QUERY_MAX)?,
        })
    }
}

/// The body of PUT: a change with all fields that a new export requires.
#[derive(Debug)]
pub struct Replacement(pub BatchExportPatch);

impl Input for Replacement {
    const EXAMPLE: &'static str = BatchExportInput::EXAMPLE;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        BatchExportInput::read(fields)?;
        BatchExportPatch::read(fields).map(Self)
    }
}

/// The error for a missing field.
pub(super) fn required(attr: &str) -> FieldError {
    FieldError::new(attr, "required", "This field is required.")
}

/// The model to export, if it was sent.
pub(super) fn model(fields: &Fields) -> Result<Patch<ExportModel>, FieldError> {
    fields.word("model", &ExportModel::WORDS)?.try_map(|word| {
        ExportModel::of(&word).ok_or_else(|| validate::invalid_choice("model", &word))
    })
}

fn interval(fields: &Fields, is_required: bool) -> Result<Patch<Interval>, FieldError> {
    fields.value("interval", is_required, || json!({"type": "string", "enum": Interval::WORDS}));
    let word = fields.word("interval", &Interval::WORDS)?;
    word.try_map(|word| {
        Interval::of(&word).ok_or_else(|| validate::invalid_choice("interval", &word))
    })
}

/// When days and weeks begin: time zone, day, hour.
type Offsets = (Patch<String>, Patch<i64>, Patch<i64>);

fn offsets(fields: &Fields) -> Result<Offsets, FieldError> {
    let number = |name: &str, most: i64| {
        let wrong = |fault: FieldError| FieldError::new(name, "invalid_input", &fault.detail);
        fields.nullable_integer(name, 0, most).map_err(wrong)
    };
    Ok((
        fields.nullable_text("timezone", ZONE_MAX)?,
        number("offset_day", LAST_DAY)?,
        number("offset_hour", LAST_HOUR)?,
    ))
}

/// A destination as it was sent.
pub(super) fn destination(
    fields: &Fields,
    is_required: bool,
) -> Result<Option<SentDestination>, FieldError> {
    let sent = fields.value(DESTINATION, is_required, || schema(is_required));
    let sent = match sent {
        None => return Ok(None),
        Some(Value::Null) => {
            return Err(FieldError::new(DESTINATION, "null", "This field may not be null."));
        }
        Some(Value::Object(sent)) => sent,
        Some(other) => {
            let detail = format!("Invalid data. Expected a dictionary, but got {}.", kind(other));
            return Err(FieldError::new("destination__non_field_errors", "invalid_input", detail));
        }
    };
    Ok(Some(SentDestination { kind: kind_of(sent)?, config: config(sent)? }))
}

fn kind_of(sent: &Map<String, Value>) -> Result<Option<&'static DestinationType>, FieldError> {
    let Some(sent) = sent.get("type") else { return Ok(None) };
    let known = sent.as_str().and_then(DestinationType::of);
    known.map(Some).ok_or_else(|| {
        let shown: String = sent
            .as_str()
            .map_or_else(|| sent.to_string(), str::to_owned)
            .chars()
            .take(64)
            .collect();
        validate::invalid_choice("destination__type", &shown)
    })
}

fn config(sent: &Map<String, Value>) -> Result<Option<SentConfig>, FieldError> {
    match sent.get("config") {
        None => Ok(None),
        Some(Value::Object(config)) => Ok(Some(SentConfig(config.clone()))),
        Some(other) => {
            let detail =
                format!("Expected a dictionary of items but got type \"{}\".", kind(other));
            Err(FieldError::new("destination__config", "not_a_dict", detail))
        }
    }
}

fn schema(is_required: bool) -> Value {
    let kinds: Vec<&str> = destinations::ALL.iter().map(|kind| kind.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": kinds},
            "config": {"type": "object", "description": "Depends on the type."},
        },
    });
    if is_required {
        schema["required"] = json!(["type", "config"]);
    }
    schema
}
