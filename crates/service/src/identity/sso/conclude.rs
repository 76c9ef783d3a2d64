//! What follows from a verified answer of a provider (SSO-21 to SSO-26).
//!
//! What belongs here: reading what the decision needs, and storing what follows from it.
//! What does not: the decision (`decide`), and the way to the answer (`flow`).
//!
//! A new user, its membership and its session are several transactions. Each checks again
//! what it depends on. If one is not made, the next sign-in finds the user and continues.

use weir_model::activity::Entry;
use weir_model::domains::SsoEnforcement;
use weir_model::invites::USER_FIRST_NAME_MAX;
use weir_model::mail::UserChange;
use weir_model::organizations::Level;
use weir_model::sso::{Connection, OpenedBy};
use weir_model::{MembershipId, Timestamp, UserId, validate};
use weir_store::domains::DomainRow;
use weir_store::ids;
use weir_store::invites::{self as invite_rows, InviteRow};
use weir_store::organizations::{self, OrganizationRow};
use weir_store::proofs::FirstProof;
use weir_store::sso::identities::{self, IdentityRow, Joining, Linked, SignIn};
use weir_store::users::{self as user_rows, UserRow};

use super::decide::{Candidate, Decision, Facts, Joins, Rules, decide};
use super::flow::{Origin, Purpose, SignedOn, Waiting};
use super::links::LINKS_MAX;
use super::{domain_of, is_own_account, is_required};
use crate::activity::Changes;
use crate::ctx::Ctx;
use crate::domains::trust::{self, Rank};
use crate::error::Error;
use crate::identity::sign_up::joined;
use crate::identity::throttle::Counted;
use crate::identity::{Identity, NewSession, emails};
use crate::sso::{Provider, Verified, is_google};
use crate::{Result, current, invites, limits, mail, secrets};

impl Identity {
    /// What follows from what the provider says.
    pub(super) async fn conclude(
        &self,
        waiting: &Waiting,
        provider: Option<&Provider>,
        saml: Option<&DomainRow>,
        verified: Verified,
        from: Origin<'_>,
        counted: Counted,
    ) -> Result<SignedOn> {
        let next = waiting.row.next.clone();
        let answering = AnsweringProvider { connection: waiting.connection, provider, saml };
        if waiting.purpose == Purpose::Link {
            let linked = self.link(waiting, &answering, &verified, from).await?;
            if matches!(linked, SignedOn::Linked(_)) {
                self.attempt_succeeded(counted).await?;
            }
            return Ok(linked);
        }
        let found = self.read_facts(&answering, &verified, Some(waiting.purpose)).await?;
        let decision = decide(&found.facts);
        let entered = match decision {
            Decision::Refuse(reason) => {
                // A SAML provider is a matter of its own domain, whatever address it names.
                let domain = saml.or(found.domain.as_ref());
                tracing::info!(connection = %waiting.connection, ?reason, "a sign-in was refused");
                self.count_refusal();
                let (connection, why) = (waiting.connection, reason.text());
                self.keep_refusal(connection, why);
                match (domain, &waiting.domain) {
                    (Some(domain), _) => {
                        let email = verified.email.as_deref();
                        self.record_refusal(domain, connection, email, why).await?;
                    }
                    // Anyone can enter an address of the domain.
                    (None, Some(domain)) => self.record_unproved(domain, connection, why).await?,
                    (None, None) => {}
                }
                return Ok(waiting.refused(reason.code()));
            }
            Decision::Enter { user, links, joins } => {
                if let Some(code) = self.unconfirmed(waiting, user, &verified).await? {
                    return Ok(waiting.refused(Some(code)));
                }
                self.enter(&found, user, links, joins, from).await?
            }
            Decision::Create(how) => self.create(&found, &verified, how, from).await?,
        };
        let next = match decision {
            // A user who came with an invite accepts it.
            Decision::Create(None) if !next.starts_with(INVITE) => NEW_ORGANIZATION.to_owned(),
            _ => next,
        };
        let Some((user, link)) = entered else { return Ok(waiting.refused(None)) };
        let session = self.open(&user, link, &found, &verified, waiting, from).await?;
        let Some(session) = session else { return Ok(waiting.refused(None)) };
        self.attempt_succeeded(counted).await?;
        Ok(SignedOn::Opened(session, next))
    }

    /// Reads what the decision needs. Without a purpose, the user does not sign in.
    pub(super) async fn read_facts(
        &self,
        answering: &AnsweringProvider<'_>,
        verified: &Verified,
        purpose: Option<Purpose>,
    ) -> Result<Found> {
        let store = &self.core.store;
        // A text that is no address counts as none.
        let email = verified.email.as_deref();
        let email = email.and_then(|email| validate::email("email", email).ok());
        let email_key = email.as_deref().map(emails::normalise);
        let domain = match &email_key {
            Some(email_key) => self.acting_domain(email_key).await?,
            None => None,
        };
        let sso = match &domain {
            Some(domain) => self.core.in_force(domain).await?,
            None => None,
        };
        let hash = hash_of(answering.connection, verified);
        let identity = identities::get(store, &hash).await?;
        let linked = match &identity {
            Some(identity) => user_rows::get(store, identity.user).await?,
            None => None,
        };
        let user_of_address = match &email_key {
            Some(email_key) => user_rows::by_email(store, email_key).await?,
            None => None,
        };
        let mut invite = None;
        let mut rules = None;
        if let (Some(domain), Some(email_key)) = (&domain, &email_key) {
            invite = self.invite_of(domain, email_key).await?;
            let other = |sso| !is_required(domain, sso, answering.connection);
            rules = Some(Rules {
                trusts: answering.is_trusted_by(domain, sso),
                needs_other_method: sso.is_some_and(other),
                has_jit: domain.jit_provisioning_enabled,
                has_invite: invite.is_some(),
                is_full: limits::is_full(&self.core, domain.organization).await?,
            });
        }
        let home = answering.saml.or(domain.as_ref());
        let confirmed = email_key.as_deref().filter(|_| verified.email_verified);
        let proved = identity.as_ref().and_then(|identity| identity.proved_for.as_deref());
        let mut candidates = [None, None];
        for (candidate, user) in candidates.iter_mut().zip([&linked, &user_of_address]) {
            if let Some(user) = user {
                let mut found = self.candidate(user, email_key.as_deref(), home, answering).await?;
                let own_key = emails::normalise(&user.email);
                found.is_own_account = is_own_account(&own_key, confirmed, proved);
                let own = identity.as_ref().filter(|identity| identity.user == user.id);
                let linked_at = own.map(|identity| identity.linked_at);
                found.is_above = self.is_above(user, &found, linked_at, home, answering).await?;
                *candidate = Some(found);
            }
        }
        let [linked_candidate, holder_candidate] = candidates;
        let is_own_address = match (answering.saml, &email_key) {
            (Some(saml), Some(email_key)) => domain_of(email_key).as_deref() == Some(&*saml.domain),
            _ => true,
        };
        // A user who confirms an open session is no new user. The first user of an instance is
        // made by its set-up.
        let offers_organizations = purpose == Some(Purpose::SignIn)
            && self.core.offers_organizations
            && self.is_set_up().await?;
        Ok(Found {
            facts: Facts {
                is_saml: answering.saml.is_some(),
                is_own_address,
                has_address: email_key.is_some(),
                is_verified: verified.email_verified,
                linked: linked_candidate,
                user_of_address: holder_candidate,
                rules,
                offers_organizations,
            },
            linked,
            user_of_address,
            email,
            email_key,
            domain,
            invite,
            hash,
            proved_for: identity.and_then(|identity| identity.proved_for),
        })
    }

    async fn candidate(
        &self,
        user: &UserRow,
        email_key: Option<&str>,
        home: Option<&DomainRow>,
        answering: &AnsweringProvider<'_>,
    ) -> Result<Candidate> {
        let memberships = organizations::of_user(&self.core.store, user.id).await?;
        let home = home.map(|domain| domain.organization);
        let is_home = |one: &organizations::Belonging| Some(one.row.id) == home;
        let own_key = emails::normalise(&user.email);
        let requires_this = self.requires(&own_key, answering.connection).await?;
        Ok(Candidate {
            user: user.id,
            is_active: user.is_active,
            is_member: memberships.iter().any(is_home),
            is_elsewhere: !user.is_unproved() && memberships.iter().any(|one| !is_home(one)),
            needs_other_method: requires_this == Some(false),
            needs_this_method: requires_this == Some(true),
            is_own_account: false,
            has_address: email_key == Some(&*own_key),
            is_above: false,
        })
    }

    /// Whether the settings of the connection do not count for a user (SSO-45). `linked_at`:
    /// when the identity of the answer was linked to the user.
    async fn is_above(
        &self,
        user: &UserRow,
        candidate: &Candidate,
        linked_at: Option<Timestamp>,
        domain: Option<&DomainRow>,
        answering: &AnsweringProvider<'_>,
    ) -> Result<bool> {
        let Some(domain) = domain else { return Ok(false) };
        let level = organizations::level(&self.core.store, domain.organization, user.id).await?;
        let needed = Rank::needed(user, level, candidate.is_elsewhere);
        Ok(match linked_at {
            Some(linked_at) => !trust::counts(domain, needed, linked_at),
            None => !trust::speaks_for(domain, answering.connection, needed),
        })
    }

    /// Whether the domain of an address trusts the answering provider.
    async fn is_trusted_about(
        &self,
        email_key: &str,
        answering: &AnsweringProvider<'_>,
    ) -> Result<bool> {
        let Some(domain) = self.acting_domain(email_key).await? else { return Ok(false) };
        let sso = self.core.in_force(&domain).await?;
        Ok(answering.is_trusted_by(&domain, sso))
    }

    /// Whether this connection is the way that the domain of an address requires; `None`:
    /// it requires none.
    async fn requires(&self, email_key: &str, connection: Connection) -> Result<Option<bool>> {
        let Some(domain) = self.acting_domain(email_key).await? else { return Ok(None) };
        let sso = self.core.in_force(&domain).await?;
        Ok(sso.map(|sso| is_required(&domain, sso, connection)))
    }

    /// The invite of an address to the organization of a domain, if it can be accepted.
    async fn invite_of(&self, domain: &DomainRow, email_key: &str) -> Result<Option<InviteRow>> {
        let core = &self.core;
        let row = invite_rows::of_address(&core.store, domain.organization, email_key).await?;
        let Some(row) = row else { return Ok(None) };
        let inviter = invites::inviter(core, row.organization, row.created_by).await?;
        let is_expired = invites::is_expired(&row, inviter.level, core.clock.now());
        Ok((!is_expired).then_some(row))
    }

    /// The user who enters, after joining; and whether the identity is linked. `None`:
    /// something has changed since the decision.
    async fn enter(
        &self,
        found: &Found,
        user: UserId,
        links: bool,
        joins: Option<Joins>,
        from: Origin<'_>,
    ) -> Result<Option<(UserRow, Link)>> {
        let rows = [&found.linked, &found.user_of_address];
        let row = rows.into_iter().flatten().find(|row| row.id == user).cloned();
        let Some(mut row) = row else { return Ok(None) };
        if let Some(how) = joins {
            let has_joined = self.join_by(found, &row, how, Some(&found.hash), from).await?;
            // A user who is linked signs in without joining, because the organization that
            // refuses the user says nothing about other organizations. Its SAML provider
            // counts for its own members alone.
            if !has_joined && (links || found.facts.is_saml) {
                return Ok(None);
            }
            let after = user_rows::get(&self.core.store, row.id).await?;
            let Some(after) = after else { return Ok(None) };
            row = after;
        }
        Ok(Some((row, if links { Link::ToPresent } else { Link::Existing })))
    }

    /// The user of a verified address, who is created here or, without an organization, with
    /// the session.
    async fn create(
        &self,
        found: &Found,
        verified: &Verified,
        how: Option<Joins>,
        from: Origin<'_>,
    ) -> Result<Option<(UserRow, Link)>> {
        let Some(email) = found.email.clone() else { return Ok(None) };
        let name = verified.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let local = email.split('@').next().unwrap_or_default().to_owned();
        let name = name.map_or(local, str::to_owned);
        let name = name.chars().take(USER_FIRST_NAME_MAX).collect();
        let mut row = self.confirmed_user(email, name).await?;
        // A provider without trust proves no address: a colleague who left may have the account.
        row.must_confirm = !found.facts.rules.is_some_and(|rules| rules.trusts);
        let Some(how) = how else { return Ok(Some((row, Link::WithUser))) };
        let is_done = self.join_by(found, &row, how, None, from).await?;
        Ok(is_done.then_some((row, Link::ToNew)))
    }

    /// A new user whose address a provider confirms.
    pub(super) async fn confirmed_user(
        &self,
        email: String,
        first_name: String,
    ) -> Result<UserRow> {
        let now = self.core.clock.now();
        Ok(UserRow {
            distinct_id: secrets::name()?,
            first_name,
            email,
            is_email_verified: true,
            ..UserRow::new(
                UserId(ids::time_ordered(now)),
                user_rows::next_number(&self.core.store).await?,
                now,
            )
        })
    }

    /// Makes a user a member. `identity` is the hash of the identity that proves the address;
    /// `None`: the user is new. `false`: that is not possible any more.
    async fn join_by(
        &self,
        found: &Found,
        user: &UserRow,
        how: Joins,
        identity: Option<&str>,
        from: Origin<'_>,
    ) -> Result<bool> {
        let Some(domain) = &found.domain else { return Ok(false) };
        let store = &self.core.store;
        let home = organizations::get(store, domain.organization).await?;
        let Some(home) = home else { return Ok(false) };
        let ctx = self.owner(user, from.request_id);
        let is_new = identity.is_none();
        let proof = match is_new {
            true => None,
            false => self.first_proof(user, identity, home.id).await?,
        };
        if let (Joins::Invite, Some(invite)) = (how, &found.invite) {
            return match self.accept(&ctx, invite, &home, user, is_new, proof).await {
                Ok(()) => Ok(true),
                Err(Error::Invalid(_)) => Ok(false),
                Err(other) => Err(other),
            };
        }
        self.join_by_domain(&ctx, domain, &home, user, is_new, proof).await
    }

    async fn join_by_domain(
        &self,
        ctx: &Ctx,
        domain: &DomainRow,
        home: &OrganizationRow,
        user: &UserRow,
        is_new: bool,
        proof: Option<(FirstProof, Vec<Entry>)>,
    ) -> Result<bool> {
        let email_key = emails::normalise(&user.email);
        let membership = MembershipId(ids::time_ordered(ctx.now));
        let mails = self.core.mailing.rows(ctx.now, self.announcements(home, user).await?);
        let (proof, mut activities) = proof.unzip();
        let activities = activities.get_or_insert_default();
        activities.push(joined(ctx, home.id, membership, user, Level::Member));
        let project = current::first_project(&self.core, home.id).await?;
        let joining = Joining {
            domain: domain.id,
            organization: home.id,
            user: user.id,
            new_user: is_new.then_some((user, &*email_key)),
            proof: proof.as_ref(),
            membership,
            project: project.as_ref().map(|project| project.brief.id),
            members_most: limits::members_most(&self.core, home),
            mails: &mails,
            activities,
        };
        let is_done = identities::join(&self.core.store, joining, ctx.now).await?;
        if is_done && !mails.is_empty() {
            self.core.mailing.wake();
        }
        Ok(is_done)
    }

    /// Opens the session, and stores the identity. `None`: something has changed since
    /// the decision.
    async fn open(
        &self,
        user: &UserRow,
        link: Link,
        found: &Found,
        verified: &Verified,
        waiting: &Waiting,
        from: Origin<'_>,
    ) -> Result<Option<NewSession>> {
        let (mut row, session) = self.new_session(user.id, from.peer)?;
        row.opened_by = OpenedBy::Connection(waiting.connection);
        let now = row.signed_in_at;
        // The provider may have let the user in without a question.
        row.signed_in_at = verified.signed_in_at.map_or(now, |at| at.min(now));
        let own_key = emails::normalise(&user.email);
        let confirmed = found.email_key.as_deref().filter(|_| verified.email_verified);
        let email_key = own_key.clone();
        let is_own = is_own_account(&own_key, confirmed, found.proved_for.as_deref());
        row.proves = is_own.then(|| own_key.clone());
        let mut identity = identity_row(waiting.connection, verified, user.id, now);
        let is_trusted = found.facts.rules.is_some_and(|rules| rules.trusts);
        let proves_address = is_trusted && confirmed == Some(&*own_key);
        identity.proved_for = proves_address.then_some(own_key);
        let proof = match &found.domain {
            Some(domain) if proves_address => {
                let home = domain.organization;
                match organizations::level(&self.core.store, home, user.id).await? {
                    Some(_) => self.first_proof(user, Some(&identity.hash), home).await?,
                    None => None,
                }
            }
            _ => None,
        };
        let (proof, entries) = proof.unzip();
        let mut activities = match link != Link::Existing {
            true => {
                let ctx = self.owner(user, from.request_id);
                let name = self.core.connection_name(waiting.connection).await?;
                let changes = Changes::none().field("linked_account", &None, &Some(name));
                crate::users::audit_entry(&self.core, &ctx, user, changes).await?
            }
            false => Vec::new(),
        };
        activities.extend(entries.into_iter().flatten());
        // A new user knows of it.
        let news = (link == Link::ToPresent)
            .then(|| mail::of_change(user, UserChange::AccountLinked, now));
        let mails = self.core.mailing.rows(now, news);
        let sign_in = SignIn {
            identity: &identity,
            email: &user.email,
            new_user: (link == Link::WithUser).then_some((user, &*email_key)),
            may_link: link != Link::Existing,
            proof: proof.as_ref(),
            most: LINKS_MAX,
            session: &row,
            replaced: waiting.row.session.as_deref(),
            now,
            mails: &mails,
            activities: &activities,
        };
        let linked = identities::sign_in(&self.core.store, sign_in).await?;
        if linked == Linked::Yes {
            self.core.mailing.wake();
            tracing::info!(user.id = %user.id, connection = %waiting.connection, "signed in");
        }
        Ok((linked == Linked::Yes).then_some(session))
    }

    /// Links the identity to the user who began this, if their session is still open. Where
    /// the domain of the user requires this provider, the account must have the address of
    /// the user.
    async fn link(
        &self,
        waiting: &Waiting,
        answering: &AnsweringProvider<'_>,
        verified: &Verified,
        from: Origin<'_>,
    ) -> Result<SignedOn> {
        let next = waiting.row.next.clone();
        let refused = |code| Ok(SignedOn::NotLinked(code, next.clone()));
        let (Some(user), Some(session)) = (waiting.row.user, &waiting.row.session) else {
            return refused(None);
        };
        let open = self.core.valid_session(session).await?;
        if open.is_none_or(|open| open.user != user) {
            return refused(None);
        }
        let Some(row) = user_rows::get(&self.core.store, user).await? else {
            return refused(None);
        };
        let own_key = emails::normalise(&row.email);
        let confirmed = verified.email.as_deref().filter(|_| verified.email_verified);
        let is_own = confirmed.map(emails::normalise).as_deref() == Some(&*own_key);
        let required = self.requires(&own_key, waiting.connection).await?;
        if required == Some(true) && !is_own {
            return refused(Some("other_address"));
        }
        let ctx = self.owner(&row, from.request_id);
        let mut identity = identity_row(waiting.connection, verified, user, ctx.now);
        if is_own && self.is_trusted_about(&own_key, answering).await? {
            identity.proved_for = Some(own_key);
        }
        match self.store_link(&ctx, &row, session, &identity).await? {
            Linked::Yes => Ok(SignedOn::Linked(next)),
            Linked::Taken => refused(Some("already_linked")),
            Linked::TooMany => refused(Some("too_many_linked")),
            Linked::Void => refused(None),
        }
    }
}

/// Whether a sign-in links its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// The identity is linked already.
    Existing,
    /// To a user who exists.
    ToPresent,
    /// To a user who was just created.
    ToNew,
    /// To a user who is created in the same transaction.
    WithUser,
}

/// The page where a user without an organization creates one.
const NEW_ORGANIZATION: &str = "/organizations/new";

/// Where the addresses of invites begin.
const INVITE: &str = "/signup/";

/// The provider or SAML domain whose answer is checked.
pub(super) struct AnsweringProvider<'a> {
    pub(super) connection: Connection,
    /// The provider of the instance.
    pub(super) provider: Option<&'a Provider>,
    /// The domain of the SAML provider.
    pub(super) saml: Option<&'a DomainRow>,
}

impl AnsweringProvider<'_> {
    /// Whether the organization of a domain trusts the connection about the addresses of
    /// users who exist. Google says to which organization an account belongs. Of other
    /// providers only the one that the domain requires counts: they know that an address was
    /// verified once, and a colleague who left may still have that account.
    pub(super) fn is_trusted_by(&self, domain: &DomainRow, sso: Option<SsoEnforcement>) -> bool {
        match (self.connection, sso) {
            (Connection::Saml(of), None | Some(SsoEnforcement::Saml)) => of == domain.id,
            (connection, Some(sso)) => is_required(domain, sso, connection),
            (Connection::Provider(_), None) => {
                let is_it = |provider: &Provider| is_google(provider.name, &provider.issuer);
                domain.jit_provisioning_enabled && self.provider.is_some_and(is_it)
            }
        }
    }
}

/// What was read for a decision.
pub(super) struct Found {
    pub(super) facts: Facts,
    linked: Option<UserRow>,
    pub(super) user_of_address: Option<UserRow>,
    pub(super) email: Option<String>,
    pub(super) email_key: Option<String>,
    pub(super) domain: Option<DomainRow>,
    pub(super) invite: Option<InviteRow>,
    /// The hash of the identity.
    hash: String,
    /// The address that the identity proved before.
    proved_for: Option<String>,
}

/// The key of an identity. The parts are separated by a character that none contains.
fn hash_of(connection: Connection, verified: &Verified) -> String {
    secrets::sha256_hex(&format!("{connection}\0{}\0{}", verified.issuer, verified.subject))
}

fn identity_row(
    connection: Connection,
    verified: &Verified,
    user: UserId,
    now: Timestamp,
) -> IdentityRow {
    IdentityRow {
        hash: hash_of(connection, verified),
        user,
        connection: connection.to_string(),
        issuer: verified.issuer.clone(),
        subject: verified.subject.clone(),
        email: verified.email.clone(),
        email_verified: verified.email_verified,
        proved_for: None,
        linked_at: now,
        used_at: now,
    }
}
