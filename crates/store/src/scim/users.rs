//! Changes of users by SCIM: joining, changing, deactivating, activating and removing.

use surrealdb::types::SurrealValue;
use tokio::sync::broadcast::Receiver;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::organizations::Level;
use weir_model::{InviteId, MembershipId, ProjectId, Timestamp, UserId};

use super::{DomainState, Outcome, ScimUserRow, begin_change, end_change, keep_an_owner, outcome};
use crate::activity;
use crate::bind::bind;
use crate::db::Statement;
use crate::invites::remove_invite;
use crate::keys::end_keys;
use crate::limits::refuse_full;
use crate::mail::{self, MailRow};
use crate::members::{remove_membership, write_membership};
use crate::organizations::StoredMembership;
use crate::proofs::{FirstProof, first_proof};
use crate::sessions::end_sessions;
use crate::users::UserRow;
use crate::{Result, Store};

/// Writes `$scim`, the row of the user, and the record that finds the user by `userName`.
/// A user who deleted the account holds no name.
macro_rules! write_scim_user {
    () => {
        "LET $new_name = $scim.name_key;
         IF $new_name != NONE {
             LET $named = (SELECT VALUE user
                           FROM ONLY type::record('scim_user_name', [$domain, $new_name]));
             IF $named != NONE AND $named != $user {
                 LET $holder = (SELECT VALUE email FROM ONLY type::record('user', $named));
                 IF $holder != NONE { THROW 'name' };
             };
         };
         LET $old_name = (SELECT VALUE name_key
                          FROM ONLY type::record('scim_user', [$domain, $user]));
         IF $old_name != NONE AND $old_name != $new_name {
             DELETE type::record('scim_user_name', [$domain, $old_name]) RETURN NONE;
         };
         IF $new_name != NONE {
             UPSERT type::record('scim_user_name', [$domain, $new_name])
                 CONTENT { user: $user } RETURN NONE;
         };
         UPSERT type::record('scim_user', [$domain, $user]) CONTENT $scim RETURN NONE;"
    };
}

// The identity provider confirms the address.
const JOIN: Statement = Statement::write(
    "scim join",
    concat!(
        begin_change!(),
        "LET $member = (SELECT VALUE uuid
                        FROM ONLY type::record('membership', [$organization, $user]));
         IF $member != NONE { THROW 'stale' };
         IF $new_user != NONE {
             LET $owner = (SELECT VALUE user FROM ONLY type::record('user_email', $email_key));
             IF $owner != NONE { THROW 'email' };
             UPSERT type::record('user_email', $email_key) CONTENT { user: $user } RETURN NONE;
             UPSERT type::record('user', $user) CONTENT $new_user RETURN NONE;
         } ELSE {
             LET $found = (SELECT * FROM ONLY type::record('user', $user));
             LET $homes = (SELECT VALUE 1 FROM user_membership:[$user]..=[$user, ..]);
             LET $was_proved = $found.is_staff = true
                 OR ($found.is_email_verified = true AND $found.must_confirm != true);
             IF $found = NONE OR $found.email != $email OR ($was_proved AND $homes != [])
                 OR (!$was_proved AND $proof = NONE) { THROW 'stale' };
             IF $activates_user AND $found.scim_closed != true { THROW 'stale' };
             IF $activates_user {
                 UPDATE type::record('user', $user) SET is_active = true, scim_closed = NONE
                     RETURN NONE;
             };
             UPDATE type::record('user', $user)
                 SET first_name = $first_name, last_name = $last_name RETURN NONE;",
        first_proof!(),
        "};
         DELETE type::record('scim_deactivated', [$organization, $user]) RETURN NONE;",
        write_scim_user!(),
        "IF $shuts {
             UPSERT type::record('scim_deactivated', [$organization, $user]) CONTENT {
                 user: $user, domain: $domain, membership: $membership.uuid,
                 level: $membership.level, joined_at: $membership.joined_at, closed: true
             } RETURN NONE;
             UPDATE type::record('user', $user) SET
                 is_active = false, scim_closed = true,
                 sessions_made = (sessions_made ?? 0) + 1, updated_at = $now
             RETURN NONE;
             LET $homes = [];",
        end_sessions!(),
        end_keys!(),
        "} ELSE {",
        refuse_full!(),
        write_membership!("$organization"),
        "UPDATE type::record('user', $user) SET
                 current_organization = $organization, current_project = $project,
                 updated_at = $now
             RETURN NONE;
         };
         IF $invite != NONE {
             LET $row = (SELECT * FROM ONLY type::record('invite', $invite));
             IF $row != NONE {",
        remove_invite!(),
        "};
         };",
        end_change!()
    ),
);

/// A user who becomes a member.
#[derive(Debug)]
pub struct Join<'a> {
    /// What the domain had when it was read.
    pub state: &'a DomainState,
    /// The revision after the change.
    pub next: Uuid,
    /// The user who becomes a member.
    pub user: UserId,
    /// The address of the user, as it was read.
    pub email: &'a str,
    /// The record of the user, when the user is created with this call, and the form of
    /// the address that must be unique.
    pub new_user: Option<(&'a UserRow, &'a str)>,
    /// The first proof of the address, of a user who existed before.
    pub proof: Option<&'a FirstProof>,
    /// Whether an identity provider deactivated the user, who is activated now.
    pub activates_user: bool,
    /// Whether the user is added as deactivated.
    pub shuts: bool,
    /// First name of a user who exists.
    pub first_name: &'a str,
    /// Last name of a user who exists.
    pub last_name: &'a str,
    /// What the identity provider calls the user.
    pub scim: &'a ScimUserRow,
    /// Id of the membership.
    pub membership: MembershipId,
    /// The level of the new membership.
    pub level: Level,
    /// The project that the user sees first.
    pub project: Option<ProjectId>,
    /// The invite that is used up.
    pub invite: Option<InviteId>,
    /// The number of members that the organization may have; `None`: no limit.
    pub members_most: Option<u64>,
    /// The mails about the new member.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// Makes a user, who may be new, a member.
///
/// # Errors
/// Any failure of the store.
pub async fn join(store: &Store, new: Join<'_>, now: Timestamp) -> Result<Outcome> {
    let vars = bind! {
        domain: new.state.domain.0,
        organization: new.state.organization.0,
        revision: new.state.revision,
        next: new.next,
        user: new.user.0,
        email: new.email,
        new_user: new.new_user.map(|(user, _)| user.clone()),
        email_key: new.new_user.map(|(_, email_key)| email_key.to_owned()),
        proof: new.proof.cloned(),
        activates_user: new.activates_user,
        shuts: new.shuts,
        first_name: new.first_name,
        last_name: new.last_name,
        scim: new.scim.clone(),
        membership: StoredMembership::new(new.membership, new.level, now),
        project: new.project.map(|project| project.0),
        invite: new.invite.map(|invite| invite.0),
        members_most: new.members_most.map(|most| i64::try_from(most).unwrap_or(i64::MAX)),
        now: now.micros(),
        mails: mail::stored(new.mails)?,
    };
    outcome(activity::change(store, JOIN, vars, new.activities).await)
}

/// Takes the membership `$was` of the user with the record `$user_row`, all sessions, and
/// the keys that reach nothing else. Writing the user's record makes this conflict with
/// transactions that open a session. A user without another organization is closed: no
/// session and no key is accepted, and no sign-in.
macro_rules! deactivate_user {
    () => {
        concat!(
            keep_an_owner!(),
            remove_membership!(),
            "LET $homes = (SELECT VALUE 1 FROM user_membership:[$user]..=[$user, ..]);
             LET $closes = ($homes = [] AND $user_row.is_active = true);
             UPSERT type::record('scim_deactivated', [$organization, $user]) CONTENT {
                 user: $user, domain: $domain, membership: $was.uuid, level: $was.level,
                 joined_at: $was.joined_at, closed: $closes
             } RETURN NONE;
             UPDATE type::record('user', $user) SET
                 is_active = IF $closes { false } ELSE { is_active },
                 scim_closed = IF $closes { true } ELSE { scim_closed },
                 sessions_made = (sessions_made ?? 0) + 1, updated_at = $now
             RETURN NONE;",
            end_sessions!(),
            end_keys!()
        )
    };
}

const CHANGE: Statement = Statement::write(
    "scim change user",
    concat!(
        begin_change!(),
        write_scim_user!(),
        "LET $user_row = (SELECT * FROM ONLY type::record('user', $user));
         IF $user_row = NONE OR $user_row.email != $email { THROW 'stale' };
         IF $profile != NONE {
             IF $profile.email_key != $email_key {
                 LET $others = (SELECT VALUE 1 FROM user_membership:[$user]..=[$user, ..]
                                WHERE record::id(id)[1] != $organization);
                 LET $level_here = (SELECT VALUE level FROM ONLY
                                    type::record('membership', [$organization, $user]))
                     ?? (SELECT VALUE level FROM ONLY
                         type::record('scim_deactivated', [$organization, $user]));
                 IF $others != [] OR $user_row.is_staff = true OR $level_here = $owner_level {
                     THROW 'kept'
                 };
                 LET $owner = (SELECT VALUE user
                               FROM ONLY type::record('user_email', $profile.email_key));
                 IF $owner != NONE AND $owner != $user { THROW 'email' };
                 DELETE type::record('user_email', $email_key) RETURN NONE;
                 UPSERT type::record('user_email', $profile.email_key)
                     CONTENT { user: $user } RETURN NONE;
                 DELETE account_link:[$user]..=[$user, ..] RETURN NONE;
             };
             UPDATE type::record('user', $user) SET
                 first_name = $profile.first_name, last_name = $profile.last_name,
                 email = $profile.email,
                 pending_email = IF $profile.email != $email { NONE } ELSE { pending_email },
                 updated_at = $now
             RETURN NONE;
         };
         IF $switch = 'off' {
             LET $was = (SELECT * FROM ONLY type::record('membership', [$organization, $user]));
             IF $was = NONE { THROW 'stale' };",
        deactivate_user!(),
        "};
         IF $switch = 'on' {
             LET $was = (SELECT * FROM ONLY type::record('scim_deactivated', [$organization, $user]));
             IF $was = NONE { THROW 'stale' };",
        refuse_full!(),
        "IF $was.closed {
                 UPDATE type::record('user', $user)
                     SET is_active = true, scim_closed = NONE, updated_at = $now
                     RETURN NONE;
             };
             DELETE type::record('scim_deactivated', [$organization, $user]) RETURN NONE;
             LET $membership = {
                 uuid: $was.membership, level: $level, joined_at: $was.joined_at, updated_at: $now
             };",
        write_membership!("$organization"),
        "};",
        end_change!()
    ),
);

/// Fields of a user that the identity provider changes.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct Profile {
    /// First name, as the identity provider sent it.
    pub first_name: String,
    /// Last name, as the identity provider sent it.
    pub last_name: String,
    /// Address.
    pub email: String,
    /// The form of the address that must be unique.
    pub email_key: String,
}

/// Whether a change deactivates or activates the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Neither.
    Keep,
    /// The user is deactivated.
    Off,
    /// The user is activated with this level.
    On(Level),
}

/// A change of a user whom the identity provider may see.
#[derive(Debug)]
pub struct UserChange<'a> {
    /// What the domain had when it was read.
    pub state: &'a DomainState,
    /// The revision after the change.
    pub next: Uuid,
    /// The user who is changed.
    pub user: UserId,
    /// The address of the user, as it was read.
    pub email: &'a str,
    /// The form of that address that is unique.
    pub email_key: &'a str,
    /// What the identity provider calls the user.
    pub scim: &'a ScimUserRow,
    /// The fields that change, if any.
    pub profile: Option<Profile>,
    /// Whether the user is deactivated or activated.
    pub switch: Switch,
    /// The number of members that the organization may have; `None`: no limit.
    pub members_most: Option<u64>,
    /// Mails about the change.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// Changes a user. A deactivated user loses the membership, all sessions, and the keys
/// that reach nothing else.
///
/// # Errors
/// Any failure of the store.
pub async fn change_user(store: &Store, change: UserChange<'_>, now: Timestamp) -> Result<Outcome> {
    let (switch, level) = match change.switch {
        Switch::Keep => (None, None),
        Switch::Off => (Some("off"), None),
        Switch::On(level) => (Some("on"), Some(i64::from(level))),
    };
    let vars = bind! {
        domain: change.state.domain.0,
        organization: change.state.organization.0,
        revision: change.state.revision,
        next: change.next,
        user: change.user.0,
        email: change.email,
        email_key: change.email_key,
        scim: change.scim.clone(),
        profile: change.profile,
        switch: switch.map(str::to_owned),
        level: level,
        owner_level: i64::from(Level::Owner),
        members_most: change.members_most.map(|most| i64::try_from(most).unwrap_or(i64::MAX)),
        now: now.micros(),
        mails: mail::stored(change.mails)?,
    };
    let done = outcome(activity::change(store, CHANGE, vars, change.activities).await)?;
    if change.switch == Switch::Off {
        store.notify_deactivated(change.user, done);
    }
    Ok(done)
}

// The user is deactivated first, and stays so: the record in `scim_deactivated` stays too, so that
// neither an invite nor the domain leads back, and the identity provider can add the user
// again.
const REMOVE: Statement = Statement::write(
    "scim remove user",
    concat!(
        begin_change!(),
        "LET $was = (SELECT * FROM ONLY type::record('membership', [$organization, $user]));
         LET $user_row = (SELECT * FROM ONLY type::record('user', $user));
         IF $was != NONE {",
        deactivate_user!(),
        "};
         LET $old_name = (SELECT VALUE name_key
                          FROM ONLY type::record('scim_user', [$domain, $user]));
         IF $old_name != NONE {
             DELETE type::record('scim_user_name', [$domain, $old_name]) RETURN NONE;
         };
         DELETE type::record('scim_user', [$domain, $user]) RETURN NONE;
         DELETE type::record('scim_level', [$domain, $user]) RETURN NONE;
         FOR $group IN (SELECT VALUE record::id(id)[2]
                        FROM scim_group_of:[$domain, $user]..=[$domain, $user, ..]) {
             DELETE type::record('scim_member', [$domain, $group, $user]) RETURN NONE;
             DELETE type::record('scim_group_of', [$domain, $user, $group]) RETURN NONE;
         };",
        end_change!()
    ),
);

/// Deactivates a user, and removes them from the groups of the domain and from what the
/// identity provider sees.
///
/// # Errors
/// Any failure of the store.
pub async fn remove_user(
    store: &Store,
    state: &DomainState,
    next: Uuid,
    user: UserId,
    mails: &[MailRow],
    activities: &[Entry],
    now: Timestamp,
) -> Result<Outcome> {
    let vars = bind! {
        domain: state.domain.0,
        organization: state.organization.0,
        revision: state.revision,
        next: next,
        user: user.0,
        owner_level: i64::from(Level::Owner),
        now: now.micros(),
        mails: mail::stored(mails)?,
    };
    let done = outcome(activity::change(store, REMOVE, vars, activities).await)?;
    store.notify_deactivated(user, done);
    Ok(done)
}

impl Store {
    /// A receiver of the users whom an identity provider deactivates from now on, through
    /// this store or a clone of it, each after the transaction. A receiver that is too far
    /// behind gets an error.
    pub fn deactivated_users(&self) -> Receiver<UserId> {
        self.deactivated.subscribe()
    }

    fn notify_deactivated(&self, user: UserId, done: Outcome) {
        if done == Outcome::Done {
            // There are no receivers when no stream is open.
            let _ = self.deactivated.send(user);
        }
    }
}
