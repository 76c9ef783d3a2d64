//! Reading request bodies within their limits: size, progress, and the budget
//! of bytes that all bodies share (SECURITY-NOTES 7).
//!
//! Bytes are taken from the budget before they are kept, in steps as they
//! arrive. Taking what a request announces at its start would let a dozen idle
//! connections that announce large bodies lock everybody else out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::http::error::ApiError;
use crate::limits::{BodyLimits, HeldBytes};

/// Bytes are taken from the budget in steps of this size.
const STEP: usize = 16 << 10;
/// A sender that has brought so much is believed what it has announced.
const EARNEST: usize = 64 << 10;

/// A body that was read, and the share of the budget that it holds.
#[derive(Debug)]
pub struct Collected {
    /// The bytes.
    pub bytes: Bytes,
    /// Their share, given back when dropped.
    pub held: HeldBytes,
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// More bytes than allowed.
    TooLarge,
    /// The sender does not get on.
    TooSlow,
    /// The sender went away or broke the protocol.
    Broken,
    /// All bodies together hold too much.
    NoRoom,
}

impl BodyFault {
    /// The fault as an answer of the management API or the web app.
    #[must_use]
    pub fn into_api_error(self, limits: &BodyLimits) -> ApiError {
        match self {
            Self::TooLarge => ApiError::TooLarge(limits.size),
            Self::TooSlow => ApiError::TooSlow,
            Self::Broken => ApiError::Malformed("The body broke off.".to_owned()),
            Self::NoRoom => ApiError::Busy,
        }
    }
}

/// Reads a body to its end. One that is refused is read on, and thrown away, up
/// to one more limit: a client that is still sending would see a reset
/// connection instead of the answer (ingestion 2.7).
///
/// # Errors
/// [`BodyFault`].
pub async fn collect(
    headers: &HeaderMap,
    body: Body,
    limits: &BodyLimits,
    budget: &Arc<Semaphore>,
) -> Result<Collected, BodyFault> {
    let declared = declared_length(headers);
    let mut reader = Reader::new(body, limits);
    if declared.is_some_and(|length| length > limits.size) {
        // A client that asks first has not begun to send.
        if !headers.contains_key(header::EXPECT) {
            reader.swallow().await;
        }
        return Err(BodyFault::TooLarge);
    }
    match read(&mut reader, declared, budget).await {
        Err(fault @ (BodyFault::TooLarge | BodyFault::NoRoom)) => {
            reader.swallow().await;
            Err(fault)
        }
        outcome @ (Ok(_) | Err(BodyFault::TooSlow | BodyFault::Broken)) => outcome,
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn read(
    reader: &mut Reader,
    declared: Option<usize>,
    budget: &Arc<Semaphore>,
) -> Result<Collected, BodyFault> {
    let mut held = HeldBytes::none(Arc::clone(budget));
    let mut bytes = BytesMut::new();
    while let Some(chunk) = reader.next().await? {
        let length = bytes.len() + chunk.len();
        if length > reader.limits.size {
            return Err(BodyFault::TooLarge);
        }
        held.grow_to(length.next_multiple_of(STEP)).map_err(|_| BodyFault::NoRoom)?;
        if length > bytes.capacity() {
            // A buffer that grows again and again leaves behind as much memory
            // as it takes, and none of that is counted. Room that nothing is
            // written to yet is address space and no memory.
            let announced = declared.unwrap_or(length);
            let room = if length > EARNEST { announced } else { announced.min(STEP) };
            bytes.reserve(room.max(length) - bytes.len());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Collected { bytes: bytes.freeze(), held })
}

/// Reads chunk by chunk and watches the sender's progress.
struct Reader {
    body: Body,
    limits: BodyLimits,
    deadline: Instant,
    since_deadline: usize,
}

impl Reader {
    fn new(body: Body, limits: &BodyLimits) -> Self {
        Self {
            body,
            limits: *limits,
            deadline: Instant::now() + limits.progress_time,
            since_deadline: 0,
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, BodyFault> {
        loop {
            let frame = match tokio::time::timeout_at(self.deadline, self.body.frame()).await {
                Err(_elapsed) => return Err(BodyFault::TooSlow),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(BodyFault::Broken),
                Ok(Some(Ok(frame))) => frame,
            };
            // Trailers say nothing that matters here.
            let Ok(chunk) = frame.into_data() else { continue };
            self.since_deadline += chunk.len();
            if self.since_deadline >= self.limits.progress_bytes {
                self.since_deadline = 0;
                self.deadline = Instant::now() + self.limits.progress_time;
            }
            return Ok(Some(chunk));
        }
    }

    /// Throws away up to one more limit.
    async fn swallow(&mut self) {
        // Long enough for an honest upload, too short to be worth an attack.
        const AT_MOST: Duration = Duration::from_secs(20);
        let all = async {
            let mut seen = 0;
            while let Ok(Some(chunk)) = self.next().await {
                seen += chunk.len();
                if seen > self.limits.size {
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
    use futures::StreamExt as _;

    const LIMITS: BodyLimits =
        BodyLimits { size: 10, progress_time: Duration::from_secs(5), progress_bytes: 4 };

    fn chunks(parts: &[&'static str]) -> Body {
        let parts: Vec<Result<Bytes, std::io::Error>> =
            parts.iter().map(|part| Ok(Bytes::from_static(part.as_bytes()))).collect();
        Body::from_stream(futures::stream::iter(parts))
    }

    fn budget(bytes: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bytes))
    }

    #[tokio::test]
    async fn size_is_limited_with_and_without_an_announcement() {
        let budget = budget(1 << 20);
        let body = collect(&HeaderMap::new(), chunks(&["01234", "56789"]), &LIMITS, &budget).await;
        assert_eq!(body.unwrap().bytes, "0123456789");
        let fault =
            collect(&HeaderMap::new(), chunks(&["01234", "567890"]), &LIMITS, &budget).await;
        assert_eq!(fault.unwrap_err(), BodyFault::TooLarge);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, "11".parse().unwrap());
        let fault = collect(&headers, chunks(&[]), &LIMITS, &budget).await;
        assert_eq!(fault.unwrap_err(), BodyFault::TooLarge);
        assert_eq!(budget.available_permits(), 1 << 20);
    }

    #[tokio::test]
    async fn the_budget_is_shared() {
        let budget = budget(STEP);
        let first = collect(&HeaderMap::new(), chunks(&["01"]), &LIMITS, &budget).await.unwrap();
        let second = collect(&HeaderMap::new(), chunks(&["01"]), &LIMITS, &budget).await;
        assert_eq!(second.unwrap_err(), BodyFault::NoRoom);
        drop(first);
        assert!(collect(&HeaderMap::new(), chunks(&["01"]), &LIMITS, &budget).await.is_ok());
    }

    #[tokio::test]
    async fn slow_senders_are_given_up() {
        let one_byte = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
        let silence = futures::stream::pending();
        let body = Body::from_stream(one_byte.chain(silence));
        let limits = BodyLimits { progress_time: Duration::from_millis(50), ..LIMITS };
        let fault = collect(&HeaderMap::new(), body, &limits, &budget(1 << 20)).await;
        assert_eq!(fault.unwrap_err(), BodyFault::TooSlow);
    }
}
