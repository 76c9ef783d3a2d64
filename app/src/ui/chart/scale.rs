//! Converts values to positions in a drawing, with integers only.

/// Height of a drawing, in units of its view box.
pub(super) const HEIGHT: u64 = 1000;
/// Width of the slot of one value.
pub(super) const SLOT: u64 = 10;
/// Smallest height of a value above zero.
const LEAST: u64 = 8;

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

/// SVG path of a line through the values, interrupted at unknown values. A single value
/// is a dot.
pub(super) fn path(values: &[Option<u64>], ceiling: u64) -> String {
    let mut path = String::new();
    let mut is_drawing = false;
    for (at, value) in (0_u64..).zip(values) {
        let Some(value) = value else {
            is_drawing = false;
            continue;
        };
        let (x, y) = (at * SLOT + SLOT / 2, HEIGHT - height(*value, ceiling));
        path.push_str(&if is_drawing { format!("L{x} {y}") } else { format!("M{x} {y}h0") });
        is_drawing = true;
    }
    path
}

/// Width of a drawing with this number of values.
pub(super) fn width(values: usize) -> u64 {
    u64::try_from(values).unwrap_or(u64::MAX).saturating_mul(SLOT).max(SLOT)
}

#[cfg(test)]
mod tests {
    use super::{HEIGHT, ceiling, height, path, stacked, width};

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
    fn lines_stop_at_missing_values() {
        assert_eq!(path(&[Some(0), Some(5), None, Some(10)], 10), "M5 1000h0L15 500M35 0h0");
        assert_eq!(path(&[], 10), "");
        assert_eq!(width(24), 240);
        assert_eq!(width(0), 10);
    }
}
