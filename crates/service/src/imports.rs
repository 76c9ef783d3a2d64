//! Historical migrations: the sources of historical events, and the migrations that
//! users have announced, so that they can return to them.

use std::sync::Arc;

use uuid::Uuid;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::imports::{ImportPlan, ImportSource};
use weir_store::{ids, imports as rows, projects};

use crate::activity::{self, About, Changes};
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::{Core, Result};

/// The maximum number of migrations of a project.
const PLANS: usize = 200;
/// Maximum length of a source, and of the name of a file, in characters.
const LINE: usize = 200;
/// Maximum length of a note, in characters.
const NOTE: usize = 2_000;

/// The input for a new migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanInput {
    /// The system that the events come from.
    pub source: String,
    /// Name of the file to import; may be empty.
    pub file: String,
    /// A note for other users.
    pub note: String,
    /// The number of events; may be empty.
    pub total: String,
}

/// The progress of a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The migration.
    pub plan: ImportPlan,
    /// How many historical events the project received since the start, or until the
    /// migration was finished.
    pub sent: u64,
    /// Seconds until all events are sent at the present rate; `None`: unknown.
    pub seconds_left: Option<u64>,
}

/// The service for historical migrations.
#[derive(Clone)]
pub struct Imports {
    core: Arc<Core>,
}

impl Imports {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The events of each source on each day, newest day first.
    ///
    /// # Errors
    /// [`Error::MissingScope`], or when the store cannot be read.
    pub async fn sources(&self, project: &ProjectCtx) -> Result<Vec<ImportSource>> {
        policy::check(&project.org, Action::ReadProject)?;
        let store = &self.core.store;
        let mut sources = rows::sources(store, project.project).await?;
        for new in store.traffic().sources(project.project) {
            let same = sources.iter_mut().find(|source| {
                (source.day, source.historical) == (new.day, new.historical)
                    && source.key == new.key
                    && source.library == new.library
            });
            match same {
                Some(source) => source.counts.add(&new.counts),
                None => sources.push(new),
            }
        }
        sources.sort_by(|a, b| {
            let order = |source: &ImportSource| (source.day, source.counts.last_at);
            order(b).cmp(&order(a)).then_with(|| a.library.cmp(&b.library))
        });
        Ok(sources)
    }

    /// The announced migrations, newest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`], or when the store cannot be read.
    pub async fn plans(&self, project: &ProjectCtx) -> Result<Vec<Progress>> {
        let sources = self.sources(project).await?;
        let plans = rows::plans(&self.core.store, project.project).await?;
        let now = project.org.ctx.now.micros();
        Ok(plans.into_iter().map(|plan| progress(plan, &sources, now)).collect())
    }

    /// Announces a migration.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Conflict`] where there are too many.
    pub async fn start(&self, project: &ProjectCtx, input: PlanInput) -> Result<ImportPlan> {
        policy::check(&project.org, Action::UpdateProject)?;
        let store = &self.core.store;
        let source = line("source", &input.source)?;
        if source.is_empty() {
            return Err(invalid("source", "required", "Say where the events come from."));
        }
        let file = line("file", &input.file)?;
        let note = input.note.trim();
        if note.chars().count() > NOTE {
            return Err(invalid("note", "max_length", "Shorten this to 2,000 characters."));
        }
        let total = total(&input.total)?;
        if rows::plans(store, project.project).await?.len() >= PLANS {
            return Err(Error::Conflict {
                code: "too_many_migrations",
                detail: "The project has 200 migrations. Continue with one of them.".to_owned(),
            });
        }
        let now = project.org.ctx.now;
        let plan = ImportPlan {
            id: ids::time_ordered(now),
            source,
            file,
            note: note.to_owned(),
            total,
            created_at: now,
            baseline: historical(&self.sources(project).await?),
            finished: None,
        };
        let changes = Changes::none().field("migration", &None, &Some(&plan.source));
        let started = self.audit_entry(project, changes).await?;
        rows::put_plan(store, project.project, &plan, &[started]).await?;
        Ok(plan)
    }

    /// Marks a migration as finished. A finished one stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn finish(&self, project: &ProjectCtx, id: &str) -> Result<()> {
        policy::check(&project.org, Action::UpdateProject)?;
        let store = &self.core.store;
        let id: Uuid = id.parse().map_err(|_| Error::NotFound(NOT_FOUND))?;
        let found = rows::get_plan(store, project.project, id).await?;
        let mut plan = found.ok_or(Error::NotFound(NOT_FOUND))?;
        if plan.finished.is_none() {
            let sent = historical(&self.sources(project).await?).saturating_sub(plan.baseline);
            plan.finished = Some((project.org.ctx.now, sent));
            let changes = Changes::none().field("migration", &Some(&plan.source), &None);
            let finished = self.audit_entry(project, changes).await?;
            rows::put_plan(store, project.project, &plan, &[finished]).await?;
        }
        Ok(())
    }

    /// The audit entry of the project.
    async fn audit_entry(&self, project: &ProjectCtx, changes: Changes) -> Result<Entry> {
        let org = &project.org;
        let row = projects::find(&self.core.store, project.project).await?;
        let row = row.filter(|row| row.brief.organization == org.organization);
        let row = row.ok_or(Error::NotFound(NOT_FOUND))?;
        let about = About {
            subject: Subject::Project,
            id: row.brief.id.to_string(),
            name: Some(&row.brief.name),
            project: Some(row.brief.id),
        };
        Ok(activity::entry(&org.ctx, org.organization, about, AuditAction::Updated, changes))
    }
}

fn historical(sources: &[ImportSource]) -> u64 {
    sources.iter().filter(|source| source.historical).map(|source| source.counts.sent()).sum()
}

fn progress(plan: ImportPlan, sources: &[ImportSource], now: i64) -> Progress {
    /// A source that sent nothing for longer than this has no present rate, in
    /// microseconds.
    const SILENT: i64 = 10 * 60 * 1_000_000;
    if let Some((_, sent)) = plan.finished {
        return Progress { plan, sent, seconds_left: None };
    }
    let sent = historical(sources).saturating_sub(plan.baseline);
    let busy = sources
        .iter()
        .filter(|source| source.historical && source.counts.last_at > now.saturating_sub(SILENT));
    let rate: u64 = busy.map(|source| source.counts.rate()).sum();
    let left = plan.total.map(|total| total.saturating_sub(sent));
    let seconds_left = left
        .filter(|left| rate > 0 && *left > 0)
        .map(|left| left.saturating_mul(60).div_ceil(rate));
    Progress { plan, sent, seconds_left }
}

fn invalid(attr: &str, code: &str, detail: &str) -> Error {
    Error::Invalid(FieldError::new(attr, code, detail))
}

/// One line of text, without surrounding blanks.
fn line(attr: &str, text: &str) -> Result<String> {
    let text = text.trim();
    if text.chars().count() > LINE {
        return Err(invalid(attr, "max_length", "Shorten this to 200 characters."));
    }
    if text.chars().any(char::is_control) {
        return Err(invalid(attr, "invalid", "Leave out line breaks and control characters."));
    }
    Ok(text.to_owned())
}

/// A number of events as users type it: with commas, blanks or underscores.
fn total(text: &str) -> Result<Option<u64>> {
    let digits: String = text.chars().filter(|c| !matches!(c, ' ' | ',' | '_' | '.')).collect();
    if digits.is_empty() {
        return Ok(None);
    }
    let read = digits.parse::<u64>().ok().filter(|total| (1..=1_000_000_000_000).contains(total));
    read.map(Some).ok_or_else(|| {
        invalid("total", "invalid", "Enter a whole number of events, or leave this empty.")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_model::imports::ImportCounts;

    use super::*;
    use crate::test_support::{self, ada};

    fn source(at: i64, accepted: u64) -> ImportSource {
        let counts = ImportCounts {
            accepted,
            dropped: 0,
            first_at: at,
            last_at: at,
            oldest: 1,
            newest: 2,
            begins: 1,
            ends: 2,
            out_of_order: 0,
            future: 0,
            missing_ids: 0,
            minutes: 1,
            peak: accepted,
            minute: at.div_euclid(60_000_000),
            in_minute: accepted,
            reasons: BTreeMap::new(),
        };
        let day = at.div_euclid(86_400_000_000);
        let (key, library) = ("phc_a".to_owned(), "python".to_owned());
        ImportSource { day, key, library, historical: true, counts }
    }

    #[tokio::test]
    async fn a_migration_is_announced_followed_and_finished() {
        let services = test_support::set_up().await;
        let ctx = ada(&services).await;
        let project = services.projects.enter(&ctx, "1").await.unwrap();
        let counters = services.organizations.store().traffic();
        let now = ctx.now.micros();
        counters.imported(project.project, source(now, 40));

        let input = PlanInput {
            source: " Old tool ".to_owned(),
            total: "1,000".to_owned(),
            ..PlanInput::default()
        };
        let plan = services.imports.start(&project, input.clone()).await.unwrap();
        assert_eq!((plan.source.as_str(), plan.total, plan.baseline), ("Old tool", Some(1000), 40));

        services.traffic.write().await.unwrap();
        counters.imported(project.project, source(now, 100));
        let found = services.imports.plans(&project).await.unwrap();
        assert_eq!(found[0].sent, 100);
        // 900 are left, at 140 a minute.
        assert_eq!(found[0].seconds_left, Some(386));

        services.imports.finish(&project, &plan.id.to_string()).await.unwrap();
        counters.imported(project.project, source(now, 5));
        let found = services.imports.plans(&project).await.unwrap();
        assert_eq!((found[0].sent, found[0].seconds_left), (100, None));

        for (attr, input) in [
            ("source", PlanInput::default()),
            ("total", PlanInput { total: "many".to_owned(), ..input.clone() }),
            ("file", PlanInput { file: "a\nb".to_owned(), ..input }),
        ] {
            let refused = services.imports.start(&project, input).await.unwrap_err();
            let at = match refused {
                Error::Invalid(fault) => fault.attr,
                other => panic!("{other}"),
            };
            assert_eq!(at.as_deref(), Some(attr));
        }
        let missing = services.imports.finish(&project, "x").await.unwrap_err();
        assert!(matches!(missing, Error::NotFound(_)));
    }
}
