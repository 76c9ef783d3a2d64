//! Statistics of the use of a key, with bounded size.

use std::collections::BTreeMap;

use crate::scopes::Scope;
use crate::time::Timestamp;

/// Refused calls that are stored individually.
const REFUSED: usize = 20;
/// Days for which refused calls are counted.
const DAYS: usize = 8;
/// Microseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// A call with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCall {
    /// Time of the call.
    pub at: Timestamp,
    /// IP address of the caller.
    pub address: Option<String>,
    /// HTTP method.
    pub method: String,
    /// Path of the operation, with placeholders for ids.
    pub route: String,
}

/// A refused call with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// The call.
    pub call: KeyCall,
    /// The scope that the key lacked.
    pub scope: Scope,
}

/// Statistics of the use of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyUse {
    /// The last call.
    pub last: Option<KeyCall>,
    /// Time of the last use of a replaced value.
    pub previous_at: Option<Timestamp>,
    /// The latest refused calls, newest first.
    pub refused: Vec<RefusedCall>,
    /// Number of refused calls by day since 1970.
    pub refused_by_day: BTreeMap<i64, u64>,
}

impl KeyUse {
    /// Adds a call; `missing_scope` is set if it was refused because of its scopes.
    pub fn add(&mut self, call: KeyCall, missing_scope: Option<Scope>) {
        if let Some(scope) = missing_scope {
            *self.refused_by_day.entry(day(call.at)).or_default() += 1;
            self.refused.insert(0, RefusedCall { call: call.clone(), scope });
        }
        self.last = Some(call);
        self.bound();
    }

    /// Adds later statistics.
    pub fn extend(&mut self, newer: Self) {
        self.last = newer.last.or(self.last.take());
        self.previous_at = self.previous_at.max(newer.previous_at);
        let older = std::mem::replace(&mut self.refused, newer.refused);
        self.refused.extend(older);
        for (day, count) in newer.refused_by_day {
            *self.refused_by_day.entry(day).or_default() += count;
        }
        self.bound();
    }

    /// Number of refused calls in the seven days up to the day of `now`.
    pub fn refused_lately(&self, now: Timestamp) -> u64 {
        self.refused_by_day.range(day(now) - 6..).map(|(_, count)| count).sum()
    }

    fn bound(&mut self) {
        self.refused.truncate(REFUSED);
        while self.refused_by_day.len() > DAYS {
            self.refused_by_day.pop_first();
        }
    }
}

fn day(at: Timestamp) -> i64 {
    at.micros().div_euclid(DAY)
}

#[cfg(test)]
mod tests {
    use super::{DAYS, KeyCall, KeyUse, REFUSED};
    use crate::scopes::{Scope, ScopeObject};
    use crate::time::Timestamp;

    const LACKED: Scope = Scope::write(ScopeObject::Plugin);

    fn call(hour: i64) -> KeyCall {
        KeyCall {
            at: Timestamp::EPOCH.plus_seconds(hour * 3600),
            address: None,
            method: "GET".to_owned(),
            route: format!("/{hour}"),
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut usage = KeyUse::default();
        for hour in 0..24 * 30 {
            usage.add(call(hour), Some(LACKED));
        }
        usage.add(call(24 * 30), None);
        assert_eq!((usage.refused.len(), usage.refused_by_day.len()), (REFUSED, DAYS));
        assert_eq!(usage.refused[0].call.route, "/719");
        assert_eq!(usage.last, Some(call(24 * 30)));
        assert_eq!(usage.refused_lately(call(24 * 30 - 1).at), 7 * 24);
        assert_eq!(usage.refused_lately(call(24 * 60).at), 0);
    }

    #[test]
    fn newer_use_comes_first() {
        let mut older = KeyUse::default();
        older.add(call(1), Some(LACKED));
        older.add(call(2), None);
        let mut newer = KeyUse::default();
        newer.add(call(3), Some(LACKED));
        older.extend(newer);
        let routes: Vec<&str> = older.refused.iter().map(|one| one.call.route.as_str()).collect();
        assert_eq!(routes, ["/3", "/1"]);
        assert_eq!((older.last.clone(), older.refused_lately(call(3).at)), (Some(call(3)), 2));
        older.extend(KeyUse::default());
        assert_eq!(older.last, Some(call(3)));
    }
}
