//! Ingestion, as the services use it.
//!
//! What belongs here: passing calls on. What does not: when they are made
//! (`weir_service::persons`), and what they do (`weir_ingest`).

use async_trait::async_trait;
use weir_ingest::Ingest;
use weir_model::{PersonId, ProjectId};
use weir_service::persons::Applying;

/// Ingestion of this process.
pub struct AppApplying(pub Ingest);

#[async_trait]
impl Applying for AppApplying {
    async fn applied(&self) {
        self.0.applied().await;
    }

    fn forget_persons(&self, project: ProjectId, persons: &[PersonId]) {
        self.0.forget_persons(project, persons);
    }
}
