//! All limits on the resources that clients may use, and the semaphores and budgets of
//! each surface (SEC-17, SEC-18).
//!
//! Capture, management API and web app have separate semaphores, so that a flood of
//! events does not lock out the users who could stop it.
//!
//! What belongs here: the numbers. What does not: dividing bytes and permits among
//! clients, which is in `budget` and `parts`.

mod budget;
mod fair;
mod parts;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use weir_model::UserId;
use weir_model::json::VALUES;
use weir_service::scan::SCAN_TIME;

pub use self::budget::{BodyRoom, Budget, HeldBytes};
pub use self::fair::{FairPermit, FairPermits};
pub use self::parts::{
    ApiPermit, Exhausted, NetworkPart, NetworkParts, Part, Parts, StreamPermit, StreamPermits,
    UserPermit,
};
use crate::config::Config;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Time of a request with a question beside that for the answer: for the wait for a permit, and
/// for reading events that are not in memory.
const QUESTION_WAIT: Duration = Duration::from_secs(20);

/// Limits on connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Open connections in total.
    pub total: usize,
    /// Open connections per client network. The two wider networks around it may have
    /// twice and four times as many.
    pub per_network: usize,
    /// Connections on which HTTP has not begun, because the header of a proxy or the
    /// handshake of TLS is not complete.
    pub openings: usize,
    /// Time for that header and the handshake together.
    pub opening: Duration,
    /// Time until the protocol is known from the first bytes.
    pub first_bytes: Duration,
    /// Time until the headers of a request are complete.
    pub header_read: Duration,
    /// Header lines of a request.
    pub header_lines: usize,
    /// Bytes of the headers of a request.
    pub header_bytes: usize,
    /// Time without a request and without a part of an answer, after which a connection
    /// is closed.
    pub idle: Duration,
    /// HTTP/2 streams of one connection.
    pub streams: u32,
    /// Time for requests in flight when the service stops.
    pub drain: Duration,
}

/// Limits on a request body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Largest body in bytes.
    pub size: usize,
    /// Time from the headers to the last byte, even with steady progress.
    pub time: Duration,
    /// A request is ended if its sender sends less than [`BodyLimits::progress_bytes`] in
    /// this time.
    pub progress_time: Duration,
    /// Bytes that count as progress.
    pub progress_bytes: usize,
}

/// Limits on the bytes that request bodies of one kind may hold.
#[derive(Debug, Clone, Copy)]
pub struct ByteLimits {
    /// Bytes held at a time, without the reserve.
    pub total: usize,
    /// The part of `total` that bodies may hold while one client network is still sending
    /// them. The order is that of [`networks_of`](crate::http::peer::networks_of). A
    /// client with one of the wider networks has thousands of the narrow ones.
    pub per_network: [usize; 3],
    /// Bytes for small bodies when `total` is used up. So signing in and single events
    /// work while large bodies use up all other bytes.
    pub reserve: usize,
    /// Bodies that announce at most this many bytes may use the reserve.
    pub small_body: usize,
}

impl ByteLimits {
    /// The part of the reserve that one client network may hold.
    const fn reserve_per_network(&self) -> [usize; 3] {
        [self.reserve / 16, self.reserve / 8, self.reserve / 4]
    }
}

/// Limits on sending a long answer. Its reader holds a permit until the end.
#[derive(Debug, Clone, Copy)]
pub struct SendLimits {
    /// Time for the whole answer.
    pub whole: Duration,
    /// Time until the reader has taken one more part.
    pub part: Duration,
    /// Bytes of a part.
    pub part_bytes: usize,
}

/// All limits of the service.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Limits on connections.
    pub connections: ConnectionLimits,
    /// Requests of one client network whose answer is not sent completely, and of the two
    /// wider networks around it. One connection of HTTP/2 has many.
    pub requests_per_network: [usize; 3],
    /// Most bytes of path and query.
    pub uri_bytes: usize,
    /// Limits on bodies of capture requests.
    pub capture_body: BodyLimits,
    /// Limits on bodies of the management API.
    pub api_body: BodyLimits,
    /// Limits on bodies of the web app.
    pub web_body: BodyLimits,
    /// Limits on bodies of the management API and the web app that are read before the
    /// sender is known.
    pub early_body: BodyLimits,
    /// Limits on bodies with an answer by SAML (SAML-10). They are read before the sender is
    /// known, from the bytes for such bodies.
    pub saml_body: BodyLimits,
    /// Most values in a JSON body of the management API, at all levels. A value takes
    /// much more memory than its text.
    pub api_values: usize,
    /// The same for a body that is read before the sender is known.
    pub early_values: usize,
    /// Bytes that the bodies of one user may hold at a time while the management API
    /// works on them, with their values.
    pub values_per_user: usize,
    /// Most fields of a form.
    pub form_fields: usize,
    /// Bytes of capture bodies as they were sent.
    pub capture_bytes: ByteLimits,
    /// Bytes of the data made of capture bodies until it is on stable storage: texts,
    /// events, records of the log.
    pub decoding_bytes: usize,
    /// Bytes of bodies of the management API and the web app.
    pub management_bytes: ByteLimits,
    /// Bytes of such bodies whose sender is not known yet.
    pub early_bytes: ByteLimits,
    /// Live streams at a time.
    pub streams: usize,
    /// Live streams of one user at a time.
    pub streams_per_person: usize,
    /// Time between two checks that the reader of a live stream still has access.
    pub stream_check: Duration,
    /// The service is not ready when acknowledged events wait this long and none becomes
    /// readable (ING-59).
    pub stall: Duration,
    /// Capture requests that are processed at a time.
    pub capture_requests: usize,
    /// Management requests that are processed at a time.
    pub api_requests: usize,
    /// Such requests of one user at a time, over all keys of the user.
    pub api_requests_per_user: usize,
    /// Such requests without a key at a time, by client network.
    pub api_requests_per_network: [usize; 3],
    /// Lists of the management API that are sent while they are read, at a time.
    pub api_streams: usize,
    /// Such lists of one user at a time, over all keys of the user.
    pub api_streams_per_user: usize,
    /// Limits on answers that are sent while they are made.
    pub sending: SendLimits,
    /// Web app requests that are processed at a time.
    pub web_requests: usize,
    /// Such requests of one user at a time, over all sessions of the user. A page is one
    /// request; a browser that opens many tabs sends several at the same time.
    pub web_requests_per_user: usize,
    /// Such requests of one client network at a time, with and without a session.
    pub web_requests_per_network: [usize; 3],
    /// Bodies of at least this size are decoded off the threads that serve connections.
    pub heavy_body: usize,
    /// Most such bodies of one client network that wait until they are decoded.
    pub heavy_waiting_per_network: usize,
    /// Time until appended events are on stable storage.
    pub append_time: Duration,
    /// Time for a capture request from its first byte to its answer.
    pub capture_time: Duration,
    /// Time for a management or web request until its answer begins.
    pub api_time: Duration,
    /// Time for skipping the results before the page of a list, and for searching without
    /// a match.
    pub scan_time: Duration,
    /// Questions about events that are answered at a time.
    pub questions: usize,
    /// Questions of one organization that wait until they are answered.
    pub questions_waiting: usize,
    /// Time for the answer to a question.
    pub question_time: Duration,
    /// Time for the whole request, with the wait.
    pub question_request_time: Duration,
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
                openings: 2048,
                opening: Duration::from_secs(10),
                first_bytes: Duration::from_secs(10),
                header_read: Duration::from_secs(10),
                header_lines: 64,
                header_bytes: 32 * KIB,
                idle: Duration::from_secs(60),
                streams: 128,
                drain: Duration::from_secs(30),
            },
            requests_per_network: requests_of(256),
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
            // 256 KiB in base64, with line ends, in the encoding of forms.
            saml_body: BodyLimits { size: 512 * KIB, ..page_body },
            api_values: VALUES,
            early_values: 100,
            values_per_user: 8 * MIB,
            form_fields: 1_000,
            capture_bytes: ByteLimits {
                total: 160 * MIB,
                per_network: [40 * MIB, 40 * MIB, 80 * MIB],
                reserve: 8 * MIB,
                small_body: 64 * KIB,
            },
            decoding_bytes: 112 * MIB,
            management_bytes: ByteLimits {
                total: 32 * MIB,
                per_network: [8 * MIB, 8 * MIB, 16 * MIB],
                reserve: MIB,
                small_body: 4 * KIB,
            },
            early_bytes: ByteLimits {
                total: 16 * MIB,
                per_network: [MIB, 2 * MIB, 4 * MIB],
                reserve: MIB,
                small_body: 4 * KIB,
            },
            streams: 256,
            streams_per_person: 16,
            stream_check: Duration::from_millis(750),
            stall: Duration::from_secs(30),
            capture_requests: 1024,
            api_requests: 128,
            api_requests_per_user: 64,
            api_requests_per_network: [32, 48, 64],
            api_streams: 32,
            api_streams_per_user: 4,
            sending: SendLimits {
                whole: Duration::from_secs(10 * 60),
                part: Duration::from_secs(30),
                part_bytes: 64 * KIB,
            },
            web_requests: 128,
            web_requests_per_user: 64,
            web_requests_per_network: [64, 80, 96],
            heavy_body: 64 * KIB,
            heavy_waiting_per_network: 256,
            append_time: Duration::from_secs(5),
            capture_time: Duration::from_secs(60),
            api_time: Duration::from_secs(30),
            scan_time: SCAN_TIME,
            questions: 2,
            questions_waiting: 32,
            question_time: Duration::from_secs(30),
            question_request_time: Duration::from_secs(30) + QUESTION_WAIT,
        }
    }
}

impl Limits {
    /// The default limits, with those that have a setting taken from the settings.
    pub fn from_config(config: &Config) -> Self {
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let mut limits = Self::default();
        limits.connections.total = count(config.max_connections);
        // By default the widest network has half of that: one network cannot keep all others
        // from beginning.
        limits.connections.openings = limits.connections.total.div_ceil(2);
        limits.connections.per_network = count(config.max_connections_per_network);
        limits.requests_per_network = requests_of(limits.connections.per_network);
        limits.questions = count(config.query_concurrency);
        limits.question_time = Duration::from_secs(config.query_seconds);
        limits.question_request_time = limits.question_time + QUESTION_WAIT;
        limits
    }
}

/// The requests of a client network that may have this many connections, and of the two
/// wider networks around it.
fn requests_of(connections: usize) -> [usize; 3] {
    [2, 4, 8].map(|times| connections.saturating_mul(times))
}

/// The semaphores and budgets in use. Cheap to clone; all requests share them.
#[derive(Debug, Clone)]
pub struct Permits {
    /// Bytes of capture bodies as they were sent.
    pub capture_bytes: Budget,
    /// Bytes of the data made of them.
    pub decoding_bytes: Arc<Semaphore>,
    /// Bytes of bodies of the management API and the web app.
    pub management_bytes: Budget,
    /// Bytes of such bodies whose sender is not known yet. Unknown senders can use up
    /// only these.
    pub early_bytes: Budget,
    /// Permits for capture requests.
    pub capture: Arc<Semaphore>,
    /// Requests whose answer is not sent completely, by client network.
    pub requests: NetworkParts,
    /// Permits for management requests.
    pub api: Arc<Semaphore>,
    /// Management requests without a key, by client network.
    pub api_of_network: NetworkParts,
    /// Management requests by user.
    pub api_of_user: Parts<UserId>,
    /// Bytes of bodies of management requests, with their values, by user.
    pub values_of_user: Parts<UserId>,
    /// Permits for long lists of the management API.
    pub api_streams: StreamPermits,
    /// Permits for web app requests.
    pub web: Arc<Semaphore>,
    /// Web app requests by user.
    pub web_of_user: Parts<UserId>,
    /// Web app requests by client network.
    pub web_of_network: NetworkParts,
    /// Permits for decoding large bodies: one per processor. Client networks take turns,
    /// because a small compressed body can cost as much as the largest one.
    pub heavy: FairPermits<IpAddr>,
}

impl Permits {
    /// Unused semaphores and budgets of the sizes in `limits`.
    pub fn new(limits: &Limits) -> Self {
        let semaphore = |size: usize| Arc::new(Semaphore::new(size));
        Self {
            capture_bytes: Budget::new(&limits.capture_bytes),
            decoding_bytes: semaphore(limits.decoding_bytes),
            management_bytes: Budget::new(&limits.management_bytes),
            early_bytes: Budget::new(&limits.early_bytes),
            capture: semaphore(limits.capture_requests),
            requests: NetworkParts::new(limits.requests_per_network),
            api: semaphore(limits.api_requests),
            api_of_network: NetworkParts::new(limits.api_requests_per_network),
            api_of_user: Parts::new(limits.api_requests_per_user),
            values_of_user: Parts::new(limits.values_per_user),
            api_streams: StreamPermits::new(limits.api_streams, limits.api_streams_per_user),
            web: semaphore(limits.web_requests),
            web_of_user: Parts::new(limits.web_requests_per_user),
            web_of_network: NetworkParts::new(limits.web_requests_per_network),
            heavy: FairPermits::new(
                std::thread::available_parallelism().map_or(1, usize::from),
                limits.heavy_waiting_per_network,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Limits;

    /// One network cannot use up a budget, and the largest body fits into a network's
    /// part.
    #[test]
    fn parts_fit_into_budgets() {
        let limits = Limits::default();
        for (body, bytes) in [
            (limits.capture_body.size, limits.capture_bytes),
            (limits.web_body.size, limits.management_bytes),
            (limits.early_body.size, limits.early_bytes),
            (limits.saml_body.size, limits.early_bytes),
        ] {
            for (part, all) in
                [(bytes.per_network, bytes.total), (bytes.reserve_per_network(), bytes.reserve)]
            {
                assert!(part.is_sorted() && part[0] * 4 <= all && part[2] * 2 <= all, "{part:?}");
            }
            assert!(body * 2 <= bytes.per_network[0], "{body} {bytes:?}");
            assert!(bytes.small_body * 4 <= bytes.reserve_per_network()[0], "{bytes:?}");
        }
        assert!(limits.streams_per_person * 4 <= limits.streams);
        assert!(limits.api_streams_per_user * 4 <= limits.api_streams);
        assert!(limits.api_requests_per_user * 2 <= limits.api_requests);
        assert!(limits.web_requests_per_user * 2 <= limits.web_requests);
        for (part, all) in [
            (limits.api_requests_per_network, limits.api_requests),
            (limits.web_requests_per_network, limits.web_requests),
        ] {
            assert!(part.is_sorted() && part[0] * 2 <= all && part[2] < all, "{part:?}");
        }
        assert!(limits.values_per_user * 4 <= limits.management_bytes.total);
    }

    /// The limits that texts and clients rely on.
    #[test]
    fn unknown_senders_have_thirty_seconds_and_64_kib() {
        let limits = Limits::default();
        assert_eq!(limits.early_body.size, 64 << 10);
        for body in [limits.early_body, limits.saml_body, limits.api_body, limits.web_body] {
            assert_eq!(body.time, Duration::from_secs(30));
        }
    }

    /// A body with the most values fits into the part of its user. Bodies of unknown
    /// senders need no budget for their values.
    #[test]
    fn values_of_bodies_fit_into_memory() {
        let limits = Limits::default();
        let largest = |values: usize| weir_model::json::size(values, values);
        assert!(limits.api_body.size + largest(limits.api_values) <= limits.values_per_user);
        let unknown = limits.api_requests * largest(limits.early_values);
        assert!(unknown <= limits.early_bytes.total, "{unknown}");
    }
}
