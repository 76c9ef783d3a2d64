//! The form of an export: loading, creating, editing, testing.
//!
//! If the form fails or the connection is tested, secrets are sealed and kept in the
//! session, so that users do not have to enter them again. Secrets are never written into
//! a page or a cookie.

#![allow(clippy::too_many_arguments, reason = "the fields of a form")]

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{
    BatchExport, BatchExportInput, BatchExportPatch, ExportModel, Interval, SentConfig,
};
use weir_model::{Patch, ProjectId, Timestamp};
#[cfg(feature = "ssr")]
use weir_service::exports::{NewTrial, SentDestination, Trial};
#[cfg(feature = "ssr")]
use weir_service::{Ctx, Services};

use super::OrganizationView;
use super::config::{FormSetting, Values, at_field, form_settings, sent, shown};
#[cfg(feature = "ssr")]
use crate::context::{
    enter_organization, enter_with_token, notice, redirect_with_notice, try_destination, ui_error,
};
use crate::destination_test::TriedStep;
use crate::edits::Edits;
use crate::error::UiError;
use crate::pages::exports::all_labels;
use crate::server_fns::projects::in_words;
use crate::ui::field::{moment_shown, parse_time};

/// The field name under which a form receives the result of the connection test.
pub(crate) const CONNECTION: &str = "connection";
/// Limit of kept secrets, in bytes: the capacity of a session.
const KEPT_BYTES: usize = 4_000;

/// Data for the form of a new export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The organization and its projects.
    pub(crate) organization: OrganizationView,
    /// Paths of the secrets in the session.
    pub(crate) kept: Vec<String>,
}

/// Kept secrets of the form for a destination type.
#[derive(Serialize, Deserialize)]
struct KeptSecrets {
    destination: String,
    secrets: Values,
}

/// Returns the data for the form of a new export. Requires a recent sign-in before the
/// form is shown, so that typed values are not lost later.
#[server(prefix = "/_fn", endpoint = "get_export_offer")]
pub(crate) async fn get_export_offer(
    organization: String,
    destination: String,
    failed: bool,
) -> Result<Offer, UiError> {
    let (services, org) = enter_organization(&organization).await?;
    weir_service::policy::recent_if_person(&org.ctx).map_err(ui_error)?;
    let organization = services.organizations.get(&org).await.map_err(ui_error)?.into();
    let kept = waiting("", &destination, failed).await?;
    Ok(Offer { organization, kept })
}

/// Paths of kept secrets, for a failed form that is shown again. For other forms, the
/// kept secrets are deleted.
#[cfg(feature = "ssr")]
async fn waiting(export: &str, destination: &str, failed: bool) -> Result<Vec<String>, UiError> {
    let session = Session::enter()?;
    let kept = session.take(export, destination).await?;
    if failed && !kept.is_empty() {
        session.keep(export, destination, &kept).await?;
        return Ok(kept.into_keys().collect());
    }
    Ok(Vec::new())
}

/// Returns the paths of secrets that are set: kept ones and stored ones.
#[server(prefix = "/_fn", endpoint = "get_export_secrets")]
pub(crate) async fn get_export_secrets(
    organization: String,
    export: String,
    failed: bool,
) -> Result<Vec<String>, UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let exports = &services.exports;
    let present = exports.get((&org).into(), &export).await.map_err(ui_error)?;
    let mut set = exports.secrets_set((&org).into(), &export).await.map_err(ui_error)?;
    set.extend(waiting(&export, &present.destination.kind, failed).await?);
    Ok(set)
}

/// Creates an export and redirects to it.
#[server(prefix = "/_fn", endpoint = "create_export")]
pub(crate) async fn create_export(
    organization: String,
    #[server(default)] team_id: String,
    destination: String,
    name: String,
    interval: String,
    #[server(default)] timezone: String,
    #[server(default)] offset_day: String,
    #[server(default)] offset_hour: String,
    model: String,
    #[server(default)] start_at: String,
    #[server(default)] end_at: String,
    #[server(default)] hogql_query: String,
    // Browsers do not send unticked boxes.
    #[server(default)] paused: Option<String>,
    #[server(default)] config: Values,
    #[server(default)] secrets: Values,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let kind = kind(&destination)?;
    let session = Session::enter()?;
    let secrets = session.with_kept("", &destination, secrets).await?;
    let interval = interval_of(&interval)?;
    let (offset_day, offset_hour) = offsets(interval, &offset_day, &offset_hour)?;
    let input = BatchExportInput {
        team_id: team_id.parse().ok().map(ProjectId),
        name,
        destination: kind,
        config: sent(kind, &config, &secrets),
        model: model_of(&model)?,
        interval,
        timezone: given(&timezone),
        offset_day,
        offset_hour,
        paused: paused.is_some(),
        last_paused_at: None,
        start_at: time("start_at", &start_at)?,
        end_at: time("end_at", &end_at)?,
        hogql_query: Some(hogql_query),
    };
    let created = services.exports.create((&org).into(), input).await;
    let created = created.map_err(|error| in_words(at_field(kind, ui_error(error))))?;
    session.take("", &destination).await?;
    let path = format!("/organizations/{organization}/exports/{}", created.id);
    let text = match weir_service::exports::next_run(&created, org.ctx.now) {
        Some(next) => {
            format!("Created {}. Its first run starts {}.", created.name, next.minute_text())
        }
        None => format!("Created {}. It is paused.", created.name),
    };
    redirect_with_notice(&path, &text);
    Ok(())
}

/// Names and values of the form fields of an export, without secrets.
pub(crate) fn form_values(
    kind: &'static DestinationType,
    export: &BatchExport,
) -> Vec<(String, String)> {
    let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    let time = |time: Option<Timestamp>| {
        time.map(|time| moment_shown(&time.to_string())).unwrap_or_default()
    };
    let own = [
        ("name", export.name.clone()),
        ("interval", export.interval.text().to_owned()),
        ("timezone", export.timezone.clone()),
        ("offset_day", number(export.offset_day)),
        ("offset_hour", number(export.offset_hour)),
        ("start_at", time(export.start_at)),
        ("end_at", time(export.end_at)),
        ("hogql_query", export.hogql_query.clone().unwrap_or_default()),
    ];
    let values = shown(kind, &export.destination.config);
    let settings = form_settings(kind).into_iter().filter(|setting| !setting.field.is_secret);
    let of_setting = |setting: FormSetting| {
        (setting.name(), values.get(&setting.path).cloned().unwrap_or_default())
    };
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    own.chain(settings.map(of_setting)).collect()
}

/// The sent values, with stored values for fields that the sender did not change.
///
/// # Errors
///
/// `changed_elsewhere` if another user changed the same fields.
fn merged(
    seen: &str,
    kind: &'static DestinationType,
    present: &BatchExport,
    mut fields: Values,
) -> Result<Values, UiError> {
    let mut edits = Edits::of(seen);
    let labels = all_labels(kind);
    for (name, stored) in form_values(kind, present) {
        let sent = fields.get(&name).map_or("", String::as_str);
        let label = labels.iter().find(|(field, _)| *field == name);
        let label = label.map_or(name.as_str(), |(_, label)| label);
        if edits.is_own(&name, label, sent, &stored) {
            continue;
        }
        // Browsers do not send unticked boxes.
        match stored.is_empty() {
            true => fields.remove(&name),
            false => fields.insert(name, stored),
        };
    }
    edits.check()?;
    Ok(fields)
}

/// Updates the changed fields of an export. Empty secrets stay.
#[server(prefix = "/_fn", endpoint = "update_export")]
pub(crate) async fn update_export(
    organization: String,
    export: String,
    #[server(default)] seen: String,
    name: String,
    interval: String,
    #[server(default)] timezone: String,
    #[server(default)] offset_day: String,
    #[server(default)] offset_hour: String,
    #[server(default)] start_at: String,
    #[server(default)] end_at: String,
    #[server(default)] hogql_query: String,
    #[server(default)] config: Values,
    #[server(default)] secrets: Values,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let exports = &services.exports;
    let present = exports.get((&org).into(), &export).await.map_err(ui_error)?;
    let kind = kind(&present.destination.kind)?;
    let session = Session::enter()?;
    let secrets = session.with_kept(&export, kind.name, secrets).await?;
    let own = [
        ("name", name),
        ("interval", interval),
        ("timezone", timezone),
        ("offset_day", offset_day),
        ("offset_hour", offset_hour),
        ("start_at", start_at),
        ("end_at", end_at),
        ("hogql_query", hogql_query),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    let settings = config.into_iter().map(|(path, value)| (format!("config[{path}]"), value));
    let fields = merged(&seen, kind, &present, own.chain(settings).collect())?;
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    let setting = |(name, value): (&String, &String)| {
        let path = name.strip_prefix("config[")?.strip_suffix(']')?;
        Some((path.to_owned(), value.clone()))
    };
    let config: Values = fields.iter().filter_map(setting).collect();
    let config = sent(kind, &config, &secrets);
    let interval = interval_of(field("interval"))?;
    let (offset_day, offset_hour) = offsets(interval, field("offset_day"), field("offset_hour"))?;
    let patch = BatchExportPatch {
        name: Patch::Set(field("name").to_owned()),
        // Without a change of the destination, no recent sign-in is required.
        config: (!is_unchanged(kind, &config, &present.destination.config)).then_some(config),
        interval: Patch::Set(interval),
        timezone: set(given(field("timezone"))),
        offset_day: set(offset_day),
        offset_hour: set(offset_hour),
        start_at: set(time("start_at", field("start_at"))?),
        end_at: set(time("end_at", field("end_at"))?),
        hogql_query: set(given(field("hogql_query"))),
        ..BatchExportPatch::default()
    };
    let changed = exports.update((&org).into(), &export, patch).await;
    changed.map_err(|error| in_words(at_field(kind, ui_error(error))))?;
    session.take(&export, kind.name).await?;
    notice("Saved the settings of the export.");
    Ok(())
}

/// Tests the destination in the form. It always returns an error: the results of the
/// steps, as the error of [`CONNECTION`]. In this way the page keeps the typed values.
#[server(prefix = "/_fn", endpoint = "test_export")]
pub(crate) async fn test_export(
    organization: String,
    #[server(default)] export: String,
    destination: String,
    #[server(default)] model: String,
    #[server(default)] config: Values,
    #[server(default)] secrets: Values,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let exports = &services.exports;
    if !export.is_empty() {
        // Keep no secrets for an export that does not exist.
        exports.get((&org).into(), &export).await.map_err(ui_error)?;
    }
    let kind = kind(&destination)?;
    let session = Session::enter()?;
    let secrets = session.with_kept(&export, &destination, secrets).await?;
    let config = sent(kind, &config, &secrets);
    let trial: Result<Trial, _> = if export.is_empty() {
        exports.trial_of_new((&org).into(), NewTrial { kind, config, model: model_of(&model)? })
    } else {
        let sent = SentDestination { kind: Some(kind), config: Some(config) };
        exports.trial_of_stored((&org).into(), &export, sent).await
    };
    let trial = trial.map_err(|error| at_field(kind, ui_error(error)))?;
    let tried = try_destination(trial).await?;
    Err(UiError::field(CONNECTION, "tested", &written(&tried)))
}

/// Encodes the steps for an error.
fn written(steps: &[TriedStep]) -> String {
    serde_json::to_string(steps).unwrap_or_default()
}

/// Decodes the steps of an error.
pub(crate) fn tried(text: &str) -> Vec<TriedStep> {
    crate::json::read(text).unwrap_or_default()
}

/// Whether the sent settings equal the stored ones, as far as they are shown. Every
/// secret counts as a change.
fn is_unchanged(
    kind: &'static DestinationType,
    sent: &SentConfig,
    stored: &Map<String, Value>,
) -> bool {
    let (_, secrets) = weir_model::exports::config::split_secrets(kind, sent.0.clone());
    secrets.is_empty() && shown(kind, &sent.0) == shown(kind, stored)
}

fn kind(name: &str) -> Result<&'static DestinationType, UiError> {
    DestinationType::of(name).ok_or_else(|| {
        UiError::form("invalid_choice", "There is no such destination. Choose one of the list.")
    })
}

fn interval_of(word: &str) -> Result<Interval, UiError> {
    Interval::of(word)
        .ok_or_else(|| UiError::field("interval", "invalid_choice", "Choose one of the intervals."))
}

/// The day and the hour at which an interval starts. Values that the interval does not
/// use are ignored.
fn offsets(
    interval: Interval,
    day: &str,
    hour: &str,
) -> Result<(Option<i64>, Option<i64>), UiError> {
    let has_day = interval == Interval::Week;
    let day = if has_day { offset("offset_day", day)? } else { None };
    let has_hour = has_day || interval == Interval::Day;
    let hour = if has_hour { offset("offset_hour", hour)? } else { None };
    Ok((day, hour))
}

/// Parses a day or an hour. Empty: `None`.
fn offset(name: &str, text: &str) -> Result<Option<i64>, UiError> {
    let wrong = |_| UiError::field(name, "invalid_choice", "Choose one of the list.");
    given(text).map(|text| text.parse().map_err(wrong)).transpose()
}

/// The text, if it is not empty.
fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The change of a field that the form always sends.
fn set<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Clear, Patch::Set)
}

fn model_of(word: &str) -> Result<ExportModel, UiError> {
    match word {
        "" => Ok(ExportModel::default()),
        word => ExportModel::of(word)
            .ok_or_else(|| UiError::field("model", "invalid_choice", "Choose events or persons.")),
    }
}

/// Parses an optional time.
fn time(name: &str, text: &str) -> Result<Option<Timestamp>, UiError> {
    match (text.trim(), parse_time(text)) {
        ("", _) => Ok(None),
        (_, Some(time)) => Ok(Some(time)),
        (_, None) => {
            let detail = "Enter a date and a time of day, in UTC.";
            Err(UiError::field(name, "invalid_input", detail))
        }
    }
}

/// The session that keeps secrets.
#[cfg(feature = "ssr")]
struct Session {
    services: Services,
    ctx: Ctx,
    token: String,
}

#[cfg(feature = "ssr")]
impl Session {
    fn enter() -> Result<Self, UiError> {
        let (services, ctx, token) = enter_with_token()?;
        Ok(Self { services, ctx, token })
    }

    fn place(export: &str) -> String {
        format!("export secrets {export}")
    }

    /// Removes and returns the kept secrets of this form and destination.
    async fn take(&self, export: &str, destination: &str) -> Result<Values, UiError> {
        let identity = &self.services.identity;
        let place = Self::place(export);
        let text = identity.take_flash(&self.ctx, &self.token, &place).await.map_err(ui_error)?;
        let kept = text.and_then(|text| serde_json::from_str::<KeptSecrets>(&text).ok());
        let ours = kept.filter(|kept| kept.destination == destination);
        Ok(ours.map(|kept| kept.secrets).unwrap_or_default())
    }

    /// Keeps secrets. If they exceed the limit, none is kept.
    async fn keep(&self, export: &str, destination: &str, secrets: &Values) -> Result<(), UiError> {
        let kept = KeptSecrets { destination: destination.to_owned(), secrets: secrets.clone() };
        let text = serde_json::to_string(&kept).unwrap_or_default();
        if secrets.is_empty() || text.is_empty() || text.len() > KEPT_BYTES {
            return Ok(());
        }
        let identity = &self.services.identity;
        let place = Self::place(export);
        identity.put_flash(&self.ctx, &self.token, &place, &text).await.map_err(ui_error)
    }

    /// The typed secrets, completed with kept ones for empty fields. All of them are kept
    /// again, in case the form fails.
    async fn with_kept(
        &self,
        export: &str,
        destination: &str,
        typed: Values,
    ) -> Result<Values, UiError> {
        let mut secrets = self.take(export, destination).await?;
        secrets.extend(typed.into_iter().filter(|(_, text)| !text.is_empty()));
        self.keep(export, destination, &secrets).await?;
        Ok(secrets)
    }
}
