//! Saved insights: questions with a name (API-63).
//!
//! What belongs here: the resource, its input and its limits. What does not: which questions
//! there are (`weir-questions`), and their answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{DashboardId, InsightId, UserId};
use crate::patch::Patch;
use crate::time::Timestamp;
use crate::users::User;

/// Longest name, in characters.
pub const NAME_MAX: usize = 400;
/// Longest description, in characters.
pub const DESCRIPTION_MAX: usize = 400;
/// Longest tag, in characters.
pub const TAG_MAX: usize = 100;
/// Most tags of an insight or a dashboard.
pub const TAGS_MAX: usize = 20;
/// Longest question in its canonical form, in bytes.
pub const QUERY_MAX: usize = 64 << 10;
/// Most insights of a project, hidden ones too.
pub const INSIGHTS_MAX: usize = 10_000;
/// Most dashboards that one insight is on.
pub const DASHBOARDS_MAX: usize = 50;
/// Length of a short id, in characters: lower-case letters.
pub const SHORT_ID_LENGTH: usize = 8;

/// A saved insight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Insight {
    /// Number of the insight.
    pub id: InsightId,
    /// Random letters that identify the insight within its project.
    pub short_id: String,
    /// Name; null: `derived_name` is shown.
    pub name: Option<String>,
    /// Name that a client made from the question.
    pub derived_name: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// The question in its canonical form.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub query: Value,
    /// The dashboards that have a tile of the insight.
    pub dashboards: Vec<DashboardId>,
    /// Labels, in the order in which they were sent.
    pub tags: Vec<String>,
    /// Whether it is marked as a favorite of the project.
    pub favorited: bool,
    /// Whether it was saved for later, and not only for a dashboard.
    pub saved: bool,
    /// Whether it is hidden. Hidden insights are only in the answer to their change.
    pub deleted: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The user who created it; null if that user is no member any more.
    pub created_by: Option<User>,
    /// Time of the last change.
    pub last_modified_at: Timestamp,
    /// The user who changed it last; null if that user is no member any more.
    pub last_modified_by: Option<User>,
}

/// A new insight. The question is not read yet.
#[derive(Debug, Clone, PartialEq)]
pub struct InsightInput {
    /// The question as it was sent.
    pub query: Value,
    /// All other fields.
    pub rest: InsightPatch,
}

/// A change of an insight.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InsightPatch {
    /// Name.
    pub name: Patch<String>,
    /// Name that a client made from the question.
    pub derived_name: Patch<String>,
    /// Description.
    pub description: Patch<String>,
    /// Another question, as it was sent. It cannot be null.
    pub query: Patch<Value>,
    /// All dashboards that are to have a tile of the insight. Null means none.
    pub dashboards: Patch<Vec<DashboardId>>,
    /// Labels. Null means none.
    pub tags: Patch<Vec<String>>,
    /// Whether it is marked as a favorite.
    pub favorited: Patch<bool>,
    /// Whether it was saved for later.
    pub saved: Patch<bool>,
    /// Whether it is hidden.
    pub deleted: Patch<bool>,
}

/// Which insights a list has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InsightQuery {
    /// Part of the name or of `derived_name`, in any case.
    pub search: Option<String>,
    /// The short id.
    pub short_id: Option<String>,
    /// The value of `saved`.
    pub saved: Option<bool>,
    /// The value of `favorited`.
    pub favorited: Option<bool>,
    /// The user who created it.
    pub created_by: Option<UserId>,
}
