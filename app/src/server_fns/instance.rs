//! The instance, for staff.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{anyone, enter, process_facts, redirect_with_notice, ui_error};
use crate::error::UiError;
use crate::process_facts::ProcessFacts;

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
    pub(crate) location: String,
    /// Why it could not be used last; `None` if nothing has failed since the last success.
    pub(crate) failure: Option<String>,
    /// Bytes of the copies in the data directory.
    pub(crate) cached_bytes: u64,
}

/// Data of the instance page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceView {
    /// Facts about the process.
    pub(crate) facts: ProcessFacts,
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
    /// The providers of single sign-on.
    pub(crate) providers: Vec<ProviderView>,
    /// Why sign-ins through them were refused, the newest reason of each provider first.
    pub(crate) refused_sign_ins: Vec<RefusedView>,
    /// Where a provider sends browsers back to, with `NAME` for its name.
    pub(crate) callback_url: String,
}

/// A provider of single sign-on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProviderView {
    pub(crate) name: String,
    pub(crate) label: String,
    /// The issuer; empty: the usual one.
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    /// Whether it is in the settings of the server.
    pub(crate) is_fixed: bool,
}

/// Sign-ins through a provider that were refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedView {
    /// The name of the provider.
    pub(crate) provider: String,
    pub(crate) reason: String,
    /// How many there were since the start.
    pub(crate) count: u64,
    /// When the last one was refused.
    pub(crate) last_at: String,
}

/// Returns the data of the instance page. Not found for other users than staff.
#[server(prefix = "/_fn", endpoint = "get_instance")]
pub(crate) async fn get_instance() -> Result<InstanceView, UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let counts = services.instance.counts(&ctx).await.map_err(ui_error)?;
    let providers = services.providers.list(&ctx).await.map_err(ui_error)?;
    let shown = |facts: weir_service::sso::ProviderFacts| ProviderView {
        name: facts.name.text().to_owned(),
        label: facts.label,
        issuer: facts.issuer,
        client_id: facts.client_id,
        is_fixed: facts.is_fixed,
    };
    let mut refused_sign_ins = Vec::new();
    for (name, list) in services.identity.refused_sign_ins(&ctx).await.map_err(ui_error)? {
        refused_sign_ins.extend(list.into_iter().map(|one| RefusedView {
            provider: name.text().to_owned(),
            reason: one.reason,
            count: one.count,
            last_at: one.last_at.to_string(),
        }));
    }
    let files = services.instance.event_files(&ctx).await.map_err(ui_error)?;
    let bucket = files.bucket.map(|bucket| BucketView {
        location: bucket.location,
        failure: bucket.failure,
        cached_bytes: bucket.cached_bytes,
    });
    Ok(InstanceView {
        facts: process_facts().await?,
        files: FilesView { damage: files.damage, bucket },
        sends_mail: services.identity.sends_mail(),
        users: counts.users,
        organizations: counts.organizations,
        projects: counts.projects,
        events: counts.events,
        providers: providers.into_iter().map(shown).collect(),
        refused_sign_ins,
        callback_url: format!("{}/complete/NAME/", visit.origin),
    })
}

/// The page of the instance.
#[cfg(feature = "ssr")]
const INSTANCE: &str = "/instance";

/// Adds or changes a provider of single sign-on.
#[server(prefix = "/_fn", endpoint = "save_provider")]
pub(crate) async fn save_provider(
    name: String,
    #[server(default)] label: String,
    #[server(default)] issuer: String,
    client_id: String,
    #[server(default)] client_secret: String,
) -> Result<(), UiError> {
    use weir_service::sso::ProviderInput;

    let (services, ctx) = enter()?;
    let client_secret = client_secret.into();
    let input = ProviderInput { name, label, issuer, client_id, client_secret };
    services.providers.save(&ctx, input).await.map_err(ui_error)?;
    redirect_with_notice(INSTANCE, "The provider is saved.");
    Ok(())
}

/// Removes a provider of single sign-on.
#[server(prefix = "/_fn", endpoint = "remove_provider")]
pub(crate) async fn remove_provider(name: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.providers.remove(&ctx, &name).await.map_err(ui_error)?;
    redirect_with_notice(INSTANCE, "The provider is removed.");
    Ok(())
}

/// Checks that the user is staff, for other pages of the instance. Not found for other
/// users.
#[server(prefix = "/_fn", endpoint = "enter_instance")]
pub(crate) async fn enter_instance() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.instance.enter(&ctx).await.map_err(ui_error)
}
