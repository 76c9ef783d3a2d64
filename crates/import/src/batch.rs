//! Batches of events for one request (ING-62).
//!
//! What belongs here: the size of a request, its body, and splitting it. What does not:
//! sending (`deliver`).

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use weir_json as json;

use crate::error::ImportError;
use crate::walk::{Found, Position, Walk};

/// Maximum events of a request.
const EVENTS: usize = 1000;
/// No event is added to a request of more bytes before compression. With the largest
/// event it stays below 5 MiB; capture accepts 20 MB.
const BYTES: usize = 3 << 20;

/// The size limits of requests. The filling side reads them; the sending side lowers
/// them.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    events: usize,
    bytes: Arc<AtomicUsize>,
}

impl Limits {
    /// The limits at a rate of events per second: one request per second, instead of a
    /// large one occasionally.
    pub(crate) fn for_rate(rate: Option<u32>) -> Self {
        let rate = rate.map_or(EVENTS, |rate| usize::try_from(rate).unwrap_or(EVENTS));
        Self { events: rate.clamp(1, EVENTS), bytes: Arc::new(AtomicUsize::new(BYTES)) }
    }

    /// Lowers the limits after a body of this size was refused.
    pub(crate) fn lower(&self, refused: usize) {
        self.bytes.fetch_min(refused / 2, Ordering::Relaxed);
    }
}

/// An event that waits for being sent.
#[derive(Debug)]
pub(crate) struct Queued {
    text: String,
    /// Index of the file.
    pub(crate) file: usize,
    pub(crate) line: u64,
    /// Whether it comes from a line, or was added to merge two ids.
    pub(crate) is_line: bool,
}

/// The events of one request.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Queued>,
    /// The body of the request with all of them.
    pub(crate) body: Body,
    /// The position after the last event.
    pub(crate) position: Position,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// The compressed bytes (gzip).
    pub(crate) compressed: Vec<u8>,
    /// Bytes before compression.
    pub(crate) size: usize,
}

/// Takes events until a request is full; `None` if there are no more.
pub(crate) fn fill(
    walk: &mut Walk,
    limits: &Limits,
    key: &str,
) -> Result<Option<Batch>, ImportError> {
    let most_bytes = limits.bytes.load(Ordering::Relaxed);
    let mut events = Vec::new();
    let mut bytes = 0;
    while events.len() < limits.events && bytes < most_bytes {
        let Some(Found { event, link, file, line }) = walk.next()? else { break };
        let link = link.map(|link| Queued { text: link.to_json(), file, line, is_line: false });
        let event = Queued { text: event.text, file, line, is_line: true };
        for queued in link.into_iter().chain([event]) {
            bytes += queued.text.len() + 1;
            events.push(queued);
        }
    }
    let Some(position) = walk.position().filter(|_| !events.is_empty()) else {
        return Ok(None);
    };
    let body = body(&events, key).map_err(ImportError::Compress)?;
    Ok(Some(Batch { events, body, position }))
}

/// The body of a request with these events.
pub(crate) fn body(events: &[Queued], key: &str) -> io::Result<Body> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    let mut size = 0;
    let mut put = |text: &str| {
        size += text.len();
        out.write_all(text.as_bytes())
    };
    put("{\"api_key\":")?;
    put(&json::quoted(key))?;
    put(",\"historical_migration\":true,\"batch\":[")?;
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            put(",")?;
        }
        put(&event.text)?;
    }
    put("]}")?;
    Ok(Body { compressed: out.finish()?, size })
}
