//! A JSON object from outside, each of whose members is there once.
//!
//! What belongs here: reading members with their types. What does not: what they mean.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use crate::Refusal;

/// The members of an object. An object with a duplicate member is refused: two readers of
/// it could read different values.
#[derive(Default)]
pub(crate) struct Object(BTreeMap<String, Value>);

impl Object {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A member that is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A claim that is a text.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        self.claim(name, Value::as_str)
    }

    /// A claim that is true or false, and not a text that says so.
    pub(crate) fn flag(&self, name: &'static str) -> Result<Option<bool>, Refusal> {
        self.claim(name, Value::as_bool)
    }

    /// A claim that is a time in seconds since 1970.
    pub(crate) fn seconds(&self, name: &'static str) -> Result<Option<i64>, Refusal> {
        self.claim(name, whole_seconds)
    }

    fn claim<'a, T>(
        &'a self,
        name: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or(Refusal::ClaimType(name))
    }
}

/// Seconds, without their fraction. The standard allows one, and times beyond the year
/// 9999 are no times.
fn whole_seconds(value: &Value) -> Option<i64> {
    const LAST: i64 = 253_402_300_799;
    let seconds = match value.as_i64() {
        Some(seconds) => seconds,
        #[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off")]
        None => value.as_f64()?.trunc() as i64,
    };
    (0..=LAST).contains(&seconds).then_some(seconds)
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("duplicate member"));
                    }
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::Object;
    use crate::Refusal;

    #[test]
    fn members_have_one_value_of_their_type() {
        let object =
            Object::parse(r#"{"a": "x", "b": true, "c": "true", "d": null, "e": 1.9}"#).unwrap();
        assert_eq!(object.text("a"), Ok(Some("x")));
        assert_eq!(object.flag("b"), Ok(Some(true)));
        assert_eq!(object.flag("c"), Err(Refusal::ClaimType("c")));
        assert_eq!(object.text("d"), Ok(None));
        assert_eq!(object.text("b"), Err(Refusal::ClaimType("b")));
        assert_eq!(object.seconds("e"), Ok(Some(1)));
        for text in ["", "[]", "null", "\"a\"", r#"{"a": 1, "a": 1}"#, r#"{"a": 1, "\u0061": 2}"#] {
            assert!(Object::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_time_is_a_number_of_this_calendar() {
        let seconds =
            |text: &str| Object::parse(&format!("{{\"t\": {text}}}")).unwrap().seconds("t");
        assert_eq!(seconds("1700000000"), Ok(Some(1_700_000_000)));
        assert_eq!(seconds("1.7e9"), Ok(Some(1_700_000_000)));
        for text in ["-1", "1e300", "99999999999999999999", "\"1700000000\"", "true", "[]"] {
            assert_eq!(seconds(text), Err(Refusal::ClaimType("t")), "{text}");
        }
    }
}
