//! The lists of a user: organizations, API keys, messages and sessions. For staff, the
//! organizations of the instance.

use weir_model::limits::InstanceOrganization;
use weir_model::organizations::Organization;
use weir_service::Error as ServiceError;
use weir_service::identity::OwnSession;
use weir_service::keys::KeyOverview;
use weir_service::messages::Message;

use super::Asked;
use crate::web::csv::{Column, CsvList, by_offset, one_page, optional};

const ORGANIZATIONS: &[Column<Organization>] = &[
    ("id", |it| it.row.id.to_string()),
    ("name", |it| it.row.name.clone()),
    ("slug", |it| it.row.slug.clone()),
    ("level", |it| it.membership_level.text().to_owned()),
    ("members", |it| it.member_count.clone()),
    ("projects", |it| it.teams.len().to_string()),
    ("created", |it| it.row.created_at.to_string()),
];

const KEYS: &[Column<KeyOverview>] = &[
    ("id", |it| it.key.id.to_string()),
    ("label", |it| it.key.label.clone()),
    ("mask", |it| it.key.mask_value.clone().unwrap_or_default()),
    ("scopes", |it| joined(&it.key.scopes)),
    ("organizations", |it| joined(&it.key.scoped_organizations)),
    ("projects", |it| joined(&it.key.scoped_teams)),
    ("created", |it| it.key.created_at.to_string()),
    ("last_used", |it| {
        optional(it.usage.last.as_ref().map(|call| call.at).or(it.key.last_used_at).as_ref())
    }),
    ("expires", |it| optional(it.key.expires_at.as_ref())),
    ("old_value_until", |it| optional(it.previous.as_ref().map(|old| old.until).as_ref())),
];

const MESSAGES: &[Column<Message>] =
    &[("time", |it| it.at.to_string()), ("message", |it| it.text.clone())];

const SESSIONS: &[Column<OwnSession>] = &[
    ("id", |it| it.id.clone()),
    ("user_agent", |it| optional(it.agent.as_ref())),
    ("ip_address", |it| optional(it.address.as_ref())),
    ("signed_in_with", |it| it.opened_by.clone()),
    ("signed_in", |it| it.signed_in_at.to_string()),
    ("last_used", |it| it.seen_at.to_string()),
    ("this_session", |it| it.is_this.to_string()),
];

const ALL_ORGANIZATIONS: &[Column<InstanceOrganization>] = &[
    ("id", |it| it.id.to_string()),
    ("name", |it| it.name.clone()),
    ("created", |it| it.created_at.to_string()),
    ("events_this_month", |it| it.events_this_month.to_string()),
    ("disk_bytes", |it| optional(it.disk_bytes.as_ref())),
];

fn joined(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

pub(super) fn organizations(asked: &Asked<'_>) -> CsvList {
    let (services, ctx) = (asked.services.clone(), asked.ctx.clone());
    let pages = by_offset(move |page| {
        let (services, ctx) = (services.clone(), ctx.clone());
        async move { services.organizations.list(&ctx, page).await }
    });
    CsvList::new("organizations", "", ORGANIZATIONS, pages)
}

pub(super) async fn keys(asked: &Asked<'_>) -> Result<CsvList, ServiceError> {
    let found = asked.services.keys.overview(&asked.ctx).await?;
    Ok(CsvList::new("api-keys", "", KEYS, one_page(found)))
}

pub(super) async fn messages(asked: &Asked<'_>) -> Result<CsvList, ServiceError> {
    let found = asked.services.messages.list(&asked.ctx).await?;
    Ok(CsvList::new("messages", "", MESSAGES, one_page(found)))
}

pub(super) async fn sessions(asked: &Asked<'_>) -> Result<CsvList, ServiceError> {
    let found = asked.services.identity.own_sessions(&asked.ctx).await?;
    Ok(CsvList::new("sessions", "", SESSIONS, one_page(found)))
}

/// All organizations of the instance. The service refuses other users than staff.
pub(super) fn all_organizations(asked: &Asked<'_>) -> CsvList {
    let (services, ctx) = (asked.services.clone(), asked.ctx.clone());
    let pages = by_offset(move |page| {
        let (services, ctx) = (services.clone(), ctx.clone());
        async move { services.limits.organizations(&ctx, page).await }
    });
    CsvList::new("instance-organizations", "", ALL_ORGANIZATIONS, pages)
}
