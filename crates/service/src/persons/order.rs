//! Persons in the order of their event counts.

use std::sync::Arc;

use weir_model::errors::FieldError;
use weir_model::pagination::Page;
use weir_model::persons::{PersonOrder, PersonRef};
use weir_store::counts::{self, RANKED};
use weir_store::persons as rows;

use super::Persons;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::error::Error;

pub use weir_store::counts::Ranking;

/// A page of persons in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered {
    /// The persons of the page. One that was merged since the order was made is omitted:
    /// the person that it was merged into has a place of its own.
    pub persons: Vec<PersonRef>,
    /// Whether there is a further page.
    pub has_next: bool,
    /// Whether there are persons behind the last page, which are not in order.
    pub is_cut: bool,
}

impl Persons {
    /// The persons of a project in an order.
    ///
    /// # Errors
    /// [`Error::Invalid`] while events from before an update are still being counted;
    /// [`Error::Unavailable`] while the order is being made.
    pub async fn ranking(&self, project: &ProjectCtx, order: PersonOrder) -> Result<Arc<Ranking>> {
        let (store, id) = (&self.core.store, project.project);
        let ranking = counts::ranking(store, id, order, self.core.clock.now()).await?;
        ranking.ok_or_else(|| {
            let detail = "The events from before the update are still being counted. Try again \
                          later, or list persons without an order.";
            Error::Invalid(FieldError::new("order", "not_ready", detail))
        })
    }

    /// A page of an order. All of its persons are in memory at the same time, so it must be
    /// small.
    pub async fn ordered(
        &self,
        project: &ProjectCtx,
        ranking: &Ranking,
        page: Page,
    ) -> Result<Ordered> {
        let (store, id) = (&self.core.store, project.project);
        let ids = page.slice(ranking.persons.clone());
        let mut found = rows::resolve(store, id, ids.iter().copied()).await?;
        let persons = ids.iter().filter_map(|id| found.remove(id).filter(|found| found.id == *id));
        let persons: Vec<PersonRef> = persons.map(Arc::unwrap_or_clone).collect();
        let end = usize::try_from(page.offset.saturating_add(page.limit)).unwrap_or(usize::MAX);
        let has_next = end < ranking.persons.len();
        let is_cut = ranking.all > RANKED || !ranking.is_complete;
        Ok(Ordered { persons, has_next, is_cut })
    }
}
