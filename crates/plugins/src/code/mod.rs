//! Inspecting the code of plugins, and fetching it.
//!
//! What belongs here: what services ask about code ([`PluginCode`]). What does not:
//! running it for events (`transformations`, `deliveries`).

mod archive;
mod fetch;
mod look;
mod place;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;
use weir_model::OrganizationId;
use weir_model::plugin_configs::DryStep;
use weir_model::plugins::address::Address;
use weir_service::plugins::code::{CodeFault, DryTrial, Fetched, Looked, PluginCode};

pub use fetch::Origins;

use crate::Plugins;

#[async_trait]
impl PluginCode for Plugins {
    async fn look(&self, organization: OrganizationId, files: &BTreeMap<String, String>) -> Looked {
        self.shared.look_at(organization, files).await
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

    async fn unpack(&self, archive: Bytes) -> Result<Fetched, CodeFault> {
        Ok(Fetched { files: unpacked(archive, None).await?, tag: None })
    }

    async fn dry_run(&self, run: DryTrial) -> Vec<DryStep> {
        self.shared.try_steps(run).await
    }
}

/// Archives that are decompressed concurrently. Each takes memory and a thread.
static UNPACKING: Semaphore = Semaphore::const_new(2);

/// Decompresses an archive on a blocking thread.
async fn unpacked(
    archive: Bytes,
    folder: Option<String>,
) -> Result<BTreeMap<String, String>, CodeFault> {
    let place = UNPACKING.acquire().await;
    let work = move || {
        let unpacked = archive::unpack(&archive, folder.as_deref());
        drop(place);
        unpacked
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(unpacked) => unpacked.map_err(|fault| CodeFault::Unusable(fault.to_string())),
        Err(error) => {
            tracing::error!(%error, "unpacking an archive failed");
            Err(CodeFault::Unusable("The archive cannot be read.".to_owned()))
        }
    }
}
