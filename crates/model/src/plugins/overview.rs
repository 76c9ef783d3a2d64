//! Overviews of many plugins (PLG-12): the catalogue, and the activity of plugins.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::activity::{Activity, AuditAction, FieldChange, Subject};
use crate::time::Timestamp;

/// A plugin that can be installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CatalogueEntry {
    /// Name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Description for users.
    pub description: String,
    /// Address of its icon.
    pub icon: Option<String>,
    /// Whether it was reviewed.
    pub verified: bool,
    /// `official` or `community`.
    pub maintainer: String,
    /// Whether it is shown.
    #[serde(rename = "displayOnWebsiteLib")]
    pub display_on_website_lib: bool,
    /// `data_in`, `data_out`, `ingestion_filtering` or `frontend`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// An audit entry about a plugin or a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginActivity {
    /// Id of the audit entry. Ids increase with time.
    pub id: Uuid,
    /// The user who made the change; null if the user was deleted.
    pub user: Option<PluginActivityUser>,
    /// The action.
    pub activity: AuditAction,
    /// The kind of object.
    pub scope: Subject,
    /// Id of the object.
    pub item_id: String,
    /// The changes.
    pub detail: PluginActivityDetail,
    /// Time of the change.
    pub created_at: Timestamp,
}

/// The user of an audit entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginActivityUser {
    /// First name; `System`: the service made the change automatically.
    pub first_name: String,
    /// Mail address; null: the service made the change automatically.
    pub email: Option<String>,
    /// Whether the service made the change automatically.
    pub is_system: bool,
}

/// The changes of an audit entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginActivityDetail {
    /// Name of the object at that time.
    pub name: Option<String>,
    /// The fields that changed.
    pub changes: Vec<FieldChange>,
    /// Always null.
    pub merge: Option<String>,
    /// Always null.
    pub trigger: Option<String>,
    /// Always null.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Always null.
    pub short_id: Option<String>,
}

impl From<Activity> for PluginActivity {
    fn from(entry: Activity) -> Self {
        let system =
            || PluginActivityUser { first_name: "System".to_owned(), email: None, is_system: true };
        let person = entry.user.map(|user| PluginActivityUser {
            first_name: user.first_name,
            email: Some(user.email),
            is_system: false,
        });
        Self {
            id: entry.id,
            user: if entry.is_system { Some(system()) } else { person },
            activity: entry.activity,
            scope: entry.scope,
            item_id: entry.item_id,
            detail: PluginActivityDetail {
                name: entry.detail.name,
                changes: entry.detail.changes,
                merge: None,
                trigger: None,
                kind: None,
                short_id: None,
            },
            created_at: entry.created_at,
        }
    }
}
