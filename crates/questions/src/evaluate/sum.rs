//! Sums that do not depend on the order of their numbers (QRY-29).
//!
//! Adding doubles rounds after each number, so threads that share the work would change the
//! last digits of an answer. These sums are rounded once, when they are read.

use crate::query::PropertyMath;

/// Bits of a limb. The upper half of its `i64` holds carries.
const LIMB_BITS: u32 = 32;
const LIMB_MASK: i64 = 0xFFFF_FFFF;
/// The exponent of the lowest bit of a double: 2^-1074.
const LOWEST: u32 = 1074;
/// The largest double has its highest bit 2,098 bits above the lowest one. 64 more bits are
/// room for 2^64 numbers.
const LIMBS: usize = 68;
/// Numbers that are added before carries are moved on: each adds less than 2^32 to a limb.
const CARRIES_MAX: u32 = 1 << 30;
/// Bits of the fraction of a double.
const FRACTION_BITS: u32 = 52;
const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;
/// Whole numbers below this are added as integers.
const WHOLE_MAX: f64 = 9_223_372_036_854_775_808.0;

/// The exact sum of numbers.
#[derive(Debug, Clone, Default)]
pub struct ExactSum {
    /// The whole numbers.
    whole: i128,
    /// All other numbers, so that sums of whole numbers are small in memory.
    fractions: Option<Box<Limbs>>,
}

/// The sum of doubles, in units of 2^-1074.
#[derive(Debug, Clone)]
struct Limbs {
    limbs: [i64; LIMBS],
    /// Numbers since carries were moved on.
    added: u32,
}

impl ExactSum {
    /// Adds a whole number.
    pub fn add_integer(&mut self, number: i64) {
        self.whole += i128::from(number);
    }

    /// Adds a number. One that is not finite is ignored.
    pub fn add(&mut self, number: f64) {
        if number.fract() == 0.0 && number.abs() < WHOLE_MAX {
            self.add_integer(number as i64);
        } else if number.is_finite() {
            self.fractions.get_or_insert_default().add(number);
        }
    }

    /// Adds the numbers of another sum.
    pub fn merge(&mut self, other: Self) {
        self.whole += other.whole;
        match (&mut self.fractions, other.fractions) {
            (_, None) => {}
            (Some(own), Some(other)) => own.merge(&other),
            (own @ None, other) => *own = other,
        }
    }

    /// The double that is nearest to the sum; of two as near, the even one. Infinite if the
    /// sum is beyond the largest double.
    pub fn value(&self) -> f64 {
        match &self.fractions {
            None => self.whole as f64,
            Some(fractions) => {
                let mut all = fractions.clone();
                all.add_whole(self.whole);
                all.value()
            }
        }
    }

    /// The bytes that it takes beside itself.
    pub fn bytes(&self) -> usize {
        if self.fractions.is_some() { size_of::<Limbs>() } else { 0 }
    }
}

impl Default for Limbs {
    fn default() -> Self {
        Self { limbs: [0; LIMBS], added: 0 }
    }
}

impl Limbs {
    fn add(&mut self, number: f64) {
        let bits = number.to_bits();
        let exponent = (bits >> FRACTION_BITS & 0x7FF) as u32;
        let fraction = bits & FRACTION_MASK;
        // Without an exponent, a double has no leading bit.
        let (mantissa, offset) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << FRACTION_BITS, exponent - 1),
        };
        self.add_bits(mantissa, offset, number.is_sign_negative());
    }

    fn add_whole(&mut self, number: i128) {
        let mut rest = number.unsigned_abs();
        let mut offset = LOWEST;
        while rest != 0 {
            self.add_bits((rest & LIMB_MASK as u128) as u64, offset, number < 0);
            rest >>= LIMB_BITS;
            offset += LIMB_BITS;
        }
    }

    /// Adds `mantissa * 2^offset`, of less than 2^53 and at most 2^2045.
    fn add_bits(&mut self, mantissa: u64, offset: u32, is_negative: bool) {
        let mut rest = u128::from(mantissa) << (offset % LIMB_BITS);
        let first = (offset / LIMB_BITS) as usize;
        for limb in self.limbs.iter_mut().skip(first).take(3) {
            let part = (rest & LIMB_MASK as u128) as i64;
            *limb += if is_negative { -part } else { part };
            rest >>= LIMB_BITS;
        }
        self.added += 1;
        if self.added == CARRIES_MAX {
            self.carry();
        }
    }

    fn merge(&mut self, other: &Self) {
        self.carry();
        let mut other = other.clone();
        other.carry();
        for (limb, more) in self.limbs.iter_mut().zip(other.limbs) {
            *limb += more;
        }
        self.carry();
    }

    /// Moves carries on, so that each limb but the last one has 32 bits and no sign.
    fn carry(&mut self) {
        let mut carry = 0;
        let last = LIMBS - 1;
        for limb in &mut self.limbs[..last] {
            *limb += carry;
            carry = *limb >> LIMB_BITS;
            *limb &= LIMB_MASK;
        }
        self.limbs[last] += carry;
        self.added = 0;
    }

    fn value(&mut self) -> f64 {
        self.carry();
        let is_negative = self.limbs[LIMBS - 1] < 0;
        if is_negative {
            self.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            self.carry();
        }
        let magnitude = self.magnitude();
        if is_negative { -magnitude } else { magnitude }
    }

    /// The value of limbs without carries and sign.
    fn magnitude(&self) -> f64 {
        let Some(top) = self.limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        // The highest limbs are enough for the bits of a double, and all below them are one
        // bit that says whether there is a rest.
        let from = top.saturating_sub(3);
        let high = self.limbs[from..=top].iter().rev();
        let bits = high.fold(0_u128, |bits, limb| bits << LIMB_BITS | *limb as u128);
        let has_rest = self.limbs[..from].iter().any(|limb| *limb != 0);
        let highest = u128::BITS - 1 - bits.leading_zeros() + from as u32 * LIMB_BITS;
        if highest <= FRACTION_BITS {
            // A double has all bits of so small a number.
            return f64::from_bits(bits as u64);
        }
        let dropped = highest - FRACTION_BITS - from as u32 * LIMB_BITS;
        let kept = (bits >> dropped) as u64;
        let half = 1_u128 << (dropped - 1);
        let rest = bits & ((1 << dropped) - 1);
        let is_up = rest > half || (rest == half && (has_rest || kept & 1 == 1));
        let exponent = highest - FRACTION_BITS;
        if exponent >= 0x7FE {
            return f64::INFINITY;
        }
        // The leading bit and the one of rounding up move on into the exponent.
        let bits = (u64::from(exponent) << FRACTION_BITS) + kept + u64::from(is_up);
        f64::from_bits(bits)
    }
}

/// What is computed of the numbers in a property, but percentiles.
#[derive(Debug, Clone, Default)]
pub struct NumberTotals {
    count: u64,
    sum: ExactSum,
    /// The smallest and the largest one.
    extremes: Option<(f64, f64)>,
}

impl NumberTotals {
    /// Counts a number. One that is not finite is ignored.
    pub fn add(&mut self, number: f64) {
        if number.is_finite() {
            self.sum.add(number);
            self.see(number, number, 1);
        }
    }

    /// Counts a whole number.
    pub fn add_integer(&mut self, number: i64) {
        self.sum.add_integer(number);
        self.see(number as f64, number as f64, 1);
    }

    /// Counts the numbers of other totals.
    pub fn merge(&mut self, other: Self) {
        if let Some((least, most)) = other.extremes {
            self.sum.merge(other.sum);
            self.see(least, most, other.count);
        }
    }

    fn see(&mut self, least: f64, most: f64, count: u64) {
        self.count += count;
        self.extremes = Some(match self.extremes {
            None => (least, most),
            Some((a, b)) => {
                // Zero has two signs, of which the order of numbers must not choose.
                let least = if least.total_cmp(&a).is_lt() { least } else { a };
                let most = if most.total_cmp(&b).is_gt() { most } else { b };
                (least, most)
            }
        });
    }

    /// Its sum, average, minimum or maximum. `None`: there is no number, or it is a
    /// percentile.
    pub fn value(&self, math: PropertyMath) -> Option<f64> {
        let (least, most) = self.extremes?;
        match math {
            PropertyMath::Sum => Some(self.sum.value()),
            PropertyMath::Average => Some(self.sum.value() / self.count as f64),
            PropertyMath::Minimum => Some(least),
            PropertyMath::Maximum => Some(most),
            _ => None,
        }
    }

    /// The bytes that it takes beside itself.
    pub fn bytes(&self) -> usize {
        self.sum.bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum.value()
    }

    #[test]
    fn a_sum_is_rounded_once() {
        for (numbers, expected) in [
            (&[][..], 0.0),
            (&[-0.0], 0.0),
            (&[0.1; 10], 1.0),
            (&[0.1, 0.2], 0.1 + 0.2),
            (&[1e100, 1.0, -1e100], 1.0),
            (&[1e308, 1e308, -1e308], 1e308),
            (&[-0.5, -0.25], -0.75),
            // Halfway between two doubles: the even one, unless there is a rest.
            (&[9_007_199_254_740_992.0, 0.5, 0.5], 9_007_199_254_740_992.0),
            (&[9_007_199_254_740_992.0, 1.0, 1e-300], 9_007_199_254_740_994.0),
            (&[9_007_199_254_740_994.0, 0.5, 0.5], 9_007_199_254_740_996.0),
            (&[f64::MIN_POSITIVE, -f64::MIN_POSITIVE, 5e-324], 5e-324),
            (&[f64::MIN_POSITIVE / 2.0, f64::MIN_POSITIVE / 2.0], f64::MIN_POSITIVE),
            (&[1e-310, 2e-310], 1e-310 + 2e-310),
            (&[f64::MAX, f64::MAX], f64::INFINITY),
            (&[-f64::MAX, -f64::MAX], f64::NEG_INFINITY),
            (&[f64::MAX, -f64::MAX, 0.3], 0.3),
            (&[f64::NAN, f64::INFINITY, 2.5], 2.5),
            (&[9e18, 9e18, 0.5], 1.8e19),
        ] {
            assert_eq!(sum(numbers).to_bits(), expected.to_bits(), "{numbers:?}");
        }
        let mut whole = ExactSum::default();
        whole.add_integer(i64::MAX);
        whole.add_integer(i64::MIN);
        assert_eq!((whole.value(), whole.bytes()), (-1.0, 0));
        whole.add(0.25);
        assert_eq!(whole.value(), -0.75);
    }

    #[test]
    fn carries_are_moved_on() {
        let mut limbs = Limbs { added: CARRIES_MAX - 1, ..Limbs::default() };
        limbs.limbs[40] = i64::from(u32::MAX) << 30;
        let before = limbs.clone().value();
        limbs.add(0.5);
        assert_eq!(limbs.added, 0);
        assert!(limbs.limbs.iter().all(|limb| *limb <= LIMB_MASK));
        limbs.add(-0.5);
        assert_eq!(limbs.value(), before);
    }

    #[test]
    fn numbers_have_totals() {
        let mut totals = NumberTotals::default();
        assert_eq!(totals.value(PropertyMath::Sum), None);
        [0.1, 0.2, f64::NAN].into_iter().for_each(|number| totals.add(number));
        totals.add_integer(-3);
        for (math, expected) in [
            (PropertyMath::Sum, Some(-2.7)),
            (PropertyMath::Average, Some(-0.9)),
            (PropertyMath::Minimum, Some(-3.0)),
            (PropertyMath::Maximum, Some(0.2)),
            (PropertyMath::Median, None),
        ] {
            assert_eq!(totals.value(math), expected, "{math:?}");
        }
    }

    /// Doubles of all sizes, many of which cancel out.
    fn numbers() -> impl Strategy<Value = Vec<f64>> {
        let number = prop_oneof![
            any::<f64>(),
            -1e3..1e3_f64,
            (-1000..1000_i32).prop_map(f64::from),
            (0..2_i32, -1074..1000_i32).prop_map(|(sign, power)| {
                f64::from(1 - 2 * sign) * 2.0_f64.powi(power / 2) * 2.0_f64.powi(power - power / 2)
            }),
        ];
        prop::collection::vec(number, 0..40)
    }

    /// The sum by adding the smaller part of each addition again, until nothing is left: the
    /// parts do not overlap, and are rounded together.
    fn by_parts(numbers: &[f64]) -> f64 {
        let mut parts: Vec<f64> = Vec::new();
        for number in numbers.iter().copied().filter(|number| number.is_finite()) {
            let mut high = number;
            let mut kept = Vec::new();
            for part in parts {
                let (large, small) =
                    if high.abs() < part.abs() { (part, high) } else { (high, part) };
                high = large + small;
                let low = small - (high - large);
                if low != 0.0 {
                    kept.push(low);
                }
            }
            kept.push(high);
            parts = kept;
        }
        let mut rest = parts.into_iter().rev();
        let mut high = rest.next().unwrap_or(0.0);
        while let Some(part) = rest.next() {
            let large = high;
            high = large + part;
            let low = part - (high - large);
            if low != 0.0 {
                // Halfway between two doubles, the rest decides.
                if rest.next().is_some_and(|next| (next < 0.0) == (low < 0.0)) {
                    let twice = low * 2.0;
                    let next = high + twice;
                    if next - high == twice {
                        high = next;
                    }
                }
                break;
            }
        }
        high
    }

    proptest! {
        #[test]
        fn a_sum_is_that_of_other_ways(numbers in numbers()) {
            let numbers: Vec<f64> =
                numbers.into_iter().filter(|number| number.abs() < 1e300).collect();
            prop_assert_eq!(sum(&numbers), by_parts(&numbers));
        }

        #[test]
        fn totals_do_not_depend_on_order_and_parts(
            numbers in numbers(),
            order in any::<u64>(),
            parts in 1..5_usize,
        ) {
            let mut one = NumberTotals::default();
            numbers.iter().for_each(|number| one.add(*number));
            let mut some = vec![NumberTotals::default(); parts];
            for (at, number) in crate::evaluate::support::shuffled(&numbers, order) {
                some[at % parts].add(number);
            }
            let mut all = NumberTotals::default();
            some.into_iter().rev().for_each(|part| all.merge(part));
            for math in PropertyMath::ALL {
                let of = |totals: &NumberTotals| totals.value(*math).map(f64::to_bits);
                prop_assert_eq!(of(&all), of(&one), "{:?}", math);
            }
        }
    }
}
