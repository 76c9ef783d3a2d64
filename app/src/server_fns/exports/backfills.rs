//! Backfills of an export: list, preview, start, cancel.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::exports::{Backfill, BackfillInput};

#[cfg(feature = "ssr")]
use crate::context::{enter_organization, notice, redirect_with_notice, ui_error};
use crate::error::UiError;
use crate::ui::field::parse_time;

/// A page of backfills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BackfillList {
    /// The backfills, newest first.
    pub(crate) backfills: Vec<Backfill>,
    /// Whether older backfills exist.
    pub(crate) has_more: bool,
}

/// Preview of a backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Preview {
    /// Start of its first run. `None`: there is nothing to export.
    pub(crate) start_at: Option<String>,
    /// End of its last run, exclusive.
    pub(crate) end_at: String,
    /// Number of runs.
    pub(crate) runs: u64,
    /// Number of intervals that one run covers.
    pub(crate) intervals_per_run: u64,
    /// Estimated number of events, if known.
    pub(crate) events: Option<u64>,
    /// Time of the project's first event.
    pub(crate) first_event: Option<String>,
    /// Whether the requested start is before the first event.
    pub(crate) begins_before_first_event: bool,
    /// Whether part of the range may already be delivered by regular runs or another
    /// backfill.
    pub(crate) may_repeat: bool,
    /// Whether the range overlaps with a backfill in progress.
    pub(crate) overlaps_active: bool,
    /// Whether the query filters events.
    pub(crate) has_condition: bool,
}

/// Lists backfills of an export, newest first.
#[server(prefix = "/_fn", endpoint = "list_backfills")]
pub(crate) async fn list_backfills(
    organization: String,
    export: String,
    cursor: String,
) -> Result<BackfillList, UiError> {
    use weir_model::exports::lists::BACKFILL_PAGE;
    use weir_model::pagination::Page;

    let (services, org) = enter_organization(&organization).await?;
    // An unknown cursor shows the first page.
    let cursor = cursor.parse().ok();
    // The cursor is the position in the list.
    let limit = Page { limit: BACKFILL_PAGE as u64, offset: 0 };
    let page = services
        .exports
        .backfills((&org).into(), &export, cursor, limit)
        .await
        .map_err(ui_error)?;
    Ok(BackfillList { backfills: page.backfills, has_more: page.more })
}

/// Previews a backfill with these bounds.
#[server(prefix = "/_fn", endpoint = "preview_backfill")]
pub(crate) async fn preview_backfill(
    organization: String,
    export: String,
    start: String,
    end: String,
) -> Result<Preview, UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let input = bounds(&start, &end)?;
    let exports = &services.exports;
    let found = exports.preview_backfill((&org).into(), &export, &input).await;
    let found = found.map_err(|error| move_to_form_field(ui_error(error)))?;
    Ok(Preview {
        start_at: found.start_at.map(|time| time.to_string()),
        end_at: found.end_at.to_string(),
        runs: found.runs,
        intervals_per_run: found.intervals_per_run,
        events: found.events,
        first_event: found.first_event.map(|time| time.to_string()),
        begins_before_first_event: found.begins_before_first_event,
        may_repeat: found.may_repeat,
        overlaps_active: found.overlaps_active,
        has_condition: found.has_condition,
    })
}

/// Starts a backfill with these bounds.
#[server(prefix = "/_fn", endpoint = "start_backfill")]
pub(crate) async fn start_backfill(
    organization: String,
    export: String,
    start: String,
    end: String,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let input = bounds(&start, &end)?;
    let started = services.exports.backfill((&org).into(), &export, input).await;
    started.map_err(|error| move_to_form_field(ui_error(error)))?;
    let path = format!("/organizations/{organization}/exports/{export}/backfill");
    redirect_with_notice(&path, "Scheduled the backfill. Its runs follow one after the other.");
    Ok(())
}

/// Cancels a backfill that has not ended.
#[server(prefix = "/_fn", endpoint = "cancel_backfill")]
pub(crate) async fn cancel_backfill(
    organization: String,
    export: String,
    backfill: String,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let exports = &services.exports;
    exports.cancel_backfill((&org).into(), &export, &backfill).await.map_err(ui_error)?;
    notice("Cancelled the backfill. Delivered rows stay at the destination.");
    Ok(())
}

/// Moves an error to the form field of the bound that it names.
fn move_to_form_field(error: UiError) -> UiError {
    let UiError::Field(mut fault) = error else { return error };
    let field = fault.attr.as_deref().and_then(|attr| attr.strip_suffix("_at"));
    fault.attr = field.map(str::to_owned).or(fault.attr);
    UiError::Field(fault)
}

/// Parses bounds in the format of `datetime-local` fields. An empty bound is `None`: the
/// service chooses the first event as start, the last interval boundary as end.
fn bounds(start: &str, end: &str) -> Result<BackfillInput, UiError> {
    let read = |name: &str, text: &str| match (text.trim(), parse_time(text)) {
        ("", _) => Ok(None),
        (_, Some(time)) => Ok(Some(time.to_string())),
        (_, None) => {
            let detail = "Enter a date and a time of day, in UTC.";
            Err(UiError::field(name, "invalid_input", detail))
        }
    };
    let (start_at, end_at) = (read("start", start)?, read("end", end)?);
    // Set by the API only, when clients send the whole export.
    Ok(BackfillInput { start_at, end_at, has_export_fields: false })
}
