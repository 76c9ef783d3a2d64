//! Reading the names that a project's events use (API-48).

use std::sync::Arc;

use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyOwner};
use weir_model::pagination::{Page, Paged};
use weir_store::definitions as rows;

use crate::ctx::ProjectCtx;
use crate::{Core, Result};

/// The service for names in use.
#[derive(Clone)]
pub struct Definitions {
    core: Arc<Core>,
}

impl Definitions {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Event names that contain `search`, in order.
    pub async fn events(
        &self,
        project: &ProjectCtx,
        search: &str,
        page: Page,
    ) -> Result<Paged<EventDefinition>> {
        let mut all = rows::events(&self.core.store, project.project).await?;
        all.retain(|seen| contains(&seen.name, search));
        Ok(page.of(all))
    }

    /// Property names of `owner` that contain `search`, in order.
    pub async fn properties(
        &self,
        project: &ProjectCtx,
        owner: Option<PropertyOwner>,
        search: &str,
        page: Page,
    ) -> Result<Paged<PropertyDefinition>> {
        let mut all = rows::properties(&self.core.store, project.project).await?;
        all.retain(|seen| {
            owner.is_none_or(|owner| owner == seen.owner) && contains(&seen.name, search)
        });
        Ok(page.of(all))
    }
}

fn contains(name: &str, search: &str) -> bool {
    search.is_empty() || name.to_lowercase().contains(&search.to_lowercase())
}
