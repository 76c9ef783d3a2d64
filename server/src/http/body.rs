//! Reading request bodies within their limits: size, time, progress, and the budget of
//! bytes that all bodies share (SEC-17).
//!
//! Bytes are taken from the budget before memory for them is allocated, in steps that
//! follow the arrived bytes. If the announced length were taken at the start, a dozen
//! idle connections that announce large bodies would lock out all other clients. While a
//! body arrives, its bytes also count against the client's networks. Otherwise a few slow
//! senders would hold the whole budget.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::http::error::ApiError;
use crate::http::peer::ClientAddress;
use crate::limits::{BodyLimits, BodyRoom, Budget, HeldBytes};

/// Size of the first buffer. A body gets a larger one only when this many bytes have
/// arrived, even if it announces more.
const FIRST: usize = 16 << 10;
/// Largest ratio of a buffer to the arrived bytes, for a body with an announced length.
const AHEAD: usize = 4;
/// The ratio for a body without an announced length.
const AHEAD_UNANNOUNCED: usize = 2;

/// Bytes of a refused body that are discarded, however small its limit is. They take no
/// memory. A long form of a session that has ended is larger than two limits of an unknown
/// sender.
const DISCARDED: usize = 4 << 20;

/// A body that was read, and its bytes in the budget.
#[derive(Debug)]
pub struct Collected {
    /// The body.
    pub bytes: Bytes,
    /// The bytes in the budget, released when dropped.
    pub held: HeldBytes,
}

/// As [`Collected`]. Clones share both.
#[derive(Debug, Clone)]
pub struct SharedBody {
    /// The body.
    pub bytes: Bytes,
    /// The bytes in the budget, released when all clones are dropped.
    pub held: Arc<HeldBytes>,
}

impl From<Collected> for SharedBody {
    fn from(Collected { bytes, held }: Collected) -> Self {
        Self { bytes, held: Arc::new(held) }
    }
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// The body has more bytes than allowed.
    TooLarge,
    /// The sender does not make progress.
    TooSlow,
    /// The sender closed the connection or broke the protocol.
    Broken,
    /// All bodies together use up the budget.
    NoRoom,
}

impl BodyFault {
    /// The fault as an answer of the management API or the web app, where a body may have
    /// `limit` bytes.
    #[must_use]
    pub fn into_api_error(self, limit: usize) -> ApiError {
        match self {
            Self::TooLarge => ApiError::TooLarge(limit),
            Self::TooSlow => ApiError::TooSlow,
            Self::Broken => ApiError::Malformed("The body broke off.".to_owned()),
            Self::NoRoom => ApiError::Busy,
        }
    }
}

/// Reads a body to its end. A refused body is read further and discarded, up to two more
/// limits and at least [`DISCARDED`] bytes. Otherwise a client that is still sending would
/// see a reset connection instead of the answer (ING-20).
///
/// # Errors
/// [`BodyFault`] with the reason.
pub async fn collect(
    parts: &Parts,
    body: Body,
    limits: &BodyLimits,
    budget: &Budget,
) -> Result<Collected, BodyFault> {
    let declared = declared_length(&parts.headers);
    let mut reader = Reader::new(body, limits);
    if declared.is_some_and(|length| length > limits.size) {
        // A client that sends `Expect` has not begun to send the body.
        if !parts.headers.contains_key(header::EXPECT) {
            reader.discard_rest().await;
        }
        return Err(BodyFault::TooLarge);
    }
    let room = budget.room(ClientAddress::networks(&parts.extensions), declared);
    match read(&mut reader, declared, room).await {
        Err(fault @ (BodyFault::TooLarge | BodyFault::NoRoom)) => {
            reader.discard_rest().await;
            Err(fault)
        }
        outcome @ (Ok(_) | Err(BodyFault::TooSlow | BodyFault::Broken)) => outcome,
    }
}

/// The announced length of the body.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn read(
    reader: &mut Reader,
    declared: Option<usize>,
    mut room: BodyRoom,
) -> Result<Collected, BodyFault> {
    let (announced, ahead) = match declared {
        Some(length) => (length, AHEAD),
        None => (reader.limits.size, AHEAD_UNANNOUNCED),
    };
    let mut bytes = BytesMut::new();
    while let Some(chunk) = reader.next().await? {
        let length = bytes.len() + chunk.len();
        if length > reader.limits.size {
            return Err(BodyFault::TooLarge);
        }
        if length > bytes.capacity() {
            // Allocating the announced length would reserve address space that costs the
            // sender nothing, and a failed allocation ends the process. Growing in many
            // small steps would leave as many bytes again in freed buffers, which are not
            // counted.
            let wanted = if length > FIRST { ahead * length } else { FIRST };
            let buffer = wanted.min(announced).max(length);
            room.grow_to(buffer).map_err(|_| BodyFault::NoRoom)?;
            let mut larger = BytesMut::with_capacity(buffer);
            larger.extend_from_slice(&bytes);
            bytes = larger;
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Collected { bytes: bytes.freeze(), held: room.arrived() })
}

/// Reads chunk by chunk and watches the sender's progress.
struct Reader {
    body: Body,
    limits: BodyLimits,
    /// When the body must be complete.
    end: Instant,
    /// When the body must have made progress.
    deadline: Instant,
    since_deadline: usize,
}

impl Reader {
    fn new(body: Body, limits: &BodyLimits) -> Self {
        let now = Instant::now();
        Self {
            body,
            limits: *limits,
            end: now + limits.time,
            deadline: now + limits.progress_time,
            since_deadline: 0,
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, BodyFault> {
        loop {
            let deadline = self.deadline.min(self.end);
            let frame = match tokio::time::timeout_at(deadline, self.body.frame()).await {
                Err(_elapsed) => return Err(BodyFault::TooSlow),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(BodyFault::Broken),
                Ok(Some(Ok(frame))) => frame,
            };
            // Trailers are ignored.
            let Ok(chunk) = frame.into_data() else { continue };
            self.since_deadline += chunk.len();
            if self.since_deadline >= self.limits.progress_bytes {
                self.since_deadline = 0;
                self.deadline = Instant::now() + self.limits.progress_time;
            }
            return Ok(Some(chunk));
        }
    }

    /// Discards up to two more limits of bytes, and at least [`DISCARDED`].
    async fn discard_rest(&mut self) {
        // Long enough for a regular upload, and too short to be useful for an attack.
        const AT_MOST: Duration = Duration::from_secs(20);
        let most = (2 * self.limits.size).max(DISCARDED);
        let all = async {
            let mut seen = 0;
            while let Ok(Some(chunk)) = self.next().await {
                seen += chunk.len();
                if seen > most {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(AT_MOST, all).await;
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::limits::ByteLimits;
    use futures::StreamExt as _;

    /// The smallest number of bytes that a body takes of a budget.
    const STEP: usize = 16 << 10;
    const LIMITS: BodyLimits = BodyLimits {
        size: 10,
        time: Duration::from_secs(5),
        progress_time: Duration::from_secs(5),
        progress_bytes: 4,
    };

    fn chunks(parts: &[&'static str]) -> Body {
        let parts: Vec<Result<Bytes, std::io::Error>> =
            parts.iter().map(|part| Ok(Bytes::from_static(part.as_bytes()))).collect();
        Body::from_stream(futures::stream::iter(parts))
    }

    /// A body of these parts that does not end.
    fn unfinished(parts: &[&'static str]) -> Body {
        Body::from_stream(chunks(parts).into_data_stream().chain(futures::stream::pending()))
    }

    fn budget(bytes: usize, per_network: usize) -> Budget {
        let per_network = [per_network; 3];
        Budget::new(&ByteLimits { total: bytes, per_network, reserve: 0, small_body: 0 })
    }

    /// The head of a request from this client address.
    fn head(client: &str) -> Parts {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.extensions.insert(ClientAddress(client.parse().unwrap()));
        parts
    }

    #[tokio::test]
    async fn size_is_limited_with_and_without_an_announcement() {
        let budget = budget(1 << 20, 1 << 20);
        let mut head = head("192.0.2.1");
        let body = collect(&head, chunks(&["01234", "56789"]), &LIMITS, &budget).await;
        assert_eq!(body.unwrap().bytes, "0123456789");
        let fault = collect(&head, chunks(&["01234", "567890"]), &LIMITS, &budget).await;
        assert_eq!(fault.unwrap_err(), BodyFault::TooLarge);
        head.headers.insert(header::CONTENT_LENGTH, "11".parse().unwrap());
        let fault = collect(&head, chunks(&[]), &LIMITS, &budget).await;
        assert_eq!(fault.unwrap_err(), BodyFault::TooLarge);
        assert_eq!(budget.free(), 1 << 20);
    }

    /// Closing a connection with unread bytes resets it, and the answer is lost.
    #[tokio::test]
    async fn a_refused_body_is_read_to_its_end_within_a_bound() {
        let budget = budget(1 << 20, 1 << 20);
        let chunk: &'static str = "x".repeat(DISCARDED / 4).leak();
        for (chunks, expected) in [(1, 0), (4, 0), (8, 2)] {
            let left = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(chunks));
            let counter = left.clone();
            let counted = futures::stream::iter(0..chunks).map(move |_| {
                counter.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                Ok::<_, std::io::Error>(Bytes::from_static(chunk.as_bytes()))
            });
            let body = Body::from_stream(counted);
            let fault = collect(&head("192.0.2.1"), body, &LIMITS, &budget).await.unwrap_err();
            assert_eq!(fault, BodyFault::TooLarge);
            assert_eq!(left.load(std::sync::atomic::Ordering::Relaxed), expected, "{chunks}");
        }
    }

    #[tokio::test]
    async fn what_was_announced_takes_no_room_before_it_arrives() {
        let limits = BodyLimits { size: 64 * STEP, ..LIMITS };
        let budget = budget(1 << 30, 1 << 30);
        let chunk: &'static str = "x".repeat(STEP).leak();
        // Sizes of arriving parts, and the bytes that are held after them.
        for (announced, expected) in [
            (Some(64), [(1, 1), (2, 8), (8, 8), (9, 36), (37, 64)]),
            (Some(9), [(1, 1), (2, 8), (4, 8), (7, 8), (8, 8)]),
            (None, [(1, 1), (2, 4), (5, 10), (11, 22), (47, 64)]),
        ] {
            let mut head = head("192.0.2.1");
            if let Some(steps) = announced {
                head.headers.insert(header::CONTENT_LENGTH, (steps * STEP).into());
            }
            for (arrived, held) in expected {
                let body = unfinished(&vec![chunk; arrived]);
                let mut reading = Box::pin(collect(&head, body, &limits, &budget));
                assert!(futures::poll!(reading.as_mut()).is_pending());
                assert_eq!((1 << 30) - budget.free(), held * STEP, "{announced:?}: {arrived}");
            }
        }
    }

    #[tokio::test]
    async fn the_budget_is_shared() {
        let (budget, head) = (budget(STEP, 1 << 20), head("192.0.2.1"));
        let first = collect(&head, chunks(&["01"]), &LIMITS, &budget).await.unwrap();
        let second = collect(&head, chunks(&["01"]), &LIMITS, &budget).await;
        assert_eq!(second.unwrap_err(), BodyFault::NoRoom);
        drop(first);
        assert!(collect(&head, chunks(&["01"]), &LIMITS, &budget).await.is_ok());
    }

    #[tokio::test]
    async fn a_network_that_sends_slowly_holds_its_part_only() {
        let budget = budget(1 << 20, 2 * STEP);
        let (slow, other) = (head("192.0.2.1"), head("198.51.100.2"));
        let mut open: Vec<_> = (0..2)
            .map(|_| Box::pin(collect(&slow, unfinished(&["01"]), &LIMITS, &budget)))
            .collect();
        for body in &mut open {
            assert!(futures::poll!(body.as_mut()).is_pending());
        }
        let third = collect(&slow, chunks(&["01"]), &LIMITS, &budget).await;
        assert_eq!(third.unwrap_err(), BodyFault::NoRoom);
        assert!(collect(&other, chunks(&["01"]), &LIMITS, &budget).await.is_ok());
        drop(open);
        // Bytes of complete bodies do not count against the networks: their processing
        // does not depend on the sender.
        let mut kept = Vec::new();
        for _ in 0..4 {
            kept.push(collect(&slow, chunks(&["01"]), &LIMITS, &budget).await.unwrap());
        }
    }

    #[tokio::test]
    async fn slow_senders_are_given_up() {
        let limits = BodyLimits { progress_time: Duration::from_millis(50), ..LIMITS };
        let (budget, head) = (budget(1 << 20, 1 << 20), head("192.0.2.1"));
        let fault = collect(&head, unfinished(&["x"]), &limits, &budget).await;
        assert_eq!(fault.unwrap_err(), BodyFault::TooSlow);
    }

    #[tokio::test]
    async fn a_body_ends_in_time_however_steadily_it_comes() {
        let pace = tokio::time::interval(Duration::from_millis(10));
        let steady = futures::stream::unfold(pace, async |mut pace| {
            pace.tick().await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), pace))
        });
        let time = Duration::from_millis(200);
        let limits = BodyLimits { size: 1 << 20, time, progress_bytes: 1, ..LIMITS };
        let (budget, head) = (budget(1 << 20, 1 << 20), head("192.0.2.1"));
        let body = collect(&head, Body::from_stream(steady), &limits, &budget);
        let outcome = tokio::time::timeout(Duration::from_secs(30), body).await.unwrap();
        assert_eq!(outcome.unwrap_err(), BodyFault::TooSlow);
        assert_eq!(budget.free(), 1 << 20);
    }
}
