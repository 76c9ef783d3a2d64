//! Log lines on standard error: as text or as JSON, filtered by a setting. The filter can
//! change while the process runs.
//!
//! Standard error may be a file on a full disk, a closed pipe, or a full pipe whose
//! reader does not read. So lines wait in memory for a thread that writes them. A line
//! that does not fit into that memory or cannot be written is lost and counted. The
//! service continues.

use std::collections::VecDeque;
use std::error::Error;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::{Once, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing::Subscriber;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layered, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{Config, LogFormat};
use crate::traces::Recorder;

/// Filters that apply whatever the setting is. At its finer levels the database driver
/// logs statements, with the rows and keys in them. Spans of traces are not for the log.
const ALWAYS: [&str; 3] =
    ["tokio_postgres=off", "tokio_postgres::simple_query=off", "weir::trace=off"];

/// Bytes of lines that may wait to be written.
const WAITING: usize = 1 << 20;
/// Time for writing waiting lines when the process ends.
const END: Duration = Duration::from_secs(1);

/// Lines that wait for standard error.
static LINES: Lines = Lines::new();
/// The filter of the process, once logging has started.
static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

/// The filter cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the log filter `{filter}` is not usable")]
pub struct BadFilter {
    filter: String,
    #[source]
    source: ParseError,
}

/// Why the filter was not changed.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The new one cannot be read.
    #[error(transparent)]
    Bad(#[from] BadFilter),
    /// The present one cannot be replaced.
    #[error("the log filter cannot be replaced")]
    Fixed(#[from] reload::Error),
}

/// A subscriber whose layers see what the filter passes. Spans that it does not pass cost
/// nothing.
type Filtered = Layered<reload::Layer<EnvFilter, Registry>, Registry>;

/// Starts logging for the whole process, and recording spans of traces if there is a
/// recorder.
///
/// # Errors
/// [`BadFilter`] if the filter is not valid.
pub fn start(config: &Config, recorder: Option<Recorder>) -> Result<(), BadFilter> {
    let (filter, handle) = reload::Layer::new(filter(&config.log)?);
    let registry = tracing_subscriber::registry();
    let started = match recorder {
        None => registry.with(filter).with(line_layer::<Filtered>(config.log_format)).try_init(),
        // The recorder sees other spans than the log.
        Some(recorder) => registry
            .with(line_layer::<Registry>(config.log_format).with_filter(filter))
            .with(recorder.with_filter(Recorder::filter()))
            .try_init(),
    };
    // Fails only when logging was started before, as in tests. Then the first one stays.
    if started.is_ok() {
        let _ = FILTER.set(handle);
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "{panic}");
    }));
    Ok(())
}

/// The layer that writes lines.
fn line_layer<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = fmt::layer::<S>()
        .with_writer(lines)
        // Otherwise the subscriber writes its own faults to standard error, which may
        // block forever.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

/// Replaces the filter until it is replaced again or the process ends.
///
/// # Errors
/// [`FilterError`] with the reason. The present filter stays then.
pub fn change_filter(setting: &str) -> Result<(), FilterError> {
    let filter = filter(setting)?;
    // Without a handle the process has no log.
    FILTER.get().map_or(Ok(()), |handle| handle.reload(filter))?;
    Ok(())
}

/// An error with its causes. A cause that only repeats the text before it is omitted.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text
}

/// Logs why the process ends, and waits a moment until all lines are written.
pub fn end(why: Option<&str>) {
    if let Some(why) = why {
        lines().push(format!("error: {why}\n").as_bytes());
    }
    LINES.wait(END);
}

/// The queue of lines, with the thread that writes them.
fn lines() -> &'static Lines {
    static WRITER: Once = Once::new();
    WRITER.call_once(|| {
        let write = || {
            // Not through the lock of standard error, because this thread may block
            // forever.
            let err = io::stderr();
            match err.as_fd().try_clone_to_owned() {
                Ok(own) => LINES.write_to(File::from(own)),
                Err(_) => LINES.write_to(err),
            }
        };
        // Without the thread, lines are lost when the queue is full.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(write);
    });
    &LINES
}

/// A line, and how many were lost before it.
struct Line {
    lost: u64,
    text: Vec<u8>,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Line>,
    /// Bytes of the waiting lines and of the line that is being written.
    bytes: usize,
    /// Lines lost since the last line that fit.
    lost: u64,
}

/// Lines that wait to be written.
struct Lines {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Lines {
    const fn new() -> Self {
        let waiting = Waiting { lines: VecDeque::new(), bytes: 0, lost: 0 };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    fn push(&self, text: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.bytes + text.len() > WAITING {
            waiting.lost += 1;
            return;
        }
        waiting.bytes += text.len();
        let lost = std::mem::take(&mut waiting.lost);
        waiting.lines.push_back(Line { lost, text: text.to_vec() });
        self.changed.notify_all();
    }

    /// Writes lines as they arrive, forever.
    fn write_to(&self, mut out: impl Write) {
        let mut lost = 0;
        loop {
            let mut waiting = self.waiting.lock();
            let Some(line) = waiting.lines.pop_front() else {
                self.changed.wait(&mut waiting);
                continue;
            };
            drop(waiting);
            write_line(&mut out, &line, &mut lost);
            self.waiting.lock().bytes -= line.text.len();
            self.changed.notify_all();
        }
    }

    /// Waits until no line waits, for at most this long.
    fn wait(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut waiting = self.waiting.lock();
        while waiting.bytes > 0 && !self.changed.wait_until(&mut waiting, end).timed_out() {}
    }
}

impl Write for &Lines {
    /// `line` is a whole line: the subscriber writes each with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line. `lost` counts the lines before it that could not be written.
fn write_line(out: &mut impl Write, line: &Line, lost: &mut u64) {
    *lost += line.lost;
    let note = (*lost > 0).then(|| format!("{lost} log lines before this one were lost\n"));
    let note = note.unwrap_or_default();
    let written = out.write_all(note.as_bytes()).and_then(|()| out.write_all(&line.text));
    *lost = if written.is_ok() { 0 } else { *lost + 1 };
}

fn filter(setting: &str) -> Result<EnvFilter, BadFilter> {
    let parsed = || -> Result<EnvFilter, ParseError> {
        let mut filter = EnvFilter::builder().parse(setting)?;
        for always in ALWAYS {
            filter = filter.add_directive(always.parse()?);
        }
        Ok(filter)
    };
    parsed().map_err(|source| BadFilter { filter: setting.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts as many writes as `room` allows, and fails all others.
    struct Full<'a> {
        room: usize,
        taken: &'a mut Vec<u8>,
    }

    impl Write for Full<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.room = self.room.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            self.taken.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_fail_nothing() {
        let (mut taken, mut lost) = (Vec::new(), 0);
        for (room, text) in [(0, "a\n"), (0, "b\n"), (2, "c\n"), (2, "d\n")] {
            let line = Line { lost: 0, text: text.into() };
            write_line(&mut Full { room, taken: &mut taken }, &line, &mut lost);
        }
        assert_eq!(
            String::from_utf8(taken).unwrap(),
            "2 log lines before this one were lost\nc\nd\n"
        );
    }

    #[test]
    fn lines_without_room_are_counted() {
        let lines = Lines::new();
        let long = vec![b'x'; WAITING - 1];
        for text in [&long[..], b"a\n", b"b\n", b"c"] {
            lines.push(text);
        }
        lines.wait(Duration::ZERO);
        let waiting = lines.waiting.lock();
        assert_eq!(waiting.lines.iter().map(|line| line.lost).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(waiting.bytes, WAITING);
    }

    #[test]
    fn statements_of_databases_are_never_written_down() {
        for setting in ["trace", "tokio_postgres=trace", "tokio_postgres::simple_query=debug"] {
            let text = filter(setting).unwrap().to_string();
            for always in ALWAYS {
                assert!(text.split(',').any(|directive| directive == always), "{text}");
            }
            assert!(!text.contains("tokio_postgres=trace"), "{text}");
            assert!(!text.contains("simple_query=debug"), "{text}");
        }
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_refused() {
        let refused = with_causes(&change_filter("weir=loud").unwrap_err());
        assert!(refused.starts_with("the log filter `weir=loud` is not usable: "), "{refused}");
    }

    #[test]
    fn causes_are_named_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("not written")]
        struct NotWritten(#[source] Repeats);
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Repeats(#[source] io::Error);

        let error = NotWritten(Repeats(io::Error::other("disk full")));
        assert_eq!(with_causes(&error), "not written: disk full");
    }
}
