//! Every limit on what a client may cost, and the shares of the machine that
//! each surface may use (SECURITY-NOTES 7).
//!
//! Ingestion, management API and web app have separate shares, so that a flood
//! of events does not lock out the people who would stop it.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
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
    /// Without a request, and without a part of an answer, before a connection is closed.
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
    /// From the headers to the last byte, however steadily it comes.
    pub time: Duration,
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
    /// Bodies of the management API and the web app that are read before it is known
    /// who sends them.
    pub early_body: BodyLimits,
    /// Fields of a form.
    pub form_fields: usize,
    /// Bytes of capture bodies, as they were sent, held at a time.
    pub capture_bytes: usize,
    /// Bytes of what is made of capture bodies until it is on stable storage: texts,
    /// events, records of the log.
    pub decoding_bytes: usize,
    /// Bytes of capture bodies that one client network is sending.
    pub capture_network_bytes: usize,
    /// Bytes of bodies of the management API and the web app held at a time.
    pub management_bytes: usize,
    /// Bytes of such bodies that one client network is sending.
    pub management_network_bytes: usize,
    /// Bytes of bodies held at a time whose sender is not known yet.
    pub early_bytes: usize,
    /// Bytes of such bodies that one client network is sending.
    pub early_network_bytes: usize,
    /// Live streams at a time.
    pub streams: usize,
    /// Live streams of one person at a time.
    pub streams_per_person: usize,
    /// Time between two looks whether the reader of a live stream may still see it.
    pub stream_check: Duration,
    /// Capture requests that are worked on at a time.
    pub capture_requests: usize,
    /// Management requests that are worked on at a time.
    pub api_requests: usize,
    /// Lists of the management API that are sent while they are read, at a time.
    pub api_streams: usize,
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
        let page_body = BodyLimits {
            size: MIB,
            time: Duration::from_secs(30),
            progress_time: Duration::from_secs(20),
            progress_bytes: KIB,
        };
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
                time: Duration::from_secs(60),
                progress_time: Duration::from_secs(30),
                progress_bytes: KIB,
            },
            api_body: page_body,
            web_body: page_body,
            early_body: BodyLimits { size: 64 * KIB, ..page_body },
            form_fields: 1_000,
            capture_bytes: 160 * MIB,
            decoding_bytes: 112 * MIB,
            capture_network_bytes: 40 * MIB,
            management_bytes: 32 * MIB,
            management_network_bytes: 8 * MIB,
            early_bytes: 16 * MIB,
            early_network_bytes: MIB,
            streams: 256,
            streams_per_person: 16,
            stream_check: Duration::from_secs(3),
            capture_requests: 1024,
            api_requests: 128,
            api_streams: 32,
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

/// A budget of bytes for bodies.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Bytes that are held at a time.
    pub bytes: Arc<Semaphore>,
    /// Of these, what each network holds with bodies that it is still sending. Without
    /// it one client that sends slowly could hold all of them.
    pub sending: Parts<IpAddr>,
}

impl Budget {
    fn new(bytes: usize, per_network: usize) -> Self {
        Self { bytes: Arc::new(Semaphore::new(bytes)), sending: Parts::new(per_network) }
    }
}

/// What each of many holders has of something, none of them more than its part. Cheap
/// to clone, and as large as there are holders at a time.
#[derive(Debug, Clone)]
pub struct Parts<K> {
    most: usize,
    // Held for single map operations only.
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// What one holder has; given back when dropped.
#[derive(Debug)]
pub struct Part<K: Eq + Hash> {
    of: Parts<K>,
    holder: K,
    held: usize,
}

impl<K: Eq + Hash + Clone> Parts<K> {
    /// Nobody has anything yet.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, held: Arc::default() }
    }

    /// The part of a holder, of which nothing is taken yet.
    #[must_use]
    pub fn of(&self, holder: K) -> Part<K> {
        Part { of: self.clone(), holder, held: 0 }
    }
}

impl<K: Eq + Hash + Clone> Part<K> {
    /// Takes what is missing to hold `wanted`.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn grow_to(&mut self, wanted: usize) -> Result<(), Exhausted> {
        let missing = wanted.saturating_sub(self.held);
        let mut held = self.of.held.lock();
        let all = held.get(&self.holder).copied().unwrap_or(0) + missing;
        if all > self.of.most {
            return Err(Exhausted);
        }
        if missing > 0 {
            held.insert(self.holder.clone(), all);
            self.held += missing;
        }
        Ok(())
    }
}

impl<K: Eq + Hash> Drop for Part<K> {
    fn drop(&mut self) {
        let mut held = self.of.held.lock();
        if let Some(all) = held.get_mut(&self.holder) {
            *all -= self.held;
            if *all == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

/// The shares in use: cheap to clone, the same for all requests.
#[derive(Debug, Clone)]
pub struct Shares {
    /// Bytes of capture bodies.
    pub capture_bytes: Budget,
    /// Bytes of what is made of them.
    pub decoding_bytes: Arc<Semaphore>,
    /// Bytes of bodies of the management API and the web app.
    pub management_bytes: Budget,
    /// Bytes of such bodies whose sender is not known yet: strangers use up these alone.
    pub early_bytes: Budget,
    /// Capture requests.
    pub capture: Arc<Semaphore>,
    /// Management requests.
    pub api: Arc<Semaphore>,
    /// Long lists of the management API.
    pub api_streams: Arc<Semaphore>,
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
            capture_bytes: Budget::new(limits.capture_bytes, limits.capture_network_bytes),
            decoding_bytes: share(limits.decoding_bytes),
            management_bytes: Budget::new(limits.management_bytes, limits.management_network_bytes),
            early_bytes: Budget::new(limits.early_bytes, limits.early_network_bytes),
            capture: share(limits.capture_requests),
            api: share(limits.api_requests),
            api_streams: share(limits.api_streams),
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

    /// Gives back what is held beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let more = self.held.saturating_sub(bytes);
        if let Some(permit) = &mut self.permit {
            drop(permit.split(more));
            self.held -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exhausted, HeldBytes, Limits, Parts, Shares};

    #[test]
    fn bytes_come_back() {
        let limits = Limits { capture_bytes: 100, ..Limits::default() };
        let shares = Shares::new(&limits);
        let mut first = HeldBytes::none(shares.capture_bytes.bytes.clone());
        assert_eq!(first.grow_to(60), Ok(()));
        assert_eq!(first.grow_to(50), Ok(()));
        let mut second = HeldBytes::none(shares.capture_bytes.bytes.clone());
        assert_eq!(second.grow_to(41), Err(Exhausted));
        assert_eq!(second.grow_to(40), Ok(()));
        drop(first);
        assert_eq!(second.grow_to(100), Ok(()));
        second.shrink_to(30);
        second.shrink_to(50);
        assert_eq!(shares.capture_bytes.bytes.available_permits(), 70);
        assert_eq!(second.grow_to(100), Ok(()));
        drop(second);
        assert_eq!(shares.capture_bytes.bytes.available_permits(), 100);
    }

    #[test]
    fn each_holder_has_its_part() {
        let parts = Parts::new(10);
        let (mut first, mut second) = (parts.of("a"), parts.of("a"));
        assert_eq!(first.grow_to(6), Ok(()));
        assert_eq!(second.grow_to(5), Err(Exhausted));
        assert_eq!(second.grow_to(4), Ok(()));
        assert_eq!(first.grow_to(6), Ok(()), "nothing more is taken");
        assert_eq!(parts.of("b").grow_to(10), Ok(()));
        drop(first);
        assert_eq!(second.grow_to(10), Ok(()));
        drop(second);
        assert!(parts.held.lock().is_empty(), "nobody is remembered who has nothing");
    }

    /// Nobody alone can use a budget up, and what one body may have fits into a part.
    #[test]
    fn parts_fit_into_budgets() {
        let limits = Limits::default();
        for (body, part, all) in [
            (limits.capture_body.size, limits.capture_network_bytes, limits.capture_bytes),
            (limits.web_body.size, limits.management_network_bytes, limits.management_bytes),
            (limits.early_body.size, limits.early_network_bytes, limits.early_bytes),
        ] {
            assert!(body * 2 <= part && part * 4 <= all, "{body} {part} {all}");
        }
        assert!(limits.streams_per_person * 4 <= limits.streams);
    }
}
