//! What is shown about many plugins (PLG-12): the catalogue, and what was done
//! with plugins.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::activity::{Activity, Deed, FieldChange, Subject};
use crate::time::Timestamp;

/// A plugin that can be installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CatalogueEntry {
    /// Name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// What it does.
    pub description: String,
    /// Address of its icon.
    pub icon: Option<String>,
    /// Whether somebody checked it.
    pub verified: bool,
    /// `official` or `community`.
    pub maintainer: String,
    /// Whether it is to be shown.
    #[serde(rename = "displayOnWebsiteLib")]
    pub display_on_website_lib: bool,
    /// `data_in`, `data_out`, `ingestion_filtering` or `frontend`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Something that was done with a plugin or a config of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginActivity {
    /// Id, in order of time.
    pub id: Uuid,
    /// Who did it; null when the account is gone.
    pub user: Option<PluginActivityUser>,
    /// What was done.
    pub activity: Deed,
    /// To what kind of thing.
    pub scope: Subject,
    /// Id of the thing.
    pub item_id: String,
    /// What was changed.
    pub detail: PluginActivityDetail,
    /// When.
    pub created_at: Timestamp,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginActivityUser {
    /// First name; `System`: the service did it by itself.
    pub first_name: String,
    /// Address; null: the service did it by itself.
    pub email: Option<String>,
    /// Whether the service did it by itself.
    pub is_system: bool,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginActivityDetail {
    /// The thing's name at that time.
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
