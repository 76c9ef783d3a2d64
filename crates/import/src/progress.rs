//! Progress on standard error: a line that is redrawn on a terminal, otherwise periodic
//! lines.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Time between two updates on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// Time between two lines elsewhere.
const LINE: Duration = Duration::from_secs(5);
/// Time over which the rate is averaged.
const WINDOW: Duration = Duration::from_secs(15);
/// Characters of the bar.
const BAR: usize = 20;

/// The unit of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Events,
}

/// Progress of one phase of the import.
#[derive(Debug)]
pub(crate) struct Progress {
    verb: &'static str,
    unit: Unit,
    total: u64,
    done: Arc<AtomicU64>,
    note: Mutex<Option<String>>,
}

impl Progress {
    /// For the check: bytes that were read.
    pub(crate) fn of_check(total: u64, read: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            verb: "checking",
            unit: Unit::Bytes,
            total,
            done: read,
            note: Mutex::default(),
        })
    }

    /// For sending: lines that the host has answered.
    pub(crate) fn of_sending(total: u64, done: u64) -> Arc<Self> {
        let done = Arc::new(AtomicU64::new(done));
        Arc::new(Self { verb: "sending", unit: Unit::Events, total, done, note: Mutex::default() })
    }

    /// Sets the progress.
    pub(crate) fn reached(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Sets a message, such as why there is no progress.
    pub(crate) fn note(&self, note: Option<String>) {
        *self.note.lock() = note;
    }

    /// Shows progress until the result is ended or dropped.
    pub(crate) fn show(self: &Arc<Self>) -> Shown {
        let on_terminal = std::io::stderr().is_terminal();
        let task = tokio::spawn(self.clone().redraw(on_terminal));
        Shown { task, on_terminal }
    }

    async fn redraw(self: Arc<Self>, on_terminal: bool) {
        let mut ticks = interval(if on_terminal { REDRAW } else { LINE });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut samples = VecDeque::new();
        ticks.tick().await;
        loop {
            let now = Instant::now();
            samples.push_back((now, self.done.load(Ordering::Relaxed)));
            while samples.len() > 2
                && samples.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW)
            {
                samples.pop_front();
            }
            ticks.tick().await;
            let rate = match samples.front() {
                Some((at, done)) => {
                    let more = self.done.load(Ordering::Relaxed).saturating_sub(*done);
                    per_second(more, at.elapsed())
                }
                None => 0.0,
            };
            put(&if on_terminal {
                format!("\r{}\x1b[K", self.line(rate))
            } else {
                format!("{}\n", self.line(rate))
            });
        }
    }

    fn line(&self, rate: f64) -> String {
        let done = self.done.load(Ordering::Relaxed).min(self.total);
        let share = if self.total == 0 { 1.0 } else { as_f64(done) / as_f64(self.total) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
        let (percent, filled) = ((share * 100.0) as u32, (share * as_f64(BAR as u64)) as usize);
        let mut line = format!("{:<8} [{:-<BAR$}] {percent:>3} %", self.verb, "#".repeat(filled));
        // Writing to a text cannot fail.
        let _ = match self.unit {
            Unit::Bytes => write!(line, "  {:.1} MB/s", rate / 1e6),
            Unit::Events => {
                let (done, total) = (grouped(done), grouped(self.total));
                write!(line, "  {done} of {total} events  {rate:.0}/s")
            }
        };
        if rate > 0.0 && done < self.total {
            let left = as_f64(self.total - done) / rate;
            let _ = write!(line, "  {} left", duration(left));
        }
        if let Some(note) = &*self.note.lock() {
            let _ = write!(line, "  {note}");
        }
        line
    }
}

/// Shows progress until it is dropped.
pub(crate) struct Shown {
    task: JoinHandle<()>,
    on_terminal: bool,
}

impl Shown {
    /// Ends it and clears the line.
    pub(crate) async fn end(mut self) {
        self.task.abort();
        // The task ends by being aborted.
        let _ = (&mut self.task).await;
        if self.on_terminal {
            put("\r\x1b[K");
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A closed terminal does not end an import.
fn put(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Precise enough for display.
#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
fn as_f64(number: u64) -> f64 {
    number as f64
}

/// A rate; 0 if the time is zero.
pub(crate) fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { as_f64(count) / time.as_secs_f64() }
}

/// `1,234,567`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `40 s`, `12 min` or `3 h 05 min`.
pub(crate) fn duration(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time ahead")]
    let seconds = seconds.clamp(0.0, 1e9) as u64;
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, 1) => format!("1 min {:02} s", seconds % 60),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, duration, grouped};

    #[test]
    fn a_line_says_share_rate_and_time_left() {
        let progress = Progress::of_sending(1_000_000, 0);
        progress.reached(250_000);
        assert_eq!(
            progress.line(5000.0),
            "sending  [#####---------------]  25 %  250,000 of 1,000,000 events  5000/s  2 min left"
        );
        progress.note(Some("the host answers 503".to_owned()));
        assert!(progress.line(0.0).ends_with("  0/s  the host answers 503"));
        progress.reached(1_000_001);
        assert!(progress.line(1.0).contains("[####################] 100 %"));
    }

    #[test]
    fn numbers_for_people() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (seconds, text) in [
            (0.4, "0 s"),
            (59.0, "59 s"),
            (61.0, "1 min 01 s"),
            (600.0, "10 min"),
            (7500.0, "2 h 05 min"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
