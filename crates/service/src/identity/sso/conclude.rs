//! What follows from a verified answer of a provider (SSO-21 to SSO-26).
//!
//! What belongs here: reading what the decision needs, and storing what follows from it.
//! What does not: the decision (`decide`), and the way to the answer (`flow`).
//!
//! A new user, its membership and its session are several transactions. Each checks again
//! what it depends on. If one is not made, the next sign-in finds the user and continues.

use weir_model::activity::{AuditAction, Subject};
use weir_model::domains::SsoEnforcement;
use weir_model::invites::USER_FIRST_NAME_MAX;
use weir_model::mail::UserChange;
use weir_model::organizations::Level;
use weir_model::sso::{Connection, OpenedBy, ProviderName};
use weir_model::{MembershipId, Timestamp, UserId, validate};
use weir_store::domains::DomainRow;
use weir_store::invites::{self as invite_rows, InviteRow};
use weir_store::organizations::{self, OrganizationRow};
use weir_store::sso::identities::{self, IdentityRow, Joining, Linked, SignIn};
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{activity as activity_rows, ids};

use super::decide::{Candidate, Decision, Facts, Joins, Rules, decide};
use super::flow::{Origin, Purpose, SignedOn, Waiting};
use super::links::{LINKS_MAX, shown_connection};
use super::{domain_of, is_required};
use crate::activity::{self, About, Changes};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::identity::sign_up::joined;
use crate::identity::throttle::Counted;
use crate::identity::{Identity, NewSession, emails};
use crate::sso::{Provider, Verified};
use crate::{Result, current, invites, mail, secrets};

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
        let asked = Asked { connection: waiting.connection, provider, saml };
        if waiting.purpose == Purpose::Link {
            let linked = self.link(waiting, &verified, from).await?;
            if matches!(linked, SignedOn::Linked(_)) {
                self.attempt_succeeded(counted).await?;
            }
            return Ok(linked);
        }
        let found = self.gather(&asked, &verified).await?;
        let decision = decide(&found.facts);
        let entered = match decision {
            Decision::Refuse(reason) => {
                // A SAML provider is a matter of its own domain, whatever address it names.
                let domain = saml.or(found.domain.as_ref());
                tracing::info!(connection = %waiting.connection, ?reason, "a sign-in was refused");
                if let Some(domain) = domain {
                    let email = verified.email.as_deref();
                    self.record_refusal(domain, waiting.connection, email, reason.text()).await?;
                }
                return Ok(SignedOn::Refused(reason.code(), next));
            }
            Decision::Enter { user, links, joins } => {
                self.enter(&found, user, links, joins, from).await?
            }
            Decision::Create(how) => self.create(&found, &verified, how, from).await?,
        };
        let Some((user, link)) = entered else { return Ok(SignedOn::Refused(None, next)) };
        let session = self.open(&user, link, &found, &verified, waiting, from).await?;
        let Some(session) = session else { return Ok(SignedOn::Refused(None, next)) };
        self.attempt_succeeded(counted).await?;
        Ok(SignedOn::Opened(session, next))
    }

    /// Reads what the decision needs.
    pub(super) async fn gather(&self, asked: &Asked<'_>, verified: &Verified) -> Result<Found> {
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
        let identity = identities::get(store, &hash_of(asked.connection, verified)).await?;
        let linked = match &identity {
            Some(identity) => user_rows::get(store, identity.user).await?,
            None => None,
        };
        let holder = match &email_key {
            Some(email_key) => user_rows::by_email(store, email_key).await?,
            None => None,
        };
        let mut invite = None;
        let mut rules = None;
        if let (Some(domain), Some(email_key)) = (&domain, &email_key) {
            invite = self.invite_of(domain, email_key).await?;
            let other = |sso| !is_required(domain, sso, asked.connection);
            rules = Some(Rules {
                trusts: asked.is_trusted_by(domain, sso),
                needs_other_way: sso.is_some_and(other),
                lets_in: domain.jit_provisioning_enabled,
                has_invite: invite.is_some(),
            });
        }
        let home = asked.saml.or(domain.as_ref());
        let mut candidates = [None, None];
        for (candidate, user) in candidates.iter_mut().zip([&linked, &holder]) {
            if let Some(user) = user {
                *candidate = Some(self.candidate(user, email_key.as_deref(), home, asked).await?);
            }
        }
        let [linked_candidate, holder_candidate] = candidates;
        let is_own_address = match (asked.saml, &email_key) {
            (Some(saml), Some(email_key)) => domain_of(email_key).as_deref() == Some(&*saml.domain),
            _ => true,
        };
        Ok(Found {
            facts: Facts {
                is_saml: asked.saml.is_some(),
                is_own_address,
                has_address: email_key.is_some(),
                is_verified: verified.email_verified,
                linked: linked_candidate,
                holder: holder_candidate,
                rules,
            },
            linked,
            holder,
            email,
            email_key,
            domain,
            invite,
        })
    }

    async fn candidate(
        &self,
        user: &UserRow,
        email_key: Option<&str>,
        home: Option<&DomainRow>,
        asked: &Asked<'_>,
    ) -> Result<Candidate> {
        let memberships = organizations::of_user(&self.core.store, user.id).await?;
        let home = home.map(|domain| domain.organization);
        let is_home = |one: &organizations::Belonging| Some(one.row.id) == home;
        let own_key = emails::normalise(&user.email);
        let needs_other_way = match self.acting_domain(&own_key).await? {
            Some(domain) => match self.core.in_force(&domain).await? {
                Some(sso) => !is_required(&domain, sso, asked.connection),
                None => false,
            },
            None => false,
        };
        Ok(Candidate {
            user: user.id,
            is_active: user.is_active,
            is_member: memberships.iter().any(is_home),
            is_elsewhere: memberships.iter().any(|one| !is_home(one)),
            needs_other_way,
            has_address: email_key == Some(&*own_key),
        })
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
        let rows = [&found.linked, &found.holder];
        let row = rows.into_iter().flatten().find(|row| row.id == user).cloned();
        let Some(row) = row else { return Ok(None) };
        if let Some(how) = joins
            && !self.join_by(found, &row, how, false, from).await?
        {
            return Ok(None);
        }
        Ok(Some((row, if links { Link::ToPresent } else { Link::Known })))
    }

    /// Creates the user of a verified address.
    async fn create(
        &self,
        found: &Found,
        verified: &Verified,
        how: Joins,
        from: Origin<'_>,
    ) -> Result<Option<(UserRow, Link)>> {
        let Some(email) = found.email.clone() else { return Ok(None) };
        let now = self.core.clock.now();
        let name = verified.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let local = email.split('@').next().unwrap_or_default().to_owned();
        let name = name.map_or(local, str::to_owned);
        let row = UserRow {
            id: UserId(ids::time_ordered(now)),
            number: user_rows::next_number(&self.core.store).await?,
            distinct_id: secrets::name()?,
            first_name: name.chars().take(USER_FIRST_NAME_MAX).collect(),
            last_name: String::new(),
            email,
            pending_email: None,
            is_email_verified: true,
            must_confirm: false,
            password: None,
            second_factor: None,
            is_staff: false,
            is_active: true,
            theme_mode: None,
            current_organization: None,
            current_project: None,
            created_at: now,
            updated_at: now,
            last_login: None,
        };
        let is_done = self.join_by(found, &row, how, true, from).await?;
        Ok(is_done.then_some((row, Link::ToNew)))
    }

    /// Makes a user, who may be new, a member. `false`: that is not possible any more.
    async fn join_by(
        &self,
        found: &Found,
        user: &UserRow,
        how: Joins,
        is_new: bool,
        from: Origin<'_>,
    ) -> Result<bool> {
        let Some(domain) = &found.domain else { return Ok(false) };
        let store = &self.core.store;
        let home = organizations::get(store, domain.organization).await?;
        let Some(home) = home else { return Ok(false) };
        let ctx = self.owner(user, from.request_id);
        if let (Joins::Invite, Some(invite)) = (how, &found.invite) {
            return match self.accept(&ctx, invite, &home, user, is_new).await {
                Ok(()) => Ok(true),
                Err(Error::Invalid(_)) => Ok(false),
                Err(other) => Err(other),
            };
        }
        self.join_by_domain(&ctx, domain, &home, user, is_new).await
    }

    async fn join_by_domain(
        &self,
        ctx: &Ctx,
        domain: &DomainRow,
        home: &OrganizationRow,
        user: &UserRow,
        is_new: bool,
    ) -> Result<bool> {
        let email_key = emails::normalise(&user.email);
        let membership = MembershipId(ids::time_ordered(ctx.now));
        let mails = self.core.mailing.rows(ctx.now, self.announcements(home, user).await?);
        let activities = [joined(ctx, home.id, membership, user, Level::Member)];
        let project = current::first_project(&self.core, home.id).await?;
        let joining = Joining {
            domain: domain.id,
            organization: home.id,
            user: user.id,
            account: is_new.then_some((user, &*email_key)),
            membership,
            project: project.as_ref().map(|project| project.brief.id),
            mails: &mails,
            activities: &activities,
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
        let identity = identity_row(waiting.connection, verified, user.id, row.signed_in_at);
        let activities = match link != Link::Known {
            true => {
                let ctx = self.owner(user, from.request_id);
                let name = shown_connection(waiting.connection);
                let changes = Changes::none().field("linked_account", &None, &Some(name));
                crate::users::audit_entry(&self.core, &ctx, user, changes).await?
            }
            false => Vec::new(),
        };
        // A new user knows of it.
        let news = (link == Link::ToPresent)
            .then(|| mail::of_change(user, UserChange::AccountLinked, row.signed_in_at));
        let mails = self.core.mailing.rows(row.signed_in_at, news);
        let is_own = found.email_key.as_deref() == Some(&*emails::normalise(&user.email));
        let sign_in = SignIn {
            identity: &identity,
            email: &user.email,
            may_link: link != Link::Known,
            proves_address: is_own && verified.email_verified,
            most: LINKS_MAX,
            session: &row,
            replaced: waiting.row.session.as_deref(),
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

    /// Links the identity to the user who began this, if their session is still open.
    async fn link(
        &self,
        waiting: &Waiting,
        verified: &Verified,
        from: Origin<'_>,
    ) -> Result<SignedOn> {
        let next = waiting.row.next.clone();
        let refused = |code| Ok(SignedOn::NotLinked(code, next.clone()));
        let (Some(user), Some(session)) = (waiting.row.user, &waiting.row.session) else {
            return refused(None);
        };
        let open = self.counting_session(session).await?;
        if open.is_none_or(|open| open.user != user) {
            return refused(None);
        }
        let Some(row) = user_rows::get(&self.core.store, user).await? else {
            return refused(None);
        };
        let ctx = self.owner(&row, from.request_id);
        let identity = identity_row(waiting.connection, verified, user, ctx.now);
        match self.store_link(&ctx, &row, &identity).await? {
            Linked::Yes => Ok(SignedOn::Linked(next)),
            Linked::Taken => refused(Some("already_linked")),
            Linked::TooMany => refused(Some("too_many_linked")),
            Linked::Void => refused(None),
        }
    }

    /// Records a refused sign-in for the administrators of the domain's organization.
    pub(super) async fn record_refusal(
        &self,
        domain: &DomainRow,
        connection: Connection,
        email: Option<&str>,
        why: &str,
    ) -> Result<()> {
        let about = About {
            subject: Subject::Domain,
            id: domain.id.to_string(),
            name: Some(&domain.domain),
            project: None,
        };
        let changes = Changes::none()
            .field("connection", &None, &Some(shown_connection(connection)))
            .field("email", &None, &email)
            .field("reason", &None, &Some(why));
        let now = self.core.clock.now();
        let action = AuditAction::SignInRefused;
        let entry = activity::own_entry(now, domain.organization, about, action, changes);
        Ok(activity_rows::write(&self.core.store, &[entry]).await?)
    }
}

/// Whether a sign-in links its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// The identity is linked already.
    Known,
    /// To a user who exists.
    ToPresent,
    /// To a user who was just created.
    ToNew,
}

/// Who was asked.
pub(super) struct Asked<'a> {
    pub(super) connection: Connection,
    /// The provider of the instance.
    pub(super) provider: Option<&'a Provider>,
    /// The domain of the SAML provider.
    pub(super) saml: Option<&'a DomainRow>,
}

impl Asked<'_> {
    /// Whether the organization of a domain trusts the connection about its addresses.
    /// Google says to which organization an account belongs. Of other providers only the
    /// one that the domain requires counts: they know that an address was verified once,
    /// and a colleague who left may still have that account.
    fn is_trusted_by(&self, domain: &DomainRow, sso: Option<SsoEnforcement>) -> bool {
        match (self.connection, sso) {
            (Connection::Saml(of), None | Some(SsoEnforcement::Saml)) => of == domain.id,
            (connection, Some(sso)) => is_required(domain, sso, connection),
            (Connection::Provider(_), None) => {
                let is_google = |provider: &Provider| {
                    provider.name == ProviderName::GOOGLE && provider.issuer.is_empty()
                };
                domain.jit_provisioning_enabled && self.provider.is_some_and(is_google)
            }
        }
    }
}

/// What was read for a decision.
pub(super) struct Found {
    pub(super) facts: Facts,
    linked: Option<UserRow>,
    holder: Option<UserRow>,
    email: Option<String>,
    email_key: Option<String>,
    domain: Option<DomainRow>,
    invite: Option<InviteRow>,
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
        linked_at: now,
        used_at: now,
    }
}
