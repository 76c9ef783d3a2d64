//! One organization: its name, its projects, its end.

use leptos::prelude::*;

use super::id_in_path;
use super::organizations::members;
use crate::server_fns::organizations::{
    DeleteOrganization, OrganizationView, RenameOrganization, get_organization,
};
use crate::ui::alert::Alert;
use crate::ui::copy::CopyValue;
use crate::ui::field::Field;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page::{PageHead, page};
use crate::ui::time::Time;

const TITLE: &str = "Organization settings";

/// The settings.
#[component]
pub(crate) fn Organization() -> impl IntoView {
    let id = id_in_path();
    page(TITLE, async move {
        let found = get_organization(id).await?;
        Ok(view! {
            <PageHead title=TITLE within=found.name.clone() />
            <Settings organization=found />
        }
        .into_any())
    })
}

#[component]
fn Settings(organization: OrganizationView) -> impl IntoView {
    let projects = organization
        .projects
        .iter()
        .map(|(id, name, _)| {
            view! { <li><a href=format!("/projects/{id}/settings")>{name.clone()}</a></li> }
        })
        .collect_view();
    let OrganizationView { id, name, slug, created_at, level, .. } = organization.clone();
    let members = members(&organization.members);
    view! {
        <section class="card" aria-labelledby="general">
            <h2 id="general">"General"</h2>
            {match organization.may_change {
                true => view! { <RenameForm id=id.clone() name=name.clone() /> }.into_any(),
                false => view! {
                    <p>{name.clone()}</p>
                    <p class="hint">"Administrators and owners can change the name."</p>
                }.into_any(),
            }}
            <dl class="facts">
                <dt>"Short name"</dt>
                <dd><code>{slug}</code></dd>
                <dt>"Id"</dt>
                <dd><CopyValue text=id.clone() what="organization id" /></dd>
                <dt>"Members"</dt>
                <dd>{members}</dd>
                <dt>"Your level"</dt>
                <dd>{level}</dd>
                <dt>"Created"</dt>
                <dd><Time iso=created_at /></dd>
            </dl>
        </section>
        <section class="card" aria-labelledby="projects">
            <h2 id="projects">"Projects"</h2>
            <ul class="links">{projects}</ul>
        </section>
        {match organization.may_delete {
            true => view! { <Ending organization=organization /> }.into_any(),
            false => view! { <p class="hint">"Owners can delete the organization."</p> }.into_any(),
        }}
    }
}

#[component]
fn RenameForm(id: String, name: String) -> impl IntoView {
    let rename = ServerAction::<RenameOrganization>::new();
    let sent = sent(rename);
    view! {
        <ActionForm action=rename>
            <FormFailure sent=sent fields=&["name"] />
            <input type="hidden" name="id" value=id />
            <Back />
            <Field sent=sent name="name" label="Name" max=64 value=name />
            <Submit sent=sent label="Save name" busy="Saving name..." saved="Saved" />
        </ActionForm>
    }
}

/// Deleting: what goes, and the name to type. The server checks the name;
/// scripts hold the button back until it fits.
#[component]
fn Ending(organization: OrganizationView) -> impl IntoView {
    let delete = ServerAction::<DeleteOrganization>::new();
    let sent = sent(delete);
    let gone = organization
        .projects
        .iter()
        .map(|(_, name, has_events)| {
            let what =
                if *has_events { "with its key and all of its events" } else { "with its key" };
            view! { <li>"The project " <strong>{name.clone()}</strong> " " {what}</li> }
        })
        .collect_view();
    let name = organization.name;
    view! {
        <section class="card card-danger" aria-labelledby="ending">
            <h2 id="ending">"Delete organization"</h2>
            <Alert kind="warning">
                <p>"This cannot be undone. What goes:"</p>
                <ul>
                    {gone}
                    <li>"The membership of " {members(&organization.members)}</li>
                </ul>
                <p>"Project keys stop working at once."</p>
            </Alert>
            <ActionForm action=delete>
                <FormFailure sent=sent fields=&["typed_name"] />
                <input type="hidden" name="id" value=organization.id />
                <Back />
                <p>"To delete it, type its name: " <strong class="typed-name">{name.clone()}</strong></p>
                <Field sent=sent name="typed_name" label="Name of the organization" max=64 must_equal=name />
                <div class="submit">
                    <button
                        type="submit"
                        class="button button-danger"
                        aria-describedby="delete-why"
                        data-busy="Deleting organization..."
                        data-guarded=""
                    >
                        "Delete organization"
                    </button>
                    <span id="delete-why" class="hint" data-guard-why=""></span>
                </div>
            </ActionForm>
        </section>
    }
}
