//! Deletes a config: hiding it, which can be undone, and permanent deletion.

use leptos::prelude::*;
use serde_json::json;

use super::actions::hiding;
use super::calls;
use crate::server_fns::plugin_configs::views::ConfigDetail;
use crate::server_fns::plugin_configs::{DeletePluginConfig, HidePluginConfig};
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiRequest;
use crate::ui::confirm::TypedConfirm;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::sections::Section;

/// The last section of the config page.
pub(super) fn ending(project: i64, found: &ConfigDetail) -> AnyView {
    let hide = form_action::<HidePluginConfig>();
    let hidden = form_result(hide);
    let id = found.line.id.clone();
    let hiding = (!found.line.deleted).then(|| {
        let follows = "It is switched off and removed from the list. Its settings stay, so that you can restore it.";
        let call = calls::change(project, &id, json!({"deleted": true}));
        view! {
            {hiding(project, &found.line, Some(follows), hide)}
            <ApiRequest call=call of="delete" />
        }
    });
    let name = found.line.name.trim().to_owned();
    let label = match found.line.transforms {
        true => "Name of the transformation",
        false => "Name of the settings",
    };
    view! {
        <Section id="ending" title="Delete" danger=true>
            <FormFailure result=hidden />
            {hiding}
            <ForGood project=project config=id name=name label=label />
        </Section>
    }
    .into_any()
}

/// Deletes the config permanently: the consequences, and a field for the name.
#[component]
fn ForGood(project: i64, config: String, name: String, label: &'static str) -> impl IntoView {
    let delete = form_action::<DeletePluginConfig>();
    let result = form_result(delete);
    let call = calls::call("DELETE", project, &format!("{config}/"));
    view! {
        <Alert kind="warning">
            <p>"Deleting permanently cannot be undone. It deletes:"</p>
            <ul>
                <li>"Its settings and secrets"</li>
                <li>"Its files and its storage"</li>
                <li>"Its log and waiting jobs"</li>
            </ul>
        </Alert>
        <ActionForm action=delete>
            <FormFailure result=result fields=&["typed_name"] />
            <input type="hidden" name="project" value=project.to_string() />
            <input type="hidden" name="config" value=config />
            <ReturnAddress />
            <TypedConfirm result=result name_to_type=name label=label
                verb="Delete permanently" busy="Deleting permanently..." />
        </ActionForm>
        <ApiRequest call=call of="delete permanently" />
    }
}
