//! Transactions that run a second time, and changes that meet each other.

use weir_model::sso::OpenedBy;

use super::*;
use crate::proofs::FirstProof;
use crate::sso::identities::{self, IdentityRow, Linked, SignIn, Unlinking};
use crate::user_links::{self, NewLink};
use crate::users::{self, PasswordHash, UserRow};
use crate::{Location, Settings, second_factor};

const NOW: Timestamp = Timestamp::EPOCH;
const ADA: UserId = UserId(Uuid::from_u128(1));
const EMAIL: &str = "ada@mail.example";
const FACTOR: Uuid = Uuid::from_u128(2);

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
        opened_by: OpenedBy::Password,
        proves: None,
    }
}

/// Ada, with a session `first`.
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
    let proved = sessions::Proved::of(&row);
    assert!(sessions::create(&store, &session("first"), None, proved).await.unwrap());
    store
}

fn passkey(hash: &str) -> PasskeyRow {
    PasskeyRow {
        hash: hash.to_owned(),
        user: ADA,
        handle: Uuid::from_u128(3),
        rp_id: "weir.example".to_owned(),
        name: hash.to_owned(),
        credential: "0".to_owned(),
        added_at: NOW,
        used_at: None,
        refused_at: None,
    }
}

fn turns_on() -> Option<TurnsOn> {
    Some(TurnsOn { factor: FACTOR, codes: vec!["code".to_owned()] })
}

async fn add_in(
    store: &Store,
    hash: &str,
    turns_on: Option<TurnsOn>,
    replaced: &str,
    new: &str,
) -> PasskeyOutcome {
    let new = session(new);
    let change = Change { replaced, session: &new, mails: &[], activities: &[] };
    add(store, &passkey(hash), turns_on, 2, change).await.unwrap()
}

async fn remove_in(
    store: &Store,
    hash: &str,
    turns_off: bool,
    replaced: &str,
    new: &str,
) -> PasskeyOutcome {
    let new = session(new);
    let change = Change { replaced, session: &new, mails: &[], activities: &[] };
    remove(store, hash, turns_off, None, change).await.unwrap()
}

async fn factor_of(store: &Store) -> Option<Uuid> {
    users::get(store, ADA).await.unwrap().unwrap().second_factor
}

async fn open_sessions(store: &Store) -> usize {
    sessions::of_user(store, ADA).await.unwrap().len()
}

#[tokio::test]
async fn a_handle_stays() {
    let store = store().await;
    let (one, other) = (Uuid::from_u128(8), Uuid::from_u128(9));
    assert_eq!(handle(&store, ADA, one).await.unwrap(), one);
    assert_eq!(handle(&store, ADA, other).await.unwrap(), one);
}

#[tokio::test]
async fn the_first_passkey_turns_the_factor_on_and_the_last_one_off() {
    let store = store().await;
    assert_eq!(add_in(&store, "a", None, "first", "s1").await, PasskeyOutcome::Void, "it is off");
    assert_eq!(add_in(&store, "a", turns_on(), "gone", "s1").await, PasskeyOutcome::Void);
    for _ in 0..2 {
        let added = add_in(&store, "a", turns_on(), "first", "s1").await;
        assert_eq!(added, PasskeyOutcome::Yes, "the same call again");
    }
    assert_eq!(factor_of(&store).await, Some(FACTOR));
    let factor = second_factor::get(&store, ADA).await.unwrap().unwrap();
    assert_eq!((factor.since, factor.secret), (Some(NOW), None));
    assert_eq!(factor.codes, ["code"]);
    assert_eq!(add_in(&store, "a", None, "s1", "s2").await, PasskeyOutcome::Taken);
    assert_eq!(add_in(&store, "b", turns_on(), "s1", "s2").await, PasskeyOutcome::Void, "it is on");
    assert_eq!(add_in(&store, "b", None, "s1", "s2").await, PasskeyOutcome::Yes);
    assert_eq!(add_in(&store, "c", None, "s2", "s3").await, PasskeyOutcome::TooMany);
    assert_eq!(of_user(&store, ADA).await.unwrap().len(), 2);
    assert_eq!(open_sessions(&store).await, 1);

    assert_eq!(remove_in(&store, "a", true, "s2", "s3").await, PasskeyOutcome::Void, "b is left");
    for _ in 0..2 {
        assert_eq!(remove_in(&store, "a", false, "s2", "s3").await, PasskeyOutcome::Yes);
    }
    assert_eq!(factor_of(&store).await, Some(FACTOR));
    assert_eq!(remove_in(&store, "a", true, "s3", "s4").await, PasskeyOutcome::Void, "it is gone");
    assert_eq!(remove_in(&store, "b", false, "s3", "s4").await, PasskeyOutcome::Void);
    assert_eq!(remove_in(&store, "b", true, "s3", "s4").await, PasskeyOutcome::Yes);
    assert_eq!(factor_of(&store).await, None);
    assert!(second_factor::get(&store, ADA).await.unwrap().is_none());
    assert_eq!(open_sessions(&store).await, 1);
}

#[tokio::test]
async fn a_set_up_of_an_app_survives_the_first_passkey() {
    let store = store().await;
    let begun = second_factor::begin(&store, ADA, Uuid::from_u128(7), "sealed", NOW).await;
    assert!(begun.unwrap());
    assert_eq!(add_in(&store, "a", turns_on(), "first", "s1").await, PasskeyOutcome::Yes);
    let new = session("s2");
    let change = second_factor::Change {
        factor: FACTOR,
        proof: &second_factor::Proof::Step(1),
        replaced: "s1",
        session: &new,
        activities: &[],
    };
    let codes = vec!["new".to_owned()];
    let confirmed = second_factor::confirm(&store, change, "sealed", codes, &[]).await.unwrap();
    assert_eq!(confirmed, second_factor::Used::Yes);
    // With the app the factor stays on when the last passkey goes.
    assert_eq!(remove_in(&store, "a", true, "s2", "s3").await, PasskeyOutcome::Void);
    assert_eq!(remove_in(&store, "a", false, "s2", "s3").await, PasskeyOutcome::Yes);
    assert_eq!(factor_of(&store).await, Some(FACTOR));
}

#[tokio::test]
async fn an_answer_opens_one_session() {
    let store = store().await;
    assert_eq!(add_in(&store, "a", turns_on(), "first", "s1").await, PasskeyOutcome::Yes);
    let used = |before: &str, after: &str| PasskeyUse {
        hash: "a".to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
        at: NOW,
    };
    for _ in 0..2 {
        let opened = sign_in(&store, &used("0", "1"), &session("x"), None).await.unwrap();
        assert!(opened, "the same call again");
    }
    assert!(!sign_in(&store, &used("0", "1"), &session("y"), None).await.unwrap());
    assert!(sign_in(&store, &used("1", "2"), &session("y"), Some("x")).await.unwrap());
    assert!(!sign_in(&store, &used("2", "3"), &session("z"), Some("x")).await.unwrap());
    let row = get(&store, "a").await.unwrap().unwrap();
    assert_eq!((row.credential.as_str(), row.used_at), ("2", Some(NOW)));
    assert_eq!(open_sessions(&store).await, 2);
    let other_user = SessionRow { user: UserId(Uuid::from_u128(5)), ..session("w") };
    assert!(!sign_in(&store, &used("2", "3"), &other_user, None).await.unwrap());
    assert!(!rename(&store, other_user.user, "a", "mine", &[]).await.unwrap());
    refuse(&store, "a", NOW, &[]).await.unwrap();
    assert_eq!(get(&store, "a").await.unwrap().unwrap().refused_at, Some(NOW));
}

#[tokio::test]
async fn nothing_is_left_of_a_user() {
    let store = store().await;
    assert_eq!(add_in(&store, "a", turns_on(), "first", "s1").await, PasskeyOutcome::Yes);
    second_factor::remove(&store, ADA, NOW, &[], &[]).await.unwrap();
    assert!(get(&store, "a").await.unwrap().is_none());
    let user = users::get(&store, ADA).await.unwrap().unwrap();
    let proved = sessions::Proved::of(&user);
    assert!(sessions::create(&store, &session("s2"), None, proved).await.unwrap());
    assert_eq!(add_in(&store, "a", turns_on(), "s2", "s3").await, PasskeyOutcome::Yes);
    users::delete(&store, ADA, EMAIL).await.unwrap();
    assert!(get(&store, "a").await.unwrap().is_none());
    assert!(of_user(&store, ADA).await.unwrap().is_empty());
}

fn identity(hash: &str) -> IdentityRow {
    IdentityRow {
        hash: hash.to_owned(),
        user: ADA,
        connection: "github".to_owned(),
        issuer: "i".to_owned(),
        subject: hash.to_owned(),
        email: None,
        email_verified: false,
        proved_for: None,
        linked_at: NOW,
        used_at: NOW,
    }
}

async fn link(store: &Store, session: &str, hash: &str) -> Linked {
    identities::link(store, session, &identity(hash), 9, &[], &[]).await.unwrap()
}

async fn unlink(store: &Store, hash: &str, session: &str, methods: Option<&SignInMethods>) -> bool {
    let removal = Unlinking { user: ADA, hash, session, methods, mails: &[], activities: &[] };
    identities::unlink(store, removal).await.unwrap()
}

#[tokio::test]
async fn one_of_two_ways_is_left() {
    let store = store().await;
    assert_eq!(add_in(&store, "a", turns_on(), "first", "s1").await, PasskeyOutcome::Yes);
    assert_eq!(link(&store, "s1", "x").await, Linked::Yes);
    // Both were read while the other one was there.
    let without = |hash: &str| {
        let methods = SignInMethods {
            password: false,
            passkeys: vec!["a".to_owned()],
            identities: vec!["x".to_owned()],
        };
        methods.without(hash)
    };
    let (passkey, linked) = (without("a").unwrap(), without("x").unwrap());
    let new = session("s2");
    let change = Change { replaced: "s1", session: &new, mails: &[], activities: &[] };
    let removed = remove(&store, "a", true, Some(&passkey), change).await.unwrap();
    assert_eq!(removed, PasskeyOutcome::Yes);
    assert!(!unlink(&store, "x", "s2", Some(&linked)).await);
    assert_eq!(identities::of_user(&store, ADA).await.unwrap().len(), 1);

    assert_eq!(add_in(&store, "a", turns_on(), "s2", "s3").await, PasskeyOutcome::Yes);
    assert!(unlink(&store, "x", "s3", Some(&linked)).await);
    let new = session("s4");
    let change = Change { replaced: "s3", session: &new, mails: &[], activities: &[] };
    let removed = remove(&store, "a", true, Some(&passkey), change).await.unwrap();
    assert_eq!(removed, PasskeyOutcome::Void);
    assert_eq!(without("unknown"), None);
}

#[tokio::test]
async fn unlinking_leaves_one_session() {
    let store = store().await;
    let user = users::get(&store, ADA).await.unwrap().unwrap();
    let proved = sessions::Proved::of(&user);
    assert!(sessions::create(&store, &session("second"), None, proved).await.unwrap());
    assert_eq!(link(&store, "first", "x").await, Linked::Yes);
    assert!(unlink(&store, "x", "first", None).await);
    let open = sessions::of_user(&store, ADA).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].hash, "first");
    // A request of the session that ended links nothing.
    assert_eq!(link(&store, "second", "y").await, Linked::Void);
}

#[tokio::test]
async fn the_first_proof_of_an_address_leaves_nothing() {
    let store = store().await;
    let unproved =
        UserRow { is_email_verified: false, ..users::get(&store, ADA).await.unwrap().unwrap() };
    users::create(&store, &unproved, EMAIL).await.unwrap();
    assert_eq!(add_in(&store, "a", turns_on(), "first", "s1").await, PasskeyOutcome::Yes);
    let user = users::get(&store, ADA).await.unwrap().unwrap();
    assert_eq!(link(&store, "s1", "x").await, Linked::Yes);
    sessions::know_browser(&store, ADA, "browser", NOW).await.unwrap();
    let sign_in_link = NewLink {
        user_row: &user,
        hash: "link",
        kind: weir_model::user_links::LinkKind::SignIn,
        email: EMAIL,
        expires_at: NOW.plus_seconds(60),
        activities: &[],
    };
    user_links::put_link(&store, sign_in_link, NOW).await.unwrap();

    let (proof, new) = (FirstProof::new(Some("own"), Vec::new(), NOW), session("new"));
    for (hash, proof) in [("unproved", None), ("own", Some(&proof))] {
        let with = SignIn {
            identity: &identity(hash),
            email: EMAIL,
            new_user: None,
            may_link: true,
            proof,
            most: 9,
            session: &SessionRow { hash: hash.to_owned(), ..new.clone() },
            replaced: None,
            now: NOW,
            mails: &[],
            activities: &[],
        };
        assert_eq!(identities::sign_in(&store, with).await.unwrap(), Linked::Yes);
        let passkeys = of_user(&store, ADA).await.unwrap().len();
        assert_eq!(passkeys, if proof.is_none() { 1 } else { 0 }, "{hash}");
    }
    let user = users::get(&store, ADA).await.unwrap().unwrap();
    assert_eq!((user.password, user.second_factor), (None, None));
    assert!(user.is_email_verified);
    assert!(second_factor::get(&store, ADA).await.unwrap().is_none());
    let left = identities::of_user(&store, ADA).await.unwrap();
    assert_eq!(left.iter().map(|one| one.hash.as_str()).collect::<Vec<_>>(), ["own"]);
    let open = sessions::of_user(&store, ADA).await.unwrap();
    assert_eq!(open.iter().map(|one| one.hash.as_str()).collect::<Vec<_>>(), ["own"]);
    assert!(user_links::links(&store, ADA).await.unwrap().is_empty());
    assert!(!sessions::is_known_browser(&store, ADA, "browser").await.unwrap());
}
