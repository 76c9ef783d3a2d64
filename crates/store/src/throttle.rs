//! Counters of tries that may fail, such as sign-in. They are in the store so
//! that a restart does not reset them.
//!
//! What belongs here: counting a try, giving it back, forgetting old counters.
//! What does not: what is counted, and how long to wait (`weir-service`).

use surrealdb::types::SurrealValue;
use weir_model::Timestamp;

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// How one counter counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What kind of thing is counted, such as `account`.
    pub kind: &'static str,
    /// What is counted: a hash or a network, never free text of a caller.
    pub key: String,
    /// How many seconds to wait after the n-th try (from 0) that has not been
    /// given back; beyond the end the last entry holds.
    pub waits: &'static [u64],
    /// After this many seconds without a try the counter starts anew.
    pub forget_after: u64,
}

/// The answer to a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    /// It was counted and may go ahead.
    Counted,
    /// Too soon; it was not counted.
    Wait {
        /// When the next try is allowed.
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

// Counting before the try is made (and giving it back after a success) is what
// stops many tries at once: each sees the counts of the others. A try that is
// free holds nobody up: else one that began a moment earlier and is counted
// after it would be told to wait. What was counted in a future (a clock that was
// ahead) keeps its count and asks for no wait: else it would last until then.
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

/// Microseconds by which tries that are made at once may be counted out of order.
const SKEW: i64 = 60 * 1_000_000;

/// Where the answer stands among the parts of `COUNT`; `BEGIN` is the first.
const COUNT_ANSWER: usize = 4;

/// Counts a try under all of `rules`, or under none when one of them says to
/// wait.
///
/// # Errors
/// Any failure of the store.
pub async fn count(store: &Store, rules: &[Rule], now: Timestamp) -> Result<Try> {
    let stored: Vec<StoredRule> = rules.iter().map(StoredRule::from).collect();
    let vars = bind! { rules: stored, now: now.micros(), skew: SKEW };
    let mut answer = store.db.run(COUNT, vars).await?;
    Ok(answer
        .row::<i64>(COUNT_ANSWER)?
        .map_or(Try::Counted, |until| Try::Wait { until: Timestamp::from_micros(until) }))
}

const GIVE_BACK: Statement = Statement::sign_in(
    "throttle give back",
    "UPDATE type::record('throttle', [$kind, $key]) SET
        count = math::max([count - 1, 0]),
        until = IF last_at = $counted_at { 0 } ELSE { until }
     RETURN NONE;",
);

/// Takes back a try that was counted at `counted_at` and succeeded.
///
/// # Errors
/// Any failure of the store.
pub async fn give_back(store: &Store, rule: &Rule, counted_at: Timestamp) -> Result<()> {
    let vars = bind! {
        kind: rule.kind,
        key: rule.key.as_str(),
        counted_at: counted_at.micros(),
    };
    store.db.run(GIVE_BACK, vars).await.map(drop)
}

const RESET: Statement = Statement::read(
    "throttle reset",
    "DELETE type::record('throttle', [$kind, $key]) RETURN NONE;",
);

/// Starts a counter anew.
///
/// # Errors
/// Any failure of the store.
pub async fn reset(store: &Store, rule: &Rule) -> Result<()> {
    let vars = bind! { kind: rule.kind, key: rule.key.as_str() };
    store.db.run(RESET, vars).await.map(drop)
}

// A table scan, bounded in what it deletes: run rarely.
const PRUNE: Statement = Statement::read(
    "throttle prune",
    "DELETE (SELECT VALUE id FROM throttle WHERE last_at < $before LIMIT 1000) RETURN NONE;",
)
.within(std::time::Duration::from_secs(30));

/// Forgets counters whose last try is older than `before`, at most a thousand.
///
/// # Errors
/// Any failure of the store.
pub async fn prune(store: &Store, before: Timestamp) -> Result<()> {
    store.db.run(PRUNE, bind! { before: before.micros() }).await.map(drop)
}
