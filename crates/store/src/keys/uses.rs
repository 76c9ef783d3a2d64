//! The use of keys: the last call of each key, and the refused calls.
//!
//! `api_key_use` has one record of bounded size per key, by `[user, key]`. One writer
//! (`weir-service`) reads it, changes it and writes it back about once a minute.

use surrealdb::types::{SurrealValue, Value};
use uuid::Uuid;
use weir_model::keys::{KeyCall, KeyUse, RefusedCall};
use weir_model::scopes::Scope;
use weir_model::{KeyId, Timestamp, UserId};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store, lists};

#[derive(Debug, Clone, SurrealValue)]
struct StoredCall {
    at: i64,
    address: Option<String>,
    method: String,
    route: String,
}

impl From<StoredCall> for KeyCall {
    fn from(stored: StoredCall) -> Self {
        Self {
            at: Timestamp::from_micros(stored.at),
            address: stored.address,
            method: stored.method,
            route: stored.route,
        }
    }
}

impl From<&KeyCall> for StoredCall {
    fn from(call: &KeyCall) -> Self {
        Self {
            at: call.at.micros(),
            address: call.address.clone(),
            method: call.method.clone(),
            route: call.route.clone(),
        }
    }
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredRefusal {
    made: StoredCall,
    scope: String,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredDay {
    day: i64,
    refused: i64,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    user: Uuid,
    key: String,
    last: Option<StoredCall>,
    previous_at: Option<i64>,
    refused: Vec<StoredRefusal>,
    days: Vec<StoredDay>,
}

impl Stored {
    fn of(user: UserId, key: &KeyId, usage: &KeyUse) -> Self {
        let refusal = |refused: &RefusedCall| StoredRefusal {
            made: StoredCall::from(&refused.call),
            scope: refused.scope.to_string(),
        };
        let day = |(day, refused): (&i64, &u64)| StoredDay {
            day: *day,
            refused: i64::try_from(*refused).unwrap_or(i64::MAX),
        };
        Self {
            user: user.0,
            key: key.0.clone(),
            last: usage.last.as_ref().map(StoredCall::from),
            previous_at: usage.previous_at.map(Timestamp::micros),
            refused: usage.refused.iter().map(refusal).collect(),
            days: usage.refused_by_day.iter().map(day).collect(),
        }
    }
}

impl TryFrom<Stored> for KeyUse {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let shape = |detail: String| Error::Shape { statement: "key uses", detail };
        let refusal = |refused: StoredRefusal| -> Result<RefusedCall> {
            let scope: Scope = refused.scope.parse().map_err(shape)?;
            Ok(RefusedCall { call: refused.made.into(), scope })
        };
        let day = |day: StoredDay| (day.day, u64::try_from(day.refused).unwrap_or(0));
        Ok(Self {
            last: stored.last.map(KeyCall::from),
            previous_at: stored.previous_at.map(Timestamp::from_micros),
            refused: stored.refused.into_iter().map(refusal).collect::<Result<_>>()?,
            refused_by_day: stored.days.into_iter().map(day).collect(),
        })
    }
}

/// The use of these keys, in the order of `keys`. Every key may occur once.
pub async fn uses(store: &Store, keys: &[(UserId, KeyId)]) -> Result<Vec<KeyUse>> {
    let id = |(user, key): &(UserId, KeyId)| vec![user.0.into_value(), key.0.clone().into_value()];
    let ids: Vec<Vec<Value>> = keys.iter().map(id).collect();
    let found = lists::records::<Stored>(store, "api_key_use", ids).await?;
    found.into_iter().map(|stored| stored.map_or(Ok(KeyUse::default()), KeyUse::try_from)).collect()
}

// Writing the key's record makes this conflict with its deletion, so that no record is
// left of a deleted key.
const WRITE: Statement = Statement::write(
    "key uses write",
    "BEGIN;
     FOR $row IN $rows {
         LET $there = (UPDATE type::record('user_key', [$row.user, $row.key])
                       SET used_notes = (used_notes ?? 0) + 1 RETURN VALUE hash);
         IF $there != [] {
             UPSERT type::record('api_key_use', [$row.user, $row.key])
                 CONTENT $row RETURN NONE;
         };
     };
     COMMIT;",
);

/// Stores the use of keys, replacing what is stored. Deleted keys are skipped.
pub async fn write_uses(store: &Store, uses: &[((UserId, KeyId), KeyUse)]) -> Result<()> {
    if uses.is_empty() {
        return Ok(());
    }
    let rows: Vec<Stored> =
        uses.iter().map(|((user, key), usage)| Stored::of(*user, key, usage)).collect();
    store.db.run(WRITE, bind! { rows: rows }).await.map(drop)
}

#[cfg(test)]
mod tests {
    use weir_model::keys::{KeyCall, KeyUse};
    use weir_model::scopes::Scope;
    use weir_model::{KeyId, Timestamp, UserId};

    use super::{uses, write_uses};
    use crate::{Location, Settings, Store};

    #[tokio::test]
    async fn a_key_that_is_gone_leaves_nothing() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let key = (UserId(uuid::Uuid::nil()), KeyId("gone".to_owned()));
        let mut usage = KeyUse::default();
        let call = KeyCall {
            at: Timestamp::EPOCH,
            address: None,
            method: "GET".to_owned(),
            route: "/".to_owned(),
        };
        usage.add(call, Some(Scope::All));
        write_uses(&store, &[(key.clone(), usage)]).await.unwrap();
        assert_eq!(uses(&store, &[key]).await.unwrap(), [KeyUse::default()]);
    }
}
