//! Lists that are sent while they are read: their pages can be larger than what one
//! request may hold in memory.
//!
//! A list that ends early would pass for a complete one. So a fault after the answer
//! has begun breaks the connection off, and clients notice it.
//!
//! What belongs here: how pieces become the text of an answer. What does not: what
//! they are read from; that is [`Pieces`].

use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, header};
use serde::Serialize;
use tokio::time::timeout;
use weir_model::UserId;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::sending;
use crate::limits::Exhausted;

/// Bytes of an answer that are collected before it begins: a shorter one is sent as a
/// whole, and a fault until then has a status.
const BEGIN: usize = 1 << 20;
/// After this time it begins with what there is: the rest may take long to find.
const BEGIN_AFTER: Duration = Duration::from_secs(5);
/// For reading one piece once the answer has begun.
const PIECE_WITHIN: Duration = Duration::from_secs(30);

/// A list that is read piece by piece.
pub(super) trait Pieces: Send + 'static {
    /// What it lists.
    type Item: Serialize + Send;
    /// The members of the answer beside `results`.
    type Links: Serialize;

    /// The next results; none: these were all of the page.
    fn next(&mut self) -> impl Future<Output = ApiResult<Vec<Self::Item>>> + Send;

    /// Known once all results are read.
    fn links(&self) -> Self::Links;
}

/// What the answer has beside its results: a link to the next page.
#[derive(Debug, Serialize)]
pub(super) struct Next {
    pub(super) next: Option<String>,
}

/// Both links, of a list whose pages lead forward only.
#[derive(Debug, Serialize)]
pub(super) struct Links {
    next: Option<String>,
    previous: Option<String>,
}

impl Links {
    pub(super) fn to(next: Option<String>) -> Self {
        Self { next, previous: None }
    }
}

/// A list that is sent as it is read; `T` is its form.
#[derive(Debug)]
pub struct Streamed<T> {
    body: Body,
    list: PhantomData<fn() -> T>,
}

impl<T> Streamed<T> {
    /// Reads the beginning, or all if that is short.
    ///
    /// # Errors
    /// Whatever reading meets; [`ApiError::TooManyLists`] when too many long lists are
    /// being sent, in all or to this person.
    pub(super) async fn of(app: &App, reader: UserId, pieces: impl Pieces) -> ApiResult<Self> {
        let text = br#"{"results":["#.to_vec();
        let mut list = Sending { pieces, text, is_first: true, is_done: false };
        let began = Instant::now();
        while list.text.len() < BEGIN && !list.is_done && began.elapsed() < BEGIN_AFTER {
            list.read().await?;
        }
        let body = if list.is_done {
            Body::from(list.text)
        } else {
            let most = app.limits.api_streams_per_person;
            let place = app.shares.api_streams.enter(reader);
            let place = place.map_err(|Exhausted| ApiError::TooManyLists(most))?;
            let parts = stream::try_unfold(list, |mut list| async move {
                let text = list.take().await?;
                Ok(text.map(|text| (text, list)))
            });
            sending::body(parts, place, app.limits.sending)
        };
        Ok(Self { body, list: PhantomData })
    }
}

impl<T> IntoResponse for Streamed<T> {
    fn into_response(self) -> Response {
        let mut response = self.body.into_response();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

struct Sending<P> {
    pieces: P,
    /// What is not sent yet.
    text: Vec<u8>,
    is_first: bool,
    is_done: bool,
}

impl<P: Pieces> Sending<P> {
    async fn read(&mut self) -> ApiResult<()> {
        let results = self.pieces.next().await?;
        let unwritable = |_| ApiError::internal("a result cannot be written as JSON");
        if results.is_empty() {
            self.is_done = true;
            // The members of an object, behind those that are there.
            let links = serde_json::to_vec(&self.pieces.links()).map_err(unwritable)?;
            self.text.extend_from_slice(b"],");
            self.text.extend_from_slice(links.strip_prefix(b"{").unwrap_or_default());
        }
        for result in results {
            if !std::mem::take(&mut self.is_first) {
                self.text.push(b',');
            }
            serde_json::to_writer(&mut self.text, &result).map_err(unwritable)?;
        }
        Ok(())
    }

    /// The next part of the answer.
    async fn take(&mut self) -> io::Result<Option<Bytes>> {
        if self.text.is_empty() && !self.is_done {
            let read = timeout(PIECE_WITHIN, self.read()).await;
            read.unwrap_or(Err(ApiError::TimedOut)).map_err(|error| {
                tracing::warn!(%error, "a list was broken off while it was sent");
                io::Error::other(error)
            })?;
        }
        let text = std::mem::take(&mut self.text);
        Ok((!text.is_empty()).then(|| text.into()))
    }
}
