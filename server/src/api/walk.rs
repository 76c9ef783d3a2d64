//! Lists that are looked through from a place on, page by page: persons and groups.
//!
//! A page may be short when what is searched for is rare: it ends when nothing was found
//! for a time, and its link goes on from there. A caller who counts offsets would take
//! such a page for the end of the list, and gets an error.
//!
//! What belongs here: how steps make a page. What does not: a step (`weir-service`).

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_service::looking::{Step, too_deep};

use super::streamed::{Links, Pieces};
use crate::http::error::ApiResult;
use crate::http::pagination::{Filters, Listing};

/// Results that are read at a time.
const PIECE: u64 = 250;

/// Which results a step is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<At> {
    /// Where it begins; `None`: where the list does.
    pub(super) after: Option<At>,
    /// How many it passes over.
    pub(super) offset: u64,
    /// How many it gives at most.
    pub(super) limit: u64,
}

/// A list that is looked through from a place on.
pub(super) trait Steps: Send + 'static {
    /// What it lists.
    type Item: Serialize + Send;
    /// A place in it.
    type At: Copy + Display + Send;
    /// Its parameters: `after` among them.
    type Filters: Filters;

    /// The results from a place on, as many as are found `within` that time.
    fn step(
        &self,
        part: Part<Self::At>,
        within: Duration,
    ) -> impl Future<Output = ApiResult<Step<Self::Item, Self::At>>> + Send;
}

/// A page of such a list.
pub(super) struct Walk<S: Steps> {
    steps: S,
    listing: Listing<S::Filters>,
    /// Where the next step begins.
    after: Option<S::At>,
    /// How many results it passes over.
    offset: u64,
    /// How many results the page may still have.
    left: u64,
    /// Whether there are no more results at all.
    is_done: bool,
    /// How long steps that find nothing may still take.
    patience: Duration,
}

impl<S: Steps> Walk<S> {
    pub(super) fn begin(
        steps: S,
        listing: Listing<S::Filters>,
        after: Option<S::At>,
        patience: Duration,
    ) -> Self {
        let page = listing.page();
        let (offset, left) = (page.offset, page.limit);
        Self { steps, listing, after, offset, left, is_done: false, patience }
    }
}

impl<S: Steps> Pieces for Walk<S> {
    type Item = S::Item;
    type Links = Links;

    async fn next(&mut self) -> ApiResult<Vec<S::Item>> {
        while self.left > 0 && !self.is_done {
            let limit = self.left.min(PIECE);
            let part = Part { after: self.after, offset: self.offset, limit };
            let began = Instant::now();
            let Step { found, next } = self.steps.step(part, self.patience).await?;
            self.left = self.left.saturating_sub(found.len() as u64);
            match next {
                Some((after, offset)) => (self.after, self.offset) = (Some(after), offset),
                None => self.is_done = true,
            }
            if !found.is_empty() {
                return Ok(found);
            }
            self.patience = self.patience.saturating_sub(began.elapsed());
            if self.patience.is_zero() && !self.is_done {
                if self.listing.is_by_offset() {
                    return Err(too_deep().into());
                }
                break;
            }
        }
        Ok(Vec::new())
    }

    fn links(&self) -> Links {
        let next = self.after.filter(|_| !self.is_done);
        Links::to(next.map(|next| {
            self.listing.link(&[
                ("limit", Some(self.listing.page().limit.to_string())),
                ("offset", None),
                ("after", Some(next.to_string())),
            ])
        }))
    }

    fn may_end_early(&self) -> bool {
        !self.listing.is_by_offset()
    }
}
