//! Medians and percentiles.

use std::time::Duration;

/// Latencies of many requests.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    micros: Vec<u32>,
}

impl Latencies {
    /// Adds one latency.
    pub fn add(&mut self, took: Duration) {
        self.micros.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    /// Adds all latencies of another collection.
    pub fn merge(&mut self, other: &Self) {
        self.micros.extend_from_slice(&other.micros);
    }

    /// Number of latencies.
    pub fn count(&self) -> usize {
        self.micros.len()
    }

    /// The latency in milliseconds that the given fraction of requests (0 to 1) did not
    /// exceed; zero if there are none.
    pub fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        let micros = sorted.get(rank.max(1) - 1).or(sorted.last()).copied().unwrap_or(0);
        f64::from(micros) / 1e3
    }
}

/// The median; zero if there are no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (_, None) => 0.0,
        (1, Some(value)) => *value,
        (_, Some(value)) => f64::midpoint(*value, sorted[middle - 1]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Latencies, median};

    #[test]
    #[expect(clippy::float_cmp, reason = "exact by construction")]
    fn figures() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(0.5), 0.0);
        for millis in 1..=100 {
            latencies.add(Duration::from_millis(millis));
        }
        assert_eq!(latencies.percentile(0.5), 50.0);
        assert_eq!(latencies.percentile(0.99), 99.0);
    }
}
