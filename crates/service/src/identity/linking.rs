//! Which user an identity of a provider signs in (SSO-10, SSO-11).
//!
//! What belongs here: the decision, from facts that were read before. What does not:
//! checking the identity (`weir-oidc`), reading the facts, and carrying the decision out
//! in one transaction that compares them again.
//!
//! An address alone opens no user. It links an identity only if the organization that
//! verified the domain of the address trusts the connection, and the user is its member.

use weir_model::domains::SsoEnforcement;
use weir_model::organizations::Level;
use weir_model::{InviteId, OrganizationId, UserId};

/// Where an identity comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// A provider of the instance, by its id. Its users are not of one organization.
    Instance(String),
    /// The connection of a domain that an organization has verified.
    Domain {
        /// The organization.
        organization: OrganizationId,
        /// The domain, in lower case.
        domain: String,
    },
}

/// The rules of a verified domain, while they act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRules {
    /// The organization that verified the domain.
    pub organization: OrganizationId,
    /// The domain, in lower case.
    pub domain: String,
    /// The only way to sign in with an address of the domain.
    pub enforcement: SsoEnforcement,
    /// New users join the organization.
    pub provisions: bool,
}

impl DomainRules {
    /// Whether the organization lets this connection confirm addresses of the domain: its
    /// own connection, or the provider of the instance that it enforces.
    fn trust(&self, connection: &Connection) -> bool {
        match connection {
            Connection::Instance(provider) => {
                self.enforcement != SsoEnforcement::Off && self.enforcement.text() == provider
            }
            Connection::Domain { organization, domain } => {
                self.organization == *organization && self.domain == *domain
            }
        }
    }

    /// Whether users of the domain may sign in through this connection.
    fn permit(&self, connection: &Connection) -> bool {
        match self.enforcement {
            SsoEnforcement::Off => true,
            SsoEnforcement::Saml => {
                matches!(connection, Connection::Domain { .. }) && self.trust(connection)
            }
            _ => matches!(connection, Connection::Instance(_)) && self.trust(connection),
        }
    }
}

/// The address of an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The part after the `@`, in lower case.
    pub domain: String,
    /// Whether the provider verified it.
    pub is_verified: bool,
    /// The rules of the domain.
    pub rules: Option<DomainRules>,
}

/// A user of Weir.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The id.
    pub id: UserId,
    /// Whether the user may sign in at all.
    pub is_active: bool,
    /// Whether the user has proved that the stored address is theirs.
    pub has_confirmed_address: bool,
    /// The organizations of the user.
    pub organizations: Vec<OrganizationId>,
    /// The rules of the domain of the stored address.
    pub rules: Option<DomainRules>,
}

impl Person {
    fn is_member(&self, organization: OrganizationId) -> bool {
        self.organizations.contains(&organization)
    }
}

/// An invite that has not expired, for the address of the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invited {
    /// The id.
    pub id: InviteId,
    /// The organization.
    pub organization: OrganizationId,
    /// The level that it gives.
    pub level: Level,
}

/// What is known when an identity arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Where it comes from.
    pub connection: Connection,
    /// Its address.
    pub address: Option<Address>,
    /// The user that it is linked to.
    pub linked: Option<Person>,
    /// The user with its address.
    pub by_address: Option<Person>,
    /// The user who began the login on the page for linking, in a session with a recent
    /// sign-in.
    pub linking: Option<Person>,
    /// The invite for its address.
    pub invite: Option<Invited>,
    /// Whether a person without an invite may create a user and an organization.
    pub is_sign_up_open: bool,
}

/// How a user becomes a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Because the domain provisions its users, at the lowest level.
    Provisioned(OrganizationId),
    /// By the invite, which is used up.
    Invite(Invited),
}

impl Join {
    /// The level of the new membership.
    pub fn level(self) -> Level {
        match self {
            Self::Provisioned(_) => Level::Member,
            Self::Invite(invite) => invite.level,
        }
    }

    fn organization(self) -> OrganizationId {
        match self {
            Self::Provisioned(organization) => organization,
            Self::Invite(invite) => invite.organization,
        }
    }
}

/// What happens with an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The linked user signs in, and joins if `join` says so.
    SignIn {
        /// The user.
        user: UserId,
        /// A new membership.
        join: Option<Join>,
    },
    /// The identity is linked to the user: to sign in now and later, or because the user
    /// asked for it.
    Link {
        /// The user.
        user: UserId,
        /// A new membership.
        join: Option<Join>,
    },
    /// A user has this address. The user signs in as before, and links the identity then.
    ConfirmByOtherWay,
    /// A user is created with the verified address and without a password, and linked.
    Create {
        /// The first membership. Without one, the user creates an organization.
        join: Option<Join>,
    },
    /// No user signs in.
    Refuse(Reason),
}

/// Why no user signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The provider sent no verified address, and the identity is linked to no user.
    NoVerifiedAddress,
    /// The address is not of the domain that the connection belongs to.
    AddressOfAnotherDomain,
    /// The domain of the user or of the address enforces another way.
    AnotherWayEnforced,
    /// The user may not sign in.
    Inactive,
    /// The connection belongs to an organization that the user is not a member of, and
    /// that does not provision.
    NotAMember,
    /// The identity is linked to another user.
    LinkedToAnother,
    /// The organization of the domain has no provisioning, and there is no invite.
    NoProvisioning,
    /// The instance takes no new organizations, and there is no invite.
    NoNewOrganizations,
}

/// Decides which user an identity signs in.
pub fn decide(facts: &Facts) -> Decision {
    let decided = match (&facts.linking, &facts.linked) {
        (Some(user), Some(linked)) if user.id != linked.id => Err(Reason::LinkedToAnother),
        (Some(user), None) => enter(facts, user).map(|join| Decision::Link { user: user.id, join }),
        (_, Some(user)) => enter(facts, user).map(|join| Decision::SignIn { user: user.id, join }),
        (None, None) => by_address(facts),
    };
    decided.unwrap_or_else(Decision::Refuse)
}

/// Whether a user who is proved may enter through the connection, and with which new
/// membership.
fn enter(facts: &Facts, user: &Person) -> Result<Option<Join>, Reason> {
    may_sign_in(facts, user)?;
    let join = new_membership(facts).filter(|join| !user.is_member(join.organization()));
    if let Connection::Domain { organization, .. } = &facts.connection
        && !user.is_member(*organization)
        && join.is_none_or(|join| join.organization() != *organization)
    {
        return Err(Reason::NotAMember);
    }
    Ok(join)
}

fn may_sign_in(facts: &Facts, user: &Person) -> Result<(), Reason> {
    if !user.is_active {
        return Err(Reason::Inactive);
    }
    let is_permitted = user.rules.as_ref().is_none_or(|rules| rules.permit(&facts.connection));
    if is_permitted { Ok(()) } else { Err(Reason::AnotherWayEnforced) }
}

/// The decision for an identity that is not linked.
fn by_address(facts: &Facts) -> Result<Decision, Reason> {
    let address = verified(facts).ok_or(Reason::NoVerifiedAddress)?;
    if let Connection::Domain { domain, .. } = &facts.connection
        && address.domain != *domain
    {
        return Err(Reason::AddressOfAnotherDomain);
    }
    let rules = address.rules.as_ref();
    if rules.is_some_and(|rules| !rules.permit(&facts.connection)) {
        return Err(Reason::AnotherWayEnforced);
    }
    if let Some(user) = &facts.by_address {
        may_sign_in(facts, user)?;
        let trusting = rules.filter(|rules| rules.trust(&facts.connection));
        let is_member = trusting.is_some_and(|rules| user.is_member(rules.organization));
        // A user whose address is not confirmed may have been made by another person, who
        // waits for its owner.
        return Ok(match is_member && user.has_confirmed_address {
            true => Decision::Link { user: user.id, join: None },
            false => Decision::ConfirmByOtherWay,
        });
    }
    let join = new_membership(facts);
    let has_own_connection = matches!(facts.connection, Connection::Domain { .. });
    match join {
        Some(_) => Ok(Decision::Create { join }),
        None if facts.is_sign_up_open && !has_own_connection => Ok(Decision::Create { join: None }),
        None if has_own_connection || rules.is_some() => Err(Reason::NoProvisioning),
        None => Err(Reason::NoNewOrganizations),
    }
}

/// The membership that a verified address gives. An invite comes before provisioning,
/// because it says the level.
fn new_membership(facts: &Facts) -> Option<Join> {
    let address = verified(facts)?;
    let invite = facts.invite.filter(|invite| match &facts.connection {
        Connection::Instance(_) => true,
        // The connection of an organization brings users into this one alone.
        Connection::Domain { organization, domain } => {
            invite.organization == *organization && address.domain == *domain
        }
    });
    let rules = address.rules.as_ref();
    let provisions = rules.filter(|rules| rules.provisions && rules.trust(&facts.connection));
    invite.map(Join::Invite).or(provisions.map(|rules| Join::Provisioned(rules.organization)))
}

fn verified(facts: &Facts) -> Option<&Address> {
    facts.address.as_ref().filter(|address| address.is_verified)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const CORP: OrganizationId = OrganizationId(Uuid::from_u128(1));
    const OTHER: OrganizationId = OrganizationId(Uuid::from_u128(2));
    const ADA: UserId = UserId(Uuid::from_u128(3));
    const EVE: UserId = UserId(Uuid::from_u128(4));

    fn google() -> Connection {
        Connection::Instance("google-oauth2".to_owned())
    }

    /// The connection of the domain corp.example.
    fn saml() -> Connection {
        Connection::Domain { organization: CORP, domain: "corp.example".to_owned() }
    }

    fn rules(enforcement: SsoEnforcement, provisions: bool) -> DomainRules {
        let domain = "corp.example".to_owned();
        DomainRules { organization: CORP, domain, enforcement, provisions }
    }

    fn person(id: UserId, organizations: &[OrganizationId]) -> Person {
        Person {
            id,
            is_active: true,
            has_confirmed_address: true,
            organizations: organizations.to_vec(),
            rules: None,
        }
    }

    fn invite(organization: OrganizationId) -> Invited {
        Invited { id: InviteId(Uuid::from_u128(5)), organization, level: Level::Administrator }
    }

    /// A verified address at corp.example, whose rules are these.
    fn facts(connection: Connection, rules: Option<DomainRules>) -> Facts {
        let domain = "corp.example".to_owned();
        Facts {
            connection,
            address: Some(Address { domain, is_verified: true, rules }),
            linked: None,
            by_address: None,
            linking: None,
            invite: None,
            is_sign_up_open: false,
        }
    }

    use SsoEnforcement::{Google, Off, Saml};

    #[test]
    fn a_linked_identity_signs_its_user_in_whatever_the_address() {
        let mut facts = facts(google(), None);
        facts.linked = Some(person(ADA, &[CORP]));
        facts.by_address = Some(person(EVE, &[CORP]));
        assert_eq!(decide(&facts), Decision::SignIn { user: ADA, join: None });
        facts.address = None;
        assert_eq!(decide(&facts), Decision::SignIn { user: ADA, join: None });
        facts.linked.as_mut().unwrap().is_active = false;
        assert_eq!(decide(&facts), Decision::Refuse(Reason::Inactive));
    }

    #[test]
    fn the_connection_of_an_organization_signs_in_its_members_only() {
        let mut facts = facts(saml(), Some(rules(Saml, false)));
        facts.linked = Some(person(ADA, &[OTHER]));
        assert_eq!(decide(&facts), Decision::Refuse(Reason::NotAMember));
        facts.address.as_mut().unwrap().rules = Some(rules(Saml, true));
        let join = Some(Join::Provisioned(CORP));
        assert_eq!(decide(&facts), Decision::SignIn { user: ADA, join });
        // An address elsewhere, which the organization cannot confirm.
        facts.linked = None;
        facts.by_address = Some(person(ADA, &[CORP]));
        facts.address.as_mut().unwrap().domain = "other.example".to_owned();
        facts.address.as_mut().unwrap().rules = None;
        assert_eq!(decide(&facts), Decision::Refuse(Reason::AddressOfAnotherDomain));
    }

    #[test]
    fn an_address_links_only_members_of_a_domain_that_trusts_the_connection() {
        let linked = Decision::Link { user: ADA, join: None };
        let ask = Decision::ConfirmByOtherWay;
        for (connection, rules, organizations, expected) in [
            (saml(), Some(rules(Saml, false)), &[CORP][..], linked),
            (saml(), Some(rules(Off, false)), &[CORP], linked),
            (google(), Some(rules(Google, false)), &[CORP], linked),
            (google(), Some(rules(Off, true)), &[CORP], ask),
            (google(), None, &[CORP], ask),
            // Not a member: provisioning takes no user over.
            (saml(), Some(rules(Saml, true)), &[OTHER], ask),
            (google(), Some(rules(Google, true)), &[], ask),
        ] {
            let mut facts = facts(connection, rules);
            facts.by_address = Some(person(ADA, organizations));
            assert_eq!(decide(&facts), expected, "{facts:?}");
            facts.by_address.as_mut().unwrap().has_confirmed_address = false;
            assert_eq!(decide(&facts), ask, "{facts:?}");
            facts.address.as_mut().unwrap().is_verified = false;
            assert_eq!(decide(&facts), Decision::Refuse(Reason::NoVerifiedAddress));
            facts.address = None;
            assert_eq!(decide(&facts), Decision::Refuse(Reason::NoVerifiedAddress));
        }
    }

    #[test]
    fn an_enforced_way_is_the_only_way() {
        let elsewhere =
            Connection::Domain { organization: OTHER, domain: "other.example".to_owned() };
        for (connection, enforcement, is_permitted) in [
            (google(), Google, true),
            (google(), Off, true),
            (google(), Saml, false),
            (Connection::Instance("github".to_owned()), Google, false),
            (Connection::Instance("saml".to_owned()), Saml, false),
            (saml(), Saml, true),
            (saml(), Google, false),
            (elsewhere, Saml, false),
        ] {
            let mut facts = facts(connection, None);
            let mut user = person(ADA, &[CORP, OTHER]);
            user.rules = Some(rules(enforcement, false));
            facts.linked = Some(user);
            let expected = match is_permitted {
                true => Decision::SignIn { user: ADA, join: None },
                false => Decision::Refuse(Reason::AnotherWayEnforced),
            };
            assert_eq!(decide(&facts), expected, "{facts:?}");
        }
        // A new user too.
        let mut facts = facts(google(), Some(rules(Saml, true)));
        facts.is_sign_up_open = true;
        assert_eq!(decide(&facts), Decision::Refuse(Reason::AnotherWayEnforced));
    }

    #[test]
    fn linking_is_asked_for_by_the_user_who_is_signed_in() {
        let mut facts = facts(google(), None);
        facts.linking = Some(person(ADA, &[CORP]));
        // Also with the address of another user, and without one.
        facts.by_address = Some(person(EVE, &[]));
        assert_eq!(decide(&facts), Decision::Link { user: ADA, join: None });
        facts.address = None;
        assert_eq!(decide(&facts), Decision::Link { user: ADA, join: None });
        facts.linked = Some(person(EVE, &[]));
        assert_eq!(decide(&facts), Decision::Refuse(Reason::LinkedToAnother));
        facts.linked = Some(person(ADA, &[CORP]));
        assert_eq!(decide(&facts), Decision::SignIn { user: ADA, join: None });
    }

    #[test]
    fn a_new_user_joins_by_invite_or_provisioning_or_creates_an_organization() {
        let invited = |organization| Some(Join::Invite(invite(organization)));
        let provisioned = Some(Join::Provisioned(CORP));
        let refused = |reason| Decision::Refuse(reason);
        for (connection, rules, invite, is_open, expected) in [
            (
                google(),
                Some(rules(Google, true)),
                None,
                false,
                Decision::Create { join: provisioned },
            ),
            (saml(), Some(rules(Off, true)), None, false, Decision::Create { join: provisioned }),
            (
                saml(),
                Some(rules(Saml, true)),
                Some(invite(CORP)),
                false,
                Decision::Create { join: invited(CORP) },
            ),
            (
                saml(),
                Some(rules(Saml, false)),
                Some(invite(CORP)),
                false,
                Decision::Create { join: invited(CORP) },
            ),
            (google(), None, Some(invite(OTHER)), false, Decision::Create { join: invited(OTHER) }),
            (google(), None, None, true, Decision::Create { join: None }),
            (google(), Some(rules(Off, true)), None, true, Decision::Create { join: None }),
            // Provisioning needs a connection that the domain trusts.
            (google(), Some(rules(Off, true)), None, false, refused(Reason::NoProvisioning)),
            (google(), Some(rules(Google, false)), None, false, refused(Reason::NoProvisioning)),
            (google(), None, None, false, refused(Reason::NoNewOrganizations)),
            // The connection of an organization brings users into this one alone.
            (
                saml(),
                Some(rules(Saml, false)),
                Some(invite(OTHER)),
                true,
                refused(Reason::NoProvisioning),
            ),
            (saml(), Some(rules(Saml, false)), None, true, refused(Reason::NoProvisioning)),
        ] {
            let mut facts = facts(connection, rules);
            facts.invite = invite;
            facts.is_sign_up_open = is_open;
            assert_eq!(decide(&facts), expected, "{facts:?}");
        }
        assert_eq!(Join::Provisioned(CORP).level(), Level::Member);
        assert_eq!(Join::Invite(invite(CORP)).level(), Level::Administrator);
    }
}
