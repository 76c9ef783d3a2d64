//! One organization: its settings, and links to the pages of members, invites, domains
//! and activity.

pub(crate) mod activity;
#[cfg(feature = "ssr")]
pub(crate) mod activity_fields;
pub(crate) mod activity_words;
pub(crate) mod domain;
mod domain_rules;
mod domain_saml;
pub(crate) mod domain_scim;
mod domain_setup;
pub(crate) mod domains;
mod ending;
mod invite_form;
pub(crate) mod invites;
mod limits;
pub(crate) mod members;

use futures::future::try_join5;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::id_in_path;
use super::organizations::members as counted_members;
use crate::server_fns::limits::get_organization_limits;
use crate::server_fns::members::list_members_without_2fa;
use crate::server_fns::organizations::{
    EnforceSecondFactor, OrganizationView, RenameOrganization, SetJoinMail, get_organization,
    get_organization_stake, has_one_organization,
};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::Confirm;
use crate::ui::copy::CopyValue;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::ReadOnly;
use crate::ui::field::{Check, Field};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::{Section, SubNav, Tab};
use crate::ui::status::{Status, Tone};
use crate::ui::time::Ago;

const TITLE: &str = "Organization settings";
/// Explains to other members who can change the settings.
const FOR_ADMINISTRATORS: &str = "Administrators and owners can change this.";
/// What members of each level may do.
const LEVELS: &str = "Members work on projects. Administrators also change members and settings. Owners may do everything.";
/// Limit of names in a preview.
const NAMED: usize = 20;

#[component]
pub(crate) fn Organization() -> impl IntoView {
    page(
        TITLE,
        id_in_path,
        |id| async move {
            let (found, without, stake, is_only, limits) = try_join5(
                get_organization(id.clone()),
                list_members_without_2fa(id.clone()),
                get_organization_stake(id.clone()),
                has_one_organization(),
                get_organization_limits(id),
            )
            .await?;
            let is_only = is_only && found.may_delete;
            Ok((found, without, stake, is_only, limits))
        },
        |id, (found, without, stake, is_only, limits)| {
            view! {
            <PageHead title=TITLE within=found.name.clone() />
            <Tabs id=id />
            <General organization=found.clone() />
            <JoinMail organization=found.clone() />
            <SecondFactor organization=found.clone() without=without />
            <Projects organization=found.clone() />
            <limits::Limits limits=limits />
            <Features features=found.features.clone() />
            {if found.may_delete {
                view! { <ending::Ending organization=found stake=stake is_only=is_only /> }.into_any()
            } else {
                view! { <ReadOnly why="Owners can delete the organization." /> }.into_any()
            }}
        }
        .into_any()
        },
    )
}

/// Links between the pages of an organization.
#[component]
fn Tabs(
    /// Id of the organization.
    id: String,
) -> impl IntoView {
    let tab = |path: &str, label: &str| Tab::new(format!("/organizations/{id}{path}"), label);
    let tabs = vec![
        tab("", "General"),
        tab("/members", "Members"),
        tab("/invites", "Invites"),
        tab("/domains", "Domains"),
        tab("/activity", "Activity"),
    ];
    view! { <SubNav label="Organization" tabs=tabs /> }
}

/// Names for a preview: the first few, and the number of others.
fn named(names: &[String]) -> AnyView {
    let more = names.len().saturating_sub(NAMED);
    let first = names.iter().take(NAMED).map(|name| view! { <li class="wrap">{name.clone()}</li> });
    view! {
        <ul>
            {first.collect_view()}
            {(more > 0).then(|| view! { <li>{format!("and {} more", grouped(more as u64))}</li> })}
        </ul>
    }
    .into_any()
}

#[component]
fn General(organization: OrganizationView) -> impl IntoView {
    let members = counted_members(&organization.members);
    let href = format!("/organizations/{}/members", organization.id);
    let OrganizationView { id, name, slug, created_at, level, may_change, .. } = organization;
    view! {
        <Section id="general" title="General">
            {if may_change {
                view! { <RenameForm id=id.clone() name=name /> }.into_any()
            } else {
                view! { <p>{name}</p><ReadOnly why=FOR_ADMINISTRATORS /> }.into_any()
            }}
            <dl class="facts">
                <dt>"Short name"</dt>
                <dd><code>{slug}</code></dd>
                <dt>"Id"</dt>
                <dd><CopyValue text=id what="organization id" /></dd>
                <dt>"Members"</dt>
                <dd><a href=href>{members}</a></dd>
                <dt>"Your level"</dt>
                <dd>{level}</dd>
                <dt>"Created"</dt>
                <dd><Ago iso=created_at /></dd>
            </dl>
        </Section>
    }
}

/// The request that changes the organization.
fn patch(id: &str, body: Value) -> ApiCall {
    ApiCall {
        method: "PATCH",
        path: format!("/api/organizations/{id}/"),
        scope: "organization:write",
        body: Some(body),
    }
}

#[component]
fn RenameForm(id: String, name: String) -> impl IntoView {
    let rename = form_action::<RenameOrganization>();
    let result = form_result(rename);
    let call = patch(&id, json!({"name": "{name}"}));
    view! {
        <ActionForm action=rename>
            <FormFailure result=result fields=&["name"] />
            <ShownValues result=result values=vec![("name".to_owned(), name.clone())] />
            <input type="hidden" name="id" value=id />
            <ReturnAddress />
            <Field result=result name="name" label="Name" max=64 value=name />
            <Submit result=result label="Save name" busy="Saving name..." saved="Saved" />
            <ApiRequest call=call />
        </ActionForm>
    }
}

#[component]
fn JoinMail(organization: OrganizationView) -> impl IntoView {
    let set = form_action::<SetJoinMail>();
    let result = form_result(set);
    let OrganizationView { id, mails_joins, may_change, .. } = organization;
    let call = patch(&id, json!({"is_member_join_email_enabled": "{enabled}"}));
    view! {
        <Section id="joining" title="Mail when a member joins">
            {if may_change {
                view! {
                    <ActionForm action=set>
                        <FormFailure result=result />
                        <input type="hidden" name="id" value=id />
                        <ReturnAddress />
                        <Check result=result name="enabled" label="Notify members by mail when a member joins"
                            hint="Needs mail to be set up on this instance." checked=mails_joins />
                        <Submit result=result label="Save mail setting" busy="Saving mail setting..." saved="Saved" />
                        <ApiRequest call=call />
                    </ActionForm>
                }
                .into_any()
            } else {
                let state = if mails_joins { "Members get an e-mail." } else { "No mail is sent." };
                view! { <p>{state}</p><ReadOnly why=FOR_ADMINISTRATORS /> }.into_any()
            }}
        </Section>
    }
}

/// Requires a second factor of all members. Lists the members without one.
#[component]
fn SecondFactor(organization: OrganizationView, without: Vec<String>) -> impl IntoView {
    let OrganizationView { id, enforces_2fa, may_change, .. } = organization;
    let state = if enforces_2fa {
        view! { <Status tone=Tone::Good label="Required" /> }.into_any()
    } else {
        view! { <Status tone=Tone::Quiet label="Not required" /> }.into_any()
    };
    view! {
        <Section id="second-factor" title="Two-step sign-in"
            hint="A code from an app or a passkey, in addition to the password. API keys continue to work without one.">
            <p>{state}</p>
            {if may_change {
                view! { <EnforceForm id=id enforces=enforces_2fa without=without /> }.into_any()
            } else {
                view! { <ReadOnly why=FOR_ADMINISTRATORS /> }.into_any()
            }}
        </Section>
    }
}

#[component]
fn EnforceForm(id: String, enforces: bool, without: Vec<String>) -> impl IntoView {
    let enforce = form_action::<EnforceSecondFactor>();
    let result = form_result(enforce);
    let touched = match without.len() {
        0 => view! { <p>"Every member uses two-step sign-in."</p> }.into_any(),
        1 => {
            view! { <p>"One member does not use two-step sign-in:"</p>{named(&without)} }.into_any()
        }
        count => {
            let members = counted(count as u64, "member", "members");
            view! { <p>{members} " do not use two-step sign-in:"</p>{named(&without)} }.into_any()
        }
    };
    let (opener, consequence, verb, busy) = if enforces {
        (
            "Stop requiring it",
            "Members can sign in with their password alone again, unless they keep two-step sign-in on.",
            "Stop requiring two-step sign-in",
            "Removing the requirement...",
        )
    } else {
        (
            "Require two-step sign-in",
            "Members without two-step sign-in have to set it up before they can continue. That includes you.",
            "Require it of all members",
            "Requiring two-step sign-in...",
        )
    };
    let call = patch(&id, json!({"enforce_2fa": !enforces}));
    view! {
        <FormFailure result=result />
        <Confirm button=opener>
            <ActionForm action=enforce>
                {touched}
                <p>{consequence}</p>
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="enforce" value=(!enforces).to_string() />
                <ReturnAddress />
                <button type="submit" class="button button-primary" data-busy=busy>{verb}</button>
            </ActionForm>
        </Confirm>
        <ApiRequest call=call />
    }
}

#[component]
fn Projects(organization: OrganizationView) -> impl IntoView {
    let is_empty = organization.projects.is_empty();
    let new = format!("/organizations/{}/projects/new", organization.id);
    let file = (!is_empty).then(|| view! { <DownloadCsv /> });
    let adding = match organization.may_change {
        true => view! { <a class="button" href=new>"New project"</a> }.into_any(),
        false => {
            view! { <ReadOnly why="Administrators and owners can add projects." /> }.into_any()
        }
    };
    let projects = organization
        .projects
        .into_iter()
        .map(|(id, name, _)| {
            view! { <li><a href=format!("/projects/{id}/settings")>{name}</a></li> }
        })
        .collect_view();
    view! {
        <Section id="projects" title="Projects">
            {is_empty.then(|| view! { <p>"No project yet. Events go into a project."</p> })}
            <ul class="links">{projects}</ul>
            <div class="organization-foot page-actions">{file} {adding}</div>
        </Section>
    }
}

#[component]
fn Features(features: Vec<String>) -> impl IntoView {
    let features =
        features.into_iter().map(|name| view! { <li class="chip">{name}</li> }).collect_view();
    view! {
        <Section id="features" title="Features" hint="Included in this version, without a licence. API clients read this list.">
            <ul class="chips">{features}</ul>
        </Section>
    }
}
