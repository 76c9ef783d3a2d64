//! Adds a plugin: from the catalogue, from another host, from an archive, or with source
//! written in the app.

use leptos::prelude::*;
use serde_json::json;
use weir_model::plugins::{ARCHIVE_MAX, NAME_MAX, PluginList, URL_MAX};

use super::list_labels::ListLabels;
use crate::pages::{id_in_path, in_path};
use crate::server_fns::plugins::views::{CatalogueView, OfferView};
use crate::server_fns::plugins::{InstallPlugin, WritePlugin, list_catalogue, plugin_path};
use crate::ui::api_request::{ApiCall, ApiRequest, ApiUpload};
use crate::ui::bytes;
use crate::ui::empty::{NoMatch, ReadOnly};
use crate::ui::field::{Field, FieldFrame, Ties};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::page::{PageHead, page_with_title};
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::sections::Section;

/// The API request that adds a plugin to this list.
fn call(organization: &str, plugin_list: &str) -> ApiCall {
    // An unknown list has no page, so this default is never shown.
    let group = PluginList::of(plugin_list).unwrap_or(PluginList::Destinations).group().text();
    ApiCall::new("POST", format!("/api/organizations/{organization}/{group}/"), "plugin:write")
}

#[component]
pub(crate) fn PluginAdd() -> impl IntoView {
    page_with_title(
        || ListLabels::of(&in_path("list")).add,
        || (id_in_path(), in_path("list"), in_query("search")),
        |(organization, plugin_list, search)| list_catalogue(organization, plugin_list, search),
        draw,
    )
}

fn draw(
    (organization, plugin_list, search): (String, String, String),
    found: CatalogueView,
) -> AnyView {
    let install = form_action::<InstallPlugin>();
    let installed = form_result(install);
    let labels = ListLabels::of(&plugin_list);
    let CatalogueView { organization_name, read_only_reason, offers } = found;
    let list = format!("/organizations/{organization}/plugins/{plugin_list}");
    let content = match read_only_reason {
        Some(why) => view! { <ReadOnly why=why /> }.into_any(),
        None => view! {
            <FormFailure result=installed fields=&["url", "archive"] />
            {catalogue(offers, &organization, &plugin_list, &search, install)}
            <FromAddress organization=organization.clone() plugin_list=plugin_list.clone() install=install />
            <FromArchive organization=organization.clone() plugin_list=plugin_list.clone() result=installed />
            <Written organization=organization plugin_list=plugin_list />
        }
        .into_any(),
    };
    view! {
        <PageHead title=labels.add within=organization_name />
        {content}
        <p><a href=list>"Back to " {labels.title}</a></p>
    }
    .into_any()
}

fn catalogue(
    offers: Vec<OfferView>,
    organization: &str,
    plugin_list: &str,
    search: &str,
    install: FormAction<InstallPlugin>,
) -> AnyView {
    if offers.is_empty() && search.is_empty() {
        return view! {
            <Section id="catalogue" title="From the catalogue">
                <p>"The catalogue has no plugin of this kind yet. Add one from elsewhere, or write your own."</p>
            </Section>
        }
        .into_any();
    }
    let first = offers.iter().find(|offer| offer.installed.is_none()).map(|offer| {
        let call = call(organization, plugin_list).with(json!({"url": offer.url}));
        let of = format!("add {}", offer.name);
        view! { <ApiRequest call=call of=of /> }
    });
    let found = if offers.is_empty() {
        let clear = with_query(&[("search", None)]);
        view! { <NoMatch filter=search.to_owned() clear=clear /> }.into_any()
    } else {
        let entries = offers
            .into_iter()
            .map(|entry| offer(entry, organization, plugin_list, install))
            .collect_view();
        view! { <ul class="plain offers">{entries}</ul> }.into_any()
    };
    let search = search.to_owned();
    view! {
        <Section id="catalogue" title="From the catalogue"
            hint="These come with Weir. Nothing is downloaded.">
            <FilterForm label="Search the catalogue">
                <div class="field">
                    <label for="search">"Name or purpose"</label>
                    <input id="search" name="search" type="search" value=search maxlength="100" />
                </div>
            </FilterForm>
            {found}
            {first}
        </Section>
    }
    .into_any()
}

fn offer(
    offer: OfferView,
    organization: &str,
    plugin_list: &str,
    install: FormAction<InstallPlugin>,
) -> AnyView {
    let OfferView { name, url, description, installed } = offer;
    let same_name = name.clone();
    let (home, list) = (organization.to_owned(), plugin_list.to_owned());
    let action = match installed {
        Some((plugin_list, id)) => {
            let path = plugin_path(organization, &plugin_list, &id);
            view! { <p><a href=path>"Added: open " {name.clone()}</a></p> }.into_any()
        }
        None => view! {
            <ActionForm action=install>
                <input type="hidden" name="organization" value=home />
                <input type="hidden" name="plugin_list" value=list />
                <input type="hidden" name="url" value=url />
                <ReturnAddress />
                <button type="submit" class="button" data-busy="Adding plugin...">
                    "Add"<span class="hidden">" " {same_name}</span>
                </button>
            </ActionForm>
        }
        .into_any(),
    };
    view! {
        <li class="offer">
            <div>
                <h3>{name}</h3>
                <p>{description}</p>
            </div>
            {action}
        </li>
    }
    .into_any()
}

/// Adds a plugin from a repository or package of another host.
#[component]
fn FromAddress(
    organization: String,
    plugin_list: String,
    install: FormAction<InstallPlugin>,
) -> impl IntoView {
    let result = form_result(install);
    let call = call(&organization, &plugin_list).with(json!({"url": "{url}"}));
    view! {
        <Section id="address" title="From another host"
            hint="The code is fetched once and stored. Nothing is upgraded automatically.">
            <ActionForm action=install>
                <input type="hidden" name="organization" value=organization />
                <input type="hidden" name="plugin_list" value=plugin_list />
                <ReturnAddress />
                <Field result=result name="url" label="Address" kind="url" max=URL_MAX
                    hint="A repository on github.com or gitlab.com, or a package on npmjs.com, such as https://www.npmjs.com/package/name." />
                <div class="field">
                    <label for="token">"Access token"</label>
                    <input id="token" name="token" type="password" autocomplete="off" maxlength="200"
                        aria-describedby="token-hint" />
                    <p class="hint" id="token-hint">
                        "Only for a private repository or package. It is encrypted and never shown again."
                    </p>
                </div>
                <Submit result=result label="Add from address" busy="Fetching plugin..." />
                <ApiRequest call=call of="add from an address" />
            </ActionForm>
        </Section>
    }
}

/// Adds a plugin from an archive with source files. It is a separate form because it
/// carries a file.
#[component]
fn FromArchive(organization: String, plugin_list: String, result: FormResult) -> impl IntoView {
    let hint = "A zip or a compressed tar with plugin.json and the code.";
    let ties = Ties::new("archive", hint, result);
    let most = bytes::text(u64::try_from(ARCHIVE_MAX).unwrap_or(u64::MAX));
    let call = call(&organization, &plugin_list);
    view! {
        <Section id="upload" title="From an archive" hint=format!("At most {most}.")>
            <form method="post" action="/_upload/plugin" enctype="multipart/form-data">
                <ReturnAddress />
                <input type="hidden" name="organization" value=organization />
                <input type="hidden" name="plugin_list" value=plugin_list />
                <FieldFrame ties=ties.clone() label="Archive">
                    <input
                        id="archive"
                        name="archive"
                        type="file"
                        required
                        accept=".zip,.tgz,.gz,.tar"
                        autofocus=result.has_focus("archive", false)
                        aria-describedby=ties.described_by()
                        aria-invalid=ties.invalid()
                    />
                </FieldFrame>
                <div class="submit">
                    <button type="submit" class="button button-primary" data-busy="Uploading archive...">
                        "Add from archive"
                    </button>
                </div>
                <ApiUpload call=call field="archive" file="plugin.zip" of="add from an archive" />
            </form>
        </Section>
    }
}

/// Creates a plugin whose source is written in the app.
#[component]
fn Written(organization: String, plugin_list: String) -> impl IntoView {
    let write = form_action::<WritePlugin>();
    let result = form_result(write);
    let call = call(&organization, &plugin_list);
    let call = call.with(json!({"plugin_type": "source", "name": "{name}"}));
    view! {
        <Section id="written" title="Written here"
            hint="Starts with a short working example that you edit in the browser.">
            <ActionForm action=write>
                <FormFailure result=result fields=&["name"] />
                <input type="hidden" name="organization" value=organization />
                <input type="hidden" name="plugin_list" value=plugin_list />
                <ReturnAddress />
                <Field result=result name="name" label="Name" max=NAME_MAX />
                <Submit result=result label="Write plugin" busy="Creating plugin..." />
                <ApiRequest call=call of="create one without files" />
            </ActionForm>
        </Section>
    }
}
