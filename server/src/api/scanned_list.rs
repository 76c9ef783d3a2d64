//! Pages of lists without an index for their filter. Persons and groups are scanned from a
//! cursor.
//!
//! A page may be short when matches are rare: it ends when nothing was found for some
//! time, and its link continues from there. A caller who pages by `offset` would take such
//! a page for the last one, so that caller gets an error.
//!
//! What belongs here: how steps make a page. What does not: a single step
//! (`weir-service`).

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_service::scan::{ScanStep, offset_too_large};

use super::streamed::{Links, PagedReader};
use crate::http::error::ApiResult;
use crate::http::pagination::{Filters, Listing};

/// Results that are read at a time.
const BATCH: u64 = 250;

/// The results that a step reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchRequest<At> {
    /// The cursor to begin after; `None` for the beginning of the list.
    pub(super) after: Option<At>,
    /// How many results the step skips.
    pub(super) offset: u64,
    /// The most results that the step returns.
    pub(super) limit: u64,
}

/// A list that is scanned from a cursor.
pub(super) trait ScannedList: Send + 'static {
    /// An item of the list.
    type Item: Serialize + Send;
    /// A cursor in the list.
    type At: Copy + Display + Send;
    /// Its query parameters, including `after`.
    type Filters: Filters;

    /// The results after a cursor, as many as are found `within` that time.
    fn step(
        &self,
        request: BatchRequest<Self::At>,
        within: Duration,
    ) -> impl Future<Output = ApiResult<ScanStep<Self::Item, Self::At>>> + Send;
}

/// A page of such a list.
pub(super) struct ScanPage<S: ScannedList> {
    list: S,
    listing: Listing<S::Filters>,
    /// The cursor where the next step begins.
    after: Option<S::At>,
    /// How many results the next step skips.
    offset: u64,
    /// How many results the page may still have.
    left: u64,
    /// Whether the end of the list is reached.
    is_done: bool,
    /// How long steps that find nothing may still run.
    idle_time_left: Duration,
}

impl<S: ScannedList> ScanPage<S> {
    pub(super) fn begin(
        list: S,
        listing: Listing<S::Filters>,
        after: Option<S::At>,
        idle_time_left: Duration,
    ) -> Self {
        let page = listing.page();
        let (offset, left) = (page.offset, page.limit);
        Self { list, listing, after, offset, left, is_done: false, idle_time_left }
    }
}

impl<S: ScannedList> PagedReader for ScanPage<S> {
    type Item = S::Item;
    type Links = Links;

    async fn next_batch(&mut self) -> ApiResult<Vec<S::Item>> {
        while self.left > 0 && !self.is_done {
            let limit = self.left.min(BATCH);
            let request = BatchRequest { after: self.after, offset: self.offset, limit };
            let began = Instant::now();
            let ScanStep { found, next } = self.list.step(request, self.idle_time_left).await?;
            self.left = self.left.saturating_sub(found.len() as u64);
            match next {
                Some((after, offset)) => (self.after, self.offset) = (Some(after), offset),
                None => self.is_done = true,
            }
            if !found.is_empty() {
                return Ok(found);
            }
            self.idle_time_left = self.idle_time_left.saturating_sub(began.elapsed());
            if self.idle_time_left.is_zero() && !self.is_done {
                if self.listing.is_by_offset() {
                    return Err(offset_too_large().into());
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
