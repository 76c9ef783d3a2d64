//! Exact percentiles (QRY-21).

/// The percentile of numbers, from 0 to 1: linear between the two nearest ranks of
/// `fraction * (n - 1)`, and exact for any number of values. ClickHouse's `quantile` gives
/// the same for up to 8,192 values, and DuckDB's `quantile_cont` always.
///
/// Numbers that are not finite are ignored. `None`: there is no other. The order of the
/// numbers changes.
pub fn percentile(numbers: &mut Vec<f64>, fraction: f64) -> Option<f64> {
    numbers.retain(|number| number.is_finite());
    let last = numbers.len().checked_sub(1)?;
    let rank = fraction.clamp(0.0, 1.0) * last as f64;
    // At most `last`, because the fraction is at most one.
    let below = (rank.floor() as usize).min(last);
    let (_, low, above) = numbers.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    let part = rank - below as f64;
    // Without a part, or behind the last value, nothing is added.
    match above.iter().copied().min_by(f64::total_cmp) {
        Some(high) if part > 0.0 && (high - low).is_finite() => Some(low + (high - low) * part),
        Some(high) if part > 0.0 => Some(low * (1.0 - part) + high * part),
        _ => Some(low),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_linear_between_ranks() {
        for (numbers, fraction, expected) in [
            (&[0.0; 0][..], 0.5, None),
            (&[f64::NAN, f64::INFINITY], 0.5, None),
            (&[7.0], 0.9, Some(7.0)),
            (&[3.0, 1.0, 2.0], 0.5, Some(2.0)),
            (&[4.0, 1.0, 3.0, 2.0], 0.5, Some(2.5)),
            (&[1.0, 2.0, f64::NAN], 0.5, Some(1.5)),
            (&[10.0, 20.0, 30.0, 40.0, 50.0], 0.9, Some(46.0)),
            (&[10.0, 20.0], 0.0, Some(10.0)),
            (&[10.0, 20.0], 1.0, Some(20.0)),
            (&[10.0, 20.0], 7.0, Some(20.0)),
            (&[10.0, 20.0], f64::NAN, Some(10.0)),
            // Their distance is no double.
            (&[f64::MIN, f64::MAX], 0.5, Some(0.0)),
        ] {
            let found = percentile(&mut numbers.to_vec(), fraction);
            let is_near = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
                (found, expected) => found == expected,
            };
            assert!(is_near, "{numbers:?} {fraction}: {found:?}");
        }
    }

    proptest! {
        #[test]
        fn a_percentile_is_between_the_sorted_neighbours(
            numbers in prop::collection::vec(-1e9..1e9_f64, 1..50),
            fraction in 0.0..=1.0_f64,
        ) {
            let found = percentile(&mut numbers.clone(), fraction).unwrap();
            let mut sorted = numbers;
            sorted.sort_by(f64::total_cmp);
            let rank = fraction * (sorted.len() - 1) as f64;
            prop_assert!(sorted[rank.floor() as usize] <= found + 1e-6);
            prop_assert!(found <= sorted[rank.ceil() as usize] + 1e-6);
        }
    }
}
