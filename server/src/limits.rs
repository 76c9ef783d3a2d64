//! Every limit on what a client may cost, and the shares of the machine that
//! each surface may use (SECURITY-NOTES 7).
//!
//! Ingestion, management API and web app have separate shares, so that a flood
//! of events does not lock out the people who would stop it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Config;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// What a connection may cost.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Open connections in all.
    pub total: usize,
    /// Open connections per client network.
    pub per_network: usize,
    /// Until the protocol is known from the first bytes.
    pub first_bytes: Duration,
    /// Until the headers of a request are complete.
    pub header_read: Duration,
    /// Header lines of a request.
    pub header_lines: usize,
    /// Bytes of the headers of a request.
    pub header_bytes: usize,
    /// Without a request before a connection is closed.
    pub idle: Duration,
    /// HTTP/2 streams of one connection.
    pub streams: u32,
    /// For requests in flight when the service stops.
    pub drain: Duration,
}

/// What a request body may cost.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Bytes.
    pub size: usize,
    /// A sender that brings less than [`BodyLimits::progress_bytes`] in this time is given up.
    pub progress_time: Duration,
    /// Bytes that count as progress.
    pub progress_bytes: usize,
}

/// All limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections.
    pub connections: ConnectionLimits,
    /// Bytes of path and query.
    pub uri_bytes: usize,
    /// Bodies of captured events.
    pub capture_body: BodyLimits,
    /// Bodies of the management API.
    pub api_body: BodyLimits,
    /// Bodies of the web app.
    pub web_body: BodyLimits,
    /// Bytes of capture bodies, and of what is made of them, held at a time.
    pub capture_bytes: usize,
    /// Bytes of bodies of the management API and the web app held at a time.
    pub management_bytes: usize,
    /// Capture requests that are worked on at a time.
    pub capture_requests: usize,
    /// Management requests that are worked on at a time.
    pub api_requests: usize,
    /// Web app requests that are worked on at a time.
    pub web_requests: usize,
    /// Bodies of at least this size are decoded off the threads that serve connections.
    pub heavy_body: usize,
    /// Until appended events are on stable storage.
    pub append_time: Duration,
    /// For a capture request from its first byte to its answer.
    pub capture_time: Duration,
    /// For a management or web request until its answer begins.
    pub api_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let page_body =
            BodyLimits { size: MIB, progress_time: Duration::from_secs(20), progress_bytes: KIB };
        Self {
            connections: ConnectionLimits {
                total: 4096,
                per_network: 256,
                first_bytes: Duration::from_secs(10),
                header_read: Duration::from_secs(10),
                header_lines: 64,
                header_bytes: 32 * KIB,
                idle: Duration::from_secs(60),
                streams: 128,
                drain: Duration::from_secs(30),
            },
            uri_bytes: 8 * KIB,
            capture_body: BodyLimits {
                size: weir_capture::BODY_LIMIT,
                progress_time: Duration::from_secs(30),
                progress_bytes: KIB,
            },
            api_body: page_body,
            web_body: page_body,
            capture_bytes: 256 * MIB,
            management_bytes: 32 * MIB,
            capture_requests: 1024,
            api_requests: 128,
            web_requests: 128,
            heavy_body: 64 * KIB,
            append_time: Duration::from_secs(5),
            capture_time: Duration::from_secs(60),
            api_time: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The limits with those that can be set taken from the settings.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let mut limits = Self::default();
        limits.connections.total = count(config.max_connections);
        limits.connections.per_network = count(config.max_connections_per_network);
        limits
    }
}

/// The shares in use: cheap to clone, the same for all requests.
#[derive(Debug, Clone)]
pub struct Shares {
    /// Bytes of capture bodies.
    pub capture_bytes: Arc<Semaphore>,
    /// Bytes of bodies of the management API and the web app.
    pub management_bytes: Arc<Semaphore>,
    /// Capture requests.
    pub capture: Arc<Semaphore>,
    /// Management requests.
    pub api: Arc<Semaphore>,
    /// Web app requests.
    pub web: Arc<Semaphore>,
    /// Large bodies that are decoded at a time: one per processor.
    pub heavy: Arc<Semaphore>,
}

impl Shares {
    /// Unused shares of the sizes that `limits` gives.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let share = |size: usize| Arc::new(Semaphore::new(size));
        Self {
            capture_bytes: share(limits.capture_bytes),
            management_bytes: share(limits.management_bytes),
            capture: share(limits.capture_requests),
            api: share(limits.api_requests),
            web: share(limits.web_requests),
            heavy: share(std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }
}

/// Bytes taken from a budget of bodies; given back when dropped.
#[derive(Debug)]
pub struct HeldBytes {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    held: usize,
}

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

impl HeldBytes {
    /// Nothing yet.
    #[must_use]
    pub fn none(budget: Arc<Semaphore>) -> Self {
        Self { budget, permit: None, held: 0 }
    }

    /// Takes what is missing to hold `bytes`. Never waits: a body that has to
    /// wait for room holds the room it has already.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let Some(missing) = bytes.checked_sub(self.held).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let count = u32::try_from(missing).map_err(|_| Exhausted)?;
        let more = Arc::clone(&self.budget).try_acquire_many_owned(count).map_err(|_| Exhausted)?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        self.held = bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Exhausted, HeldBytes, Limits, Shares};

    #[test]
    fn bytes_come_back() {
        let limits = Limits { capture_bytes: 100, ..Limits::default() };
        let shares = Shares::new(&limits);
        let mut first = HeldBytes::none(shares.capture_bytes.clone());
        assert_eq!(first.grow_to(60), Ok(()));
        assert_eq!(first.grow_to(50), Ok(()));
        let mut second = HeldBytes::none(shares.capture_bytes.clone());
        assert_eq!(second.grow_to(41), Err(Exhausted));
        assert_eq!(second.grow_to(40), Ok(()));
        drop(first);
        assert_eq!(second.grow_to(100), Ok(()));
        drop(second);
        assert_eq!(shares.capture_bytes.available_permits(), 100);
    }
}
