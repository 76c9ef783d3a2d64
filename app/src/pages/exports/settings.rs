//! Settings of an export: editing, resuming, deletion.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;
use server_fn::ServerFn;
use weir_model::exports::destinations::DestinationType;

use super::calls::call;
use super::fields::Begin;
use super::form::{Shape, form};
use super::{export_in_path, head};
use crate::error::UiError;
use crate::local_path;
use crate::pages::id_in_path;
use crate::server_fns::exports::config::shown;
use crate::server_fns::exports::form::{TestExport, UpdateExport, get_export_secrets};
use crate::server_fns::exports::{
    DeleteExport, ExportHead, PauseExport, UnpauseExport, get_export,
};
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiRequest;
use crate::ui::confirm::TypedConfirm;
use crate::ui::field::Check;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action, has_failed_form};
use crate::ui::number::Id;
use crate::ui::page::page;
use crate::ui::sections::Section;
use crate::ui::time::{Ago, Time};

const TITLE: &str = "Settings";

#[component]
pub(crate) fn ExportSettings() -> impl IntoView {
    page(
        TITLE,
        || (id_in_path(), export_in_path()),
        |(organization, export)| load(organization, export, has_failed_form()),
        |_, (found, set)| draw(&found, set),
    )
}

/// The export, and the paths of the secrets that are set.
async fn load(
    organization: String,
    export: String,
    failed: bool,
) -> Result<(ExportHead, Vec<String>), UiError> {
    let (found, set) = try_join(
        get_export(organization.clone(), export.clone()),
        get_export_secrets(organization, export, failed),
    )
    .await?;
    // An export of a newer version can have a destination that this version does not know.
    if kind(&found).is_none() {
        let detail = "This version of Weir does not know the destination.";
        return Err(UiError::form("unknown", detail));
    }
    Ok((found, set))
}

fn kind(found: &ExportHead) -> Option<&'static DestinationType> {
    DestinationType::of(&found.export.destination.kind)
}

fn draw(found: &ExportHead, set: Vec<String>) -> AnyView {
    let saved = form_result(form_action::<UpdateExport>());
    let tested = form_result(form_action::<TestExport>());
    let form = kind(found).map(|kind| {
        let values = Some(shown(kind, &found.export.destination.config));
        let shape = Shape {
            organization: found.organization.clone(),
            kind,
            export: Some(found.export.clone()),
            begin: Begin { values, set },
            saves: UpdateExport::PATH,
            tries: TestExport::PATH,
        };
        form(shape, saved, tested)
    });
    view! {
        {head(found, TITLE)}
        {(!found.recent_sign_in).then(|| confirm_first(found))}
        {form}
        {pausing(found)}
        {history(found)}
        {ending(found)}
    }
    .into_any()
}

/// Asks for the password before the form. Otherwise a user with an old sign-in would lose
/// the typed values when they send it.
fn confirm_first(found: &ExportHead) -> AnyView {
    let path = super::export_path(&found.organization.id, &found.export.id.to_string());
    let next = local_path::encode(&format!("{path}/settings"));
    view! {
        <Alert kind="note">
            <p>
                "To change or test the destination, confirm your password first. Name and schedule can be changed without it. "
                <a href=format!("/login/again?next={next}")>"Confirm password"</a>
            </p>
        </Alert>
    }
    .into_any()
}

fn ids(found: &ExportHead) -> AnyView {
    view! {
        <input type="hidden" name="organization" value=found.organization.id.clone() />
        <input type="hidden" name="export" value=found.export.id.to_string() />
        <ReturnAddress />
    }
    .into_any()
}

fn pausing(found: &ExportHead) -> AnyView {
    let pause = form_action::<PauseExport>();
    let unpause = form_action::<UnpauseExport>();
    let unpaused = form_result(unpause);
    let ids = ids(found);
    let content = if found.export.paused {
        let since = found.export.last_paused_at.map(|time| {
            view! { <p>"Paused since " <Time iso=time.to_string() /> "."</p> }
        });
        let call = call("POST", found, "unpause/").with(json!({"backfill": "{backfill}"}));
        view! {
            {since}
            <ActionForm action=unpause>
                {ids}
                <Check result=unpaused name="backfill" label="Export the missed events"
                    hint="A backfill from the start of the interval in which it was paused." />
                <div class="submit">
                    <button type="submit" class="button" data-busy="Unpausing export...">
                        "Unpause export"
                    </button>
                </div>
                <ApiRequest call=call />
            </ActionForm>
        }
        .into_any()
    } else {
        let call = call("POST", found, "pause/");
        view! {
            <p>"While it is paused, its schedule starts no runs, and current runs continue. Events stay in Weir as long as the project keeps them."</p>
            <ActionForm action=pause>
                {ids}
                <div class="submit">
                    <button type="submit" class="button" data-busy="Pausing export...">
                        "Pause export"
                    </button>
                </div>
                <ApiRequest call=call />
            </ActionForm>
        }
        .into_any()
    };
    view! { <Section id="pausing" title="Pausing">{content}</Section> }.into_any()
}

fn history(found: &ExportHead) -> AnyView {
    let export = &found.export;
    let id = export.id.to_string();
    let activity =
        format!("/organizations/{}/activity?kind=BatchExport&item={id}", found.organization.id);
    let (created, changed) = (export.created_at.to_string(), export.last_updated_at.to_string());
    view! {
        <Section id="history" title="History">
            <dl class="facts">
                <dt>"Id"</dt>
                <dd><Id text=id what="export id" /></dd>
                <dt>"Created"</dt>
                <dd><Ago iso=created /></dd>
                <dt>"Last changed"</dt>
                <dd><Ago iso=changed /></dd>
            </dl>
            <p><a href=activity>"Changes of this export"</a></p>
        </Section>
    }
    .into_any()
}

fn ending(found: &ExportHead) -> AnyView {
    let delete = form_action::<DeleteExport>();
    let result = form_result(delete);
    let (ids, name) = (ids(found), found.export.name.clone());
    let call = call("DELETE", found, "");
    view! {
        <Section id="ending" title="Delete export" danger=true>
            <p>
                "Deletes the export with its runs, backfills and logs, and ends runs in progress. This cannot be undone. Delivered rows stay at the destination, and events stay in Weir."
            </p>
            <ActionForm action=delete>
                <FormFailure result=result fields=&["typed_name"] />
                {ids}
                <TypedConfirm result=result name_to_type=name
                    label="Name of the export" verb="Delete export" busy="Deleting export..." />
            </ActionForm>
            <ApiRequest call=call />
        </Section>
    }
    .into_any()
}
