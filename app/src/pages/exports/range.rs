//! Formats the time range of a run or a backfill.

use leptos::prelude::*;
use weir_model::Timestamp;
use weir_model::exports::{Backfill, Run};

use crate::ui::time::Time;

/// The range of a run, in the viewer's zone.
pub(super) fn of_run(run: &Run) -> AnyView {
    range(run.data_interval_start, run.data_interval_end, "From the beginning to ")
}

/// The range of a backfill, in the viewer's zone.
pub(super) fn of_backfill(backfill: &Backfill) -> AnyView {
    let start = backfill.adjusted_start_at.or(backfill.start_at);
    range(start, backfill.end_at, "From the first event to ")
}

/// `open` is the text before the end of a range without a start.
fn range(start: Option<Timestamp>, end: Timestamp, open: &'static str) -> AnyView {
    let end = end.to_string();
    match start {
        Some(start) => view! { <Time iso=start.to_string() /> " to " <Time iso=end /> }.into_any(),
        None => view! { {open} <Time iso=end /> }.into_any(),
    }
}

/// The range of a run as plain text, such as `2026-08-21 14:00 to 15:00 UTC`.
pub(super) fn text(run: &Run) -> String {
    let end = run.data_interval_end.minute_text();
    match run.data_interval_start {
        Some(start) => between(&start.minute_text(), &end),
        None => format!("From the beginning to {end}"),
    }
}

/// A range of two times. The second time omits the date if both are on the same day.
fn between(start: &str, end: &str) -> String {
    let start = start.trim_end_matches(" UTC");
    let same_day = start.get(..10).is_some_and(|day| end.starts_with(day));
    let end = if same_day { end.get(11..).unwrap_or(end) } else { end };
    format!("{start} to {end}")
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn range_texts_are_short() {
        let of = |start, end| between(start, end);
        assert_eq!(
            of("2026-08-21 14:00 UTC", "2026-08-21 15:00 UTC"),
            "2026-08-21 14:00 to 15:00 UTC"
        );
        assert_eq!(
            of("2026-08-21 00:00 UTC", "2026-08-22 00:00 UTC"),
            "2026-08-21 00:00 to 2026-08-22 00:00 UTC"
        );
    }
}
