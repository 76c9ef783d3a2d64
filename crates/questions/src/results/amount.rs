//! Numbers of results.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Above this, a `f64` does not have every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number of a result: finite, and written as an integer if it is one.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Amount(f64);

impl Amount {
    /// A number. One that is not finite becomes 0.
    pub fn new(number: f64) -> Self {
        Self(if number.is_finite() { number } else { 0.0 })
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl From<u64> for Amount {
    fn from(count: u64) -> Self {
        Self(count as f64)
    }
}

impl From<f64> for Amount {
    fn from(number: f64) -> Self {
        Self::new(number)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() <= EXACT {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_written_as_integers() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (7.0, "7"),
            (-7.0, "-7"),
            (0.5, "0.5"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(serde_json::to_string(&Amount::new(number)).unwrap(), text);
        }
        assert_eq!(serde_json::from_str::<Amount>("7").unwrap(), Amount::from(7_u64));
        for number in [0.5, 1e300, -1e-300] {
            let text = serde_json::to_string(&Amount::new(number)).unwrap();
            assert_eq!(serde_json::from_str::<Amount>(&text).unwrap().value(), number);
        }
    }
}
