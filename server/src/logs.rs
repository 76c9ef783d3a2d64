//! Log lines on standard error: as text or as JSON, filtered by a setting.
//!
//! Standard error may be a file on a full disk, a closed pipe, or one that is full
//! because its reader does not read. Lines wait in memory for a thread that writes them.
//! One that finds no room there or cannot be written is lost and counted; the service
//! goes on.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{Config, LogFormat};

/// Filters that hold whatever the setting says: at its finer levels the driver of
/// databases writes statements down, with the rows and the keys in them.
const ALWAYS: [&str; 2] = ["tokio_postgres=off", "tokio_postgres::simple_query=off"];

/// Bytes of lines that wait to be written.
const WAITING: usize = 1 << 20;
/// For writing what waits when the process ends.
const END: Duration = Duration::from_secs(1);

/// Lines on their way to standard error.
static LINES: Lines = Lines::new();

/// The filter cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the log filter `{filter}` is not usable")]
pub struct BadFilter {
    filter: String,
    #[source]
    source: ParseError,
}

/// Starts logging for the whole process.
///
/// # Errors
/// [`BadFilter`].
pub fn start(config: &Config) -> Result<(), BadFilter> {
    let filter =
        filter(&config.log).map_err(|source| BadFilter { filter: config.log.clone(), source })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines)
        // Otherwise it writes faults of its own to standard error, which may wait for ever.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    // Fails only when logging was started before, as in tests; then it goes on as it is.
    let _ = match config.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "{panic}");
    }));
    Ok(())
}

/// Says why the process ends, and waits a moment until everything is written.
pub fn end(why: Option<&str>) {
    if let Some(why) = why {
        lines().push(format!("error: {why}\n").as_bytes());
    }
    LINES.wait(END);
}

/// The lines, and a thread that writes them.
fn lines() -> &'static Lines {
    static WRITER: Once = Once::new();
    WRITER.call_once(|| {
        let write = || {
            // Not through the lock of standard error: this thread may wait for ever.
            let err = io::stderr();
            match err.as_fd().try_clone_to_owned() {
                Ok(own) => LINES.write_to(File::from(own)),
                Err(_) => LINES.write_to(err),
            }
        };
        // Without it lines are lost when the room is used up.
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
    /// Of the lines, and of the one that is being written.
    bytes: usize,
    /// Lost since the last line that found room.
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

    /// Writes lines as they come, for ever.
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

    /// Until nothing waits, but no longer than this.
    fn wait(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut waiting = self.waiting.lock();
        while waiting.bytes > 0 && !self.changed.wait_until(&mut waiting, end).timed_out() {}
    }
}

impl Write for &Lines {
    /// `line` is a whole line: the subscriber writes each at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line; `lost` are those before it that could not be written.
fn write_line(out: &mut impl Write, line: &Line, lost: &mut u64) {
    *lost += line.lost;
    let note = (*lost > 0).then(|| format!("{lost} log lines before this one were lost\n"));
    let note = note.unwrap_or_default();
    let written = out.write_all(note.as_bytes()).and_then(|()| out.write_all(&line.text));
    *lost = if written.is_ok() { 0 } else { *lost + 1 };
}

fn filter(setting: &str) -> Result<EnvFilter, ParseError> {
    let mut filter = EnvFilter::builder().parse(setting)?;
    for always in ALWAYS {
        filter = filter.add_directive(always.parse()?);
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as many writes as `room` says, and refuses all others.
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
}
