//! Annotations: what happened at a time, for the charts of a project (API-66).

use serde::{Deserialize, Serialize};

use crate::ids::{AnnotationId, DashboardId, InsightId};
use crate::patch::Patch;
use crate::time::Timestamp;
use crate::users::User;

/// Longest text, in characters.
pub const CONTENT_MAX: usize = 1_000;
/// Most annotations of a project, hidden ones too.
pub const ANNOTATIONS_MAX: usize = 1_000;

/// Where an annotation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnnotationScope {
    /// On all charts of the project.
    #[default]
    Project,
    /// On the charts of one dashboard.
    Dashboard,
    /// On the chart of one insight.
    DashboardItem,
}

impl AnnotationScope {
    /// All values, in order.
    pub const ALL: [Self; 3] = [Self::Project, Self::Dashboard, Self::DashboardItem];
    /// The words on the wire, in order.
    pub const WORDS: &'static [&'static str] = &["project", "dashboard", "dashboard_item"];

    /// The word on the wire.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Dashboard => "dashboard",
            Self::DashboardItem => "dashboard_item",
        }
    }

    /// The value of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.text() == word)
    }
}

/// An annotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Annotation {
    /// Number of the annotation.
    pub id: AnnotationId,
    /// What happened.
    pub content: String,
    /// When it happened.
    pub date_marker: Timestamp,
    /// Where it is shown.
    pub scope: AnnotationScope,
    /// The insight of the scope `dashboard_item`.
    pub dashboard_item: Option<InsightId>,
    /// The dashboard of the scope `dashboard`.
    pub dashboard_id: Option<DashboardId>,
    /// Whether it is hidden. Hidden annotations are only in the answer to their change.
    pub deleted: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The user who created it; null if that user is no member any more.
    pub created_by: Option<User>,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// A new annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationInput {
    /// What happened.
    pub content: String,
    /// When it happened.
    pub date_marker: Timestamp,
    /// All other fields.
    pub rest: AnnotationPatch,
}

/// A change of an annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnotationPatch {
    /// What happened. It cannot be null.
    pub content: Patch<String>,
    /// When it happened. It cannot be null.
    pub date_marker: Patch<Timestamp>,
    /// Where it is shown. `None` keeps it.
    pub scope: Option<AnnotationScope>,
    /// The insight; it counts with the scope `dashboard_item` alone.
    pub dashboard_item: Patch<InsightId>,
    /// The dashboard; it counts with the scope `dashboard` alone.
    pub dashboard_id: Patch<DashboardId>,
    /// Whether it is hidden.
    pub deleted: Patch<bool>,
}

/// Which annotations a list has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnotationQuery {
    /// Part of the text, in any case.
    pub search: Option<String>,
    /// Where they are shown.
    pub scope: Option<AnnotationScope>,
    /// Only what happened at this time or later.
    pub date_from: Option<Timestamp>,
    /// Only what happened before this time.
    pub date_to: Option<Timestamp>,
}
