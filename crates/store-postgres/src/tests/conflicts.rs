//! Which concurrent transactions conflict.

use super::*;

/// What a transaction does with the key `k` after it has read it.
#[derive(Debug, Clone, Copy)]
enum Own {
    Set,
    Delete,
    /// Reads it for update, and writes another key.
    ReadForUpdate,
    /// Reads it for update, and writes nothing.
    OnlyReadForUpdate,
    /// Reads it, and writes another key.
    Read,
}

/// What another transaction has committed since.
#[derive(Debug, Clone, Copy)]
enum Other {
    Nothing,
    Set,
    Delete,
    DeleteAndSet,
}

async fn committed(storage: &Postgres, before: Option<&str>, own: Own, other: Other) -> bool {
    match before {
        Some(before) => set(storage, "k", before).await,
        None => remove(storage, "k").await,
    }
    let tx = writing(storage).await;
    tx.get(key("k"), None).await.unwrap();
    match other {
        Other::Nothing => {}
        Other::Set => set(storage, "k", "other").await,
        Other::Delete => remove(storage, "k").await,
        Other::DeleteAndSet => {
            remove(storage, "k").await;
            set(storage, "k", before.unwrap_or("other")).await;
        }
    }
    match own {
        Own::Set => tx.set(key("k"), value("own")).await.unwrap(),
        Own::Delete => tx.del(key("k")).await.unwrap(),
        Own::ReadForUpdate | Own::OnlyReadForUpdate => {
            let found = tx.getu(key("k")).await.unwrap();
            assert_eq!(found, before.map(value), "it reads its snapshot");
        }
        Own::Read => {}
    }
    if matches!(own, Own::ReadForUpdate | Own::Read) {
        tx.set(key("l"), value("own")).await.unwrap();
    }
    match tx.commit().await {
        Ok(()) => true,
        Err(error) => {
            assert!(matches!(error, Error::TransactionConflict(_)), "{error}");
            false
        }
    }
}

#[tokio::test]
async fn the_first_transaction_that_commits_a_key_has_an_effect() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    for before in [Some("before"), None] {
        for own in [Own::Set, Own::Delete, Own::ReadForUpdate, Own::OnlyReadForUpdate, Own::Read] {
            for other in [Other::Nothing, Other::Set, Other::Delete, Other::DeleteAndSet] {
                let is_changed = match (before, other) {
                    (_, Other::Nothing) | (None, Other::Delete) => false,
                    (Some(_), _) | (None, Other::Set | Other::DeleteAndSet) => true,
                };
                let conflicts = is_changed && !matches!(own, Own::Read);
                let done = committed(&storage, before, own, other).await;
                assert_eq!(done, !conflicts, "{before:?} {own:?} {other:?}");
                let expected = match (own, conflicts, other) {
                    (Own::Set, false, _) => Some("own"),
                    (Own::Delete, false, _) | (_, _, Other::Delete) => None,
                    (_, _, Other::Set) => Some("other"),
                    (_, _, Other::DeleteAndSet) => before.or(Some("other")),
                    (_, _, Other::Nothing) => before,
                };
                let found = stored(&storage, "k").await;
                assert_eq!(found.as_deref(), expected, "{before:?} {own:?} {other:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_transaction_that_has_read_nothing_overwrites() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    let (one, other) = (writing(&storage).await, writing(&storage).await);
    one.set(key("a"), value("1")).await.unwrap();
    other.set(key("a"), value("2")).await.unwrap();
    one.commit().await.unwrap();
    other.commit().await.unwrap();
    assert_eq!(stored(&storage, "a").await.as_deref(), Some("2"));
}

#[tokio::test]
async fn reads_for_update_of_one_key_share_it() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    set(&storage, "a", "1").await;
    let (one, other) = (writing(&storage).await, writing(&storage).await);
    assert!(one.shared_locked_reads());
    for (tx, own) in [(&one, "x"), (&other, "y")] {
        for at in ["a", "missing"] {
            tx.getu(key(at)).await.unwrap();
        }
        tx.set(key(own), value("1")).await.unwrap();
    }
    let (one, other) = tokio::join!(one.commit(), other.commit());
    one.unwrap();
    other.unwrap();
    assert_eq!(stored(&storage, "missing").await, None);
}

#[tokio::test]
async fn of_many_concurrent_increments_none_is_lost() {
    const TASKS: usize = 8;
    let server = Server::durable().await;
    let storage = open(&server).await;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let storage = storage.clone();
        tasks.push(tokio::spawn(async move {
            loop {
                let tx = writing(&storage).await;
                let found = tx.getm(&[key("n"), key("m")], None).await.unwrap().values;
                let length = found[0].as_ref().map_or(0, Vec::len);
                tx.set(key("n"), vec![b'n'; length + 1]).await.unwrap();
                match tx.commit().await {
                    Ok(()) => return,
                    Err(error) => {
                        assert!(matches!(error, Error::TransactionConflict(_)), "{error}");
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(stored(&storage, "n").await.map(|text| text.len()), Some(TASKS));
}
