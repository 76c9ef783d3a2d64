//! The lists of an organization: projects, members, invites, domains, plugins.

use weir_app::filters;
use weir_model::domains::DomainDetails;
use weir_model::invites::{Invite, expires_at};
use weir_model::members::Member;
use weir_model::plugins::PluginList;
use weir_model::projects::ProjectBrief;
use weir_service::Error as ServiceError;
use weir_service::error::NOT_FOUND;
use weir_service::plugins::ListedPlugin;

use super::{Asked, Organization};
use crate::web::csv::{Column, CsvList, by_offset, one_page, optional};

const PROJECTS: &[Column<ProjectBrief>] = &[
    ("id", |it| it.id.to_string()),
    ("name", |it| it.name.clone()),
    ("time_zone", |it| it.timezone.clone()),
    ("receives_events", |it| it.ingested_event.to_string()),
];

const MEMBERS: &[Column<Member>] = &[
    ("id", |it| it.user.uuid.to_string()),
    ("first_name", |it| it.user.first_name.clone()),
    ("last_name", |it| it.user.last_name.clone()),
    ("email", |it| it.user.email.clone()),
    ("level", |it| it.level.text().to_owned()),
    ("two_step_sign_in", |it| it.is_2fa_enabled.to_string()),
    ("provider_linked", |it| it.has_social_auth.to_string()),
    ("joined", |it| it.joined_at.to_string()),
    ("last_sign_in", |it| optional(it.last_login.as_ref())),
];

const INVITES: &[Column<Invite>] = &[
    ("email", |it| it.target_email.clone()),
    ("first_name", |it| it.first_name.clone()),
    ("level", |it| it.level.text().to_owned()),
    ("invited_by", |it| optional(it.created_by.as_ref().map(|user| &user.email))),
    ("sent", |it| it.created_at.to_string()),
    ("expires", |it| expires_at(it.created_at).to_string()),
    ("expired", |it| it.is_expired.to_string()),
    ("mailed", |it| it.emailing_attempt_made.to_string()),
];

const DOMAINS: &[Column<DomainDetails>] = &[
    ("id", |it| it.domain.id.to_string()),
    ("domain", |it| it.domain.domain.clone()),
    ("verified", |it| optional(it.domain.verified_at.as_ref())),
    ("record_missing_since", |it| optional(it.verification_failing_since.as_ref())),
    ("rules_suspended", |it| it.is_suspended.to_string()),
    ("just_in_time_provisioning", |it| it.domain.jit_provisioning_enabled.to_string()),
    ("single_sign_on", |it| it.domain.sso_enforcement.text().to_owned()),
    ("saml", |it| it.domain.has_saml.to_string()),
];

const PLUGINS: &[Column<ListedPlugin>] = &[
    ("id", |it| it.plugin.id.to_string()),
    ("name", |it| optional(it.plugin.fields.name.as_ref())),
    ("description", |it| optional(it.plugin.fields.description.as_ref())),
    ("code_from", |it| optional(it.plugin.fields.url.as_ref())),
    ("version", |it| optional(it.plugin.fields.tag.as_ref())),
    ("newest_version", |it| optional(it.plugin.fields.latest_tag.as_ref())),
    ("organization", |it| optional(it.plugin.fields.organization_name.as_ref())),
    ("for_all_organizations", |it| it.plugin.fields.is_global.to_string()),
    ("unused", |it| it.is_unused.to_string()),
];

pub(super) fn projects(within: Organization) -> CsvList {
    let name = within.name.clone();
    let pages = by_offset(move |page| {
        let Organization { services, org, .. } = within.clone();
        async move { services.projects.list_in(&org, page).await }
    });
    CsvList::new("projects", &name, PROJECTS, pages)
}

pub(super) fn members(asked: &Asked<'_>, within: Organization) -> CsvList {
    let name = within.name.clone();
    let query = filters::members(&asked.value("search"));
    let pages = by_offset(move |page| {
        let (Organization { services, org, .. }, query) = (within.clone(), query.clone());
        async move { services.members.list(&org, &query, page).await }
    });
    CsvList::new("members", &name, MEMBERS, pages)
}

pub(super) fn invites(within: Organization) -> CsvList {
    let name = within.name.clone();
    let pages = by_offset(move |page| {
        let Organization { services, org, .. } = within.clone();
        async move { services.invites.list(&org, page).await }
    });
    CsvList::new("invites", &name, INVITES, pages)
}

pub(super) fn domains(within: Organization) -> CsvList {
    let name = within.name.clone();
    let pages = by_offset(move |page| {
        let Organization { services, org, .. } = within.clone();
        async move { services.domains.list(&org, page).await }
    });
    CsvList::new("domains", &name, DOMAINS, pages)
}

pub(super) async fn plugins(
    within: Organization,
    plugin_list: &str,
) -> Result<CsvList, ServiceError> {
    let plugin_list = PluginList::of(plugin_list).ok_or(ServiceError::NotFound(NOT_FOUND))?;
    let found = within.services.plugins.find_listed(&within.org, plugin_list).await?;
    let list = format!("plugins-{}", plugin_list.text());
    Ok(CsvList::new(&list, &within.name, PLUGINS, one_page(found)))
}
