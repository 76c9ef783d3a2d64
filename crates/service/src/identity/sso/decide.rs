//! Who may sign in through a provider: a table, without any access to the store (SSO-21
//! to SSO-26).
//!
//! The key of an identity is the connection, the issuer and the subject. An address alone
//! finds a user only where the organization that verified its domain trusts the
//! connection, and the user is its member already. So a provider of one organization can
//! never sign in a member of another one. A new user takes over no account. So where users
//! join by signing in, every provider that the rules allow can create one.

use weir_model::UserId;

use crate::limits::MEMBERS_FULL;

/// A user whom the answer of a provider may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) user: UserId,
    pub(super) is_active: bool,
    /// Whether the user is a member of the organization of the address's domain.
    pub(super) is_member: bool,
    /// Whether the user is a member of other organizations, and has proved the address. A
    /// user who never did may have been created by another person, and leaves those
    /// organizations with the first proof.
    pub(super) is_elsewhere: bool,
    /// Whether the domain of the user's own address requires another sign-in method.
    pub(super) needs_other_method: bool,
    /// Whether the domain of the user's own address requires this connection.
    pub(super) needs_this_method: bool,
    /// Whether the account at the provider has the user's own address.
    pub(super) is_own_account: bool,
    /// Whether the address of the answer is the address of the user.
    pub(super) has_address: bool,
    /// Whether the settings of the connection do not count for this user: the caller who
    /// made them has a lower rank (SSO-45).
    pub(super) is_above: bool,
}

/// The rules of the domain of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// Whether its organization trusts what the connection says about the addresses of users
    /// who exist.
    pub(super) trusts: bool,
    /// Whether the domain requires another sign-in method.
    pub(super) needs_other_method: bool,
    /// Whether users join when they sign in.
    pub(super) has_jit: bool,
    /// Whether the address has an invite to the organization that can be accepted.
    pub(super) has_invite: bool,
    /// Whether the organization has as many members as its limit.
    pub(super) is_full: bool,
}

/// What the decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether the connection is the SAML provider of a domain.
    pub(super) is_saml: bool,
    /// Whether the address is one of that domain. True for other connections.
    pub(super) is_own_address: bool,
    /// Whether there is an address.
    pub(super) has_address: bool,
    /// Whether the provider confirms the address.
    pub(super) is_verified: bool,
    /// The user of the identity.
    pub(super) linked: Option<Candidate>,
    pub(super) user_of_address: Option<Candidate>,
    /// The rules of the domain of the address, if an organization has verified it.
    pub(super) rules: Option<Rules>,
    /// Whether the instance lets a new user of its providers create an organization.
    pub(super) offers_organizations: bool,
}

/// How a user becomes a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    /// By the invite of the address, with its level.
    Invite,
    /// At the lowest level, because the domain lets its users in.
    Domain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// This user signs in.
    Enter {
        user: UserId,
        /// Whether the identity is new, and is linked to the user.
        links: bool,
        joins: Option<Joins>,
    },
    /// A new user signs in. `None`: without an organization, to create one.
    Create(Option<Joins>),
    Refuse(Reason),
}

/// Why no user signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    NoAddress,
    NotVerified,
    OtherDomain,
    OtherMethod,
    Inactive,
    NotMember,
    OtherAddress,
    OtherAccount,
    NotTrusted,
    Elsewhere,
    NotLinked,
    Above,
    NoJoining,
    NoOrganization,
    Full,
}

impl Reason {
    /// The sentence for administrators.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NoAddress => "The provider sent no address.",
            Self::NotVerified => "The provider does not say that it verified the address.",
            Self::OtherDomain => {
                "The address is not one of this domain. A SAML provider signs in users of its own domain only."
            }
            Self::OtherMethod => "The domain of the address requires another way of signing in.",
            Self::Inactive => "The user is deactivated.",
            Self::NotMember => {
                "The user is not a member of the organization. Invite the user, or turn on just-in-time provisioning."
            }
            Self::OtherAddress => {
                "The address is not the one that the user has in Weir, and a SAML provider signs in users of its own domain only."
            }
            Self::OtherAccount => {
                "The domain of the user requires this provider, and the account there does not have the address of the user. An account with another address does not count."
            }
            Self::NotTrusted => {
                "The domain of the address does not trust this provider about users who exist, nor about invites. The user can link the provider on the Security page. Or let the domain require it."
            }
            Self::Elsewhere => {
                "The address belongs to a user who is not a member, and whom this sign-in must not take over. The user can accept an invite while signed in, and link the provider on the Security page."
            }
            Self::NotLinked => {
                "There is a user with this address, but the provider is not linked. The user can link it on the Security page."
            }
            Self::Above => {
                "A caller of a lower level than the user set this provider up, or an API key did. The user can link the provider on the Security page, or an owner saves the settings again."
            }
            Self::NoJoining => {
                "There is no user with this address. Just-in-time provisioning is off, and the address has no invite."
            }
            Self::NoOrganization => {
                "There is no user with this address, and no organization has verified its domain."
            }
            Self::Full => MEMBERS_FULL,
        }
    }

    /// The code that the visitor sees, where the specification names one.
    pub(super) const fn code(self) -> Option<&'static str> {
        match self {
            Self::NoJoining => Some("jit_not_enabled"),
            Self::NoOrganization => Some("no_new_organizations"),
            Self::Full => Some("organization_full"),
            _ => None,
        }
    }
}

/// Decides who signs in.
pub(super) fn decide(facts: &Facts) -> Decision {
    let outcome = match facts.linked {
        Some(user) => known(facts, user),
        None => unknown(facts),
    };
    outcome.unwrap_or_else(Decision::Refuse)
}

/// The identity belongs to a user.
fn known(facts: &Facts, user: Candidate) -> Result<Decision, Reason> {
    if !user.is_active {
        return Err(Reason::Inactive);
    }
    if user.needs_other_method {
        return Err(Reason::OtherMethod);
    }
    // Any person can have a private account at the same provider.
    if user.needs_this_method && !user.is_own_account {
        return Err(Reason::OtherAccount);
    }
    // The address counts only if the provider confirms it and it is the user's own.
    let rules = facts.rules.filter(|_| facts.is_verified && user.has_address);
    let joining = rules.filter(|_| !user.is_member).map(|rules| joins(&rules));
    let joins = joining.and_then(Result::ok);
    if facts.is_saml {
        own_address(facts)?;
        if !user.has_address {
            return Err(Reason::OtherAddress);
        }
        if user.is_above {
            return Err(Reason::Above);
        }
        // A user who left the organization is not signed in by its provider, unless the
        // organization lets the user in again.
        match (user.is_member, user.is_elsewhere, joins) {
            (true, ..) | (false, false, Some(_)) => {}
            (false, true, Some(_)) => return Err(Reason::Elsewhere),
            (false, _, None) if joining == Some(Err(Reason::Full)) => return Err(Reason::Full),
            (false, _, None) => return Err(Reason::NotMember),
        }
    }
    Ok(Decision::Enter { user: user.user, links: false, joins })
}

/// The identity is new: only a verified address can say who it is.
fn unknown(facts: &Facts) -> Result<Decision, Reason> {
    own_address(facts)?;
    let Some(rules) = facts.rules else {
        return Err(match facts.user_of_address {
            Some(_) => Reason::NotLinked,
            None if facts.offers_organizations && !facts.is_saml => {
                return Ok(Decision::Create(None));
            }
            None => Reason::NoOrganization,
        });
    };
    if rules.needs_other_method {
        return Err(Reason::OtherMethod);
    }
    let Some(user) = facts.user_of_address else {
        // Trust protects users who exist.
        let rules = Rules { trusts: rules.trusts || rules.has_jit, ..rules };
        // The visitor learns the code of what is missing, and nothing about users.
        return joins(&rules).map(|how| Decision::Create(Some(how)));
    };
    if !user.is_active {
        return Err(Reason::Inactive);
    }
    if !rules.trusts {
        return Err(Reason::NotTrusted);
    }
    if user.is_above {
        return Err(Reason::Above);
    }
    if user.is_member {
        return Ok(Decision::Enter { user: user.user, links: true, joins: None });
    }
    if user.is_elsewhere {
        return Err(Reason::Elsewhere);
    }
    match joins(&rules) {
        Ok(how) => Ok(Decision::Enter { user: user.user, links: true, joins: Some(how) }),
        Err(Reason::Full) => Err(Reason::Full),
        Err(_) => Err(Reason::NotMember),
    }
}

/// Refuses an address that the connection cannot confirm.
fn own_address(facts: &Facts) -> Result<(), Reason> {
    if !facts.has_address {
        return Err(Reason::NoAddress);
    }
    if !facts.is_own_address {
        return Err(Reason::OtherDomain);
    }
    if facts.is_verified { Ok(()) } else { Err(Reason::NotVerified) }
}

/// How a user with the address becomes a member.
fn joins(rules: &Rules) -> Result<Joins, Reason> {
    match rules {
        Rules { trusts: false, .. } if rules.has_invite || rules.has_jit => Err(Reason::NotTrusted),
        Rules { is_full: true, .. } if rules.has_invite || rules.has_jit => Err(Reason::Full),
        Rules { has_invite: true, .. } => Ok(Joins::Invite),
        Rules { has_jit: true, .. } => Ok(Joins::Domain),
        _ => Err(Reason::NoJoining),
    }
}
