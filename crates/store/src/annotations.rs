//! Annotations of projects: the table `annotation`, whose ids are `[project, annotation]`.
//!
//! What belongs here: its statements. What does not: who may change annotations, and which
//! are shown (`weir-service`). The record of the project counts its annotations.

use surrealdb::types::SurrealValue;
use weir_model::activity::Entry;
use weir_model::annotations::ANNOTATIONS_MAX;
use weir_model::{
    AnnotationId, DashboardId, InsightId, OrganizationId, ProjectId, Timestamp, UserId,
};

use crate::bind::bind;
use crate::db::Statement;
use crate::numbered::{self, Created, NumberedKey};
use crate::update::{Row, update_text};
use crate::{Result, Store};

/// An annotation as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct AnnotationRow {
    /// Its number.
    #[surreal(rename = "number")]
    pub id: AnnotationId,
    /// The project that it belongs to.
    pub project: ProjectId,
    /// What happened.
    pub content: String,
    /// When it happened.
    pub date_marker: Timestamp,
    /// The insight on whose chart alone it is shown.
    pub insight: Option<InsightId>,
    /// The dashboard on whose charts alone it is shown.
    pub dashboard: Option<DashboardId>,
    /// Whether it is hidden.
    pub deleted: bool,
    /// The user who created it.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The key of an annotation.
pub fn key(project: ProjectId, annotation: AnnotationId) -> NumberedKey {
    NumberedKey { project, number: annotation.0 }
}

impl Row for AnnotationRow {
    type Id = NumberedKey;
    type With = ();
    const TABLE: &'static str = "annotation";
    const UPDATE: &'static str = "annotations update";
    const TEXT: &'static str = update_text!();

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

const NEXT_NUMBER: Statement =
    Statement::write("annotations next number", "RETURN sequence::nextval('annotation_number');");

/// A number that no annotation has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<AnnotationId> {
    numbered::next(store, NEXT_NUMBER).await.map(AnnotationId)
}

/// All annotations of a project in the order of their numbers, also hidden ones.
///
/// # Errors
/// Any failure of the store.
pub async fn all(store: &Store, project: ProjectId) -> Result<Vec<AnnotationRow>> {
    numbered::briefs(store, project, "annotations of a project", AnnotationRow::TABLE).await
}

/// An annotation of a project.
///
/// # Errors
/// Any failure of the store.
pub async fn find(
    store: &Store,
    project: ProjectId,
    id: AnnotationId,
) -> Result<Option<AnnotationRow>> {
    let found = numbered::rows(store, project, AnnotationRow::TABLE, &[id.0]).await?;
    Ok(found.into_iter().next())
}

const CREATE: Statement =
    Statement::write("annotations create", numbered::create_text!("annotation", "annotations"));

/// Adds an annotation to this organization's project.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    organization: OrganizationId,
    row: &AnnotationRow,
    activities: &[Entry],
) -> Result<Created> {
    numbered::create(store, CREATE, organization, row, ANNOTATIONS_MAX, bind! {}, activities).await
}

const DELETE: Statement =
    Statement::delete("annotations delete", numbered::delete_text!("annotation", "annotations"));

/// Deletes an annotation. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    project: ProjectId,
    annotation: AnnotationId,
    activities: &[Entry],
) -> Result<()> {
    numbered::delete(store, DELETE, key(project, annotation), bind! {}, activities).await
}

/// Removes all annotations of a deleted project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    numbered::purge(store, project, &[AnnotationRow::TABLE]).await
}
