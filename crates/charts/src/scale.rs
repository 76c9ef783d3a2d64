//! From numbers to heights: round levels, and their texts.

/// Levels that a scale aims for.
const LEVELS: f64 = 5.0;
/// Most levels of a scale.
const LEVELS_MAX: usize = 12;
/// Beyond it, a difference of two numbers is not finite.
const END: f64 = 1e100;
/// From here on, numbers are written with a letter.
const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")];
const THOUSAND: f64 = 1_000.0;
/// From here on, numbers are written with a power of ten.
const HUGE: f64 = 1e15;
/// With levels that are closer, too.
const TINY: f64 = 1e-6;
/// Most digits after the point.
const DIGITS_MAX: f64 = 6.0;

/// A scale from one level to another. Zero is between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// The scale of these numbers.
    pub(crate) fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for number in numbers.filter(|number| number.is_finite()) {
            low = low.min(number.max(-END));
            high = high.max(number.min(END));
        }
        if high - low <= f64::MIN_POSITIVE {
            high = 1.0;
        }
        let step = round((high - low) / LEVELS);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    /// The part of the height below a number, from 0 to 1.
    pub(crate) fn share(&self, number: f64) -> f32 {
        let share = (number.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        share as f32
    }

    /// The levels from the bottom, with their texts.
    pub(crate) fn levels(&self) -> Vec<(f64, String)> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        let level = |at: usize| {
            let number = self.low + self.step * at as f64;
            // The level at zero can be a little beside it.
            let number = if number.abs() < self.step / 2.0 { 0.0 } else { number };
            (number, text(number, self.step))
        };
        (0..=count.min(LEVELS_MAX)).map(level).collect()
    }
}

/// The next round number: 1, 2, 5 or 10 times a power of ten.
fn round(number: f64) -> f64 {
    let unit = 10.0_f64.powf(number.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    factors
        .into_iter()
        .map(|factor| factor * unit)
        .find(|step| *step >= number)
        .unwrap_or(10.0 * unit)
}

/// A level, with as many digits as the distance to the next one needs.
fn text(number: f64, step: f64) -> String {
    let digits = |unit: f64| (-(step / unit).log10().floor()).clamp(0.0, DIGITS_MAX) as usize;
    if number.abs() >= HUGE || (number != 0.0 && step < TINY) {
        let digits = digits(10.0_f64.powf(number.abs().log10().floor()));
        return format!("{number:.digits$e}");
    }
    let unit = UNITS.into_iter().find(|(size, _)| number.abs() >= *size);
    let (size, letter) = match unit {
        Some((_, "k")) => (THOUSAND, "k"),
        Some((size, letter)) => (size, letter),
        None => (1.0, ""),
    };
    let digits = if step < TINY { 0 } else { digits(size) };
    format!("{:.digits$}{letter}", number / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(numbers: &[f64]) -> Vec<String> {
        let scale = Scale::of(numbers.iter().copied());
        scale.levels().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn levels_are_round_and_contain_all_numbers_and_zero() {
        assert_eq!(texts(&[3.0, 9.0]), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(texts(&[-3.0, 9.0]), ["-5", "0", "5", "10"]);
        assert_eq!(texts(&[0.21]), ["0.00", "0.05", "0.10", "0.15", "0.20", "0.25"]);
        assert_eq!(texts(&[]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&[48_000.0]), ["0", "10k", "20k", "30k", "40k", "50k"]);
        assert_eq!(texts(&[2_500_000.0]), ["0", "500k", "1.0M", "1.5M", "2.0M", "2.5M"]);
        assert_eq!(texts(&[2.2e15]), ["0", "500T", "1.0e15", "1.5e15", "2.0e15", "2.5e15"]);
        assert_eq!(texts(&[4.4e-8]), ["0", "1e-8", "2e-8", "3e-8", "4e-8", "5e-8"]);
    }

    #[test]
    fn numbers_without_a_bound_have_a_scale() {
        let huge = [f64::MAX, f64::MIN, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE];
        let scale = Scale::of(huge.into_iter());
        assert!(scale.levels().len() <= LEVELS_MAX + 1);
        for number in huge.into_iter().filter(|number| !number.is_nan()) {
            assert!((0.0..=1.0).contains(&scale.share(number)), "{number}");
        }
        assert_eq!(Scale::of([4.0].into_iter()).share(4.0), 1.0);
    }
}
