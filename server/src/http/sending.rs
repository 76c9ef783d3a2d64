//! Answers that are sent while they are made. Their readers hold a permit until the end.
//!
//! What belongs here: releasing the permit and the prepared data in bounded time, even
//! for a slow reader. A body alone cannot do that, because it is not polled while its
//! reader takes nothing. What does not: the content that is sent.

use std::io;
use std::pin::pin;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc::{self, Sender};
use tokio::time::timeout;

use crate::limits::SendLimits;

/// Why the rest of an answer is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Unsent {
    #[error("its reader went away")]
    Gone,
    #[error("its reader does not read")]
    Slow,
    #[error("it took too long")]
    Late,
    #[error("the rest could not be made")]
    Failed,
}

/// The body of an answer of these parts. An aborted answer never looks complete.
pub(crate) fn body<S, P>(parts: S, permit: P, limits: SendLimits) -> Body
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    P: Send + 'static,
{
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let sent = timeout(limits.whole, send(parts, &sender, limits)).await;
        match sent.unwrap_or(Err(Unsent::Late)) {
            Ok(()) | Err(Unsent::Gone | Unsent::Failed) => {}
            Err(reason) => tracing::warn!(%reason, "a long answer was broken off"),
        }
        drop(permit);
    });
    Body::from_stream(stream::try_unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Some(Some(part)) => Ok(Some((part, receiver))),
            Some(None) => Ok(None),
            None => Err(io::Error::new(io::ErrorKind::TimedOut, "the answer was broken off")),
        }
    }))
}

/// Sends all parts, then a mark that the answer is complete.
async fn send(
    parts: impl Stream<Item = io::Result<Bytes>>,
    to: &Sender<Option<Bytes>>,
    limits: SendLimits,
) -> Result<(), Unsent> {
    let hand_over = async |part| match timeout(limits.part, to.send(part)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Unsent::Gone),
        Err(_elapsed) => Err(Unsent::Slow),
    };
    let mut parts = pin!(parts);
    loop {
        let next = tokio::select! {
            () = to.closed() => return Err(Unsent::Gone),
            next = parts.next() => next,
        };
        let Some(made) = next else { return hand_over(None).await };
        let mut made = made.map_err(|_| Unsent::Failed)?;
        while !made.is_empty() {
            let part = made.split_to(limits.part_bytes.min(made.len()));
            hand_over(Some(part)).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use http_body_util::BodyExt as _;
    use tokio::sync::Semaphore;

    use super::*;

    const LIMITS: SendLimits =
        SendLimits { whole: Duration::from_secs(60), part: Duration::from_secs(60), part_bytes: 4 };

    fn endless() -> impl Stream<Item = io::Result<Bytes>> {
        stream::repeat_with(|| Ok(Bytes::from_static(b"0123456789")))
    }

    /// An answer of these parts whose reader holds the only permit.
    fn answer(
        parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        limits: SendLimits,
    ) -> (Arc<Semaphore>, Body) {
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        (permits, body(parts, permit, limits))
    }

    async fn is_free(permits: &Semaphore) {
        let permit = timeout(Duration::from_secs(30), permits.acquire()).await;
        drop(permit.expect("the permit is released"));
    }

    #[tokio::test]
    async fn a_complete_answer_ends() {
        let parts = ["0123456789", "", "ab"].map(|part| Ok(Bytes::from(part)));
        let (permits, body) = answer(stream::iter(parts), LIMITS);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "0123456789ab");
        is_free(&permits).await;
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_loses_its_permit() {
        let limits = SendLimits { part: Duration::from_millis(20), ..LIMITS };
        let (permits, body) = answer(endless(), limits);
        is_free(&permits).await;
        assert!(body.collect().await.is_err(), "it does not look complete");
    }

    #[tokio::test]
    async fn a_reader_that_reads_slowly_loses_its_permit_in_the_end() {
        let limits = SendLimits { whole: Duration::from_millis(100), ..LIMITS };
        let (permits, mut body) = answer(endless(), limits);
        let mut pace = tokio::time::interval(Duration::from_millis(5));
        let ended = async {
            while body.frame().await.is_some_and(|frame| frame.is_ok()) {
                pace.tick().await;
            }
        };
        timeout(Duration::from_secs(30), ended).await.unwrap();
        is_free(&permits).await;
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_releases_its_permit() {
        let (permits, body) = answer(stream::pending(), LIMITS);
        drop(body);
        is_free(&permits).await;
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_made_is_broken_off() {
        let parts = [Ok(Bytes::from("ab")), Err(io::Error::other("broken"))];
        let (permits, body) = answer(stream::iter(parts), LIMITS);
        assert!(body.collect().await.is_err());
        is_free(&permits).await;
    }
}
