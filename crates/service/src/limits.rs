//! Limits of organizations: showing them, choosing them, and keeping their counts (API-56).
//!
//! What belongs here: who may see and choose limits, what an organization uses, and the
//! mails to its owners. What does not: whether events are taken ([`Limiter`]); members and
//! exports beyond a limit, which the modules of these refuse.

mod limiter;
mod warnings;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use weir_model::OrganizationId;
use weir_model::activity::AuditAction;
use weir_model::errors::FieldError;
use weir_model::limits::{
    InstanceOrganization, LimitChoice, LimitName, LimitSet, LimitState, LimitsPatch,
    OrganizationLimits, number_field,
};
use weir_model::organizations::OrganizationRow;
use weir_model::pagination::{Page, Paged};
use weir_store::limits::{self as rows, DiskUsage, LimitWarning};
use weir_store::organizations::{self, Contents};
use weir_store::{events, exports, projects};

pub use limiter::{Admission, Limiter, OverLimit};

use crate::activity::Changes;
use crate::ctx::{Ctx, OrgCtx};
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::update::{stored, update};
use crate::{Core, Result, current, instance, organizations as homes};

/// The code of an error about a limit that is reached.
pub const LIMIT_REACHED: &str = "limit_reached";
/// The message where an organization has as many members as its limit.
pub const MEMBERS_FULL: &str =
    "The organization has as many members as the operator of this instance allows.";
/// The message where invites would lead to more members than the limit.
pub const INVITES_FULL: &str = "The organization has as many members, with those who are \
     invited, as the operator of this instance allows.";
/// The message where an organization has as many exports as its limit.
pub const EXPORTS_FULL: &str = "The organization has as many exports as the operator of \
     this instance allows. Delete one first.";

/// Organizations whose records are in memory at a time.
const AT_A_TIME: usize = 100;

/// The service for limits of organizations.
#[derive(Clone)]
pub struct Limits {
    core: Arc<Core>,
    /// Held while limits are stored, so that the limiter gets them in the same order.
    choosing: Arc<tokio::sync::Mutex<()>>,
    /// Warnings of this month that are known to be stored.
    sent: Arc<Mutex<BTreeSet<LimitWarning>>>,
}

impl Limits {
    /// The service over `core`, whose limiter it fills and reads.
    #[must_use]
    pub fn new(core: Arc<Core>) -> Self {
        Self { core, choosing: Arc::default(), sent: Arc::default() }
    }

    /// Whether events are taken, and what was taken.
    #[must_use]
    pub fn limiter(&self) -> &Arc<Limiter> {
        &self.core.limiter
    }

    /// Reads limits and counts, before the first event.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn load(&self) -> Result<()> {
        let (store, limiter) = (&self.core.store, self.limiter());
        self.read_month().await?;
        for (organization, disk) in rows::disk(store).await? {
            limiter.measured(organization, disk);
        }
        for some in organizations::all(store).await?.chunks(AT_A_TIME) {
            for row in organizations::rows(store, some).await? {
                limiter.choose(row.id, &row.limits);
            }
        }
        Ok(())
    }

    /// Reads the stored events of a month that has begun. A clock that was wrong may have
    /// begun it again.
    async fn read_month(&self) -> Result<()> {
        if let Some(month) = self.limiter().unread() {
            self.limiter().add_stored(month, &rows::usage(&self.core.store, month).await?);
        }
        Ok(())
    }

    /// Writes the events that were taken since the last write: background work of the
    /// instance. Only one task may call it, and it must not be interrupted.
    ///
    /// # Errors
    /// When the store cannot be read or written; the next call continues.
    pub async fn write(&self) -> Result<()> {
        // Before further counts of the month are stored.
        self.read_month().await?;
        let counts = self.limiter().take();
        let (written, outcome) = rows::add_usage(&self.core.store, &counts).await;
        self.limiter().put_back(counts.get(written..).unwrap_or_default());
        Ok(outcome?)
    }

    /// Measures the disk space of all organizations, and mails owners who are near a limit
    /// of disk space, members or exports: background work of the instance.
    ///
    /// # Errors
    /// When the organizations cannot be read; the next call continues.
    pub async fn measure(&self) -> Result<()> {
        let store = &self.core.store;
        // Read first: an organization that is created meanwhile is not forgotten.
        let known = self.limiter().organizations();
        let all = organizations::all(store).await?;
        let present: HashSet<OrganizationId> = all.iter().copied().collect();
        let is_deleted = |id: &OrganizationId| !present.contains(id);
        let deleted: Vec<OrganizationId> = known.into_iter().filter(is_deleted).collect();
        self.limiter().forget(&deleted);
        for some in all.chunks(AT_A_TIME) {
            for row in organizations::rows(store, some).await? {
                // A failure of one must not delay the others.
                if let Err(error) = self.measure_one(&row).await {
                    tracing::warn!(
                        organization.id = %row.id, %error,
                        "the disk space of an organization was not measured"
                    );
                }
            }
        }
        Ok(())
    }

    async fn measure_one(&self, row: &OrganizationRow) -> Result<()> {
        let store = &self.core.store;
        let mut bytes = 0_u64;
        for project in projects::ordered(store, row.id).await? {
            bytes = bytes.saturating_add(events::stored_bytes(store, project).await?);
        }
        let disk = DiskUsage { bytes, measured_at: self.core.clock.now() };
        rows::write_disk(store, row.id, disk).await?;
        self.limiter().measured(row.id, disk);
        let limits = applying(&self.core, row);
        if let Some(limit) = limits.disk_bytes {
            self.warn(row.id, LimitName::DiskBytes, limit, bytes).await?;
        }
        if let Some(limit) = limits.members {
            let contents = organizations::contents(store, &[row.id]).await?;
            let members = contents.first().map_or(0, |contents| contents.member_count);
            self.warn(row.id, LimitName::Members, limit, members).await?;
        }
        if let Some(limit) = limits.exports {
            self.warn(row.id, LimitName::Exports, limit, self.exports(row.id).await?).await?;
        }
        Ok(())
    }

    /// The limits of an organization, for its members.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn of(&self, org: &OrgCtx) -> Result<OrganizationLimits> {
        policy::check(org, Action::ReadOrganization)?;
        let row = organizations::get(&self.core.store, org.organization).await?;
        self.show(&row.ok_or(Error::NotFound(NOT_FOUND))?).await
    }

    /// The organizations of the instance, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for callers who do not administer the instance;
    /// [`Error::MissingScope`].
    pub async fn organizations(
        &self,
        ctx: &Ctx,
        page: Page,
    ) -> Result<Paged<InstanceOrganization>> {
        instance::administer(&self.core, ctx).await?;
        let store = &self.core.store;
        let all = organizations::all(store).await?;
        let count = all.len() as u64;
        let rows = organizations::rows(store, &page.slice(all)).await?;
        Ok(Paged { count, results: rows.into_iter().map(|row| self.listed(row)).collect() })
    }

    /// One organization of the instance with its limits.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for callers who do not administer the instance;
    /// [`Error::MissingScope`].
    pub async fn organization(
        &self,
        ctx: &Ctx,
        id: &str,
    ) -> Result<(InstanceOrganization, OrganizationLimits)> {
        instance::administer(&self.core, ctx).await?;
        let row = self.find(ctx, id).await?;
        let limits = self.show(&row).await?;
        Ok((self.listed(row), limits))
    }

    /// Chooses limits of an organization.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for callers who do not administer the instance;
    /// [`Error::MissingScope`]; [`Error::SignInAgain`]; [`Error::Invalid`].
    pub async fn set(
        &self,
        ctx: &Ctx,
        id: &str,
        patch: impl Into<Unchecked<'_, LimitsPatch>>,
    ) -> Result<OrganizationLimits> {
        instance::administer(&self.core, ctx).await?;
        policy::recent_if_person(ctx)?;
        let id = self.find(ctx, id).await?.id;
        let patch = patch.into().read()?;
        let change = |row: &mut OrganizationRow| Ok(patch.clone().apply(&mut row.limits)?);
        let entries = |before: &OrganizationRow, after: &OrganizationRow| {
            let changes = changes(before, after);
            vec![homes::audit_entry(ctx, before, AuditAction::Updated, changes)]
        };
        let _choosing = self.choosing.lock().await;
        let row = stored(update(&self.core, id, ctx.now, (), change, entries).await?)?;
        self.limiter().choose(id, &row.limits);
        self.show(&row).await
    }

    async fn find(&self, ctx: &Ctx, id: &str) -> Result<OrganizationRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = match id {
            "@current" => current::organization(&self.core, ctx).await?,
            id => homes::parse_id(id),
        };
        let id = id.ok_or_else(missing)?;
        organizations::get(&self.core.store, id).await?.ok_or_else(missing)
    }

    fn listed(&self, row: OrganizationRow) -> InstanceOrganization {
        let used = self.limiter().used(row.id);
        InstanceOrganization {
            id: row.id,
            name: row.name,
            created_at: row.created_at,
            events_this_month: used.month,
            disk_bytes: used.disk.map(|disk| disk.bytes),
        }
    }

    async fn show(&self, row: &OrganizationRow) -> Result<OrganizationLimits> {
        let contents = organizations::contents(&self.core.store, &[row.id]).await?;
        let members =
            contents.into_iter().next().map_or(0, |Contents { member_count, .. }| member_count);
        let exports = self.exports(row.id).await?;
        let used = self.limiter().used(row.id);
        let limits = applying(&self.core, row);
        let state = |name: LimitName, usage: u64| {
            let limit = limits.get(name);
            LimitState {
                limit: limit.map(|limit| limit.most),
                action: limit.map(|limit| limit.action),
                is_default: *row.limits.get(name) == LimitChoice::Default,
                usage,
                measured_at: None,
            }
        };
        let disk = state(LimitName::DiskBytes, used.disk.map_or(0, |disk| disk.bytes));
        Ok(OrganizationLimits {
            organization_id: row.id,
            resets_at: self.limiter().month().next().begins(),
            events_per_month: state(LimitName::EventsPerMonth, used.month),
            events_per_second: state(LimitName::EventsPerSecond, used.second),
            disk_bytes: LimitState { measured_at: used.disk.map(|disk| disk.measured_at), ..disk },
            members: state(LimitName::Members, members),
            exports: state(LimitName::Exports, exports),
        })
    }

    async fn exports(&self, id: OrganizationId) -> Result<u64> {
        let of = exports::Of::Organization(id);
        Ok(exports::ordered(&self.core.store, of).await?.len() as u64)
    }
}

/// The limits that differ, in the form of the settings: `1000 reject`.
fn changes(before: &OrganizationRow, after: &OrganizationRow) -> Changes {
    let mut changes = Changes::none();
    for name in LimitName::ALL {
        let text = |row: &OrganizationRow| row.limits.get(name).to_string();
        changes = changes.field(&number_field(name), &text(before), &text(after));
    }
    changes
}

/// The limits that apply to an organization.
pub(crate) fn applying(core: &Core, home: &OrganizationRow) -> LimitSet {
    home.limits.over(core.limiter.defaults())
}

/// The number of members beyond which an organization gets no more; `None`: there is none.
pub(crate) fn members_most(core: &Core, home: &OrganizationRow) -> Option<u64> {
    applying(core, home).refused_from(LimitName::Members)
}

/// Whether an organization has as many members as its limit, and gets no more.
///
/// # Errors
/// Any failure of the store.
pub(crate) async fn is_full(core: &Core, organization: OrganizationId) -> Result<bool> {
    let home = organizations::get(&core.store, organization).await?;
    let Some(most) = home.and_then(|home| members_most(core, &home)) else { return Ok(false) };
    let contents = organizations::contents(&core.store, &[organization]).await?;
    Ok(contents.first().is_some_and(|contents| contents.member_count >= most))
}

/// The error where an organization has as many members as its limit.
pub(crate) fn members_full() -> FieldError {
    FieldError::body(LIMIT_REACHED, MEMBERS_FULL)
}

#[cfg(test)]
mod tests;
