//! Actions with effects beyond the plugin: sharing it with all organizations, and
//! removing it.

use leptos::prelude::*;
use serde_json::json;

use super::api_call;
use crate::server_fns::plugins::views::PluginDetail;
use crate::server_fns::plugins::{OfferPlugin, RemovePlugin};
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiRequest;
use crate::ui::confirm::{Confirm, TypedConfirm};
use crate::ui::form::{FormResult, ReturnAddress};
use crate::ui::form_action::{ActionForm, FormAction};
use crate::ui::number::counted;
use crate::ui::sections::Section;

/// Shares the plugin with all organizations, or ends that.
pub(super) fn offering(
    found: &PluginDetail,
    organization: &str,
    offer: FormAction<OfferPlugin>,
) -> AnyView {
    let (organization, id) = (organization.to_owned(), found.line.id.clone());
    let (title, text, verb, busy) = match found.line.is_global {
        false => (
            "Offer to all organizations",
            "Every organization of this instance can then use it. It runs on their events.",
            "Offer plugin",
            "Offering plugin...",
        ),
        true => (
            "Withdraw from other organizations",
            "Other organizations can no longer add it. Their existing configs continue to work.",
            "Withdraw plugin",
            "Withdrawing plugin...",
        ),
    };
    let call = api_call("PATCH", &organization, &found.line, "");
    let call = call.with(json!({"is_global": !found.line.is_global}));
    let offered = (!found.line.is_global).then(|| {
        view! { <input type="hidden" name="offered" value="on" /> }
    });
    view! {
        <Section id="offering" title=title>
            <p>{text}</p>
            <Confirm button=verb>
                <ActionForm action=offer>
                    <p>{text}</p>
                    <input type="hidden" name="organization" value=organization />
                    <input type="hidden" name="plugin" value=id />
                    {offered}
                    <ReturnAddress />
                    <button type="submit" class="button button-primary" data-busy=busy>
                        {verb}
                    </button>
                </ActionForm>
                <ApiRequest call=call />
            </Confirm>
        </Section>
    }
    .into_any()
}

/// Removes the plugin: the consequences, and a field for the name.
pub(super) fn removal(
    found: &PluginDetail,
    organization: &str,
    remove: FormAction<RemovePlugin>,
    result: FormResult,
) -> AnyView {
    if found.line.is_global {
        return view! {
            <Section id="removal" title="Remove plugin" danger=true>
                <p>"It is offered to all organizations. Withdraw it before removing it."</p>
            </Section>
        }
        .into_any();
    }
    let call = api_call("DELETE", organization, &found.line, "");
    let (organization, id) = (organization.to_owned(), found.line.id.clone());
    let name = found.line.name.trim().to_owned();
    let used = found
        .uses
        .iter()
        .map(|one| {
            let named = one.name.clone().unwrap_or_else(|| found.line.name.clone());
            view! { <li>"The config " <strong>{named}</strong> " of " {one.project_name.clone()}</li> }
        })
        .collect_view();
    let kept = (!found.uses.is_empty()).then(|| {
        view! { <p>"Configs are deleted with their settings, secrets, files, storage and logs."</p> }
    });
    let elsewhere = (found.elsewhere > 0).then(|| {
        let count = u64::try_from(found.elsewhere).unwrap_or(u64::MAX);
        view! { <li>{counted(count, "config", "configs")} " of other organizations"</li> }
    });
    view! {
        <Section id="removal" title="Remove plugin" danger=true>
            <Alert kind="warning">
                <p>"This cannot be undone. It deletes:"</p>
                <ul>
                    <li>"Its source"</li>
                    {used}
                    {elsewhere}
                </ul>
                {kept}
            </Alert>
            <ActionForm action=remove>
                <input type="hidden" name="organization" value=organization />
                <input type="hidden" name="plugin" value=id />
                <ReturnAddress />
                <TypedConfirm result=result name_to_type=name label="Name of the plugin"
                    verb="Remove plugin" busy="Removing plugin..." />
            </ActionForm>
            <ApiRequest call=call of="remove" />
        </Section>
    }
    .into_any()
}
