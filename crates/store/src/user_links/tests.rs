//! Transactions that run a second time, and the changes that end links.

use super::*;
use crate::sessions::{self, Proved, SessionRow};
use crate::users;
use crate::{Location, Settings, update};

const NOW: Timestamp = Timestamp::EPOCH;
const ADA: UserId = UserId(Uuid::from_u128(1));
const EMAIL: &str = "ada@mail.example";
const NEW: &str = "ada@new.example";

fn row(id: UserId, email: &str) -> UserRow {
    UserRow {
        first_name: "Ada".to_owned(),
        email: email.to_owned(),
        must_confirm: true,
        password: Some(PasswordHash("old".to_owned())),
        ..UserRow::new(id, 1, NOW)
    }
}

/// A store with Ada.
async fn store() -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    users::create(&store, &row(ADA, EMAIL), EMAIL).await.unwrap();
    store
}

async fn put(store: &Store, hash: &str, kind: LinkKind, email: &str) {
    let user = ada(store).await;
    assert_eq!(put_of(store, &user, hash, kind, email).await, Changed::Yes);
}

async fn put_of(
    store: &Store,
    user_row: &UserRow,
    hash: &str,
    kind: LinkKind,
    email: &str,
) -> Changed {
    let expires_at = NOW.plus_seconds(60);
    let link = NewLink { user_row, hash, kind, email, expires_at, activities: &[] };
    put_link(store, link, NOW).await.unwrap()
}

fn using(hash: &str, attempt: u128) -> Use<'_> {
    let attempt = Uuid::from_u128(attempt);
    Use { user: ADA, hash, attempt, now: NOW.plus_seconds(1), mails: &[], activities: &[] }
}

fn to<'a>(email: &'a str, before: &'a str) -> Address<'a> {
    Address { email, email_key: email, before, before_key: before }
}

async fn ada(store: &Store) -> UserRow {
    users::get(store, ADA).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_second_run_is_the_first_and_a_second_call_is_none() {
    let store = store().await;
    put(&store, "a", LinkKind::Confirm, EMAIL).await;
    let confirm =
        async |attempt| confirm(&store, using("a", attempt), to(EMAIL, EMAIL)).await.unwrap();
    assert_eq!(confirm(1).await, Changed::Yes);
    assert_eq!(confirm(1).await, Changed::Yes, "the answer of the first run was lost");
    assert_eq!(confirm(2).await, Changed::Void);
    let after = ada(&store).await;
    assert!(after.is_email_verified && !after.must_confirm);
    assert!(link(&store, ADA, "a").await.unwrap().unwrap().is_used);

    put(&store, "b", LinkKind::Reset, EMAIL).await;
    let password = PasswordHash("new".to_owned());
    let reset = async |attempt| reset(&store, using("b", attempt), &password).await.unwrap();
    for (attempt, expected) in [(3, Changed::Yes), (3, Changed::Yes), (4, Changed::Void)] {
        assert_eq!(reset(attempt).await, expected);
    }
    assert_eq!(ada(&store).await.password, Some(PasswordHash("new".to_owned())));
}

#[tokio::test]
async fn a_link_does_what_it_was_made_for_at_the_address_that_it_was_sent_to() {
    let store = store().await;
    put(&store, "confirm", LinkKind::Confirm, EMAIL).await;
    put(&store, "reset", LinkKind::Reset, EMAIL).await;
    put(&store, "elsewhere", LinkKind::Reset, NEW).await;
    let password = PasswordHash("new".to_owned());
    for hash in ["confirm", "elsewhere", "none"] {
        assert_eq!(
            reset(&store, using(hash, 1), &password).await.unwrap(),
            Changed::Void,
            "{hash}"
        );
    }
    for (hash, email, before) in
        [("reset", EMAIL, EMAIL), ("confirm", NEW, EMAIL), ("confirm", EMAIL, NEW)]
    {
        let changed = confirm(&store, using(hash, 1), to(email, before)).await.unwrap();
        assert_eq!(changed, Changed::Void, "{hash} {email} {before}");
    }
    let late = Use { now: NOW.plus_seconds(60), ..using("reset", 1) };
    assert_eq!(reset(&store, late, &password).await.unwrap(), Changed::Void, "expired");
    assert_eq!(ada(&store).await, row(ADA, EMAIL), "nothing was written");
    assert_eq!(reset(&store, using("reset", 1), &password).await.unwrap(), Changed::Yes);
    assert_eq!(link(&store, ADA, "confirm").await.unwrap(), None, "the others end");
}

#[tokio::test]
async fn an_address_moves_with_its_pointer() {
    let store = store().await;
    let wait =
        async |pending| await_address(&store, ADA, EMAIL, pending, &[], &[], NOW).await.unwrap();
    put(&store, "old", LinkKind::Confirm, EMAIL).await;
    put(&store, "reset", LinkKind::Reset, EMAIL).await;
    assert_eq!(wait(Some(NEW)).await, Changed::Yes);
    assert_eq!(link(&store, ADA, "old").await.unwrap(), None);
    assert!(link(&store, ADA, "reset").await.unwrap().is_some(), "the address stays for now");
    assert_eq!(ada(&store).await.pending_email.as_deref(), Some(NEW));
    put(&store, "new", LinkKind::Confirm, NEW).await;
    // Another user takes the address first.
    let other = UserId(Uuid::from_u128(2));
    users::create(&store, &row(other, NEW), NEW).await.unwrap();
    let changed = confirm(&store, using("new", 1), to(NEW, EMAIL)).await.unwrap();
    assert_eq!(changed, Changed::EmailTaken);
    let changed = move_address(&store, ADA, to(NEW, EMAIL), &[], NOW).await.unwrap();
    assert_eq!(changed, Changed::EmailTaken);
    users::delete(&store, other, NEW).await.unwrap();

    let changed = confirm(&store, using("new", 2), to(NEW, EMAIL)).await.unwrap();
    assert_eq!(changed, Changed::Yes);
    assert_eq!(link(&store, ADA, "reset").await.unwrap(), None);
    assert_eq!(users::by_email(&store, EMAIL).await.unwrap(), None);
    assert_eq!(users::by_email(&store, NEW).await.unwrap(), Some(ada(&store).await));
    // Back immediately; and again, as a retry would do.
    for _ in 0..2 {
        let changed = move_address(&store, ADA, to(EMAIL, NEW), &[], NOW).await.unwrap();
        assert_eq!(changed, Changed::Yes);
    }
    let after = users::by_email(&store, EMAIL).await.unwrap().unwrap();
    assert_eq!((after.email.as_str(), after.is_email_verified), (EMAIL, false));
    assert_eq!(users::by_email(&store, NEW).await.unwrap(), None);
    let changed = move_address(&store, ADA, to(NEW, "x@mail.example"), &[], NOW).await.unwrap();
    assert_eq!(changed, Changed::Void, "the user is another than it was read");
}

#[tokio::test]
async fn links_expire_and_are_deleted_with_the_user() {
    let store = store().await;
    put(&store, "a", LinkKind::Reset, EMAIL).await;
    let later = NOW.plus_seconds(60);
    let expires_at = later.plus_seconds(60);
    let user_row = &ada(&store).await;
    let (hash, kind, email) = ("b", LinkKind::Reset, EMAIL);
    let next = NewLink { user_row, hash, kind, email, expires_at, activities: &[] };
    assert_eq!(put_link(&store, next, later).await.unwrap(), Changed::Yes);
    assert_eq!(link(&store, ADA, "a").await.unwrap(), None, "expired ones are not kept");
    assert!(link(&store, ADA, "b").await.unwrap().is_some());
    // Changes of other fields do not end it.
    let darker = |user: &UserRow| {
        let after = UserRow { theme_mode: Some("dark".to_owned()), ..user.clone() };
        Ok::<_, crate::Error>(Some((after, Vec::new())))
    };
    update::update(&store, ADA, (), darker).await.unwrap();
    assert!(link(&store, ADA, "b").await.unwrap().is_some());
    users::delete(&store, ADA, EMAIL).await.unwrap();
    assert_eq!(link(&store, ADA, "b").await.unwrap(), None);
}

#[tokio::test]
async fn no_link_is_noted_after_what_ends_it() {
    let store = store().await;
    let read = ada(&store).await;
    // Its mail was being made when the new password was set.
    put(&store, "first", LinkKind::Reset, EMAIL).await;
    let password = PasswordHash("new".to_owned());
    assert_eq!(reset(&store, using("first", 1), &password).await.unwrap(), Changed::Yes);
    for kind in [LinkKind::Reset, LinkKind::Confirm] {
        assert_eq!(put_of(&store, &read, "late", kind, EMAIL).await, Changed::Void);
    }
    // When a pending address was stored, and when the present address changed.
    let read = ada(&store).await;
    let waits = await_address(&store, ADA, EMAIL, Some(NEW), &[], &[], NOW).await.unwrap();
    assert_eq!(waits, Changed::Yes);
    assert_eq!(put_of(&store, &read, "late", LinkKind::Confirm, EMAIL).await, Changed::Void);
    let read = ada(&store).await;
    let moved = move_address(&store, ADA, to(NEW, EMAIL), &[], NOW).await.unwrap();
    assert_eq!(moved, Changed::Yes);
    assert_eq!(put_of(&store, &read, "late", LinkKind::Reset, EMAIL).await, Changed::Void);
    // When the user was deactivated, and when the user was deleted.
    let inactive = UserRow { is_active: false, ..ada(&store).await };
    users::create(&store, &inactive, NEW).await.unwrap();
    assert_eq!(put_of(&store, &inactive, "late", LinkKind::Reset, NEW).await, Changed::Void);
    users::delete(&store, ADA, NEW).await.unwrap();
    assert_eq!(put_of(&store, &inactive, "late", LinkKind::Reset, NEW).await, Changed::Void);
    assert!(links(&store, ADA).await.unwrap().is_empty());
}

#[tokio::test]
async fn no_session_is_opened_with_a_password_that_was_replaced() {
    let store = store().await;
    let proved = ada(&store).await.password;
    let open = async |hash: &str, password: Option<&PasswordHash>| {
        let proved = Proved { password, second_factor: None };
        let row = SessionRow {
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
        };
        sessions::create(&store, &row, None, proved).await.unwrap()
    };
    assert!(open("before", proved.as_ref()).await);
    put(&store, "a", LinkKind::Reset, EMAIL).await;
    let after = PasswordHash("new".to_owned());
    assert_eq!(reset(&store, using("a", 1), &after).await.unwrap(), Changed::Yes);
    assert!(!open("late", proved.as_ref()).await);
    assert!(sessions::of_user(&store, ADA).await.unwrap().is_empty());
    assert!(open("new", Some(&after)).await && open("link", None).await);
    assert_eq!(sessions::of_user(&store, ADA).await.unwrap().len(), 2);
    let nobody = UserId(Uuid::from_u128(2));
    assert!(users::replace_hash(&store, ADA, &after, &PasswordHash("b".to_owned())).await.unwrap());
    for user in [ADA, nobody] {
        assert!(!users::replace_hash(&store, user, &after, &after).await.unwrap());
    }
}

#[tokio::test]
async fn a_reset_is_a_first_proof() {
    let store = store().await;
    let after = PasswordHash("new".to_owned());
    for (is_proved, keys) in [(true, 1), (false, 0)] {
        let row =
            UserRow { is_email_verified: is_proved, must_confirm: false, ..ada(&store).await };
        users::create(&store, &row, EMAIL).await.unwrap();
        let token = format!("token {is_proved}");
        let key = crate::keys::KeyRow {
            hash: format!("key {is_proved}"),
            user: ADA,
            key: weir_model::keys::PersonalKey {
                id: weir_model::KeyId("key".to_owned()),
                label: "key".to_owned(),
                value: None,
                mask_value: None,
                created_at: NOW,
                last_used_at: None,
                last_rolled_at: None,
                user_id: 1,
                scopes: Vec::new(),
                scoped_teams: Vec::new(),
                scoped_organizations: Vec::new(),
                expires_at: None,
            },
            previous: None,
        };
        crate::keys::create(&store, &key, 9, &[]).await.unwrap();
        sessions::know_browser(&store, ADA, "browser", NOW).await.unwrap();
        put(&store, &token, LinkKind::Reset, EMAIL).await;
        let attempt = if is_proved { 1 } else { 2 };
        let done = reset(&store, using(&token, attempt), &after).await.unwrap();
        assert_eq!(done, Changed::Yes);
        assert_eq!(crate::keys::of_user(&store, ADA).await.unwrap().len(), keys);
        let is_known = sessions::is_known_browser(&store, ADA, "browser").await.unwrap();
        assert_eq!(is_known, is_proved);
        let user = ada(&store).await;
        assert!(user.is_email_verified);
        assert_eq!(user.password.as_ref(), Some(&after));
    }
}
