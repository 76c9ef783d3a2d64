//! `/api/projects/{project_id}/subscriptions/` (API-69): the answers of insights and dashboards
//! by mail.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use weir_model::errors::FieldError;
use weir_model::pagination::Envelope;
use weir_model::subscriptions::{
    COUNT_MAX, Frequency, INTERVAL_MAX, PLACES, Subscription, SubscriptionInput, SubscriptionPatch,
    SubscriptionSubject, TARGET_MAX, TITLE_MAX, TargetType, Weekday,
};
use weir_model::{DashboardId, InsightId, Patch, Timestamp, validate};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InProject, PathParams};
use crate::http::guards::{SubscriptionsRead, SubscriptionsWrite};
use crate::http::input::{Fields, Input, missing, no_list, null, to_integer};
use crate::http::pagination::Listing;

const ID: &str = "subscription_id";

filters! {
    /// Filters for subscriptions.
    SubscriptionFilters {
        "insight": Number, "Only subscriptions of the insight with this number.";
        "dashboard": Number, "Only subscriptions of the dashboard with this number.";
    }
}

/// The subscriptions of the project that are not hidden, in the order of their creation.
pub async fn list_subscriptions(
    auth: Authorized<SubscriptionsRead, InProject>,
    State(app): State<App>,
    listing: Listing<SubscriptionFilters>,
) -> ApiResult<Json<Envelope<Subscription>>> {
    let number = |name: &'static str| {
        let text = listing.param(name).filter(|text| !text.is_empty());
        text.map(|text| to_integer(name, &json!(text), 1, i64::MAX)).transpose()
    };
    let about = match (number("insight")?, number("dashboard")?) {
        (Some(insight), _) => Some(SubscriptionSubject::Insight(InsightId(insight))),
        (None, Some(dashboard)) => Some(SubscriptionSubject::Dashboard(DashboardId(dashboard))),
        (None, None) => None,
    };
    let paged = app.services.subscriptions.list(&auth.ctx, about, listing.page()).await?;
    Ok(Json(listing.envelope(paged)))
}

/// Add a subscription of an insight or of a dashboard. Its mails have charts and numbers. The
/// key also needs `insight:read` and `query:read`.
pub async fn create_subscription(
    auth: Authorized<SubscriptionsWrite, InProject>,
    State(app): State<App>,
    body: ApiJson<SubscriptionInput>,
) -> ApiResult<Created<Subscription>> {
    Ok(Created(app.services.subscriptions.create(&auth.ctx, body.unchecked()).await?))
}

/// One subscription.
pub async fn get_subscription(
    auth: Authorized<SubscriptionsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Subscription>> {
    Ok(Json(app.services.subscriptions.get(&auth.ctx, path.get(ID)?).await?))
}

/// Change some fields. What the subscription is about stays. After a change of its times the
/// next one is computed again. The key also needs `insight:read` and `query:read`.
pub async fn update_subscription(
    auth: Authorized<SubscriptionsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<SubscriptionPatch>,
) -> ApiResult<Json<Subscription>> {
    let (subscriptions, id) = (&app.services.subscriptions, path.get(ID)?);
    Ok(Json(subscriptions.update(&auth.ctx, id, body.unchecked()).await?))
}

/// Delete a subscription for ever.
pub async fn delete_subscription(
    auth: Authorized<SubscriptionsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.subscriptions.delete(&auth.ctx, path.get(ID)?).await?;
    Ok(NoContent)
}

/// Send the caller the mail that the recipients would get now: at most one in a minute. 400 if
/// this instance sends no mail, or if there is nothing to send.
pub async fn test_subscription(
    auth: Authorized<SubscriptionsWrite, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.subscriptions.send_test(&auth.ctx, path.get(ID)?).await?;
    Ok(NoContent)
}

impl Input for SubscriptionInput {
    const EXAMPLE: &'static str = r#"{
        "insight": 1,
        "title": "Payments of the week",
        "target_type": "email",
        "target_value": "ada@mail.example",
        "frequency": "weekly",
        "byweekday": ["monday"],
        "start_date": "2100-01-04T09:00:00Z"
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let about = match (number(fields, "insight")?, number(fields, "dashboard")?) {
            (Some(insight), None) => SubscriptionSubject::Insight(InsightId(insight)),
            (None, Some(dashboard)) => SubscriptionSubject::Dashboard(DashboardId(dashboard)),
            (None, None) => return Err(missing("insight")),
            (Some(_), Some(_)) => {
                let detail = "A subscription is about an insight or a dashboard, not both.";
                return Err(FieldError::new("dashboard", "invalid_input", detail));
            }
        };
        Ok(Self {
            about,
            target_value: fields.required_text("target_value", TARGET_MAX)?,
            frequency: frequency(fields, true)?.ok_or_else(|| missing("frequency"))?,
            start_date: start_date(fields, true)?.ok_or_else(|| missing("start_date"))?,
            rest: beside_required(fields)?,
        })
    }
}

impl Input for SubscriptionPatch {
    const EXAMPLE: &'static str = r#"{"frequency": "monthly", "byweekday": null}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            target_value: fields.text("target_value", TARGET_MAX)?.required("target_value")?,
            frequency: frequency(fields, false)?,
            start_date: start_date(fields, false)?,
            ..beside_required(fields)?
        })
    }
}

/// All fields except those that a new subscription requires.
fn beside_required(fields: &Fields) -> Result<SubscriptionPatch, FieldError> {
    // No other kind of target is known, so the word is only checked.
    fields.word("target_type", TargetType::WORDS)?.required("target_type")?;
    refuse_invite(fields)?;
    Ok(SubscriptionPatch {
        title: fields.nullable_text("title", TITLE_MAX)?,
        interval: interval(fields)?,
        byweekday: weekdays(fields)?,
        bysetpos: fields.nullable_choice("bysetpos", &PLACES)?,
        count: fields.nullable_integer("count", 1, COUNT_MAX)?,
        until_date: fields.nullable_time("until_date")?,
        deleted: fields.boolean("deleted")?,
        ..SubscriptionPatch::default()
    })
}

/// Recipients get no mail about the subscription itself.
fn refuse_invite(fields: &Fields) -> Result<(), FieldError> {
    const NAME: &str = "invite_message";
    let schema = || json!({"type": ["string", "null"], "maxLength": 0});
    match fields.value(NAME, false, schema) {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(_) => {
            let detail = "Messages to recipients about the subscription are not supported.";
            Err(FieldError::new(NAME, "invalid_input", detail))
        }
    }
}

/// The number of an insight or a dashboard.
fn number(fields: &Fields, name: &str) -> Result<Option<i64>, FieldError> {
    match fields.nullable_integer(name, 1, i64::MAX)? {
        Patch::Set(number) => Ok(Some(number)),
        Patch::Keep | Patch::Clear => Ok(None),
    }
}

fn frequency(fields: &Fields, is_required: bool) -> Result<Option<Frequency>, FieldError> {
    const NAME: &str = "frequency";
    // Notes whether it is required.
    let schema = || json!({"type": "string", "enum": Frequency::WORDS});
    fields.value(NAME, is_required, schema);
    let word = fields.word(NAME, Frequency::WORDS)?.required(NAME)?;
    Ok(word.and_then(|word| Frequency::of(&word)))
}

fn interval(fields: &Fields) -> Result<Option<i64>, FieldError> {
    const NAME: &str = "interval";
    let schema = || json!({"type": "integer", "minimum": 1, "maximum": INTERVAL_MAX});
    match fields.value(NAME, false, schema) {
        None => Ok(None),
        Some(Value::Null) => Err(null(NAME)),
        Some(number) => to_integer(NAME, number, 1, INTERVAL_MAX).map(Some),
    }
}

fn start_date(fields: &Fields, is_required: bool) -> Result<Option<Timestamp>, FieldError> {
    const NAME: &str = "start_date";
    // Notes whether it is required, and that it cannot be null.
    fields.value(NAME, is_required, || json!({"type": "string", "format": "date-time"}));
    fields.nullable_time(NAME)?.required(NAME)
}

fn weekdays(fields: &Fields) -> Result<Patch<Vec<Weekday>>, FieldError> {
    const NAME: &str = "byweekday";
    let schema = || {
        json!({
            "type": ["array", "null"],
            "maxItems": Weekday::ALL.len(),
            "items": {"type": "string", "enum": Weekday::WORDS},
        })
    };
    let items = match fields.value(NAME, false, schema) {
        None => return Ok(Patch::Keep),
        Some(Value::Null) => return Ok(Patch::Clear),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(no_list(NAME, other)),
    };
    validate::list_length(NAME, items.len(), Weekday::ALL.len())?;
    let day = |(at, item): (usize, &Value)| {
        let attr = format!("{NAME}__{at}");
        match item {
            Value::Null => Err(null(&attr)),
            Value::String(word) => {
                Weekday::of(word).ok_or_else(|| validate::invalid_choice(&attr, word))
            }
            other => Err(validate::invalid_choice(&attr, other)),
        }
    };
    items.iter().enumerate().map(day).collect::<Result<_, _>>().map(Patch::Set)
}
