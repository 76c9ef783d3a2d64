//! Values that scripts keep for a limited time: `meta.cache` (PLG-29).
//!
//! What belongs here: the values of all configs, in memory, with their bounds. What does
//! not: durable values (`storage`).

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

/// Maximum keys of one config.
const KEYS: usize = 1_000;
/// Maximum bytes of the values of one config.
const BYTES: usize = 1 << 20;
/// Maximum elements of a list.
const LIST: usize = 1_000;
/// Maximum bytes of a key.
const KEY: usize = 200;
/// The time to live if the script sets none.
const USUAL: Duration = Duration::from_secs(86_400);
/// The longest time to live.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// The cache of one config. Times are of a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: HashMap<String, Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    content: Content,
    bytes: usize,
    until: Duration,
}

#[derive(Debug)]
enum Content {
    Value(Value),
    List(VecDeque<Value>),
}

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CacheFault {
    #[error("the cache of a config holds at most 1000 keys and 1 MiB")]
    Full,
    #[error("a key of the cache has 1 to 200 bytes")]
    Key,
    #[error("a list in the cache has at most 1000 elements")]
    ListTooLong,
    #[error("this key of the cache holds no list")]
    NoList,
    #[error("this key of the cache holds no number")]
    NoNumber,
}

type Result<T> = std::result::Result<T, CacheFault>;

impl Cache {
    /// The value, or null. A list is returned as an array.
    pub(crate) fn get(&mut self, key: &str, now: Duration) -> Value {
        match self.entry(key, now).map(|entry| &entry.content) {
            None => Value::Null,
            Some(Content::Value(value)) => value.clone(),
            Some(Content::List(list)) => list.iter().cloned().collect(),
        }
    }

    pub(crate) fn set(
        &mut self,
        key: &str,
        value: Value,
        ttl: Option<f64>,
        now: Duration,
    ) -> Result<()> {
        self.put(key, Content::Value(value), now + lifetime(ttl), now)
    }

    /// Adds one; returns the new value.
    pub(crate) fn increment(&mut self, key: &str, now: Duration) -> Result<Value> {
        let (present, until) = match self.entry(key, now) {
            None => (0, now + USUAL),
            Some(Entry { content: Content::Value(value), until, .. }) => {
                (value.as_i64().ok_or(CacheFault::NoNumber)?, *until)
            }
            Some(_) => return Err(CacheFault::NoNumber),
        };
        let next = Value::from(present.saturating_add(1));
        self.put(key, Content::Value(next.clone()), until, now)?;
        Ok(next)
    }

    /// Sets the time to live of a key; returns whether the key exists.
    pub(crate) fn expire(&mut self, key: &str, ttl: f64, now: Duration) -> bool {
        let until = now + lifetime(Some(ttl));
        match self.entries.get_mut(key) {
            Some(entry) if entry.until > now => {
                entry.until = until;
                true
            }
            _ => false,
        }
    }

    /// Adds values at the start, one after another; returns the length.
    pub(crate) fn push(&mut self, key: &str, values: Vec<Value>, now: Duration) -> Result<usize> {
        let (mut list, until) = self.list(key, now)?;
        if list.len() + values.len() > LIST {
            return Err(CacheFault::ListTooLong);
        }
        for value in values {
            list.push_front(value);
        }
        let length = list.len();
        self.put(key, Content::List(list), until, now)?;
        Ok(length)
    }

    /// A part of the list, both ends included, negative from the end.
    pub(crate) fn range(
        &mut self,
        key: &str,
        start: i64,
        end: i64,
        now: Duration,
    ) -> Result<Vec<Value>> {
        let (list, _) = self.list(key, now)?;
        let (start, end) = (place(start, list.len()), place(end, list.len()));
        let inside = (0..).zip(list).filter(|(at, _)| *at >= start && *at <= end);
        Ok(inside.map(|(_, value)| value).collect())
    }

    pub(crate) fn length(&mut self, key: &str, now: Duration) -> Result<usize> {
        Ok(self.list(key, now)?.0.len())
    }

    /// Removes and returns elements from the start.
    pub(crate) fn pop(&mut self, key: &str, count: u32, now: Duration) -> Result<Vec<Value>> {
        let (mut list, until) = self.list(key, now)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(list.len());
        let taken = list.drain(..count).collect();
        self.put_list(key, list, until, now)?;
        Ok(taken)
    }

    /// Removes equal elements, `count` of them: from the start, from the end if negative,
    /// all of them if 0. Returns the number of removed elements.
    pub(crate) fn remove(
        &mut self,
        key: &str,
        count: i64,
        value: &Value,
        now: Duration,
    ) -> Result<usize> {
        let (mut list, until) = self.list(key, now)?;
        let before = list.len();
        let mut left = match count {
            0 => usize::MAX,
            count => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
        };
        let mut stays = |element: &Value| {
            let goes = left > 0 && element == value;
            left -= usize::from(goes);
            !goes
        };
        if count < 0 {
            let mut kept: VecDeque<Value> = VecDeque::new();
            while let Some(element) = list.pop_back() {
                if stays(&element) {
                    kept.push_front(element);
                }
            }
            list = kept;
        } else {
            list.retain(stays);
        }
        let gone = before - list.len();
        self.put_list(key, list, until, now)?;
        Ok(gone)
    }

    fn entry(&self, key: &str, now: Duration) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.until > now)
    }

    fn list(&self, key: &str, now: Duration) -> Result<(VecDeque<Value>, Duration)> {
        match self.entry(key, now) {
            None => Ok((VecDeque::new(), now + USUAL)),
            Some(Entry { content: Content::List(list), until, .. }) => Ok((list.clone(), *until)),
            Some(_) => Err(CacheFault::NoList),
        }
    }

    fn put_list(
        &mut self,
        key: &str,
        list: VecDeque<Value>,
        until: Duration,
        now: Duration,
    ) -> Result<()> {
        if list.is_empty() {
            self.forget(key);
            return Ok(());
        }
        self.put(key, Content::List(list), until, now)
    }

    fn put(&mut self, key: &str, content: Content, until: Duration, now: Duration) -> Result<()> {
        if key.is_empty() || key.len() > KEY {
            return Err(CacheFault::Key);
        }
        let bytes = key.len()
            + match &content {
                Content::Value(value) => size(value),
                Content::List(list) => list.iter().map(size).sum(),
            };
        if !self.fits(key, bytes) {
            self.drop_old(now);
            if !self.fits(key, bytes) {
                return Err(CacheFault::Full);
            }
        }
        self.forget(key);
        self.bytes += bytes;
        self.entries.insert(key.to_owned(), Entry { content, bytes, until });
        Ok(())
    }

    fn fits(&self, key: &str, bytes: usize) -> bool {
        let present = self.entries.get(key);
        let keys = self.entries.len() + usize::from(present.is_none());
        keys <= KEYS && self.bytes - present.map_or(0, |entry| entry.bytes) + bytes <= BYTES
    }

    fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    fn drop_old(&mut self, now: Duration) {
        self.entries.retain(|_, entry| entry.until > now);
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
    }
}

fn lifetime(ttl: Option<f64>) -> Duration {
    ttl.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .map_or(USUAL, |time| time.min(LONGEST))
}

/// An index into a list of this length.
fn place(at: i64, length: usize) -> i64 {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    if at < 0 { length.saturating_add(at) } else { at }
}

/// Approximate bytes of a value.
fn size(value: &Value) -> usize {
    const EACH: usize = 16;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => EACH,
        Value::String(text) => EACH + text.len(),
        Value::Array(list) => EACH + list.iter().map(size).sum::<usize>(),
        Value::Object(map) => {
            EACH + map.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BYTES, Cache, CacheFault, Duration, KEYS};

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn values_live_as_long_as_they_are_given() {
        let mut cache = Cache::default();
        cache.set("a", json!({"b": 1}), Some(10.0), NOW).unwrap();
        assert_eq!(cache.get("a", NOW), json!({"b": 1}));
        assert!(cache.expire("a", 20.0, NOW));
        assert_eq!(cache.get("a", NOW + Duration::from_secs(15)), json!({"b": 1}));
        let later = NOW + Duration::from_secs(21);
        assert_eq!(cache.get("a", later), Value::Null);
        assert!(!cache.expire("a", 20.0, later));
        cache.set("b", json!(1), Some(f64::NAN), NOW).unwrap();
        assert_eq!(cache.get("b", later), json!(1));
    }

    #[test]
    fn numbers_are_counted_up() {
        let mut cache = Cache::default();
        assert_eq!(cache.increment("n", NOW), Ok(json!(1)));
        assert_eq!(cache.increment("n", NOW), Ok(json!(2)));
        cache.set("t", json!("text"), None, NOW).unwrap();
        assert_eq!(cache.increment("t", NOW), Err(CacheFault::NoNumber));
    }

    #[test]
    fn lists_are_those_of_redis() {
        let mut cache = Cache::default();
        assert_eq!(cache.push("l", vec![json!("a"), json!("b")], NOW), Ok(2));
        assert_eq!(cache.push("l", vec![json!("a")], NOW), Ok(3));
        assert_eq!(cache.range("l", 0, -1, NOW).unwrap(), ["a", "b", "a"]);
        assert_eq!(cache.range("l", -2, 1, NOW).unwrap(), ["b"]);
        assert_eq!(cache.remove("l", -1, &json!("a"), NOW), Ok(1));
        assert_eq!(cache.range("l", 0, -1, NOW).unwrap(), ["a", "b"]);
        assert_eq!(cache.pop("l", 9, NOW).unwrap(), ["a", "b"]);
        assert_eq!(cache.length("l", NOW), Ok(0));
        cache.set("v", json!(1), None, NOW).unwrap();
        assert_eq!(cache.push("v", vec![json!(1)], NOW), Err(CacheFault::NoList));
        let many = vec![json!(1); 1_001];
        assert_eq!(cache.push("l", many, NOW), Err(CacheFault::ListTooLong));
    }

    #[test]
    fn a_full_cache_takes_nothing_until_something_is_old() {
        let mut cache = Cache::default();
        let half = json!("x".repeat(BYTES / 2));
        cache.set("a", half.clone(), Some(1.0), NOW).unwrap();
        assert_eq!(cache.set("b", half.clone(), None, NOW), Err(CacheFault::Full));
        cache.set("a", half.clone(), Some(1.0), NOW).unwrap();
        let later = NOW + Duration::from_secs(2);
        cache.set("b", half, None, later).unwrap();

        let mut cache = Cache::default();
        for number in 0..KEYS {
            cache.set(&number.to_string(), json!(1), None, NOW).unwrap();
        }
        assert_eq!(cache.set("more", json!(1), None, NOW), Err(CacheFault::Full));
        assert_eq!(cache.set("", json!(1), None, NOW), Err(CacheFault::Key));
    }
}
