//! Provisioning by SCIM: the token of a domain, and what its identity provider says about
//! users and groups.
//!
//! What belongs here: the rows, reading them, and the token. What does not: changes of
//! users (`users`) and of groups (`groups`), which are transactions of their own; which
//! users a domain has and what a change means (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `scim_domain` | domain | the token without its value, and the revision of all that follows |
//! | `scim_token` | hash of the token | the domain |
//! | `scim_user` | `[domain, user]` | what the identity provider calls the user |
//! | `scim_user_name` | `[domain, name]` | the user with this `userName`, where it is no address of the domain |
//! | `scim_deactivated` | `[organization, user]` | a deactivated user, with the membership that it had |
//! | `scim_level` | `[domain, user]` | nothing: the level of the user comes from a group |
//! | `scim_group` | `[domain, group]` | the group |
//! | `scim_member` | `[domain, group, user]` | nothing |
//! | `scim_group_of` | `[domain, user, group]` | nothing |
//!
//! A deactivated user has no membership. So every other part of the service refuses the
//! user without knowing of SCIM.

mod groups;
mod users;

use std::sync::Arc;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{DomainId, MembershipId, OrganizationId, ScimGroupId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::error::is_done;
use crate::lists;
use crate::mail::{self, MailRow, write_mails};
use crate::transaction::Transaction;
use crate::users::UserRow;
use crate::{Result, Store};

pub use groups::{GroupsChange, LevelChange, change_groups};
pub use users::{Join, Profile, Switch, UserChange, change_user, join, remove_user};

/// The token of a domain, without its value.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct TokenRow {
    /// SHA-256 of the value.
    pub hash: String,
    /// First and last characters of the value.
    pub mask: String,
    /// The user who made it.
    pub created_by: UserId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
}

/// What a domain has to do with SCIM.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct DomainState {
    /// The domain that the identity provider changes users of.
    pub domain: DomainId,
    /// The organization that has the domain.
    pub organization: OrganizationId,
    /// A new value after every change of users and groups.
    pub revision: Uuid,
    /// The token; `None`: it was revoked.
    pub token: Option<TokenRow>,
}

/// What the identity provider calls a user.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct ScimUserRow {
    /// The user with these names.
    pub user: UserId,
    /// `userName` as it was sent; `None`: it is the address.
    pub user_name: Option<String>,
    /// The form of `user_name` that must be unique in the domain.
    pub name_key: Option<String>,
    /// `externalId`: the id that the identity provider gave the user.
    pub external_id: Option<String>,
    /// `displayName`.
    pub display_name: Option<String>,
    /// When the identity provider first changed the user.
    pub created_at: Timestamp,
    /// When it last did.
    pub updated_at: Timestamp,
}

/// A deactivated user.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct DeactivatedRow {
    /// The user who has no membership meanwhile.
    pub user: UserId,
    /// The domain whose identity provider deactivated the user.
    pub domain: DomainId,
    /// The membership that the user had.
    pub membership: MembershipId,
    /// The level that the membership had.
    pub level: i64,
    /// When the user had joined.
    pub joined_at: Timestamp,
    /// Whether the user can sign in nowhere, because there was no other organization.
    pub closed: bool,
}

/// A group of an identity provider.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct GroupRow {
    /// Id of the group.
    #[surreal(rename = "uuid")]
    pub id: ScimGroupId,
    /// `displayName`: the name that administrators read.
    pub display_name: String,
    /// `externalId`: the id that the identity provider gave the group.
    pub external_id: Option<String>,
    /// The level that its members get.
    pub level: Option<i64>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The change was made.
    Done,
    /// Something has changed since it was read. Nothing was written.
    Stale,
    /// The organization would have no owner left. Nothing was written.
    LastOwner,
    /// The address belongs to another user. Nothing was written.
    EmailTaken,
    /// Only the user changes the address: an owner, the staff of the instance, or a member
    /// of other organizations. Nothing was written.
    EmailKept,
    /// The `userName` belongs to another user of the domain. Nothing was written.
    NameTaken,
    /// The organization has as many members as its limit. Nothing was written.
    OverLimit,
}

fn outcome<T>(result: Result<T>) -> Result<Outcome> {
    match result {
        Ok(_) => Ok(Outcome::Done),
        Err(crate::Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "last_owner" => Outcome::LastOwner,
            "email" => Outcome::EmailTaken,
            "kept" => Outcome::EmailKept,
            "name" => Outcome::NameTaken,
            "members" => Outcome::OverLimit,
            _ => Outcome::Stale,
        }),
        Err(error) => Err(error),
    }
}

/// Begins a change of what a domain has, if the revision is still the one that was read.
/// `end_change!` ends it. A repeated transaction finds its own revision, and writes
/// nothing.
macro_rules! begin_change {
    () => {
        concat!(
            "BEGIN;
             LET $state = (SELECT VALUE revision FROM ONLY type::record('scim_domain', $domain));
             IF $state != $next {
                 IF $state = NONE OR $state != $revision { THROW 'stale' };
                 UPDATE type::record('scim_domain', $domain) SET revision = $next RETURN NONE;",
            crate::organizations::touch_organization!("$organization", "stale")
        )
    };
}

/// Ends a change with its mails and audit entries.
macro_rules! end_change {
    () => {
        concat!(
            crate::mail::write_mails!(),
            crate::activity::write_activities!(),
            "};
             COMMIT;"
        )
    };
}

/// Refuses to take the membership of `$user` if the organization would have no active
/// owner.
macro_rules! keep_an_owner {
    () => {
        "LET $level_now = (SELECT VALUE level
                           FROM ONLY type::record('membership', [$organization, $user]));
         IF $level_now = $owner_level {
             LET $owners = (SELECT VALUE is_active FROM (
                 SELECT VALUE type::record('user', record::id(id)[1])
                 FROM membership:[$organization]..=[$organization, ..]
                 WHERE level = $owner_level AND record::id(id)[1] != $user));
             IF !($owners CONTAINS true) { THROW 'last_owner' };
         };"
    };
}
pub(crate) use {begin_change, end_change, keep_an_owner};

/// Removes what the domain with the record `$row` has to do with SCIM. Used by the
/// transactions that delete or rename a domain. Deactivated users stay so, and `scim_closed`
/// of their records too: the operator activates them, or the domain that has their
/// addresses then.
macro_rules! remove_scim {
    () => {
        "LET $scim_of = $row.uuid;
         LET $scim_in = $row.organization;
         LET $scim_hash = (SELECT VALUE token.hash FROM ONLY type::record('scim_domain', $scim_of));
         IF $scim_hash != NONE { DELETE type::record('scim_token', $scim_hash) RETURN NONE; };
         DELETE type::record('scim_domain', $scim_of) RETURN NONE;
         DELETE scim_user:[$scim_of]..=[$scim_of, ..] RETURN NONE;
         DELETE scim_user_name:[$scim_of]..=[$scim_of, ..] RETURN NONE;
         DELETE scim_level:[$scim_of]..=[$scim_of, ..] RETURN NONE;
         DELETE scim_group:[$scim_of]..=[$scim_of, ..] RETURN NONE;
         DELETE scim_member:[$scim_of]..=[$scim_of, ..] RETURN NONE;
         DELETE scim_group_of:[$scim_of]..=[$scim_of, ..] RETURN NONE;
         FOR $scim_deactivated IN (SELECT VALUE id FROM scim_deactivated:[$scim_in]..=[$scim_in, ..]
                            WHERE domain = $scim_of) {
             DELETE $scim_deactivated RETURN NONE;
         };"
    };
}
pub(crate) use remove_scim;

const STATE: Statement =
    Statement::read("scim state", "SELECT * FROM type::record('scim_domain', $domain);");

/// What a domain has to do with SCIM; `None`: it never had a token.
///
/// # Errors
/// Any failure of the store.
pub async fn state(store: &Store, domain: DomainId) -> Result<Option<DomainState>> {
    store.db.run(STATE, bind! { domain: domain.0 }).await?.row(0)
}

const BY_HASH: Statement = Statement::read(
    "scim by hash",
    "SELECT * FROM (SELECT VALUE type::record('scim_domain', domain)
                    FROM type::record('scim_token', $hash));",
);

/// The domain whose token has this hash.
///
/// # Errors
/// Any failure of the store.
pub async fn by_hash(store: &Store, hash: &str) -> Result<Option<DomainState>> {
    store.db.run(BY_HASH, bind! { hash: hash }).await?.row(0)
}

// The domain is read again, because it may have been renamed or deleted.
const SET_TOKEN: Statement = Statement::write(
    "scim set token",
    concat!(
        "BEGIN;
         LET $of = (SELECT * FROM ONLY type::record('domain', $domain));
         IF $of = NONE OR $of.organization != $organization OR $of.verified_at = NONE {
             THROW 'gone'
         };
         LET $old = (SELECT VALUE token.hash FROM ONLY type::record('scim_domain', $domain));
         IF $old != $new.hash {
             IF $old != NONE { DELETE type::record('scim_token', $old) RETURN NONE; };
             UPSERT type::record('scim_token', $new.hash)
                 CONTENT { domain: $domain } RETURN NONE;
             LET $kept = (SELECT VALUE revision FROM ONLY type::record('scim_domain', $domain));
             UPSERT type::record('scim_domain', $domain) CONTENT {
                 domain: $domain, organization: $organization, revision: $kept ?? $first,
                 token: $new
             } RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Gives a verified domain a token, in place of the one before. `false`: the domain was
/// deleted or renamed, and nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn set_token(
    store: &Store,
    organization: OrganizationId,
    domain: DomainId,
    token: &TokenRow,
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! {
        organization: organization.0,
        domain: domain.0,
        new: token.clone(),
        first: Uuid::nil(),
        mails: mail::stored(mails)?,
    };
    is_done(activity::change(store, SET_TOKEN, vars, activities).await)
}

const REVOKE: Statement = Statement::delete(
    "scim revoke",
    concat!(
        "BEGIN;
         LET $old = (SELECT VALUE token.hash FROM ONLY type::record('scim_domain', $domain));
         IF $old = $hash {
             DELETE type::record('scim_token', $hash) RETURN NONE;
             UPDATE type::record('scim_domain', $domain) SET token = NONE RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Revokes the token with this hash. Users and groups stay.
///
/// # Errors
/// Any failure of the store.
pub async fn revoke(
    store: &Store,
    domain: DomainId,
    hash: &str,
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { domain: domain.0, hash: hash, mails: mail::stored(mails)? };
    activity::change(store, REVOKE, vars, activities).await.map(drop)
}

const TOUCH: Statement = Statement::write(
    "scim touch",
    "UPDATE type::record('scim_domain', $domain) SET token.used_at = $now
     WHERE token.hash = $hash RETURN NONE;",
);

/// Stores when the token was last used.
///
/// # Errors
/// Any failure of the store.
pub async fn touch(store: &Store, domain: DomainId, hash: &str, now: Timestamp) -> Result<()> {
    let vars = bind! { domain: domain.0, hash: hash, now: now.micros() };
    store.db.run(TOUCH, vars).await.map(drop)
}

const USERS: Statement =
    Statement::read("scim users", "SELECT * FROM scim_user:[$domain]..=[$domain, ..];");

/// What the identity provider calls the users of a domain.
///
/// # Errors
/// Any failure of the store.
pub async fn users(store: &Store, domain: DomainId) -> Result<Vec<ScimUserRow>> {
    store.db.run(USERS, bind! { domain: domain.0 }).await?.rows(0)
}

const USER: Statement =
    Statement::read("scim user", "SELECT * FROM type::record('scim_user', [$domain, $user]);");

/// What the identity provider calls a user.
///
/// # Errors
/// Any failure of the store.
pub async fn user(store: &Store, domain: DomainId, user: UserId) -> Result<Option<ScimUserRow>> {
    store.db.run(USER, bind! { domain: domain.0, user: user.0 }).await?.row(0)
}

const USER_NAMED: Statement = Statement::read(
    "scim user named",
    "SELECT * FROM (SELECT VALUE type::record('user', user)
                    FROM type::record('scim_user_name', [$domain, $name]));",
);

/// The user of a domain whose `userName` has this form that must be unique.
///
/// # Errors
/// Any failure of the store.
pub async fn user_named(store: &Store, domain: DomainId, name: &str) -> Result<Option<UserRow>> {
    store.db.run(USER_NAMED, bind! { domain: domain.0, name: name }).await?.row(0)
}

const ALL_SHUT: Statement = Statement::read(
    "scim all shut",
    "SELECT * FROM scim_deactivated:[$organization]..=[$organization, ..];",
);

/// The deactivated users of an organization.
///
/// # Errors
/// Any failure of the store.
pub async fn all_deactivated(
    store: &Store,
    organization: OrganizationId,
) -> Result<Vec<DeactivatedRow>> {
    store.db.run(ALL_SHUT, bind! { organization: organization.0 }).await?.rows(0)
}

const SHUT: Statement = Statement::read(
    "scim shut",
    "SELECT * FROM type::record('scim_deactivated', [$organization, $user]);",
);

/// The user of an organization, if deactivated.
///
/// # Errors
/// Any failure of the store.
pub async fn shut(
    store: &Store,
    organization: OrganizationId,
    user: UserId,
) -> Result<Option<DeactivatedRow>> {
    store.db.run(SHUT, bind! { organization: organization.0, user: user.0 }).await?.row(0)
}

const WAS_CLOSED: Statement = Statement::read(
    "scim was closed",
    "SELECT VALUE id FROM type::record('user', $user)
     WHERE is_active = false AND scim_closed = true;",
);

/// Whether a user is not active because an identity provider deactivated the user.
///
/// # Errors
/// Any failure of the store.
pub async fn was_deactivated(store: &Store, user: UserId) -> Result<bool> {
    let mut answer = store.db.run(WAS_CLOSED, bind! { user: user.0 }).await?;
    Ok(answer.row::<Value>(0)?.is_some())
}

const GROUPS: Statement =
    Statement::read("scim groups", "SELECT * FROM scim_group:[$domain]..=[$domain, ..];");

/// The groups of a domain, in the order in which they were made.
///
/// # Errors
/// Any failure of the store.
pub async fn groups(store: &Store, domain: DomainId) -> Result<Vec<GroupRow>> {
    store.db.run(GROUPS, bind! { domain: domain.0 }).await?.rows(0)
}

const GROUP: Statement =
    Statement::read("scim group", "SELECT * FROM type::record('scim_group', [$domain, $group]);");

/// A group of a domain.
///
/// # Errors
/// Any failure of the store.
pub async fn group(store: &Store, domain: DomainId, id: ScimGroupId) -> Result<Option<GroupRow>> {
    store.db.run(GROUP, bind! { domain: domain.0, group: id.0 }).await?.row(0)
}

const MEMBERS: Statement = Statement::read(
    "scim members",
    "SELECT VALUE record::id(id)[2] FROM scim_member:[$domain, $group]..=[$domain, $group, ..];",
);

/// The members of a group, in the order of their ids.
///
/// # Errors
/// Any failure of the store.
pub async fn members(store: &Store, domain: DomainId, group: ScimGroupId) -> Result<Vec<UserId>> {
    lists::ids(store, MEMBERS, bind! { domain: domain.0, group: group.0 }, UserId).await
}

const GROUPS_OF: Operation = Operation::read("scim groups of");

/// The groups of each of these users, in the order of `users`.
///
/// # Errors
/// Any failure of the store.
pub async fn groups_of(
    store: &Store,
    domain: DomainId,
    users: &[UserId],
) -> Result<Vec<Vec<ScimGroupId>>> {
    let keyspace = store.db.keyspace().await?;
    let users: Arc<[UserId]> = users.into();
    let work = move |tx: Transaction| {
        let users = Arc::clone(&users);
        async move {
            let mut found = Vec::with_capacity(users.len());
            for user in &*users {
                let of_user = vec![domain.0.into_value(), user.0.into_value()];
                let of_user = RecordId::new("scim_group_of", RecordIdKey::Array(of_user.into()));
                let mut groups = Vec::new();
                for id in tx.ids(&keyspace.beginning_with(of_user)?).await? {
                    let RecordIdKey::Array(parts) = id.key else { continue };
                    if let Some(Value::Uuid(group)) = parts.into_iter().nth(2) {
                        groups.push(ScimGroupId(Uuid::from_bytes(*group.as_bytes())));
                    }
                }
                found.push(groups);
            }
            Ok(found)
        }
    };
    store.db.transact(GROUPS_OF, (), work).await
}

/// Those of these users whose level comes from a group of the domain.
///
/// # Errors
/// Any failure of the store.
pub async fn levelled(store: &Store, domain: DomainId, users: &[UserId]) -> Result<Vec<UserId>> {
    let ids = users.iter().map(|user| vec![domain.0, user.0]).collect();
    let found = lists::records::<Value>(store, "scim_level", ids).await?;
    let marked = users.iter().zip(found).filter(|(_, mark)| mark.is_some());
    Ok(marked.map(|(user, _)| *user).collect())
}
