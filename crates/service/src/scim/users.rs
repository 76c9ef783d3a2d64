//! Users of an identity provider: members of the organization with an address of the
//! domain, and those whom it deactivated (SSO-52 to SSO-55).
//!
//! What does not belong here: which names and addresses a user may have (`names`), and audit
//! entries (`entries`).

mod entries;
mod names;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::mail::UserChange as Mailed;
use weir_model::organizations::Level;
use weir_model::{MembershipId, ScimGroupId, UserId};
use weir_scim::{
    Address, Fault, FaultKind, Membership, Meta, Name, USER, User, UserInput, apply,
    is_same_address,
};
use weir_store::ids;
use weir_store::mail::MailRow;
use weir_store::members::{self, MemberRow};
use weir_store::organizations;
use weir_store::scim::{
    self as rows, DeactivatedRow, Join, Outcome, ScimUserRow, Switch, UserChange,
};
use weir_store::users::{self as user_rows, UserRow};

use self::entries::{about, changes, entry, renamed};
use self::names::{Names, name_key, names, profile};
use super::{
    Listed, Listing, Precondition, Scim, ScimCtx, ScimError, ScimResult, TRIES, busy, full, json,
    parse_id, taken, version,
};
use crate::activity::{About, Changes, scim_entry};
use crate::domains::notices;
use crate::error::{Error, NOT_FOUND};
use crate::identity::emails;
use crate::identity::sso::{AddedUser, Provisioning, domain_of};
use crate::{current, limits, mail, members as member_rules};

/// The refusal of a name or an address that another user has.
const TAKEN: &str = "There is a user with this userName or this address.";

/// A user whom the identity provider may see.
pub(super) struct VisibleUser {
    pub(super) user: UserRow,
    member: Option<MemberRow>,
    scim: Option<ScimUserRow>,
    shut: Option<DeactivatedRow>,
}

impl VisibleUser {
    fn is_active(&self) -> bool {
        self.member.is_some() && self.user.is_active
    }

    fn membership(&self) -> Option<MembershipId> {
        let own = self.member.as_ref().map(|member| member.id);
        own.or(self.shut.as_ref().map(|shut| shut.membership))
    }
}

/// The groups of each user: id and name.
type Groups = BTreeMap<UserId, Vec<(ScimGroupId, String)>>;

impl Scim {
    /// The users of the domain, in the order of their ids.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn list_users(&self, ctx: &ScimCtx, listing: &Listing) -> ScimResult<Listed> {
        let filter = listing.filter.as_ref();
        let must_equal = |name: &str| filter.and_then(|filter| filter.must_equal(name));
        let mut all = if let Some(user_name) = must_equal("userName") {
            self.with_name(ctx, user_name).await?
        } else if let Some(id) = must_equal("id") {
            self.with_id(ctx, id).await?
        } else if let Some(email) = must_equal("emails") {
            self.with_email(ctx, email).await?
        } else {
            self.all_known(ctx).await?
        };
        all.sort_by_key(|known| known.user.id);
        if let Some(filter) = filter {
            let groups = match filter.reads("groups") {
                true => self.groups_of(ctx, &all).await?,
                false => Groups::new(),
            };
            let mut matching = Vec::new();
            for known in all {
                if filter.matches(&json(&shown(ctx, &known, &groups))?) {
                    matching.push(known);
                }
            }
            all = matching;
        }
        let total = all.len();
        let page = listing.of(all);
        let groups = match listing.selection.has("groups") || listing.selection.has("meta") {
            true => self.groups_of(ctx, &page).await?,
            false => Groups::new(),
        };
        let mut resources = Vec::with_capacity(page.len());
        for known in &page {
            let mut resource = json(&shown(ctx, known, &groups))?;
            listing.selection.apply(&mut resource);
            resources.push(resource);
        }
        Ok(Listed { total, resources })
    }

    /// One user.
    ///
    /// # Errors
    /// [`ScimError::NotFound`].
    pub async fn get_user(&self, ctx: &ScimCtx, id: &str) -> ScimResult<User> {
        let known = self.find_user(ctx, id).await?;
        self.shown_user(ctx, &known).await
    }

    /// Adds a user: a new one, or one who belongs to no organization.
    ///
    /// # Errors
    /// [`ScimError::Fault`]: `uniqueness` for an address of a user who cannot be added.
    pub async fn create_user(&self, ctx: &ScimCtx, body: &Value) -> ScimResult<User> {
        let input = UserInput::read(body)?;
        let Names { email, user_name } = names(ctx, &input, None)?;
        for _ in 0..TRIES {
            let state = self.state(ctx).await?;
            let (added, invite) = match self.identity.provisioning(&ctx.domain, &email).await? {
                Provisioning::Allowed(added, invite) => (added, invite),
                Provisioning::Member => return Err(taken(TAKEN)),
                Provisioning::Refused(why) => return Err(taken(why)),
            };
            let level = invite.as_ref().map_or(Level::Member, |invite| invite.level);
            // Only an owner makes owners, and the invite is not accepted by the invited person.
            let level = level.min(Level::Administrator);
            let accepted = invite.as_ref().map(|invite| {
                let about = About {
                    subject: Subject::Invite,
                    id: invite.target_email.clone(),
                    name: Some(&invite.target_email),
                    project: None,
                };
                scim_entry(ctx, about, AuditAction::Accepted, Changes::none())
            });
            let invite = invite.map(|invite| invite.id);
            let (mut user, new_key, activates_user) = match added {
                AddedUser::New(user, key) => (user, Some(key), false),
                AddedUser::Existing(user, activates_user) => (user, None, activates_user),
            };
            let present = new_key.is_none().then(|| (*user).clone());
            let profile = profile(&input, present.as_ref(), &email)?;
            user.first_name = profile.first_name;
            user.last_name = profile.last_name;
            let shuts = input.active == Some(false);
            let proof = match new_key {
                Some(_) => None,
                None => self.identity.first_proof(&user, None, ctx.domain.organization).await?,
            };
            let (proof, proved) = proof.unzip();
            let new_user = new_key.as_deref().map(|key| (&*user, key));
            let scim = ScimUserRow {
                user: user.id,
                name_key: user_name.as_deref().map(name_key),
                user_name: user_name.clone(),
                external_id: input.external_id.clone(),
                display_name: input.display_name.clone(),
                created_at: ctx.now,
                updated_at: ctx.now,
            };
            let home = organizations::get(&self.core.store, ctx.domain.organization).await?;
            let home = home.ok_or(Error::NotFound(NOT_FOUND))?;
            let membership = MembershipId(ids::time_ordered(ctx.now));
            let mails = match shuts {
                true => Vec::new(),
                false => self.identity.announcements(&home, &user).await?,
            };
            let mails = self.core.mailing.rows(ctx.now, mails);
            let project = current::first_project(&self.core, home.id).await?;
            let changes = Changes::none().field("level", &None, &Some(level));
            let about = about(membership, &user.email);
            let joined = scim_entry(ctx, about, AuditAction::Created, changes);
            let proved = proved.into_iter().flatten();
            let mut activities: Vec<Entry> =
                accepted.into_iter().chain([joined]).chain(proved).collect();
            activities
                .extend(present.and_then(|present| renamed(ctx, membership, &present, &user)));
            if shuts {
                let about = self::about(membership, &user.email);
                let changes = Changes::none().field("active", &true, &false);
                activities.push(scim_entry(ctx, about, AuditAction::Disabled, changes));
            }
            let new = Join {
                state: &state,
                next: ids::time_ordered(ctx.now),
                user: user.id,
                email: &user.email,
                new_user,
                proof: proof.as_ref(),
                activates_user,
                shuts,
                first_name: &user.first_name,
                last_name: &user.last_name,
                scim: &scim,
                membership,
                level,
                project: project.map(|project| project.brief.id),
                invite,
                members_most: limits::members_most(&self.core, &home),
                mails: &mails,
                activities: &activities,
            };
            match rows::join(&self.core.store, new, ctx.now).await? {
                Outcome::Done => {
                    if !mails.is_empty() {
                        self.core.mailing.wake();
                    }
                    return self.get_user(ctx, &user.id.to_string()).await;
                }
                Outcome::NameTaken => return Err(taken(TAKEN)),
                Outcome::OverLimit => return Err(full()),
                Outcome::Stale | Outcome::EmailTaken | Outcome::EmailKept | Outcome::LastOwner => {}
            }
        }
        Err(busy())
    }

    /// Replaces a user.
    ///
    /// # Errors
    /// [`ScimError::NotFound`], [`ScimError::Stale`], [`ScimError::LastOwner`],
    /// [`ScimError::Fault`].
    pub async fn replace_user(
        &self,
        ctx: &ScimCtx,
        id: &str,
        body: &Value,
        precondition: &Precondition,
    ) -> ScimResult<User> {
        let input = UserInput::read(body)?;
        self.change_user(ctx, id, precondition, &|_| Ok(input.clone())).await
    }

    /// Changes a user by operations.
    ///
    /// # Errors
    /// As [`Self::replace_user`].
    pub async fn patch_user(
        &self,
        ctx: &ScimCtx,
        id: &str,
        body: &Value,
        precondition: &Precondition,
    ) -> ScimResult<User> {
        let patched = |before: &User| -> ScimResult<UserInput> {
            let mut resource = json(before)?;
            apply(&USER, &mut resource, body)?;
            let mut input = UserInput::read(&resource)?;
            let address = before.emails.first().map_or("", |email| email.value.as_str());
            // Where userName is the address, the one that changes takes the other with it.
            match &input.email {
                Some(email) if is_same_address(email, address) => input.email = None,
                Some(email) if is_same_address(&input.user_name, address) => {
                    input.user_name = email.clone();
                }
                _ => {}
            }
            Ok(input)
        };
        self.change_user(ctx, id, precondition, &patched).await
    }

    /// Removes a user from the organization.
    ///
    /// # Errors
    /// [`ScimError::NotFound`], [`ScimError::Stale`], [`ScimError::LastOwner`].
    pub async fn delete_user(
        &self,
        ctx: &ScimCtx,
        id: &str,
        precondition: &Precondition,
    ) -> ScimResult<()> {
        for _ in 0..TRIES {
            let state = self.state(ctx).await?;
            let known = self.find_user(ctx, id).await?;
            precondition.check(self.shown_user(ctx, &known).await?.meta.version.as_deref())?;
            let entry = entry(ctx, &known, AuditAction::Deleted, Changes::none());
            let (store, user) = (&self.core.store, known.user.id);
            let next = ids::time_ordered(ctx.now);
            let mails = match known.member {
                Some(_) => self.deactivation_mails(ctx, &known.user).await?,
                None => Vec::new(),
            };
            let removed =
                rows::remove_user(store, &state, next, user, &mails, &[entry], ctx.now).await?;
            match removed {
                Outcome::Done => {
                    self.core.mailing.wake();
                    return Ok(());
                }
                Outcome::LastOwner => return Err(ScimError::LastOwner),
                Outcome::Stale
                | Outcome::EmailTaken
                | Outcome::EmailKept
                | Outcome::NameTaken
                | Outcome::OverLimit => {}
            }
        }
        Err(busy())
    }

    /// Changes a user to what `wanted` says. It is asked again after a concurrent change.
    async fn change_user(
        &self,
        ctx: &ScimCtx,
        id: &str,
        precondition: &Precondition,
        wanted: &(dyn Fn(&User) -> ScimResult<UserInput> + Sync),
    ) -> ScimResult<User> {
        for _ in 0..TRIES {
            let state = self.state(ctx).await?;
            let known = self.find_user(ctx, id).await?;
            let before = self.shown_user(ctx, &known).await?;
            precondition.check(before.meta.version.as_deref())?;
            let input = wanted(&before)?;
            let Names { email, user_name } = names(ctx, &input, Some(&known.user))?;
            // Another spelling of the same address is no change.
            let is_same = emails::normalise(&email) == emails::normalise(&known.user.email);
            let email = if is_same { known.user.email.clone() } else { email };
            let profile = profile(&input, Some(&known.user), &email)?;
            let switch = self.switch(ctx, &known, input.active).await?;
            let scim = ScimUserRow {
                user: known.user.id,
                name_key: user_name.as_deref().map(name_key),
                user_name,
                created_at: known.scim.as_ref().map_or(ctx.now, |scim| scim.created_at),
                updated_at: ctx.now,
                external_id: input.external_id,
                display_name: input.display_name,
            };
            let (activities, has_profile) = changes(ctx, &known, &scim, &profile, switch);
            if activities.is_empty() {
                return Ok(before);
            }
            let user = &known.user;
            let news = (!is_same).then(|| mail::of_change(user, Mailed::Address, ctx.now));
            let mut mails = self.core.mailing.rows(ctx.now, news);
            if switch == Switch::Off {
                mails.extend(self.deactivation_mails(ctx, user).await?);
            }
            let home = organizations::get(&self.core.store, ctx.domain.organization).await?;
            let members_most = home.and_then(|home| limits::members_most(&self.core, &home));
            let change = UserChange {
                state: &state,
                next: ids::time_ordered(ctx.now),
                user: user.id,
                email: &user.email,
                email_key: &emails::normalise(&user.email),
                scim: &scim,
                profile: has_profile.then_some(profile),
                switch,
                members_most,
                mails: &mails,
                activities: &activities,
            };
            match rows::change_user(&self.core.store, change, ctx.now).await? {
                Outcome::Done => {
                    if !mails.is_empty() {
                        self.core.mailing.wake();
                    }
                    if matches!(switch, Switch::On(_)) {
                        let note = |about: About<'_>, action, changes| {
                            scim_entry(ctx, about, action, changes)
                        };
                        let users = BTreeSet::from([user.id]);
                        self.settle(&ctx.domain, users, &note).await?;
                    }
                    return self.get_user(ctx, id).await;
                }
                Outcome::LastOwner => return Err(ScimError::LastOwner),
                Outcome::EmailTaken | Outcome::NameTaken => return Err(taken(TAKEN)),
                Outcome::EmailKept => {
                    let detail = "The user is an owner, belongs to the staff of the instance, or \
                                  is a member of other organizations, so only the user changes \
                                  the address.";
                    return Err(Fault::new(FaultKind::Mutability, detail).into());
                }
                Outcome::OverLimit => return Err(full()),
                Outcome::Stale => {}
            }
        }
        Err(busy())
    }

    async fn switch(
        &self,
        ctx: &ScimCtx,
        known: &VisibleUser,
        active: Option<bool>,
    ) -> ScimResult<Switch> {
        Ok(match (active, known.member.is_some(), &known.shut) {
            (Some(false), true, _) => Switch::Off,
            (Some(true), false, Some(shut)) => {
                let before = Level::try_from(shut.level).map_err(Error::Internal)?;
                let level = self.level_of_activated(&ctx.domain, known.user.id, before).await?;
                Switch::On(level)
            }
            (Some(true), true, _) if !known.user.is_active => {
                let detail = "The operator of the instance deactivated the user.";
                return Err(Fault::new(FaultKind::Mutability, detail).into());
            }
            _ => Switch::Keep,
        })
    }

    /// The mails to owners about a user who is deactivated.
    async fn deactivation_mails(&self, ctx: &ScimCtx, user: &UserRow) -> ScimResult<Vec<MailRow>> {
        let notice = notices::to_owners(&self.core, ctx.domain.organization, None).await?;
        let mails = notice.of_deactivation(&ctx.domain, &user.email, ctx.now);
        Ok(self.core.mailing.rows(ctx.now, mails))
    }

    /// The user with this id, whom the identity provider may see.
    pub(super) async fn find_user(&self, ctx: &ScimCtx, id: &str) -> ScimResult<VisibleUser> {
        let found = self.with_id(ctx, id).await?;
        found.into_iter().next().ok_or(ScimError::NotFound)
    }

    async fn with_id(&self, ctx: &ScimCtx, id: &str) -> ScimResult<Vec<VisibleUser>> {
        let Some(id) = parse_id(id).map(UserId) else { return Ok(Vec::new()) };
        let found = user_rows::get(&self.core.store, id).await?;
        self.known(ctx, found).await
    }

    async fn with_email(&self, ctx: &ScimCtx, email: &str) -> ScimResult<Vec<VisibleUser>> {
        let found = user_rows::by_email(&self.core.store, &emails::normalise(email)).await?;
        self.known(ctx, found).await
    }

    /// The users who may be shown with this `userName`: the one whom the identity provider
    /// calls so, and the one with this address.
    async fn with_name(&self, ctx: &ScimCtx, user_name: &str) -> ScimResult<Vec<VisibleUser>> {
        let store = &self.core.store;
        // The store has no empty keys.
        if user_name.is_empty() {
            return Ok(Vec::new());
        }
        let named = rows::user_named(store, ctx.domain.id, &name_key(user_name)).await?;
        let mut found = self.known(ctx, named).await?;
        let with_address = user_rows::by_email(store, &emails::normalise(user_name)).await?;
        if with_address.as_ref().map(|user| user.id) != found.first().map(|known| known.user.id) {
            found.extend(self.known(ctx, with_address).await?);
        }
        Ok(found)
    }

    /// The user, if the identity provider may see it.
    async fn known(&self, ctx: &ScimCtx, user: Option<UserRow>) -> ScimResult<Vec<VisibleUser>> {
        let Some(user) = user else { return Ok(Vec::new()) };
        let (store, organization) = (&self.core.store, ctx.domain.organization);
        let member = members::rows(store, organization, &[user.id]).await?.into_iter().next();
        let shut = match member {
            Some(_) => None,
            None => rows::shut(store, organization, user.id).await?,
        };
        let scim = rows::user(store, ctx.domain.id, user.id).await?;
        let known = VisibleUser { user, member, scim, shut };
        Ok(if is_visible(ctx, &known) { vec![known] } else { Vec::new() })
    }

    /// All users whom the identity provider may see.
    async fn all_known(&self, ctx: &ScimCtx) -> ScimResult<Vec<VisibleUser>> {
        let (store, organization) = (&self.core.store, ctx.domain.organization);
        let sent = rows::users(store, ctx.domain.id).await?;
        let mut sent: BTreeMap<UserId, ScimUserRow> =
            sent.into_iter().map(|row| (row.user, row)).collect();
        let listed = members::ordered(store, organization).await?;
        let mut all = Vec::new();
        for member in members::rows(store, organization, &listed).await? {
            let user = member.user.clone();
            let scim = sent.remove(&user.id);
            all.push(VisibleUser { user, member: Some(member), scim, shut: None });
        }
        for shut in rows::all_deactivated(store, organization).await? {
            let Some(scim) = sent.remove(&shut.user) else { continue };
            let Some(user) = user_rows::get(store, shut.user).await? else { continue };
            all.push(VisibleUser { user, member: None, scim: Some(scim), shut: Some(shut) });
        }
        all.retain(|known| is_visible(ctx, known));
        Ok(all)
    }

    async fn groups_of(&self, ctx: &ScimCtx, users: &[VisibleUser]) -> ScimResult<Groups> {
        let store = &self.core.store;
        let names = rows::groups(store, ctx.domain.id).await?;
        let names: BTreeMap<ScimGroupId, String> =
            names.into_iter().map(|group| (group.id, group.display_name)).collect();
        if names.is_empty() {
            return Ok(Groups::new());
        }
        let users: Vec<UserId> = users.iter().map(|known| known.user.id).collect();
        let found = rows::groups_of(store, ctx.domain.id, &users).await?;
        let named = |groups: Vec<ScimGroupId>| {
            let name = |id: ScimGroupId| names.get(&id).map(|name| (id, name.clone()));
            groups.into_iter().filter_map(name).collect()
        };
        Ok(users.into_iter().zip(found.into_iter().map(named)).collect())
    }

    async fn shown_user(&self, ctx: &ScimCtx, known: &VisibleUser) -> ScimResult<User> {
        let groups = self.groups_of(ctx, std::slice::from_ref(known)).await?;
        Ok(shown(ctx, known, &groups))
    }
}

/// Whether the address of a user is one of the domain.
fn has_own_address(ctx: &ScimCtx, user: &UserRow) -> bool {
    domain_of(&user.email).as_deref() == Some(&*ctx.domain.domain)
}

/// Whether an identity provider may see a user: members with an address of its domain, and
/// users whom it added, changed or deactivated, whatever their address is now. Otherwise a
/// member could escape by changing the address.
fn is_visible(ctx: &ScimCtx, known: &VisibleUser) -> bool {
    let is_own = has_own_address(ctx, &known.user) || known.scim.is_some();
    let is_here = match (&known.member, &known.shut) {
        (Some(_), _) => !known.user.is_active || member_rules::is_listed(&known.user),
        (None, Some(shut)) => shut.domain == ctx.domain.id && known.scim.is_some(),
        (None, None) => false,
    };
    is_own && is_here
}

/// A user as it is shown.
fn shown(ctx: &ScimCtx, known: &VisibleUser, groups: &Groups) -> User {
    let VisibleUser { user, member, scim, .. } = known;
    let formatted = format!("{} {}", user.first_name, user.last_name).trim().to_owned();
    let joined = member.as_ref().map(|member| member.joined_at);
    let created = scim.as_ref().map(|scim| scim.created_at).or(joined).unwrap_or(user.created_at);
    let changed = scim.as_ref().map_or(user.updated_at, |scim| scim.updated_at);
    let changed = changed.max(user.updated_at).max(created);
    let user_name = scim.as_ref().and_then(|scim| scim.user_name.clone());
    let id = user.id.to_string();
    let group = |(id, name): &(ScimGroupId, String)| Membership {
        value: id.to_string(),
        location: format!("{}/Groups/{id}", ctx.base),
        display: name.clone(),
        kind: "direct",
    };
    let mut shown = User {
        schemas: User::SCHEMAS,
        external_id: scim.as_ref().and_then(|scim| scim.external_id.clone()),
        user_name: user_name.unwrap_or_else(|| user.email.clone()),
        display_name: scim.as_ref().and_then(|scim| scim.display_name.clone()),
        name: Name {
            formatted,
            given_name: user.first_name.clone(),
            family_name: Some(user.last_name.clone()).filter(|name| !name.is_empty()),
        },
        active: known.is_active(),
        emails: vec![Address { value: user.email.clone(), kind: "work", primary: true }],
        groups: groups.get(&user.id).into_iter().flatten().map(group).collect(),
        meta: Meta {
            resource_type: "User",
            created: created.to_string(),
            last_modified: changed.to_string(),
            location: format!("{}/Users/{id}", ctx.base),
            version: None,
        },
        id,
    };
    shown.meta.version = version(&shown);
    shown
}
