//! The instance, for staff.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter, facts, ui_error};
use crate::error::UiError;
use crate::facts::Facts;

/// The files of stored events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilesView {
    /// How often a file was found damaged or missing since the start.
    pub(crate) damage: u64,
    /// The bucket that the files are in, if they are in one.
    pub(crate) bucket: Option<BucketView>,
}

/// The bucket of the files of stored events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BucketView {
    /// `s3://bucket/prefix`.
    pub(crate) place: String,
    /// Why it could not be used last; `None` if nothing has failed since the last success.
    pub(crate) failure: Option<String>,
    /// Bytes of the copies in the data directory.
    pub(crate) cached_bytes: u64,
}

/// Data of the instance page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceView {
    /// Facts about the process.
    pub(crate) facts: Facts,
    /// The files of stored events.
    pub(crate) files: FilesView,
    /// Whether the instance sends mail.
    pub(crate) sends_mail: bool,
    /// Number of users.
    pub(crate) users: u64,
    /// Number of organizations.
    pub(crate) organizations: u64,
    /// Number of projects.
    pub(crate) projects: u64,
    /// Number of stored events.
    pub(crate) events: u64,
}

/// Returns the data of the instance page. Not found for other users than staff.
#[server(prefix = "/_fn", endpoint = "get_instance")]
pub(crate) async fn get_instance() -> Result<InstanceView, UiError> {
    let (services, ctx) = enter()?;
    let counts = services.instance.counts(&ctx).await.map_err(ui_error)?;
    let files = services.instance.event_files(&ctx).await.map_err(ui_error)?;
    let bucket = files.bucket.map(|bucket| BucketView {
        place: bucket.place,
        failure: bucket.failure,
        cached_bytes: bucket.cached_bytes,
    });
    Ok(InstanceView {
        facts: facts().await?,
        files: FilesView { damage: files.damage, bucket },
        sends_mail: services.identity.sends_mail(),
        users: counts.users,
        organizations: counts.organizations,
        projects: counts.projects,
        events: counts.events,
    })
}

/// Checks that the user is staff, for other pages of the instance. Not found for other
/// users.
#[server(prefix = "/_fn", endpoint = "enter_instance")]
pub(crate) async fn enter_instance() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.instance.enter(&ctx).await.map_err(ui_error)
}
