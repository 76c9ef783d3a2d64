//! Log lines on standard error: as text or as JSON, filtered by a setting.
//!
//! Standard error may be a file on a full disk or a closed pipe. A line that cannot
//! be written is lost and counted; the service goes on.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{Config, LogFormat};

/// Filters that hold whatever the setting says: at its finer levels the driver of
/// databases writes statements down, with the rows and the keys in them.
const ALWAYS: [&str; 2] = ["tokio_postgres=off", "tokio_postgres::simple_query=off"];

/// Lines lost since the last one that was written.
static LOST: AtomicU64 = AtomicU64::new(0);

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
        .with_writer(|| Lossy { out: io::stderr(), lost: &LOST })
        // It would report a failed write with `eprintln!`, which panics where the
        // write failed, and a panic within the panic hook aborts the process.
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

/// A destination of lines that never fails.
struct Lossy<W> {
    out: W,
    lost: &'static AtomicU64,
}

impl<W: Write> Write for Lossy<W> {
    /// `line` is a whole line: the subscriber writes each at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let note = (lost > 0).then(|| format!("{lost} log lines before this one were lost\n"));
        let note = note.unwrap_or_default();
        let written = self.out.write_all(note.as_bytes()).and_then(|()| self.out.write_all(line));
        if written.is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // What cannot be flushed now may be written with the next line.
        let _ = self.out.flush();
        Ok(())
    }
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
        static LOST: AtomicU64 = AtomicU64::new(0);
        let mut taken = Vec::new();
        for (room, line) in [(0, "a\n"), (0, "b\n"), (2, "c\n"), (2, "d\n")] {
            let mut lossy = Lossy { out: Full { room, taken: &mut taken }, lost: &LOST };
            assert_eq!(lossy.write(line.as_bytes()).unwrap(), line.len());
            lossy.flush().unwrap();
        }
        assert_eq!(
            String::from_utf8(taken).unwrap(),
            "2 log lines before this one were lost\nc\nd\n"
        );
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
