//! Converts values and times to positions in a drawing, with integers only.

/// Height of a drawing, in units of its view box.
pub(super) const HEIGHT: u64 = 1000;
/// Width of the slot of one value.
pub(super) const SLOT: u64 = 10;
/// Smallest height of a value above zero.
const LEAST: u64 = 8;
/// Limit of labels of the time axis.
const TICKS: i64 = 9;
/// Minutes of a day.
const DAY: i64 = 24 * 60;
/// Distances between labels of the time axis, in minutes.
const DISTANCES: [i64; 13] =
    [5, 10, 15, 30, 60, 120, 180, 360, DAY, 2 * DAY, 5 * DAY, 7 * DAY, 30 * DAY];

/// The round number at or above the largest value. It is the upper end of the scale.
pub(super) fn ceiling(largest: u64) -> u64 {
    let mut unit: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            let Some(end) = unit.checked_mul(factor) else { return largest };
            if end >= largest {
                return end;
            }
        }
        let Some(next) = unit.checked_mul(10) else { return largest };
        unit = next;
    }
}

/// The values with a grid line, from the top to zero.
pub(super) fn levels(ceiling: u64) -> Vec<u64> {
    let is_twenty = ceiling.to_string().starts_with('2');
    let counts: [u64; 3] = if is_twenty { [4, 2, 1] } else { [5, 1, 1] };
    let count = counts.into_iter().find(|count| ceiling.is_multiple_of(*count)).unwrap_or(1);
    (0..=count).rev().map(|level| ceiling / count * level).collect()
}

/// Height of a value.
pub(super) fn height(value: u64, ceiling: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let height = u128::from(value) * u128::from(HEIGHT) / u128::from(ceiling.max(1));
    u64::try_from(height).unwrap_or(HEIGHT).clamp(LEAST, HEIGHT)
}

/// Start and height of each stacked value of one time.
pub(super) fn stacked(values: &[Option<u64>], ceiling: u64) -> Vec<(u64, u64)> {
    let mut top = HEIGHT;
    values
        .iter()
        .map(|value| {
            let height = height(value.unwrap_or(0), ceiling).min(top);
            top -= height;
            (top, height)
        })
        .collect()
}

/// SVG path of a line through the known values. It leads straight over unknown ones. A
/// value without a known one beside it is also a dot.
pub(super) fn path(values: &[Option<u64>], ceiling: u64) -> String {
    let mut path = String::new();
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let (x, y) = (width(at) + SLOT / 2, HEIGHT - height(*value, ceiling));
        path.push_str(&format!("{}{x} {y}", if path.is_empty() { 'M' } else { 'L' }));
    }
    path
}

/// SVG path of a dot for each value without a known one beside it.
pub(super) fn dots(values: &[Option<u64>], ceiling: u64) -> String {
    let known = |at: Option<usize>| at.and_then(|at| *values.get(at)?);
    let mut path = String::new();
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        if known(at.checked_sub(1)).is_none() && known(Some(at + 1)).is_none() {
            let (x, y) = (width(at) + SLOT / 2, HEIGHT - height(*value, ceiling));
            path.push_str(&format!("M{x} {y}h0"));
        }
    }
    path
}

/// Width of so many slots.
pub(super) fn width(slots: usize) -> u64 {
    u64::try_from(slots).unwrap_or(u64::MAX).saturating_mul(SLOT)
}

/// A label of the time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tick {
    /// The slot that begins at the label.
    pub(super) slot: usize,
    /// The time of the slot, in minutes.
    pub(super) minute: i64,
    /// Whether a day begins with the slot.
    pub(super) is_day: bool,
}

/// The labels of the time axis: at slots in which a round time begins. `minutes` are the
/// times of the slots as they are shown.
pub(super) fn ticks(minutes: &[i64]) -> Vec<Tick> {
    let (Some(first), Some(last)) = (minutes.first(), minutes.last()) else { return Vec::new() };
    let span = last - first;
    let fits = |distance: &i64| span / distance < TICKS;
    let distance = DISTANCES.into_iter().find(fits).unwrap_or(span);
    // The first slot begins a time only if it is exactly that time.
    let mut before = first - 1;
    let mut found = Vec::new();
    for (slot, minute) in minutes.iter().copied().enumerate() {
        let begins = |distance: i64| before.div_euclid(distance) != minute.div_euclid(distance);
        if begins(distance) {
            found.push(Tick { slot, minute, is_day: begins(DAY) });
        }
        before = minute;
    }
    found
}

/// A part of a whole as a percentage, for lengths and positions.
pub(super) fn share(part: u64, whole: u64) -> String {
    let tenths = u128::from(part.min(whole)) * 1000 / u128::from(whole.max(1));
    format!("{}.{}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::{DAY, HEIGHT, ceiling, dots, height, levels, path, share, stacked, ticks, width};

    #[test]
    fn axes_end_at_round_numbers() {
        for (largest, expected) in
            [(0, 1), (1, 1), (2, 2), (3, 5), (10, 10), (11, 20), (499, 500), (501, 1000)]
        {
            assert_eq!(ceiling(largest), expected, "{largest}");
        }
        assert_eq!(ceiling(u64::MAX), u64::MAX);
    }

    #[test]
    fn grid_lines_are_at_round_numbers() {
        for (ceiling, expected) in [
            (1, vec![1, 0]),
            (2, vec![2, 1, 0]),
            (5, vec![5, 4, 3, 2, 1, 0]),
            (10, vec![10, 8, 6, 4, 2, 0]),
            (200, vec![200, 150, 100, 50, 0]),
            (500, vec![500, 400, 300, 200, 100, 0]),
        ] {
            assert_eq!(levels(ceiling), expected);
        }
    }

    #[test]
    fn small_values_are_visible() {
        assert_eq!(height(0, 10), 0);
        assert_eq!(height(5, 10), 500);
        assert_eq!(height(10, 10), HEIGHT);
        assert_eq!(height(1, 1_000_000), 8);
        assert_eq!(height(u64::MAX, u64::MAX), HEIGHT);
        assert_eq!(height(1, 0), HEIGHT);
    }

    #[test]
    fn values_are_stacked() {
        assert_eq!(stacked(&[Some(5), Some(2), None], 10), [(500, 500), (300, 200), (300, 0)]);
        assert_eq!(stacked(&[Some(10), Some(1)], 10), [(0, 1000), (0, 0)], "there is no more room");
    }

    #[test]
    fn lines_lead_over_missing_values_and_lone_values_are_dots() {
        let values = [Some(0), Some(5), None, Some(10)];
        assert_eq!(path(&values, 10), "M5 1000L15 500L35 0");
        assert_eq!(dots(&values, 10), "M35 0h0");
        assert_eq!((path(&[], 10), dots(&[None], 10)), (String::new(), String::new()));
        assert_eq!((width(24), width(0)), (240, 0));
    }

    #[test]
    fn labels_are_at_round_times() {
        let found = |first: i64, step: i64, count: i64| -> Vec<(usize, i64, bool)> {
            let minutes: Vec<i64> = (0..count).map(|at| first + at * step).collect();
            ticks(&minutes).into_iter().map(|at| (at.slot, at.minute, at.is_day)).collect()
        };
        // A day by quarter of an hour, from 10:15 on.
        let day = found(615, 15, 96);
        assert_eq!(day.first(), Some(&(7, 720, false)));
        assert_eq!(day.get(4), Some(&(55, DAY, true)));
        assert_eq!(day.len(), 8);
        // Thirty days by six hours, which do not meet midnight.
        let month = found(120, 360, 120);
        assert_eq!(month.first(), Some(&(20, 5 * DAY + 120, true)));
        assert_eq!(month.len(), 5);
        assert_eq!(found(60, 1, 1), [(0, 60, false)]);
        assert_eq!(found(0, 1, 0), []);
    }

    #[test]
    fn positions_are_percentages() {
        assert_eq!(share(0, 96), "0.0%");
        assert_eq!(share(12, 96), "12.5%");
        assert_eq!(share(1, 3), "33.3%");
        assert_eq!((share(2, 1), share(1, 0)), ("100.0%".to_owned(), "0.0%".to_owned()));
    }
}
