//! Backfills of an export: preview, start, progress.

use futures::future::try_join;
use leptos::prelude::*;
use weir_model::exports::{Backfill, ExportModel};

use super::calls::call;
use super::{export_in_path, export_path, head, range, words};
use crate::error::UiError;
use crate::pages::id_in_path;
use crate::server_fns::exports::backfills::{
    BackfillList, CancelBackfill, Preview, StartBackfill, list_backfills, preview_backfill,
};
use crate::server_fns::exports::{ExportHead, get_export};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::{ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::panel;
use crate::ui::field::MomentField;
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::number::{compact, counted, grouped};
use crate::ui::page::page;
use crate::ui::query::{in_query, with_query};
use crate::ui::refresh::Refresh;
use crate::ui::sections::Section;
use crate::ui::status::{Progress, Status};
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell};
use crate::ui::time::{Ago, Time};

const TITLE: &str = "Backfill";
/// Interval of the refresh while a backfill is in progress, in seconds.
const SECONDS: u32 = 5;

#[component]
pub(crate) fn ExportBackfill() -> impl IntoView {
    page(
        TITLE,
        || Inputs {
            organization: id_in_path(),
            export: export_in_path(),
            start: in_query("start"),
            end: in_query("end"),
            previews: in_query("look") == "1",
            cursor: in_query("cursor"),
        },
        load,
        |Inputs { start, end, .. }, (found, list, preview)| draw(start, end, &found, list, preview),
    )
}

/// The inputs of the page.
#[derive(Clone, PartialEq)]
struct Inputs {
    organization: String,
    export: String,
    start: String,
    end: String,
    /// Whether to preview a backfill with these bounds.
    previews: bool,
    cursor: String,
}

/// A preview, if one was requested.
type RequestedPreview = Option<Result<Preview, UiError>>;

async fn load(inputs: Inputs) -> Result<(ExportHead, BackfillList, RequestedPreview), UiError> {
    let Inputs { organization, export, start, end, previews, cursor } = inputs;
    let (found, list) = try_join(
        get_export(organization.clone(), export.clone()),
        list_backfills(organization.clone(), export.clone(), cursor),
    )
    .await?;
    let preview = match previews {
        true => Some(preview_backfill(organization, export, start, end).await),
        false => None,
    };
    Ok((found, list, preview))
}

fn draw(
    start: String,
    end: String,
    found: &ExportHead,
    list: BackfillList,
    preview: RequestedPreview,
) -> AnyView {
    let started = form_result(form_action::<StartBackfill>());
    let cancelled = form_result(form_action::<CancelBackfill>());
    let is_active = list.backfills.iter().any(|backfill| backfill.status.is_active());
    let refresh = (is_active && preview.is_none()).then(|| view! { <Refresh seconds=SECONDS /> });
    let list = listed(list, found);
    view! {
        {head(found, TITLE)}
        <FormFailure result=started />
        <FormFailure result=cancelled />
        {planning(found, start, end, preview, started)}
        <Section id="backfills" title="Backfills">
            {refresh}
            <div id="backfill-list">{list}</div>
        </Section>
    }
    .into_any()
}

/// The fields for the bounds, and the preview.
fn planning(
    found: &ExportHead,
    start: String,
    end: String,
    preview: RequestedPreview,
    result: FormResult,
) -> AnyView {
    let path = export_path(&found.organization.id, &found.export.id.to_string());
    let preview = preview.map(|preview| {
        panel(preview, |preview| previewed(found, &preview, start.clone(), end.clone()))
    });
    let what = match found.export.model {
        ExportModel::Events => {
            "Exports the events of a past time range again, independently of the schedule. The range applies to the event time, not to the time of receipt."
        }
        ExportModel::Persons => {
            "Exports the persons of the events of a past time range, as they are now, independently of the schedule."
        }
    };
    view! {
        <Section id="plan" title="Plan a backfill" hint=what>
            <form method="get" action=format!("{path}/backfill") class="export-plan">
                <input type="hidden" name="look" value="1" />
                <MomentField result=result name="start" label="From" value=start
                    hint="Empty: from the first event." />
                <MomentField result=result name="end" label="Up to" value=end
                    hint="Empty: up to the last full interval." />
                <div class="submit">
                    <button type="submit" class="button" data-busy="Previewing backfill...">"Preview backfill"</button>
                </div>
            </form>
            {preview}
        </Section>
    }
    .into_any()
}

/// The preview: the planned runs, warnings, and the button that starts the backfill.
fn previewed(found: &ExportHead, preview: &Preview, start: String, end: String) -> AnyView {
    let export = &found.export;
    let Some(begin) = preview.start_at.clone() else {
        let first = preview.first_event.clone().map(|first| {
            view! { " The first event of the project happened at " <Time iso=first /> "." }
        });
        return view! {
            <Alert kind="note">
                <p>"There is nothing to export in this range." {first}</p>
            </Alert>
        }
        .into_any();
    };
    let runs = counted(preview.runs, "run", "runs");
    let (one, many) = words::rows(export.model);
    let amount = match preview.events {
        Some(1) => format!(", about 1 {one}"),
        Some(count) => format!(", about {} {many}", compact(count)),
        None => String::new(),
    };
    let longer = (preview.intervals_per_run > 1).then(|| {
        let intervals = grouped(preview.intervals_per_run);
        view! { <li>"Each run covers " {intervals} " intervals, which limits the number of runs."</li> }
    });
    let earlier = preview.begins_before_first_event.then(|| {
        let first = preview.first_event.clone().unwrap_or_default();
        view! { <li>"The range begins before the first event, which happened at " <Time iso=first /> ". The backfill begins there."</li> }
    });
    let repeated = preview.may_repeat.then(|| {
        let what = words::repeated(&export.destination.kind, export.model);
        view! { <li>"Some of these rows may have been delivered already. " {what}</li> }
    });
    let overlap = preview.overlaps_active.then(|| {
        view! { <li>"Another backfill in progress covers a part of this range."</li> }
    });
    let fewer = preview.has_condition.then(|| {
        view! { <li>"The query of the export skips some of these events."</li> }
    });
    let start_backfill = form_action::<StartBackfill>();
    let (organization, id) = (found.organization.id.clone(), export.id.to_string());
    let verb = format!("Schedule {runs}");
    view! {
        <div class="export-preview" id="preview">
            <p class="export-count"><strong>{runs.clone()} {amount}</strong></p>
            <p>"From " <Time iso=begin /> " up to " <Time iso=preview.end_at.clone() /> "."</p>
            <ul>{longer}{earlier}{repeated}{overlap}{fewer}</ul>
            <ActionForm action=start_backfill>
                <input type="hidden" name="organization" value=organization />
                <input type="hidden" name="export" value=id />
                <input type="hidden" name="start" value=start />
                <input type="hidden" name="end" value=end />
                <ReturnAddress />
                <div class="submit">
                    <button type="submit" class="button button-primary" data-busy="Scheduling runs...">
                        {verb}
                    </button>
                </div>
            </ActionForm>
            <ApiRequest call=request(found, preview) />
        </div>
    }
    .into_any()
}

fn request(found: &ExportHead, preview: &Preview) -> ApiCall {
    let body = serde_json::json!({"start_at": preview.start_at, "end_at": preview.end_at});
    call("POST", found, "backfill/").with(body)
}

fn listed(list: BackfillList, found: &ExportHead) -> AnyView {
    if list.backfills.is_empty() {
        return view! { <p class="faint">"No backfill yet."</p> }.into_any();
    }
    let columns = vec![
        Column::text("Range"),
        Column::text("Status"),
        Column::number("Records"),
        Column::text("Created"),
        Column::text(ACTIONS),
    ];
    let older = list.backfills.last().filter(|_| list.has_more).map(|backfill| {
        let cursor = backfill.id.to_string();
        let href = with_query(&[("cursor", Some(cursor.as_str()))]);
        view! { <p><a class="button" rel="next" href=href>"Older backfills"</a></p> }
    });
    let rows = list.backfills.iter().map(|backfill| entry(backfill, found)).collect();
    // The file has all backfills, whatever is planned.
    let file =
        format!("{}/backfill", export_path(&found.organization.id, &found.export.id.to_string()));
    view! {
        <Table caption="Backfills, newest first" columns=columns rows=rows />
        {older}
        <p><DownloadCsv page=file /></p>
    }
    .into_any()
}

fn entry(backfill: &Backfill, found: &ExportHead) -> TableRow {
    let (tone, label) = words::status(backfill.status);
    let progress = backfill.progress.filter(|_| backfill.status.is_active()).map(|progress| {
        let (done, total) = (progress.finished_runs, progress.total_runs);
        view! { <Progress done=done total=Some(total) label="Runs" /> }
    });
    let records = backfill.total_records_count.and_then(|count| u64::try_from(count).ok());
    let records = records.map_or_else(|| "-".to_owned(), grouped);
    let cancel = backfill.status.is_active().then(|| cancel(backfill, found));
    TableRow::new(vec![
        range::of_backfill(backfill),
        cell(view! { <Status tone=tone label=label /> {progress} }),
        cell(records),
        cell(view! { <Ago iso=backfill.created_at.to_string() /> }),
        cell(cancel),
    ])
}

fn cancel(backfill: &Backfill, found: &ExportHead) -> AnyView {
    let cancel = form_action::<CancelBackfill>();
    let (organization, export) = (found.organization.id.clone(), found.export.id.to_string());
    let of = format!("the backfill of {}", backfill.created_at);
    let backfill = backfill.id.to_string();
    let call = call("POST", found, &format!("backfills/{backfill}/cancel/"));
    let dialog = format!("cancel-{backfill}");
    let (opened, buttons) = (dialog.clone(), dialog.clone());
    view! {
        <RowMenu of=of>
            <OpenDialog id=opened label="Cancel..." />
        </RowMenu>
        <ConfirmDialog id=dialog title="Cancel the backfill?">
            <ActionForm action=cancel>
                <p>"The current run ends now, and no other run follows. Delivered rows stay at the destination."</p>
                <input type="hidden" name="organization" value=organization />
                <input type="hidden" name="export" value=export />
                <input type="hidden" name="backfill" value=backfill />
                <ReturnAddress />
                <ConfirmButtons id=buttons verb="Cancel backfill" busy="Cancelling backfill..." />
            </ActionForm>
            <ApiRequest call=call />
        </ConfirmDialog>
    }
    .into_any()
}
