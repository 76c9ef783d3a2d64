//! Erasing persons (API-59).
//!
//! What belongs here: who may erase, what an answer says, and applying erasures again that an
//! older backup does not know. What does not: removing data (`weir_store::erasures`).

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::erasures::Erasure;
use weir_model::{PersonId, ProjectId};
use weir_store::erasures::{self as rows, Begun, Listed, NewErasure};
use weir_store::projects;

use super::Persons;
use crate::Result;
use crate::activity::{self, About, Changes};
use crate::ctx::{OrgCtx, ProjectCtx};
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};

/// How long an erasure waits for the events that were acknowledged before it.
const APPLIED: Duration = Duration::from_secs(20);
/// The reason for which an erasure does not begin.
const BEHIND: &str = "events are still being stored";
/// The reason for which an erasure does not begin while many others are not done.
const MANY: &str = "many other persons are still being erased";

/// What applies events to the store, as far as erasing persons needs it.
#[async_trait]
pub trait Applying: Send + Sync {
    /// Returns when everything acknowledged so far is stored.
    async fn applied(&self);

    /// Removes erased persons from memory, so that later events make new ones.
    fn forget_persons(&self, project: ProjectId, persons: &[PersonId]);
}

impl Persons {
    /// Erases a person, also by the id of one that was merged into it, with or without its
    /// events. Nothing of it is shown when this returns; its data is removed in the
    /// background. The last erasure of a person that does not exist any more is returned.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator,
    /// [`Error::NotFound`], [`Error::Conflict`] for a person with too many distinct ids,
    /// [`Error::Unavailable`] when events are not stored in time.
    pub async fn erase(
        &self,
        project: &ProjectCtx,
        person: PersonId,
        deletes_events: bool,
    ) -> Result<Erasure> {
        policy::check(&project.org, Action::ErasePersons)?;
        let (persons, org, id) = (self.clone(), project.org.clone(), project.project);
        // A caller that goes away must not leave persons in memory that are erased.
        let erased =
            tokio::spawn(async move { persons.erase_now(&org, id, person, deletes_events).await });
        erased.await.unwrap_or_else(|error| Err(Error::Internal(error.to_string())))
    }

    async fn erase_now(
        &self,
        org: &OrgCtx,
        project: ProjectId,
        person: PersonId,
        deletes_events: bool,
    ) -> Result<Erasure> {
        if timeout(APPLIED, self.applying.applied()).await.is_err() {
            return Err(Error::Unavailable(BEHIND));
        }
        let new = NewErasure {
            person,
            deletes_events,
            requested_at: org.ctx.now,
            requested_by: org.ctx.user(),
        };
        let entry = |person| {
            let about = about(project, person);
            let changes = changes(deletes_events);
            activity::entry(&org.ctx, org.organization, about, AuditAction::Deleted, changes)
        };
        match self.begin(project, &new, entry).await? {
            Begun::Yes(erasure) => {
                tracing::info!(
                    project.id = %project,
                    person.id = %erasure.person,
                    user.id = %org.ctx.user(),
                    request.id = org.ctx.request_id,
                    deletes_events,
                    "person erased"
                );
                Ok(*erasure)
            }
            Begun::NoPerson => {
                let last = rows::of_person(&self.core.store, project, person).await?;
                last.ok_or(Error::NotFound(NOT_FOUND))
            }
            Begun::TooManyIds => Err(Error::Conflict {
                code: "too_many_distinct_ids",
                detail: "The person has too many distinct ids to be deleted alone.".to_owned(),
            }),
            Begun::TooManyPending => Err(Error::Unavailable(MANY)),
        }
    }

    async fn begin(
        &self,
        project: ProjectId,
        new: &NewErasure,
        entry: impl Fn(PersonId) -> Entry + Send + Sync,
    ) -> Result<Begun> {
        let (begun, changed) = rows::begin(&self.core.store, project, new, entry).await?;
        self.applying.forget_persons(project, &changed);
        Ok(begun)
    }

    /// The last erasure of a person. `None`: the person exists and was never erased.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is neither.
    pub async fn erasure(&self, project: &ProjectCtx, person: PersonId) -> Result<Option<Erasure>> {
        let last = rows::of_person(&self.core.store, project.project, person).await?;
        if last.is_none() {
            self.get(project, person).await?;
        }
        Ok(last)
    }

    /// Applies the erasures again that the database does not know, because it was restored
    /// from an older backup: work of the instance, without a caller. Waits for the events of
    /// the log, not longer than `within`. Returns how many.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when events are not stored in time, and any failure of the store;
    /// the next call continues.
    pub async fn reapply_erasures(&self, within: Duration) -> Result<usize> {
        let unapplied = rows::unapplied(&self.core.store, self.core.clock.now()).await?;
        if unapplied.is_empty() {
            return Ok(0);
        }
        // The log of the backup may have further events of these persons.
        if timeout(within, self.applying.applied()).await.is_err() {
            return Err(Error::Unavailable(BEHIND));
        }
        for listed in &unapplied {
            self.reapply(listed).await?;
        }
        Ok(unapplied.len())
    }

    async fn reapply(&self, listed: &Listed) -> Result<()> {
        let (store, project, now) = (&self.core.store, listed.project(), self.core.clock.now());
        let Some(row) = projects::find(store, project).await? else { return Ok(()) };
        let (organization, deletes_events) = (row.brief.organization, listed.deletes_events);
        let entry = |person| {
            let about = about(project, person);
            let changes = changes(deletes_events);
            activity::own_entry(now, organization, about, AuditAction::Deleted, changes)
        };
        let mut failed = None;
        // In the older database, its distinct ids may be those of several persons.
        for person in listed.persons() {
            let new = NewErasure {
                person,
                deletes_events,
                requested_at: now,
                requested_by: listed.requested_by(),
            };
            match self.begin(project, &new, entry).await? {
                Begun::Yes(_) | Begun::NoPerson => {}
                Begun::TooManyIds => {
                    tracing::error!(
                        %project, %person,
                        "a person with too many distinct ids is not erased again"
                    );
                    failed = Some(person);
                }
                Begun::TooManyPending => return Err(Error::Unavailable(MANY)),
            }
        }
        match failed {
            None => rows::note_applied(store, listed, now).await?,
            Some(person) => rows::note_failed(store, listed, person, now).await?,
        }
        Ok(())
    }
}

fn about(project: ProjectId, person: PersonId) -> About<'static> {
    About {
        subject: Subject::Person,
        id: person.to_string(),
        // An audit entry stays, and has no personal data.
        name: None,
        project: Some(project),
    }
}

fn changes(deletes_events: bool) -> Changes {
    Changes::none().field("delete_events", &None, &Some(deletes_events))
}
