//! Transactions that run a second time, and proofs that are used once.

use super::*;
use crate::users::{self, UserRow};
use crate::{Location, Settings};

const NOW: Timestamp = Timestamp::EPOCH;
const ADA: UserId = UserId(Uuid::from_u128(1));
const EMAIL: &str = "ada@mail.example";
const FACTOR: Uuid = Uuid::from_u128(2);

async fn store() -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let row = UserRow {
        first_name: "Ada".to_owned(),
        email: EMAIL.to_owned(),
        is_email_verified: true,
        password: Some(PasswordHash("hash".to_owned())),
        ..UserRow::new(ADA, 1, NOW)
    };
    users::create(&store, &row, EMAIL).await.unwrap();
    store
}

fn session(hash: &str) -> SessionRow {
    SessionRow {
        hash: hash.to_owned(),
        user: ADA,
        signed_in_at: NOW,
        seen_at: NOW,
        expires_at: NOW.plus_seconds(60),
        address: None,
        agent: None,
        browser: None,
        opened_by: weir_model::sso::OpenedBy::Password,
        proves: None,
    }
}

/// A session that was opened before the factor existed.
async fn with_session(hash: &str) -> Store {
    let store = store().await;
    let ada = users::get(&store, ADA).await.unwrap().unwrap();
    let proved = sessions::Proved::of(&ada);
    assert!(sessions::create(&store, &session(hash), None, proved).await.unwrap());
    store
}

async fn confirm_in(store: &Store, replaced: &str, hash: &str) -> Used {
    let new = session(hash);
    let change =
        Change { factor: FACTOR, proof: &Proof::Step(1), replaced, session: &new, activities: &[] };
    let codes = vec!["one".to_owned(), "two".to_owned()];
    confirm(store, change, "sealed", codes, &[]).await.unwrap()
}

/// The factor is confirmed, in the session `open`.
async fn with_factor() -> Store {
    let store = with_session("first").await;
    assert!(begin(&store, ADA, FACTOR, "sealed", NOW).await.unwrap());
    assert_eq!(confirm_in(&store, "first", "open").await, Used::Yes);
    store
}

async fn wait(store: &Store, hash: &str) -> bool {
    let password = PasswordHash("hash".to_owned());
    let new = NewPending {
        user: ADA,
        hash,
        password: Some(&password),
        factor: FACTOR,
        expires_at: NOW.plus_seconds(60),
    };
    await_code(store, new, NOW).await.unwrap()
}

async fn open_sessions(store: &Store) -> usize {
    sessions::of_user(store, ADA).await.unwrap().len()
}

#[tokio::test]
async fn a_factor_is_confirmed_once_and_in_a_session_that_is_open() {
    let store = with_session("first").await;
    assert!(!wait(&store, "early").await, "nothing is asked for yet");
    assert!(begin(&store, ADA, FACTOR, "sealed", NOW).await.unwrap());
    assert_eq!(confirm_in(&store, "gone", "open").await, Used::Void);
    assert_eq!(confirm_in(&store, "first", "open").await, Used::Yes);
    // A retry of the same call succeeds.
    assert_eq!(confirm_in(&store, "first", "open").await, Used::Yes);
    assert_eq!(confirm_in(&store, "open", "other").await, Used::Void);
    assert!(!begin(&store, ADA, Uuid::from_u128(3), "sealed", NOW).await.unwrap());
    cancel(&store, ADA).await.unwrap();
    let row = get(&store, ADA).await.unwrap().unwrap();
    assert_eq!((row.factor, row.last_step), (FACTOR, Some(1)));
    assert_eq!(row.codes, ["one", "two"]);
    assert_eq!(users::get(&store, ADA).await.unwrap().unwrap().second_factor, Some(FACTOR));
    assert_eq!(open_sessions(&store).await, 1);
}

#[tokio::test]
async fn a_proof_opens_one_session() {
    let store = with_factor().await;
    for hash in ["a", "b", "c"] {
        assert!(wait(&store, hash).await);
    }
    let sign_in = async |pending: &str, proof: Proof, hash: &str| {
        sign_in(&store, pending, FACTOR, &proof, &session(hash)).await.unwrap()
    };
    assert_eq!(sign_in("a", Proof::Step(1), "s").await, Used::Before);
    assert_eq!(sign_in("a", Proof::Step(2), "s").await, Used::Yes);
    assert_eq!(sign_in("a", Proof::Step(2), "s").await, Used::Yes, "the same call again");
    assert_eq!(sign_in("a", Proof::Step(3), "t").await, Used::Void, "it does not wait any more");
    assert_eq!(sign_in("b", Proof::Step(2), "t").await, Used::Before);
    assert_eq!(sign_in("b", Proof::Recovery("one".to_owned()), "t").await, Used::Yes);
    let again = sign_in("c", Proof::Recovery("one".to_owned()), "u").await;
    assert_eq!(again, Used::Before);
    failed(&store, ADA, "c").await.unwrap();
    assert_eq!(pending(&store, ADA, "c").await.unwrap().unwrap().failures, 1);
    assert_eq!(get(&store, ADA).await.unwrap().unwrap().codes, ["two"]);
    assert_eq!(open_sessions(&store).await, 3);
}

#[tokio::test]
async fn what_changes_a_factor_ends_what_waits() {
    let store = with_factor().await;
    assert!(wait(&store, "a").await);
    let attempt = Uuid::from_u128(9);
    let (second, third) = (Proof::Step(2), Proof::Step(3));
    let renewal = |proof| Renewal {
        user: ADA,
        factor: FACTOR,
        proof,
        codes: vec!["new".to_owned()],
        attempt,
        mails: &[],
        activities: &[],
    };
    for _ in 0..2 {
        assert_eq!(renew(&store, renewal(&second)).await.unwrap(), Used::Yes);
    }
    assert_eq!(get(&store, ADA).await.unwrap().unwrap().codes, ["new"]);
    assert!(pending(&store, ADA, "a").await.unwrap().is_some());

    let new = session("off");
    let change =
        |proof| Change { factor: FACTOR, proof, replaced: "open", session: &new, activities: &[] };
    assert_eq!(disable(&store, change(&second), false, &[]).await.unwrap(), Used::Before);
    for _ in 0..2 {
        assert_eq!(disable(&store, change(&third), false, &[]).await.unwrap(), Used::Yes);
    }
    assert!(pending(&store, ADA, "a").await.unwrap().is_none());
    assert!(get(&store, ADA).await.unwrap().is_none());
    assert_eq!(open_sessions(&store).await, 1);

    let store = with_factor().await;
    assert!(wait(&store, "a").await);
    remove(&store, ADA, NOW, &[], &[]).await.unwrap();
    remove(&store, ADA, NOW, &[], &[]).await.unwrap();
    assert!(pending(&store, ADA, "a").await.unwrap().is_none());
    assert_eq!(open_sessions(&store).await, 0);
    assert!(!wait(&store, "b").await, "there is nothing to wait for");
    users::delete(&store, ADA, EMAIL).await.unwrap();
}
