//! Throttles: counters of attempts that may fail, such as signing in. They are in the
//! store so that a restart does not reset them.
//!
//! What belongs here: counting an attempt, taking it back, removing old counters. What
//! does not: what is counted, and how long to wait (`weir-service`).

use std::time::{Duration, Instant};

use surrealdb::types::SurrealValue;
use weir_model::Timestamp;

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// The rule of one counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The kind of the key, such as `network`.
    pub kind: &'static str,
    /// The key of the counter: a hash or a network, never free text of a caller.
    pub key: String,
    /// Seconds to wait after the n-th attempt (from 0) that was not subtracted. The last
    /// entry holds for all further attempts.
    pub waits: &'static [u64],
    /// Seconds without an attempt after which the counter starts again at 0.
    pub forget_after: u64,
}

/// The result of counting an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountResult {
    /// The attempt was counted and may continue.
    Counted,
    /// The attempt is too early. It was not counted.
    Wait {
        /// When the next attempt is allowed.
        until: Timestamp,
    },
}

#[derive(Debug, SurrealValue)]
struct StoredRule {
    kind: String,
    key: String,
    waits: Vec<i64>,
    forget_after: i64,
}

impl From<&Rule> for StoredRule {
    fn from(rule: &Rule) -> Self {
        let micros =
            |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX / 2_000_000) * 1_000_000;
        Self {
            kind: rule.kind.to_owned(),
            key: rule.key.clone(),
            waits: rule.waits.iter().map(|seconds| micros(*seconds)).collect(),
            forget_after: micros(rule.forget_after),
        }
    }
}

// An attempt is counted before it is made, and subtracted after a success. So of many
// concurrent attempts each sees the counts of the others. An attempt with a wait of 0
// sets no time: otherwise an attempt that began a moment earlier but is counted later
// would have to wait. A count from the future (the clock was ahead) stays, but its wait
// is ignored: otherwise it would last until that time.
const COUNT: Statement = Statement::sign_in(
    "throttle count",
    "BEGIN;
     LET $states = $rules.map(|$rule| {
         LET $row = (SELECT * FROM ONLY type::record('throttle', [$rule.kind, $rule.key]));
         LET $live = $row != NONE AND $row.last_at > $now - $rule.forget_after;
         RETURN {
             rule: $rule,
             count: IF $live { $row.count } ELSE { 0 },
             until: IF $live AND $row.last_at <= $now + $skew { $row.until } ELSE { 0 },
         };
     });
     LET $until = math::max($states.map(|$state| $state.until));
     IF $until <= $now {
         FOR $state IN $states {
             LET $last = array::len($state.rule.waits) - 1;
             LET $wait = $state.rule.waits[math::min([$state.count, $last])];
             UPSERT type::record('throttle', [$state.rule.kind, $state.rule.key]) SET
                 count = $state.count + 1,
                 last_at = $now,
                 until = IF $wait > 0 { $now + $wait } ELSE { 0 }
             RETURN NONE;
         };
     };
     RETURN IF $until > $now { $until } ELSE { NONE };
     COMMIT;",
);

/// Microseconds by which concurrent attempts may be counted out of order.
const SKEW: i64 = 60 * 1_000_000;

/// The index of the result among the parts of `COUNT`; `BEGIN` is the first.
const COUNT_ANSWER: usize = 4;

/// Counts an attempt under all of `rules`, or under none of them if one requires waiting.
///
/// # Errors
/// Any failure of the store.
pub async fn count(store: &Store, rules: &[Rule], now: Timestamp) -> Result<CountResult> {
    let stored: Vec<StoredRule> = rules.iter().map(StoredRule::from).collect();
    let vars = bind! { rules: stored, now: now.micros(), skew: SKEW };
    let mut answer = store.db.run(COUNT, vars).await?;
    Ok(answer.row::<i64>(COUNT_ANSWER)?.map_or(CountResult::Counted, |until| CountResult::Wait {
        until: Timestamp::from_micros(until),
    }))
}

const UNCOUNT: Statement = Statement::sign_in(
    "throttle release",
    "UPDATE type::record('throttle', [$kind, $key]) SET
        count = math::max([count - 1, 0]),
        until = IF last_at = $counted_at { 0 } ELSE { until }
     RETURN NONE;",
);

/// Subtracts an attempt that was counted at `counted_at` and succeeded.
///
/// # Errors
/// Any failure of the store.
pub async fn uncount(store: &Store, rule: &Rule, counted_at: Timestamp) -> Result<()> {
    let vars = bind! {
        kind: rule.kind,
        key: rule.key.as_str(),
        counted_at: counted_at.micros(),
    };
    store.db.run(UNCOUNT, vars).await.map(drop)
}

const RESET: Statement = Statement::delete(
    "throttle reset",
    "DELETE type::record('throttle', [$kind, $key]) RETURN NONE;",
);

/// Resets a counter.
///
/// # Errors
/// Any failure of the store.
pub async fn reset(store: &Store, rule: &Rule) -> Result<()> {
    let vars = bind! { kind: rule.kind, key: rule.key.as_str() };
    store.db.run(RESET, vars).await.map(drop)
}

// A table scan with a bounded number of deletions. Run it rarely.
const PRUNE: Statement = Statement::delete(
    "throttle prune",
    "BEGIN;
     LET $old = (SELECT VALUE id FROM throttle WHERE last_at < $before LIMIT $most);
     DELETE $old RETURN NONE;
     RETURN array::len($old);
     COMMIT;",
)
.within(Duration::from_secs(30));

/// The index of the number of deletions among the parts of `PRUNE`.
const PRUNED: usize = 3;

/// Most counters that one transaction removes. Each transaction reads the counters that
/// remain before those that it removes, so few large ones cost less than many small ones.
const PRUNED_AT_A_TIME: i64 = 5_000;

/// Removes counters whose last attempt is older than `before`. No transaction begins
/// after `within`. Returns whether all of them are removed.
///
/// # Errors
/// Any failure of the store.
pub async fn prune(store: &Store, before: Timestamp, within: Duration) -> Result<bool> {
    prune_in_steps(store, before, within, PRUNED_AT_A_TIME).await
}

/// As [`prune`], with this many counters in a transaction.
pub(crate) async fn prune_in_steps(
    store: &Store,
    before: Timestamp,
    within: Duration,
    most: i64,
) -> Result<bool> {
    let until = Instant::now() + within;
    loop {
        let vars = bind! { before: before.micros(), most: most };
        let removed = store.db.run(PRUNE, vars).await?.row::<i64>(PRUNED)?.unwrap_or(0);
        if removed < most {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
    }
}
