//! Pending logins at providers, assertions that were used, and the
//! results of tests.
//!
//! A pending login is found by the hash of the browser's token and by a key that the
//! answer repeats, and works once. What the protocol keeps is sealed with that token,
//! which is not stored.

use std::time::{Duration, Instant};

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{DomainId, Timestamp, UserId};

use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::{Result, Store};

/// A pending login at a provider.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct PendingRow {
    /// The connection of the sign-in, as text. The answer is checked against it.
    pub connection: String,
    /// What the sign-in is for, as text.
    pub purpose: String,
    /// The user who began it while signed in.
    pub user: Option<UserId>,
    /// The hash of the session in which it was begun.
    pub session: Option<String>,
    /// The domain whose administrators learn of a refusal: that of the address that the
    /// visitor entered, if it requires this connection.
    pub domain: Option<DomainId>,
    /// The path to continue with.
    pub next: String,
    /// What the protocol keeps, sealed.
    pub sealed: String,
    /// When it stops waiting.
    pub expires_at: Timestamp,
}

const PUT: Statement = Statement::sign_in(
    "pending logins put",
    "BEGIN;
     UPSERT type::record('pending_login', [$browser, $key]) CONTENT $row RETURN NONE;
     UPSERT type::record('pending_login_due', [$row.expires_at, $browser, $key])
         CONTENT {} RETURN NONE;
     COMMIT;",
);

/// Stores a pending login. `browser` is the hash of the browser's token. It replaces one
/// with the same key.
///
/// # Errors
/// Any failure of the store.
pub async fn put(store: &Store, browser: &str, key: &str, row: &PendingRow) -> Result<()> {
    let vars = bind! { browser: browser, key: key, row: row.clone() };
    store.db.run(PUT, vars).await.map(drop)
}

const GET: Statement = Statement::read(
    "pending logins get",
    "SELECT * FROM type::record('pending_login', [$browser, $key]);",
);

/// Returns a pending login. It stays pending.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, browser: &str, key: &str) -> Result<Option<PendingRow>> {
    // The engine does not allow empty record ids.
    if browser.is_empty() || key.is_empty() {
        return Ok(None);
    }
    store.db.run(GET, bind! { browser: browser, key: key }).await?.row(0)
}

const TAKE: Statement = Statement::delete(
    "pending logins take",
    "DELETE type::record('pending_login', [$browser, $key]) RETURN BEFORE;",
);

/// Removes and returns a pending login. A second call finds nothing.
///
/// # Errors
/// Any failure of the store.
pub async fn take(store: &Store, browser: &str, key: &str) -> Result<Option<PendingRow>> {
    // The engine does not allow empty record ids.
    if browser.is_empty() || key.is_empty() {
        return Ok(None);
    }
    store.db.run(TAKE, bind! { browser: browser, key: key }).await?.row(0)
}

const PRUNE: Statement = Statement::delete(
    "pending logins prune",
    "BEGIN;
     LET $logins = (SELECT VALUE record::id(id) FROM pending_login_due:[0]..=[$now, ..]
                    LIMIT $most);
     LET $assertions = (SELECT VALUE record::id(id) FROM saml_assertion_due:[0]..=[$now, ..]
                        LIMIT $most);
     FOR $due IN $logins {
         DELETE type::record('pending_login', [$due[1], $due[2]])
             WHERE expires_at <= $now RETURN NONE;
         DELETE type::record('pending_login_due', $due) RETURN NONE;
     };
     FOR $due IN $assertions {
         DELETE type::record('saml_assertion', [$due[1], $due[2]]) RETURN NONE;
         DELETE type::record('saml_assertion_due', $due) RETURN NONE;
     };
     RETURN math::max([array::len($logins), array::len($assertions)]);
     COMMIT;",
)
.within(Duration::from_secs(30));

/// The index of the result among the parts of `PRUNE`; `BEGIN` is the first.
const PRUNED: usize = 5;
/// Sign-ins, and assertions, that one transaction removes at most.
const PRUNED_AT_A_TIME: i64 = 1000;

/// Removes sign-ins and assertions whose time is over, and returns whether all of them are
/// removed. After `within` no further transaction begins.
///
/// # Errors
/// Any failure of the store.
pub async fn prune(store: &Store, now: Timestamp, within: Duration) -> Result<bool> {
    prune_in_steps(store, now, within, PRUNED_AT_A_TIME).await
}

/// As [`prune`], with this many in a transaction.
pub(crate) async fn prune_in_steps(
    store: &Store,
    now: Timestamp,
    within: Duration,
    most: i64,
) -> Result<bool> {
    let until = Instant::now() + within;
    loop {
        let vars = bind! { now: now.micros(), most: most };
        let removed = store.db.run(PRUNE, vars).await?.row::<i64>(PRUNED)?.unwrap_or(0);
        if removed < most {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
    }
}

const USE_ASSERTION: Statement = Statement::sign_in(
    "saml assertions use",
    "BEGIN;
     LET $used_by = (SELECT VALUE attempt
                     FROM ONLY type::record('saml_assertion', [$domain, $assertion]));
     IF $used_by != NONE AND $used_by != $attempt { THROW 'used' };
     UPSERT type::record('saml_assertion', [$domain, $assertion])
         CONTENT { attempt: $attempt } RETURN NONE;
     UPSERT type::record('saml_assertion_due', [$until, $domain, $assertion])
         CONTENT {} RETURN NONE;
     COMMIT;",
);

/// Records the use of an assertion of this domain until it is not valid any more; the
/// assertion is named by the hash of its id. `false`: it was used before. `attempt` is an
/// id of this call. It distinguishes a retry of the same transaction from a second call.
///
/// # Errors
/// Any failure of the store.
pub async fn use_assertion(
    store: &Store,
    domain: DomainId,
    assertion: &str,
    until: Timestamp,
    attempt: Uuid,
) -> Result<bool> {
    let vars = bind! {
        domain: domain.0, assertion: assertion, until: until.micros(), attempt: attempt,
    };
    is_done(store.db.run(USE_ASSERTION, vars).await)
}

const PUT_TRIAL: Statement = Statement::write(
    "saml trials put",
    "BEGIN;
     LET $present = (SELECT VALUE uuid FROM ONLY type::record('domain', $domain));
     IF $present != NONE {
         UPSERT type::record('saml_test', $domain) CONTENT { report: $report } RETURN NONE;
     };
     COMMIT;",
);

/// Stores the result of a test of a domain's connection, as text. It replaces the last
/// one.
///
/// # Errors
/// Any failure of the store.
pub async fn put_test(store: &Store, domain: DomainId, report: &str) -> Result<()> {
    store.db.run(PUT_TRIAL, bind! { domain: domain.0, report: report }).await.map(drop)
}

const TRIAL: Statement = Statement::read(
    "saml trials get",
    "SELECT VALUE report FROM type::record('saml_test', $domain);",
);

/// The result of the last test of a domain's connection.
///
/// # Errors
/// Any failure of the store.
pub async fn last_test(store: &Store, domain: DomainId) -> Result<Option<String>> {
    store.db.run(TRIAL, bind! { domain: domain.0 }).await?.row(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::store;

    const NOW: Timestamp = Timestamp::EPOCH;

    fn row(seconds: i64) -> PendingRow {
        PendingRow {
            connection: "google-oauth2".to_owned(),
            purpose: "sign in".to_owned(),
            user: None,
            session: None,
            domain: None,
            next: "/".to_owned(),
            sealed: "sealed".to_owned(),
            expires_at: NOW.plus_seconds(seconds),
        }
    }

    /// Anyone can begin sign-ins, and does not have to come back.
    #[tokio::test]
    async fn all_old_sign_ins_are_removed_however_many_there_are() {
        let store = store().await;
        let browser = |number: usize| format!("browser {number}");
        for number in 0..25 {
            put(&store, &browser(number), "key", &row(60)).await.unwrap();
        }
        put(&store, "new", "key", &row(600)).await.unwrap();
        let later = NOW.plus_seconds(120);
        assert!(!prune_in_steps(&store, later, Duration::ZERO, 10).await.unwrap());
        assert!(prune_in_steps(&store, later, Duration::from_secs(60), 10).await.unwrap());
        for number in 0..25 {
            assert_eq!(take(&store, &browser(number), "key").await.unwrap(), None);
        }
        assert_eq!(take(&store, "new", "key").await.unwrap(), Some(row(600)));
    }
}
