//! Share links of dashboards (API-65): each shows one dashboard without an account, until it
//! expires or is revoked.
//!
//! What belongs here: making, listing, revoking and opening share links. What does not: the
//! questions of a shared dashboard (`questions`), and the page that shows it.

use serde_json::{Value, json};
use weir_model::dashboards::{
    SHARE_DAYS_MAX, SHARE_LINKS_MAX, ShareLink, ShareLinkInput, SharedDashboard, SharedTile,
};
use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::{InsightId, ProjectId, Timestamp, validate};
use weir_store::dashboards::{self as rows, DashboardRow, LinkRow};
use weir_store::{insights as insight_rows, projects as project_rows};

use super::{Dashboards, layouts};
use crate::ctx::{ProjectCtx, SharedProject};
use crate::error::{Error, NOT_FOUND};
use crate::insights::stored;
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::{Result, members, secrets};

const DAY_SECONDS: i64 = 24 * 60 * 60;
const MINUTE_MICROS: i64 = 60 * 1_000_000;
/// What separates the project from the secret in a token.
const SEPARATOR: char = '_';

/// A share link that works, with its dashboard.
pub(super) struct OpenLink {
    pub(super) row: DashboardRow,
    pub(super) expires_at: Timestamp,
    pub(super) project: SharedProject,
}

impl Dashboards {
    /// The share links of a dashboard that have not expired, oldest first, without their
    /// tokens.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn share_links(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        page: Page,
    ) -> Result<Paged<ShareLink>> {
        policy::check(&project.org, Action::ReadDashboards)?;
        let row = self.shown_row(project, dashboard).await?;
        let now = project.org.ctx.now;
        let links = row.links.into_iter().filter(|link| link.expires_at > now).collect();
        let Paged { count, results } = page.of(links);
        Ok(Paged { count, results: self.shown_links(project, results).await? })
    }

    /// Makes a share link. The answer alone has its token: only its hash is stored.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`], also for too many
    /// links.
    pub async fn create_share_link(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        input: impl Into<Unchecked<'_, ShareLinkInput>>,
    ) -> Result<ShareLink> {
        policy::check(&project.org, Action::WriteDashboards)?;
        let id = self.shown_row(project, dashboard).await?.id;
        let ShareLinkInput { days } = input.into().read()?;
        validate::within("expires_in_days", days, 1, SHARE_DAYS_MAX)?;
        let token = secrets::token()?;
        let (hash, ctx) = (token.hash(), &project.org.ctx);
        let changed = |before: &DashboardRow| -> Result<DashboardRow> {
            let mut row = before.clone();
            row.links.retain(|link| link.expires_at > ctx.now);
            if row.links.len() >= SHARE_LINKS_MAX {
                let detail =
                    format!("A dashboard has at most {SHARE_LINKS_MAX} share links. Revoke one.");
                return Err(FieldError::body("invalid_input", detail).into());
            }
            row.links.push(LinkRow {
                id: row.next_link,
                hash: hash.clone(),
                created_by: ctx.user(),
                created_at: ctx.now,
                expires_at: ctx.now.plus_seconds(days * DAY_SECONDS),
            });
            row.next_link += 1;
            Ok(row)
        };
        let row = self.change(project, id, changed).await?;
        let made: Vec<LinkRow> = row.links.into_iter().filter(|link| link.hash == hash).collect();
        let shown = self.shown_links(project, made).await?.pop();
        let shown = shown.ok_or_else(|| Error::Internal("a new link is not shown".to_owned()))?;
        let token = format!("{}{SEPARATOR}{}", project.project, token.reveal());
        Ok(ShareLink { token: Some(token), ..shown })
    }

    /// Revokes a share link: it stops working before this returns.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete_share_link(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        link: &str,
    ) -> Result<()> {
        policy::check(&project.org, Action::WriteDashboards)?;
        let id = self.find(project, dashboard).await?.id;
        let changed = |before: &DashboardRow| -> Result<DashboardRow> {
            let mut row = before.clone();
            row.links.retain(|one| one.id.to_string() != link);
            match row.links.len() == before.links.len() {
                true => Err(Error::NotFound(NOT_FOUND)),
                false => Ok(row),
            }
        };
        self.change(project, id, changed).await.map(drop)
    }

    /// The dashboard of a share link, for a caller without another credential.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a link that is unknown, has expired or was revoked, and for a
    /// dashboard that is hidden.
    pub async fn shared(&self, token: &str) -> Result<SharedDashboard> {
        let OpenLink { row, expires_at, project } = self.open(token).await?;
        let ids: Vec<InsightId> = row.tiles.iter().map(|tile| tile.insight).collect();
        let found = insight_rows::rows(&self.core.store, project.project, &ids).await?;
        let mut tiles = Vec::with_capacity(row.tiles.len());
        for tile in &row.tiles {
            let insight = found.iter().find(|insight| insight.id == tile.insight);
            let Some(insight) = insight.filter(|insight| !insight.deleted) else { continue };
            tiles.push(SharedTile {
                id: tile.id,
                name: insight.name.clone().or_else(|| insight.derived_name.clone()),
                description: insight.description.clone(),
                query: stored(&insight.query)?,
                layouts: layouts(tile),
                color: tile.color.clone(),
            });
        }
        Ok(SharedDashboard {
            name: row.name.clone(),
            description: row.description.clone(),
            filters: stored(&row.filters)?,
            expires_at,
            tiles,
        })
    }

    /// Opens a share link.
    ///
    /// # Errors
    /// As [`shared`](Self::shared).
    pub(super) async fn open(&self, token: &str) -> Result<OpenLink> {
        let missing = || Error::NotFound(NOT_FOUND);
        let (project, secret) = token.split_once(SEPARATOR).ok_or_else(missing)?;
        let project = ProjectId::in_path(project).ok_or_else(missing)?;
        if !secrets::is_token(secret) {
            return Err(missing());
        }
        let (store, hash) = (&self.core.store, secrets::sha256_hex(secret));
        let id = rows::by_link(store, project, &hash).await?.ok_or_else(missing)?;
        // The records of a deleted project are removed later.
        let found = project_rows::find(store, project).await?.ok_or_else(missing)?;
        let organization = found.brief.organization;
        let row = rows::rows(store, project, &[id]).await?.pop().ok_or_else(missing)?;
        let now = self.core.clock.now();
        let mut links = row.links.iter();
        let link = links.find(|link| link.hash == hash && link.expires_at > now);
        let link = link.filter(|_| !row.deleted).ok_or_else(missing)?;
        let expires_at = link.expires_at;
        let now = whole_minute(now);
        Ok(OpenLink { row, expires_at, project: SharedProject { organization, project, now } })
    }

    async fn shown_links(
        &self,
        project: &ProjectCtx,
        links: Vec<LinkRow>,
    ) -> Result<Vec<ShareLink>> {
        let users = links.iter().map(|link| link.created_by).collect();
        let users = members::users_by_id(&self.core, project.org.organization, users).await?;
        let show = |link: LinkRow| ShareLink {
            id: link.id,
            token: None,
            created_at: link.created_at,
            created_by: users.get(&link.created_by).cloned(),
            expires_at: link.expires_at,
        };
        Ok(links.into_iter().map(show).collect())
    }
}

/// Share links as an audit entry has them.
pub(super) fn recorded(row: &DashboardRow) -> Vec<Value> {
    let link = |link: &LinkRow| json!({"id": link.id, "expires_at": link.expires_at});
    row.links.iter().map(link).collect()
}

/// The beginning of the minute of an instant. A question about the time until now is the same
/// question for all visitors of one minute, so its answer is computed once.
fn whole_minute(now: Timestamp) -> Timestamp {
    let micros = now.micros();
    Timestamp::from_micros(micros - micros.rem_euclid(MINUTE_MICROS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_of_one_minute_ask_at_the_same_time() {
        let minute = Timestamp::parse("2026-08-21T14:05:00Z").unwrap();
        for text in ["2026-08-21T14:05:00Z", "2026-08-21T14:05:00.000001Z", "2026-08-21T14:05:59Z"]
        {
            assert_eq!(whole_minute(Timestamp::parse(text).unwrap()), minute, "{text}");
        }
        let before = Timestamp::from_micros(-1);
        assert_eq!(whole_minute(before), Timestamp::from_micros(-MINUTE_MICROS));
    }
}
