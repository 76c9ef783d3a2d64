//! `/api/projects/{project_id}/alerts/` (API-67): numbers of insights that are compared with
//! bounds.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use weir_model::alerts::{
    Alert, AlertBounds, AlertConfig, AlertConfigKind, AlertInput, AlertPatch, CalculationInterval,
    ConditionKind, NAME_MAX, SERIES_INDEX_MAX, SUBSCRIBERS_MAX, ThresholdConfiguration,
    ThresholdKind, WEBHOOK_MAX,
};
use weir_model::errors::FieldError;
use weir_model::pagination::Envelope;
use weir_model::{InsightId, Patch, UserId, validate};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InProject, PathParams};
use crate::http::guards::{AlertsRead, AlertsWrite};
use crate::http::input::{Fields, Input, missing, no_list, no_object, null, to_integer};
use crate::http::pagination::Listing;

const ID: &str = "alert_id";

filters! {
    /// Filters for alerts.
    AlertFilters {
        "insight": Number, "Only alerts on the insight with this number.";
    }
}

/// The alerts of the project, in the order of their creation.
pub async fn list_alerts(
    auth: Authorized<AlertsRead, InProject>,
    State(app): State<App>,
    listing: Listing<AlertFilters>,
) -> ApiResult<Json<Envelope<Alert>>> {
    let number = |text: &str| to_integer("insight", &json!(text), 1, i64::MAX).map(InsightId);
    let insight = listing.param("insight").filter(|text| !text.is_empty());
    let insight = insight.map(number).transpose()?;
    let paged = app.services.alerts.list(&auth.ctx, insight, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Add an alert. It is checked immediately, and then after the end of each
/// `calculation_interval`. The key also needs `insight:read` and `query:read`.
pub async fn create_alert(
    auth: Authorized<AlertsWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<AlertInput>,
) -> ApiResult<Created<Alert>> {
    Ok(Created(app.services.alerts.create(&auth.ctx, body.unchecked()).await?))
}

/// One alert.
pub async fn get_alert(
    auth: Authorized<AlertsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Alert>> {
    Ok(Json(app.services.alerts.get(&auth.ctx, path.get(ID)?).await?))
}

/// Change some fields. The insight stays. After a change of what is compared, the alert is
/// checked immediately. The key also needs `insight:read` and `query:read`.
pub async fn update_alert(
    auth: Authorized<AlertsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<AlertPatch>,
) -> ApiResult<Json<Alert>> {
    let (alerts, id) = (&app.services.alerts, path.get(ID)?);
    Ok(Json(alerts.update(&auth.ctx, id, body.unchecked()).await?))
}

/// Delete an alert for ever.
pub async fn delete_alert(
    auth: Authorized<AlertsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.alerts.delete(&auth.ctx, path.get(ID)?).await?;
    Ok(NoContent)
}

impl Input for AlertInput {
    const EXAMPLE: &'static str = r#"{
        "insight": 1,
        "name": "Few payments",
        "threshold": {"configuration": {"type": "absolute", "bounds": {"lower": 10}}}
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let insight = insight(fields)?;
        let name = fields.required_text("name", NAME_MAX)?;
        let threshold = threshold(fields, true)?.ok_or_else(|| missing("threshold"))?;
        Ok(Self { insight, name, threshold, rest: beside_threshold(fields)? })
    }
}

impl Input for AlertPatch {
    const EXAMPLE: &'static str = r#"{"snoozed_until": "2100-01-01T09:00:00Z"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let name = fields.text("name", NAME_MAX)?;
        let threshold = threshold(fields, false)?;
        Ok(Self { name, threshold, ..beside_threshold(fields)? })
    }
}

/// The number of the insight. The insight of an answer is accepted too.
fn insight(fields: &Fields) -> Result<InsightId, FieldError> {
    const NAME: &str = "insight";
    let number = match fields.value(NAME, true, || json!({"type": "integer"})) {
        Some(Value::Object(insight)) => insight.get("id"),
        sent => sent,
    };
    match number {
        None => Err(missing(NAME)),
        Some(Value::Null) => Err(null(NAME)),
        Some(number) => to_integer(NAME, number, 1, i64::MAX).map(InsightId),
    }
}

/// All fields except the insight, the name and the threshold.
fn beside_threshold(fields: &Fields) -> Result<AlertPatch, FieldError> {
    Ok(AlertPatch {
        condition: condition(fields)?,
        config: config(fields)?,
        calculation_interval: match fields
            .word("calculation_interval", CalculationInterval::WORDS)?
        {
            Patch::Set(word) => CalculationInterval::of(&word),
            Patch::Keep | Patch::Clear => None,
        },
        subscribed_users: subscribed_users(fields)?,
        webhook_url: fields.nullable_text("webhook_url", WEBHOOK_MAX)?,
        skip_weekend: fields.boolean("skip_weekend")?,
        enabled: fields.boolean("enabled")?,
        snoozed_until: fields.nullable_time("snoozed_until")?,
        ..AlertPatch::default()
    })
}

fn threshold(
    fields: &Fields,
    is_required: bool,
) -> Result<Option<ThresholdConfiguration>, FieldError> {
    const NAME: &str = "threshold";
    let Some(sent) = fields.value(NAME, is_required, threshold_schema) else { return Ok(None) };
    let (attr, at) = ("threshold__configuration", "threshold__configuration__bounds");
    let sent = object(attr, object(NAME, Some(sent))?.get("configuration"))?;
    let kind = word(&format!("{attr}__type"), sent.get("type"), ThresholdKind::of)?;
    let bounds = match sent.get("bounds") {
        None | Some(Value::Null) => AlertBounds::default(),
        Some(bounds) => {
            let bounds = object(at, Some(bounds))?;
            AlertBounds {
                lower: bound(&format!("{at}__lower"), bounds.get("lower"))?,
                upper: bound(&format!("{at}__upper"), bounds.get("upper"))?,
            }
        }
    };
    Ok(Some(ThresholdConfiguration { kind, bounds }))
}

fn threshold_schema() -> Value {
    let bound = || json!({"type": ["number", "null"]});
    json!({
        "type": "object",
        "properties": {
            "configuration": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ThresholdKind::WORDS},
                    "bounds": {
                        "type": "object",
                        "properties": {"lower": bound(), "upper": bound()},
                    },
                },
                "required": ["type", "bounds"],
            },
        },
        "required": ["configuration"],
    })
}

fn condition(fields: &Fields) -> Result<Option<ConditionKind>, FieldError> {
    const NAME: &str = "condition";
    let schema = || {
        json!({
            "type": ["object", "null"],
            "properties": {"type": {"type": "string", "enum": ConditionKind::WORDS}},
            "required": ["type"],
        })
    };
    match fields.value(NAME, false, schema) {
        None | Some(Value::Null) => Ok(None),
        Some(sent) => {
            let kind = object(NAME, Some(sent))?.get("type");
            word("condition__type", kind, ConditionKind::of).map(Some)
        }
    }
}

fn config(fields: &Fields) -> Result<Option<AlertConfig>, FieldError> {
    const NAME: &str = "config";
    let schema = || {
        json!({
            "type": ["object", "null"],
            "properties": {
                "type": {"type": "string", "enum": AlertConfigKind::WORDS},
                "series_index": {"type": "integer", "minimum": 0, "maximum": SERIES_INDEX_MAX},
                "check_ongoing_interval": {"type": ["boolean", "null"]},
            },
            "required": ["type", "series_index"],
        })
    };
    let sent = match fields.value(NAME, false, schema) {
        None | Some(Value::Null) => return Ok(None),
        Some(sent) => object(NAME, Some(sent))?,
    };
    let kind = word("config__type", sent.get("type"), AlertConfigKind::of)?;
    let index = "config__series_index";
    let series_index = match sent.get("series_index") {
        None => return Err(missing(index)),
        Some(Value::Null) => return Err(null(index)),
        Some(number) => to_integer(index, number, 0, SERIES_INDEX_MAX)?,
    };
    let check_ongoing_interval = match sent.get("check_ongoing_interval") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => {
            let attr = "config__check_ongoing_interval";
            return Err(FieldError::new(attr, "invalid_input", "Must be a valid boolean."));
        }
    };
    Ok(Some(AlertConfig { kind, series_index, check_ongoing_interval }))
}

/// The UUIDs of users. The users of an answer are accepted too.
fn subscribed_users(fields: &Fields) -> Result<Patch<Vec<UserId>>, FieldError> {
    const NAME: &str = "subscribed_users";
    let schema = || {
        json!({
            "type": ["array", "null"],
            "maxItems": SUBSCRIBERS_MAX,
            "items": {"type": "string", "format": "uuid"},
        })
    };
    let items = match fields.value(NAME, false, schema) {
        None => return Ok(Patch::Keep),
        Some(Value::Null) => return Ok(Patch::Clear),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(no_list(NAME, other)),
    };
    validate::list_length(NAME, items.len(), SUBSCRIBERS_MAX)?;
    let user = |(at, item): (usize, &Value)| {
        let sent = item.as_object().map_or(Some(item), |user| user.get("uuid"));
        let id = sent.and_then(Value::as_str).and_then(|text| text.parse().ok());
        id.ok_or_else(|| {
            let attr = format!("{NAME}__{at}");
            FieldError::new(&attr, "invalid_input", "Must be a valid UUID.")
        })
    };
    items.iter().enumerate().map(user).collect::<Result<_, _>>().map(Patch::Set)
}

/// The members of a required object.
fn object<'a>(attr: &str, sent: Option<&'a Value>) -> Result<&'a Map<String, Value>, FieldError> {
    match sent {
        None => Err(missing(attr)),
        Some(Value::Null) => Err(null(attr)),
        Some(Value::Object(members)) => Ok(members),
        Some(other) => Err(no_object(attr, other)),
    }
}

/// The value of a required word.
fn word<T>(attr: &str, sent: Option<&Value>, of: fn(&str) -> Option<T>) -> Result<T, FieldError> {
    let sent = match sent {
        None => return Err(missing(attr)),
        Some(Value::Null) => return Err(null(attr)),
        Some(sent) => sent,
    };
    let text = sent.as_str().map_or_else(|| sent.to_string(), str::to_owned);
    of(&text).ok_or_else(|| validate::invalid_choice(attr, &text))
}

/// A number, or none. `"1.5"` is accepted for 1.5.
fn bound(attr: &str, sent: Option<&Value>) -> Result<Option<f64>, FieldError> {
    let number: Option<f64> = match sent {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    let wrong = || FieldError::new(attr, "invalid_input", "A valid number is required.");
    number.filter(|number| number.is_finite()).map(Some).ok_or_else(wrong)
}
