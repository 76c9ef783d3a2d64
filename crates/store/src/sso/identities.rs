//! Identities of users at other providers: signing in with one, linking and unlinking it,
//! and joining an organization without an invite.
//!
//! An identity belongs to one user. The hash of connection, issuer and subject is its id,
//! so an address that a provider gives to another person finds no user.

use std::sync::Arc;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value};
use weir_model::activity::Entry;
use weir_model::organizations::Level;
use weir_model::{DomainId, MembershipId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::error::is_done;
use crate::limits::refuse_full;
use crate::mail::{self, MailRow, write_mails};
use crate::members::write_membership;
use crate::organizations::{StoredMembership, touch_organization};
use crate::proofs::{FirstProof, SignInMethods, first_proof, keep_a_method};
use crate::sessions::{self, SessionRow, end_other_sessions, write_session};
use crate::transaction::Transaction;
use crate::users::UserRow;
use crate::{Error, Result, Store};

/// An identity as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct IdentityRow {
    /// SHA-256 of connection, issuer and subject.
    pub hash: String,
    /// The user who signs in with it.
    pub user: UserId,
    /// The connection, as text.
    pub connection: String,
    /// The issuer or entity id of the provider.
    pub issuer: String,
    /// What the provider calls the user.
    pub subject: String,
    /// The address that the provider named last.
    pub email: Option<String>,
    /// Whether the provider confirmed that address.
    // Missing in identities that were linked before this field existed.
    #[surreal(default)]
    pub email_verified: bool,
    /// The normalised address of the user that the provider proved, while the domain of
    /// the address trusted the provider.
    pub proved_for: Option<String>,
    /// When it was linked.
    pub linked_at: Timestamp,
    /// When it was last used.
    pub used_at: Timestamp,
}

const GET: Statement =
    Statement::read("identities get", "SELECT * FROM type::record('external_identity', $hash);");

/// The identity with this hash.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, hash: &str) -> Result<Option<IdentityRow>> {
    store.db.run(GET, bind! { hash: hash }).await?.row(0)
}

const OF_USER: Statement = Statement::read(
    "identities of a user",
    "SELECT * FROM (SELECT VALUE type::record('external_identity', record::id(id)[1])
                    FROM user_identity:[$user]..=[$user, ..]);",
);

/// The identities of a user, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn of_user(store: &Store, user: UserId) -> Result<Vec<IdentityRow>> {
    let mut found: Vec<IdentityRow> =
        store.db.run(OF_USER, bind! { user: user.0 }).await?.rows(0)?;
    found.sort_by(|one, other| (one.linked_at, &one.hash).cmp(&(other.linked_at, &other.hash)));
    Ok(found)
}

/// Stores the identity `$identity` of `$user`, unless it belongs to another user or the
/// user has as many as allowed. A new identity needs `$may_link`. With `$renews`, one that
/// is linked already counts as linked now.
macro_rules! write_identity {
    () => {
        "LET $known = (SELECT * FROM ONLY type::record('external_identity', $identity.hash));
         IF $known != NONE AND $known.user != $user { THROW 'taken' };
         IF $known = NONE AND !$may_link { THROW 'unlinked' };
         LET $all = (SELECT VALUE record::id(id)[1] FROM user_identity:[$user]..=[$user, ..]);
         IF $known = NONE AND array::len($all) >= $most { THROW 'full' };
         UPSERT type::record('external_identity', $identity.hash) CONTENT
             object::extend($identity, {
                 linked_at: IF $renews { $identity.linked_at }
                     ELSE { $known.linked_at ?? $identity.linked_at },
                 proved_for: $identity.proved_for ?? $known.proved_for
             }) RETURN NONE;
         UPSERT type::record('user_identity', [$user, $identity.hash]) CONTENT {} RETURN NONE;"
    };
}

// Writing the user's record makes this conflict with transactions that end sessions.
const SIGN_IN: Statement = Statement::sign_in(
    "identities sign in",
    concat!(
        "BEGIN;
         LET $opened = (SELECT VALUE user FROM ONLY type::record('session', $hash));
         IF $opened = NONE {
             IF $new_user != NONE {
                 LET $holder = (SELECT VALUE user FROM ONLY type::record('user_email', $email_key));
                 IF $holder != NONE { THROW 'user' };
                 UPSERT type::record('user_email', $email_key)
                     CONTENT { user: $user } RETURN NONE;
                 UPSERT type::record('user', $user) CONTENT $new_user RETURN NONE;
             };
             LET $user_row = (SELECT * FROM ONLY type::record('user', $user));
             IF $user_row = NONE OR $user_row.is_active != true OR $user_row.email != $email {
                 THROW 'user'
             };",
        write_identity!(),
        first_proof!(),
        "UPDATE type::record('user', $user)
                 SET sessions_made = (sessions_made ?? 0) + 1, last_login = $now RETURN NONE;
             IF $replaced != NONE {
                 LET $of = (SELECT VALUE user FROM ONLY type::record('session', $replaced));
                 IF $of = $user {
                     DELETE type::record('session', $replaced) RETURN NONE;
                     DELETE type::record('user_session', [$user, $replaced]) RETURN NONE;
                 };
             };",
        write_session!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// A sign-in with an identity.
#[derive(Debug)]
pub struct SignIn<'a> {
    /// The identity. The user, the present address and the times are those of now.
    pub identity: &'a IdentityRow,
    /// The address of the user, as it was read.
    pub email: &'a str,
    /// The record of the user, when the user is created with this call, and the form of
    /// the address that must be unique.
    pub new_user: Option<(&'a UserRow, &'a str)>,
    /// Whether the identity may be new.
    pub may_link: bool,
    /// The first proof of the address of the user, if the provider gives one.
    pub proof: Option<&'a FirstProof>,
    /// Most identities of a user.
    pub most: usize,
    /// The session that is opened.
    pub session: &'a SessionRow,
    /// The hash of the session that it replaces, if that one is of the same user.
    pub replaced: Option<&'a str>,
    /// The time of the sign-in. The user may have proved their identity before.
    pub now: Timestamp,
    /// The mails about a new identity.
    pub mails: &'a [MailRow],
    /// The audit entries.
    pub activities: &'a [Entry],
}

/// The result of a change of identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// The change was made.
    Yes,
    /// The identity belongs to another user. Nothing was written.
    Taken,
    /// The user has as many identities as allowed. Nothing was written.
    TooMany,
    /// The user has changed since they were read, or the identity was unlinked. Nothing
    /// was written.
    Void,
}

fn linked<T>(outcome: Result<T>) -> Result<Linked> {
    match outcome {
        Ok(_) => Ok(Linked::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "taken" => Linked::Taken,
            "full" => Linked::TooMany,
            _ => Linked::Void,
        }),
        Err(error) => Err(error),
    }
}

/// Opens a session with an identity.
///
/// # Errors
/// Any failure of the store.
pub async fn sign_in(store: &Store, with: SignIn<'_>) -> Result<Linked> {
    let vars = bind! {
        hash: with.session.hash.as_str(),
        user: with.session.user.0,
        email: with.email,
        new_user: with.new_user.map(|(user, _)| user.clone()),
        email_key: with.new_user.map(|(_, email_key)| email_key.to_owned()),
        identity: with.identity.clone(),
        may_link: with.may_link,
        renews: false,
        proof: with.proof.cloned(),
        most: i64::try_from(with.most).unwrap_or(i64::MAX),
        replaced: with.replaced.map(str::to_owned),
        row: sessions::Stored::from(with.session),
        now: with.now.micros(),
        mails: mail::stored(with.mails)?,
    };
    linked(activity::change(store, SIGN_IN, vars, with.activities).await)
}

// Writing the user's record makes this conflict with transactions that end sessions.
const LINK: Statement = Statement::write(
    "identities link",
    concat!(
        "BEGIN;
         LET $user_row = (SELECT * FROM ONLY type::record('user', $user));
         LET $within = (SELECT VALUE user FROM ONLY type::record('session', $linked_in));
         IF $user_row = NONE OR $user_row.is_active != true OR $within != $user { THROW 'user' };
         UPDATE type::record('user', $user)
             SET sessions_made = (sessions_made ?? 0) + 1 RETURN NONE;",
        write_identity!(),
        write_mails!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Links an identity to its user within a session. A user may have `most`.
///
/// # Errors
/// Any failure of the store.
pub async fn link(
    store: &Store,
    session: &str,
    identity: &IdentityRow,
    most: usize,
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<Linked> {
    let vars = bind! {
        user: identity.user.0,
        linked_in: session,
        identity: identity.clone(),
        may_link: true,
        renews: true,
        most: i64::try_from(most).unwrap_or(i64::MAX),
        mails: mail::stored(mails)?,
    };
    linked(activity::change(store, LINK, vars, activities).await)
}

const UNLINK: Statement = Statement::delete(
    "identities unlink",
    concat!(
        "BEGIN;
         LET $owner = (SELECT VALUE user FROM ONLY type::record('external_identity', $hash));
         IF $owner = $user {
             UPDATE type::record('user', $user)
                 SET sessions_made = (sessions_made ?? 0) + 1 RETURN NONE;",
        keep_a_method!(),
        "DELETE type::record('external_identity', $hash) RETURN NONE;
             DELETE type::record('user_identity', [$user, $hash]) RETURN NONE;",
        end_other_sessions!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The removal of an identity.
#[derive(Debug)]
pub struct Unlinking<'a> {
    /// The user whose identity it is.
    pub user: UserId,
    /// The hash of connection, issuer and subject.
    pub hash: &'a str,
    /// The hash of the session in which it is removed.
    pub session: &'a str,
    /// The sign-in methods that are left. One must still be there.
    pub methods: Option<&'a SignInMethods>,
    /// The mails about it.
    pub mails: &'a [MailRow],
    /// The audit entries.
    pub activities: &'a [Entry],
}

/// Removes an identity, and ends all other sessions of its user. Does nothing when it is
/// already removed. `false`: the user could not sign in any more, and nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn unlink(store: &Store, with: Unlinking<'_>) -> Result<bool> {
    let vars = bind! {
        user: with.user.0,
        hash: with.hash,
        kept: with.session,
        methods: with.methods.cloned(),
        mails: mail::stored(with.mails)?,
    };
    is_done(activity::change(store, UNLINK, vars, with.activities).await)
}

/// A user who joins an organization because its domain lets them.
#[derive(Debug)]
pub struct Joining<'a> {
    /// The domain that lets the user in.
    pub domain: DomainId,
    /// The organization that has the domain.
    pub organization: OrganizationId,
    /// The user who becomes a member.
    pub user: UserId,
    /// The record of the user, when the user is created with this call, and the form of
    /// the address that must be unique.
    pub new_user: Option<(&'a UserRow, &'a str)>,
    /// The first proof of the address, of a user who existed before.
    pub proof: Option<&'a FirstProof>,
    /// Id of the membership.
    pub membership: MembershipId,
    /// The project that the user sees first.
    pub project: Option<ProjectId>,
    /// The number of members that the organization may have; `None`: no limit.
    pub members_most: Option<u64>,
    /// The mails about the new member.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

// A retry finds its own membership and writes nothing. Whether the domain lets users in
// is read here, because it may have changed since the user left for the provider.
const JOIN: Statement = Statement::write(
    "identities join",
    concat!(
        "BEGIN;
         LET $member = (SELECT VALUE uuid
                        FROM ONLY type::record('membership', [$organization, $user]));
         IF $member = NONE {
             LET $rules = (SELECT * FROM ONLY type::record('domain', $domain));
             IF $rules = NONE OR $rules.organization != $organization
                 OR $rules.verified_at = NONE
                 OR $rules.jit_provisioning_enabled != true { THROW 'domain' };
             IF record::exists(type::record('scim_deactivated', [$organization, $user])) {
                 THROW 'domain'
             };",
        touch_organization!("$organization", "domain"),
        refuse_full!(),
        "IF $new_user != NONE {
                 LET $owner = (SELECT VALUE user FROM ONLY type::record('user_email', $email_key));
                 IF $owner != NONE { THROW 'email' };
                 UPSERT type::record('user_email', $email_key)
                     CONTENT { user: $user } RETURN NONE;
                 UPSERT type::record('user', $user) CONTENT $new_user RETURN NONE;
             };",
        first_proof!(),
        write_membership!("$organization"),
        "UPDATE type::record('user', $user)
             SET current_organization = $organization, current_project = $project RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Makes a user, who may be new, a member at the lowest level. `false`: the domain lets
/// no users in any more, the organization has as many members as its limit, or the address
/// of the new user belongs to another user, and nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn join(store: &Store, new: Joining<'_>, now: Timestamp) -> Result<bool> {
    let vars = bind! {
        domain: new.domain.0,
        organization: new.organization.0,
        user: new.user.0,
        new_user: new.new_user.map(|(user, _)| user.clone()),
        email_key: new.new_user.map(|(_, email_key)| email_key.to_owned()),
        proof: new.proof.cloned(),
        membership: StoredMembership::new(new.membership, Level::Member, now),
        project: new.project.map(|project| project.0),
        members_most: new.members_most.map(|most| i64::try_from(most).unwrap_or(i64::MAX)),
        mails: mail::stored(new.mails)?,
    };
    is_done(activity::change(store, JOIN, vars, new.activities).await)
}

const OF_USERS: Operation = Operation::read("identities of users");

/// The identities of these users.
///
/// # Errors
/// Any failure of the store.
pub async fn of_users(store: &Store, users: &[UserId]) -> Result<Vec<IdentityRow>> {
    let keyspace = store.db.keyspace().await?;
    let users: Arc<[UserId]> = users.into();
    let work = move |tx: Transaction| {
        let users = Arc::clone(&users);
        async move {
            let mut found = Vec::new();
            for user in &*users {
                let of_user = RecordIdKey::Array(vec![user.0.into_value()].into());
                let of_user = keyspace.beginning_with(RecordId::new("user_identity", of_user))?;
                for id in tx.ids(&of_user).await? {
                    let RecordIdKey::Array(parts) = id.key else { continue };
                    let Some(Value::String(hash)) = parts.into_iter().nth(1) else { continue };
                    let identity = keyspace.key(RecordId::new("external_identity", hash))?;
                    found.extend(tx.get_one::<IdentityRow>(&identity).await?);
                }
            }
            Ok(found)
        }
    };
    store.db.transact(OF_USERS, (), work).await
}
