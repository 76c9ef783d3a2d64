//! The lists of a user: organizations and API keys.

use weir_model::organizations::Organization;
use weir_service::Error as ServiceError;
use weir_service::keys::KeyOverview;

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
