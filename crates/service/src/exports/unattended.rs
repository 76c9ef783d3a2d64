//! Operations on exports without a caller, for the engine that runs them.
//!
//! What belongs here: opening secrets for a run, pausing an export whose runs fail,
//! mails to administrators. No permission is checked here. What does not: deciding when
//! an export is paused (`weir-export`).

use weir_model::activity::{AuditAction, Subject};
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{LATEST_RUNS, Run, SentConfig, Status};
use weir_model::mail::{ExportNamed, Mail, MailContent};
use weir_store::exports::{self as rows, ExportRow, backfills};
use weir_store::{ids, mail as mails};

use super::{Exports, config};
use crate::activity::{self, About, Changes};
use crate::{Result, mail};

/// The maximum number of backfills that are searched for active ones. It is greater
/// than the maximum number of active ones, because ended ones lie between them.
const SEARCHED_MAX: usize = 1_000;

impl Exports {
    /// The kind of an export's destination and all of its settings, with secrets.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::Error::Internal) when the stored settings cannot be
    /// opened or read.
    pub fn whole_config(&self, row: &ExportRow) -> Result<(&'static DestinationType, SentConfig)> {
        let kind = config::kind(&row.kind)?;
        Ok((kind, SentConfig(config::open(&self.core.sealer, row)?)))
    }

    /// Pauses an export because `failed` of its `of` newest runs failed, cancels its
    /// backfills, and sends a mail to the administrators of its organization. `false`:
    /// it was paused already, or is deleted.
    pub async fn pause_failing(
        &self,
        row: &ExportRow,
        failed: u32,
        of: u32,
        error: Option<&str>,
    ) -> Result<bool> {
        let (store, now) = (&self.core.store, self.core.clock.now());
        let error = error.map(str::to_owned);
        let news = |export| MailContent::ExportPaused { export, failed, of, error: error.clone() };
        let letters = self.core.mailing.rows(now, self.to_administrators(row, news).await?);
        let changes = Changes::none()
            .field("paused", &Some(row.paused), &Some(true))
            .field("last_paused_at", &row.last_paused_at, &Some(now))
            .field("reason", &None, &Some(format!("{failed} of the last {of} runs failed")));
        let about = About {
            subject: Subject::BatchExport,
            id: row.id.to_string(),
            name: Some(&row.name),
            project: Some(row.project),
        };
        let paused =
            activity::own_entry(now, row.organization, about, AuditAction::Updated, changes);
        let revision = ids::time_ordered(now);
        if !rows::pause(store, row.id, revision, now, &letters, &[paused]).await? {
            return Ok(false);
        }
        let all = backfills::page(store, row.project, row.id, None, SEARCHED_MAX).await?;
        for backfill in all.into_iter().filter(|backfill| backfill.status.is_active()) {
            backfills::cancel(store, row.project, row.id, backfill.id, now, &[]).await?;
        }
        if !letters.is_empty() {
            self.core.mailing.wake();
        }
        Ok(true)
    }

    /// Sends a mail to the administrators of an export's organization that a run
    /// failed, unless the run before it failed too: a series of failures causes one
    /// mail.
    pub async fn notify_failed(&self, row: &ExportRow, run: &Run) -> Result<()> {
        let (store, now) = (&self.core.store, self.core.clock.now());
        if !self.core.mailing.is_open() {
            return Ok(());
        }
        let fresh = rows::rows(store, row.organization, &[row.id]).await?;
        let latest = rows::latest_runs(store, &fresh, LATEST_RUNS).await?;
        let before = latest.into_iter().flatten().find(|other| {
            other.id < run.id && !other.status.is_active() && other.status != Status::Cancelled
        });
        if before.is_some_and(|before| before.status != Status::Completed) {
            return Ok(());
        }
        let news = |export| MailContent::ExportFailed {
            export,
            start: run.data_interval_start,
            end: run.data_interval_end,
            error: run.latest_error.clone(),
        };
        let letters = self.core.mailing.rows(now, self.to_administrators(row, news).await?);
        if !letters.is_empty() {
            mails::add(store, &letters).await?;
            self.core.mailing.wake();
        }
        Ok(())
    }

    /// Mails to the administrators of an export's organization.
    async fn to_administrators(
        &self,
        row: &ExportRow,
        news: impl Fn(ExportNamed) -> MailContent,
    ) -> Result<Vec<Mail>> {
        let destination = config::kind(&row.kind)?.label;
        let news = |organization, project| {
            news(ExportNamed {
                name: row.name.clone(),
                destination: destination.to_owned(),
                project,
                organization,
            })
        };
        mail::to_administrators(&self.core.store, row.organization, row.project, news).await
    }
}
