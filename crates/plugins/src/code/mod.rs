//! Inspecting the code of plugins, and fetching it.
//!
//! What belongs here: what services ask about code ([`PluginCode`]). What does not:
//! running it for events (`transformations`, `deliveries`).

mod archive;
mod fetch;
mod inspect;
mod repository;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;
use weir_model::plugin_configs::DryStep;
use weir_model::plugins::address::Address;
use weir_model::{OrganizationId, UserId};
use weir_service::plugins::code::{Busy, CodeFault, DryTrial, Fetched, Inspected, PluginCode};

pub use fetch::Origins;

use crate::Plugins;

#[async_trait]
impl PluginCode for Plugins {
    async fn inspect(
        &self,
        user: UserId,
        organization: OrganizationId,
        files: &BTreeMap<String, String>,
    ) -> Result<Inspected, Busy> {
        self.shared.inspect(user, organization, files).await
    }

    async fn fetch(&self, address: &Address, token: Option<&str>) -> Result<Fetched, CodeFault> {
        self.shared.fetch_code(address, token).await
    }

    async fn latest(
        &self,
        address: &Address,
        token: Option<&str>,
    ) -> Result<Option<String>, CodeFault> {
        self.shared.latest_code(address, token).await
    }

    async fn extract(&self, archive: Bytes) -> Result<Fetched, CodeFault> {
        Ok(Fetched { files: extracted(archive, None).await?, tag: None })
    }

    async fn dry_run(&self, run: DryTrial) -> Result<Vec<DryStep>, Busy> {
        self.shared.try_steps(run).await
    }
}

/// Archives that are decompressed concurrently. Each takes memory and a thread.
static EXTRACTIONS: Semaphore = Semaphore::const_new(2);

/// Decompresses an archive on a blocking thread.
async fn extracted(
    archive: Bytes,
    folder: Option<String>,
) -> Result<BTreeMap<String, String>, CodeFault> {
    let permit = EXTRACTIONS.acquire().await;
    let work = move || {
        let extracted = archive::extract(&archive, folder.as_deref());
        drop(permit);
        extracted
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(extracted) => extracted.map_err(|fault| CodeFault::Unusable(fault.to_string())),
        Err(error) => {
            tracing::error!(%error, "extracting an archive failed");
            Err(CodeFault::Unusable("The archive cannot be read.".to_owned()))
        }
    }
}
