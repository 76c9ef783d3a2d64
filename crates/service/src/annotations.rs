//! Annotations of a project (API-66): what happened at a time.
//!
//! What belongs here: who may change annotations, and which are listed. What does not: the
//! charts that show them.

use std::cmp::Reverse;
use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::annotations::{
    ANNOTATIONS_MAX, Annotation, AnnotationInput, AnnotationPatch, AnnotationQuery,
    AnnotationScope, CONTENT_MAX,
};
use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::{AnnotationId, Patch, validate};
use weir_store::annotations::{self as rows, AnnotationRow};
use weir_store::numbered::Created;
use weir_store::update::lock;
use weir_store::{dashboards, insights};

use crate::activity::{self, About, Changes};
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::update::{not_created, stored, update};
use crate::{Core, Result, members};

/// The service for annotations.
#[derive(Clone)]
pub struct Annotations {
    core: Arc<Core>,
}

impl Annotations {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The annotations of the project that are not hidden, the latest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(
        &self,
        project: &ProjectCtx,
        query: &AnnotationQuery,
        page: Page,
    ) -> Result<Paged<Annotation>> {
        policy::check(&project.org, Action::ReadAnnotations)?;
        let search = query.search.as_deref().map(str::to_lowercase);
        let mut found = rows::all(&self.core.store, project.project).await?;
        found.retain(|row| is_wanted(row, query, search.as_deref()));
        found.sort_by_key(|row| Reverse((row.date_marker, row.id)));
        let Paged { count, results } = page.of(found);
        Ok(Paged { count, results: self.shown(project, results).await? })
    }

    /// One annotation that is not hidden.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, annotation: &str) -> Result<Annotation> {
        policy::check(&project.org, Action::ReadAnnotations)?;
        let row = self.find(project, annotation).await?;
        if row.deleted {
            return Err(Error::NotFound(NOT_FOUND));
        }
        self.show(project, row).await
    }

    /// Adds an annotation.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`], also for a missing insight or dashboard,
    /// and for too many annotations.
    pub async fn create(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, AnnotationInput>>,
    ) -> Result<Annotation> {
        policy::check(&project.org, Action::WriteAnnotations)?;
        let AnnotationInput { content, date_marker, rest } = input.into().read()?;
        self.require_place(project, &rest).await?;
        let (store, ctx) = (&self.core.store, &project.org.ctx);
        let mut row = AnnotationRow {
            id: rows::next_number(store).await?,
            project: project.project,
            content: validate::text("content", &content, CONTENT_MAX)?,
            date_marker,
            insight: None,
            dashboard: None,
            deleted: false,
            created_by: ctx.user(),
            created_at: ctx.now,
            updated_at: ctx.now,
        };
        apply(&rest, &mut row)?;
        let changes = Changes::none()
            .field("content", &None, &Some(&row.content))
            .field("date_marker", &None, &Some(row.date_marker))
            .field("scope", &None, &Some(scope(&row)));
        let entry = entry(project, &row, AuditAction::Created, changes);
        match rows::create(store, project.org.organization, &row, &[entry]).await? {
            Created::Yes => self.show(project, row).await,
            refused => Err(not_created(refused, ANNOTATIONS_MAX, "annotations")),
        }
    }

    /// Changes an annotation, also a hidden one.
    ///
    /// # Errors
    /// As [`create`](Self::create); [`Error::NotFound`].
    pub async fn update(
        &self,
        project: &ProjectCtx,
        annotation: &str,
        patch: impl Into<Unchecked<'_, AnnotationPatch>>,
    ) -> Result<Annotation> {
        policy::check(&project.org, Action::WriteAnnotations)?;
        let id = self.find(project, annotation).await?.id;
        let patch = patch.into().read()?;
        self.require_place(project, &patch).await?;
        let change = |row: &mut AnnotationRow| apply(&patch, row);
        let entries = |before: &AnnotationRow, after: &AnnotationRow| {
            vec![entry(project, after, AuditAction::Updated, changes(before, after))]
        };
        let (key, now) = (rows::key(project.project, id), project.org.ctx.now);
        let row = stored(update(&self.core, key, now, (), change, entries).await?)?;
        self.show(project, row).await
    }

    /// Deletes an annotation for ever.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete(&self, project: &ProjectCtx, annotation: &str) -> Result<()> {
        policy::check(&project.org, Action::WriteAnnotations)?;
        let id = self.find(project, annotation).await?.id;
        let store = &self.core.store;
        let _permit = lock::<AnnotationRow>(store, &rows::key(project.project, id)).await;
        let row = self.find(project, annotation).await?;
        let changes = Changes::none().field("content", &Some(&row.content), &None);
        let entry = entry(project, &row, AuditAction::Deleted, changes);
        Ok(rows::delete(store, project.project, id, &[entry]).await?)
    }

    /// Refuses an insight or a dashboard that is missing or hidden.
    async fn require_place(&self, project: &ProjectCtx, patch: &AnnotationPatch) -> Result<()> {
        let missing = |attr: &str, id: &dyn std::fmt::Display| {
            let detail = format!("Object with id={id} does not exist.");
            Error::from(FieldError::new(attr, "does_not_exist", detail))
        };
        let store = &self.core.store;
        if let Patch::Set(id) = patch.dashboard_item {
            let found = insights::rows(store, project.project, &[id]).await?;
            if found.iter().all(|row| row.deleted) {
                return Err(missing("dashboard_item", &id));
            }
        }
        if let Patch::Set(id) = patch.dashboard_id {
            let found = dashboards::rows(store, project.project, &[id]).await?;
            if found.iter().all(|row| row.deleted) {
                return Err(missing("dashboard_id", &id));
            }
        }
        Ok(())
    }

    async fn find(&self, project: &ProjectCtx, annotation: &str) -> Result<AnnotationRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = AnnotationId::in_path(annotation).ok_or_else(missing)?;
        rows::find(&self.core.store, project.project, id).await?.ok_or_else(missing)
    }

    async fn show(&self, project: &ProjectCtx, row: AnnotationRow) -> Result<Annotation> {
        let shown = self.shown(project, vec![row]).await?.pop();
        shown.ok_or_else(|| Error::Internal("an annotation is not shown".to_owned()))
    }

    async fn shown(
        &self,
        project: &ProjectCtx,
        found: Vec<AnnotationRow>,
    ) -> Result<Vec<Annotation>> {
        let users = found.iter().map(|row| row.created_by).collect();
        let users = members::users_by_id(&self.core, project.org.organization, users).await?;
        let show = |row: AnnotationRow| Annotation {
            id: row.id,
            scope: scope(&row),
            content: row.content,
            date_marker: row.date_marker,
            dashboard_item: row.insight,
            dashboard_id: row.dashboard,
            deleted: row.deleted,
            created_at: row.created_at,
            created_by: users.get(&row.created_by).cloned(),
            updated_at: row.updated_at,
        };
        Ok(found.into_iter().map(show).collect())
    }
}

fn scope(row: &AnnotationRow) -> AnnotationScope {
    match (row.insight, row.dashboard) {
        (Some(_), _) => AnnotationScope::DashboardItem,
        (None, Some(_)) => AnnotationScope::Dashboard,
        (None, None) => AnnotationScope::Project,
    }
}

/// `search` is in lower case.
fn is_wanted(row: &AnnotationRow, query: &AnnotationQuery, search: Option<&str>) -> bool {
    !row.deleted
        && search.is_none_or(|part| row.content.to_lowercase().contains(part))
        && query.scope.is_none_or(|wanted| wanted == scope(row))
        && query.date_from.is_none_or(|time| row.date_marker >= time)
        && query.date_to.is_none_or(|time| row.date_marker < time)
}

fn apply(patch: &AnnotationPatch, row: &mut AnnotationRow) -> Result<()> {
    if let Some(content) = patch.content.clone().required("content")? {
        row.content = validate::text("content", &content, CONTENT_MAX)?;
    }
    let date_marker = patch.date_marker.clone().required("date_marker")?;
    row.date_marker = date_marker.unwrap_or(row.date_marker);
    row.deleted = patch.deleted.clone().required("deleted")?.unwrap_or(row.deleted);
    let insight = patch.dashboard_item.clone().over(row.insight);
    let dashboard = patch.dashboard_id.clone().over(row.dashboard);
    let required = |attr: &str| FieldError::new(attr, "required", "This field is required.");
    (row.insight, row.dashboard) = match patch.scope.unwrap_or(scope(row)) {
        AnnotationScope::Project => (None, None),
        AnnotationScope::Dashboard => {
            (None, Some(dashboard.ok_or_else(|| required("dashboard_id"))?))
        }
        AnnotationScope::DashboardItem => {
            (Some(insight.ok_or_else(|| required("dashboard_item"))?), None)
        }
    };
    Ok(())
}

fn changes(before: &AnnotationRow, after: &AnnotationRow) -> Changes {
    Changes::none()
        .field("content", &before.content, &after.content)
        .field("date_marker", &before.date_marker, &after.date_marker)
        .field("scope", &scope(before), &scope(after))
        .field("dashboard_item", &before.insight, &after.insight)
        .field("dashboard_id", &before.dashboard, &after.dashboard)
        .field("deleted", &before.deleted, &after.deleted)
}

fn entry(
    project: &ProjectCtx,
    row: &AnnotationRow,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    let about = About {
        subject: Subject::Annotation,
        id: row.id.to_string(),
        name: None,
        project: Some(row.project),
    };
    activity::entry(&project.org.ctx, project.org.organization, about, action, changes)
}
