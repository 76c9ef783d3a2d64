//! Connections that break, callers that do not wait, and standbys that do not answer.

use std::task::Poll;

use weir_testservers::{Hold, HoldingProxy, until};

use super::*;

/// The storage through a proxy.
async fn behind(proxy: &HoldingProxy) -> Postgres {
    let url = format!("postgres://weir:correct%20horse@{}/postgres", proxy.address());
    Postgres::open(&settings(&url), Uuid::nil()).await.unwrap()
}

/// Polls a future once, and drops it.
async fn begin_and_drop<T>(future: impl Future<Output = T>) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_commit_whose_connection_breaks_has_an_unknown_outcome() {
    let server = Server::durable().await;
    let proxy = HoldingProxy::start(server.address()).await;
    let storage = behind(&proxy).await;
    for (hold, expected) in [
        // The server commits, and its answer is lost.
        (Hold::Answer(b"COMMIT\0"), Some("1")),
        // The server never gets the commit.
        (Hold::Request(b"COMMIT\0"), None),
    ] {
        remove(&storage, "a").await;
        let tx = writing(&storage).await;
        assert!(!tx.exists(key("a"), None).await.unwrap());
        tx.set(key("a"), value("1")).await.unwrap();
        proxy.hold(hold);
        let (committed, ()) = tokio::join!(tx.commit(), async {
            proxy.wait_until_held().await;
            if expected.is_some() {
                let direct = open(&server).await;
                until(async || stored(&direct, "a").await).await;
            }
            proxy.open();
        });
        let unknown = committed.unwrap_err();
        assert!(matches!(unknown, Error::CommitOutcomeUnknown(_)), "{unknown}");
        assert!(!unknown.is_retryable());
        assert_eq!(stored(&storage, "a").await.as_deref(), expected);
    }
}

#[tokio::test]
async fn a_transaction_whose_connection_breaks_is_repeated() {
    let server = Server::durable().await;
    let proxy = HoldingProxy::start(server.address()).await;
    let storage = behind(&proxy).await;
    set(&storage, "a", "1").await;
    let tx = writing(&storage).await;
    tx.get(key("a"), None).await.unwrap();
    proxy.open();
    for _ in 0..2 {
        let lost = tx.get(key("b"), None).await.unwrap_err();
        assert!(lost.is_retryable(), "{lost}");
    }
    tx.set(key("a"), value("2")).await.unwrap();
    let lost = tx.commit().await.unwrap_err();
    assert!(lost.is_retryable(), "{lost}");
    assert_eq!(stored(&storage, "a").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_read_without_its_caller_closes_its_connection() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    set(&storage, "a", "1").await;
    let tx = reading(&storage).await;
    tx.get(key("a"), None).await.unwrap();
    begin_and_drop(tx.get(key("a"), None)).await;
    let lost = tx.get(key("a"), None).await.unwrap_err();
    assert!(lost.is_retryable(), "{lost}");
    drop(tx);
    assert_eq!(storage.pool().idle(), 0);
    assert_eq!(stored(&storage, "a").await.as_deref(), Some("1"));
    assert_eq!(storage.pool().idle(), 1);
}

#[tokio::test]
async fn a_commit_ends_without_its_caller() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    set(&storage, "b", "1").await;
    let tx = writing(&storage).await;
    tx.get(key("a"), None).await.unwrap();
    tx.set(key("a"), value("1")).await.unwrap();
    begin_and_drop(tx.commit()).await;
    drop(tx);
    until(async || stored(&storage, "a").await).await;
}

#[tokio::test]
async fn a_dropped_transaction_has_no_effect_and_its_connection_is_used_again() {
    let server = Server::durable().await;
    let storage = open(&server).await;
    for number in 0..8 {
        let tx = writing(&storage).await;
        tx.get(key("a"), None).await.unwrap();
        tx.set(key("a"), value("1")).await.unwrap();
        if number % 2 == 0 {
            tx.cancel().await.unwrap();
        }
        drop(tx);
        assert_eq!(storage.pool().idle(), 1);
    }
    assert_eq!(stored(&storage, "a").await, None);
}

#[tokio::test]
async fn transactions_wait_for_a_connection_within_a_limit() {
    let server = Server::durable().await;
    let one = Settings { connections: 1, ..settings(&server.url("postgres")) };
    let storage = Postgres::open(&one, Uuid::nil()).await.unwrap();
    let first = reading(&storage).await;
    first.get(key("a"), None).await.unwrap();
    let second = reading(&storage).await;
    let none = second.get(key("a"), None).await.unwrap_err();
    assert!(
        matches!(&none, Error::ConnectionFailed(detail) if detail.contains("in use")),
        "{none}"
    );
    let (found, ()) = tokio::join!(second.get(key("a"), None), async { drop(first) });
    assert_eq!(found.unwrap(), None);
}

#[tokio::test]
async fn a_server_that_is_away_is_no_conflict() {
    let mut server = Server::durable().await;
    let storage = open(&server).await;
    set(&storage, "a", "1").await;
    server.stop();
    until(async || match reading(&storage).await.get(key("a"), None).await {
        Err(Error::ConnectionFailed(_)) => Ok(()),
        other => Err(other.map_err(|error| error.to_string())),
    })
    .await;
    server.go_on().await;
    assert_eq!(stored(&storage, "a").await.as_deref(), Some("1"));
}

/// PostgreSQL answers a commit with success, and a warning, when the commit is cancelled
/// while it waits for a standby.
#[tokio::test]
async fn a_commit_that_no_standby_confirmed_has_an_unknown_outcome() {
    const WAITING: &str = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let server = Server::durable().await;
    let storage = open(&server).await;
    set(&storage, "a", "1").await;
    let _ = server.ask("ALTER SYSTEM SET synchronous_standby_names = 'nowhere'");
    let _ = server.ask("SELECT pg_reload_conf()");
    let shown = "SHOW synchronous_standby_names";
    until(async || server.ask(shown) == ["nowhere"]).await;
    let tx = writing(&storage).await;
    tx.set(key("a"), value("2")).await.unwrap();
    let cancelling = async {
        let pids = until(async || Some(server.ask(WAITING)).filter(|pids| !pids.is_empty())).await;
        let _ = server.ask(&format!("SELECT pg_cancel_backend({})", pids[0]));
    };
    let (committed, ()) = tokio::join!(tx.commit(), cancelling);
    let unknown = committed.unwrap_err();
    assert!(matches!(unknown, Error::CommitOutcomeUnknown(_)), "{unknown}");
}
