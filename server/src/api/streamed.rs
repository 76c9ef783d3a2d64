//! Lists that are sent while they are read. Their pages can be larger than the memory
//! that one request may use.
//!
//! A list that ends early looks like a complete one. So a fault after the beginning of
//! the answer closes the connection, and clients notice it.
//!
//! What belongs here: how items become the text of an answer. What does not: where they
//! are read; that is the implementation of [`PagedReader`].

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
use crate::limits::{Exhausted, StreamPermit};

/// Bytes of an answer that are collected before it begins. A shorter answer is sent as a
/// whole. A fault until then is answered with its status.
const BEGIN: usize = 1 << 20;
/// After this time the answer begins with what was read: the rest may take long to find.
const BEGIN_AFTER: Duration = Duration::from_secs(5);
/// Timeout of one read once the answer has begun.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a list batch by batch.
pub(super) trait PagedReader: Send + 'static {
    /// An item of the list.
    type Item: Serialize + Send;
    /// The members of the answer in addition to `results`.
    type Links: Serialize;

    /// Reads the next batch of results. An empty vector means that the page is complete.
    fn next_batch(&mut self) -> impl Future<Output = ApiResult<Vec<Self::Item>>> + Send;

    /// The links. Known once all results are read, or when the page ends early.
    fn links(&self) -> Self::Links;

    /// Whether the page may end early with a link. Its reader must not take a short page
    /// for the last one.
    fn may_end_early(&self) -> bool;
}

/// The members of the answer in addition to its results: a link to the next page.
#[derive(Debug, Serialize)]
pub(super) struct Next {
    pub(super) next: Option<String>,
}

/// Both links, for a list whose pages lead forward only.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Links {
    next: Option<String>,
    previous: Option<String>,
}

impl Links {
    pub(super) fn to(next: Option<String>) -> Self {
        Self { next, previous: None }
    }
}

/// Takes a permit to send a long answer.
///
/// # Errors
/// [`ApiError::TooManyLists`] when too many are being sent, in total or to this user.
pub(super) fn permit(app: &App, user: UserId) -> ApiResult<StreamPermit> {
    let most = app.limits.api_streams_per_user;
    app.permits.api_streams.enter(user).map_err(|Exhausted| ApiError::TooManyLists(most))
}

/// A list that is sent while it is read; `T` is its form in the API document.
#[derive(Debug)]
pub struct Streamed<T> {
    body: Body,
    list: PhantomData<fn() -> T>,
}

impl<T> Streamed<T> {
    /// Reads the beginning of the list, or all of a short one.
    ///
    /// # Errors
    /// Errors of the reads; [`ApiError::TooManyLists`] when too many long lists are being
    /// sent, in total or to this user.
    pub(super) async fn of(app: &App, user: UserId, reader: impl PagedReader) -> ApiResult<Self> {
        let text = br#"{"results":["#.to_vec();
        let began = Instant::now();
        let until = began + app.limits.sending.whole / 2;
        let mut list = Sending { reader, text, is_first: true, is_done: false, until };
        while list.text.len() < BEGIN && !list.is_done && began.elapsed() < BEGIN_AFTER {
            list.read().await?;
        }
        let body = if list.is_done {
            Body::from(list.text)
        } else {
            let permit = permit(app, user)?;
            let parts = stream::try_unfold(list, |mut list| async move {
                let text = list.take().await?;
                Ok(text.map(|text| (text, list)))
            });
            sending::body(parts, permit, app.limits.sending)
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
    reader: P,
    /// Text that is not sent yet.
    text: Vec<u8>,
    is_first: bool,
    is_done: bool,
    /// After this time the page ends with the results so far. Otherwise rare results or a
    /// slow reader would end in a closed connection.
    until: Instant,
}

impl<P: PagedReader> Sending<P> {
    async fn read(&mut self) -> ApiResult<()> {
        let is_late = self.reader.may_end_early() && Instant::now() >= self.until;
        let results = if is_late { Vec::new() } else { self.reader.next_batch().await? };
        let unwritable = |_| ApiError::internal("a result cannot be written as JSON");
        if results.is_empty() {
            self.is_done = true;
            // The members of the object are appended after `results`.
            let links = serde_json::to_vec(&self.reader.links()).map_err(unwritable)?;
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

    /// Returns the next part of the answer.
    async fn take(&mut self) -> io::Result<Option<Bytes>> {
        if self.text.is_empty() && !self.is_done {
            let read = timeout(READ_TIMEOUT, self.read()).await;
            read.unwrap_or(Err(ApiError::TimedOut)).map_err(|error| {
                tracing::warn!(%error, "a list was broken off while it was sent");
                io::Error::other(error)
            })?;
        }
        let text = std::mem::take(&mut self.text);
        Ok((!text.is_empty()).then(|| text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of numbers without end.
    struct Numbers {
        next: u32,
        may_end_early: bool,
    }

    impl PagedReader for Numbers {
        type Item = u32;
        type Links = Links;

        async fn next_batch(&mut self) -> ApiResult<Vec<u32>> {
            self.next += 1;
            Ok(vec![self.next - 1])
        }

        fn links(&self) -> Links {
            Links::to(Some(self.next.to_string()))
        }

        fn may_end_early(&self) -> bool {
            self.may_end_early
        }
    }

    #[tokio::test]
    async fn a_page_that_takes_too_long_ends_with_a_link_where_that_can_be_followed() {
        for (may_end_early, expected) in
            [(true, r#"0],"next":"1","previous":null}"#), (false, "0,1,2")]
        {
            let reader = Numbers { next: 0, may_end_early };
            let (text, until) = (Vec::new(), Instant::now() + READ_TIMEOUT);
            let mut list = Sending { reader, text, is_first: true, is_done: false, until };
            list.read().await.unwrap();
            list.until = Instant::now();
            for _ in 0..2 {
                if !list.is_done {
                    list.read().await.unwrap();
                }
            }
            assert_eq!((list.text.as_slice(), list.is_done), (expected.as_bytes(), may_end_early));
        }
    }
}
