//! The table of decisions, row by row (SSO-21 to SSO-26).

use weir_model::UserId;

use super::super::decide::{Candidate, Decision, Facts, Joins, Reason, Rules, decide};

fn candidate() -> Candidate {
    Candidate {
        user: UserId(uuid::Uuid::from_u128(1)),
        is_active: true,
        is_member: true,
        is_elsewhere: false,
        needs_other_method: false,
        needs_this_method: false,
        is_own_account: true,
        has_address: true,
        is_above: false,
    }
}

fn rules() -> Rules {
    Rules {
        trusts: true,
        needs_other_method: false,
        has_jit: false,
        has_invite: false,
        is_full: false,
    }
}

/// The same rules in an organization with as many members as its limit.
fn full(rules: Option<Rules>) -> Option<Rules> {
    rules.map(|rules| Rules { is_full: true, ..rules })
}

/// A new user of a domain that trusts the connection.
fn facts() -> Facts {
    Facts {
        is_saml: false,
        is_own_address: true,
        has_address: true,
        is_verified: true,
        linked: None,
        user_of_address: None,
        rules: Some(rules()),
        offers_organizations: false,
    }
}

fn enters(links: bool, joins: Option<Joins>) -> Decision {
    Decision::Enter { user: candidate().user, links, joins }
}

#[test]
fn who_is_not_linked_yet() {
    let held = |user: Candidate| Facts { user_of_address: Some(user), ..facts() };
    let outsider = Candidate { is_member: false, ..candidate() };
    let elsewhere = Candidate { is_member: false, is_elsewhere: true, ..candidate() };
    let jit = Some(Rules { has_jit: true, ..rules() });
    let invited = Some(Rules { has_invite: true, ..rules() });
    let distrusted = |rules: Option<Rules>| rules.map(|rules| Rules { trusts: false, ..rules });
    let offering = |facts: Facts| Facts { rules: None, offers_organizations: true, ..facts };
    let refuse = Decision::Refuse;
    for (what, facts, expected) in [
        ("a member", held(candidate()), enters(true, None)),
        (
            "a member, without trust",
            Facts { rules: distrusted(Some(rules())), ..held(candidate()) },
            refuse(Reason::NotTrusted),
        ),
        (
            "a member, with an address that is not verified",
            Facts { is_verified: false, ..held(candidate()) },
            refuse(Reason::NotVerified),
        ),
        ("no address", Facts { has_address: false, ..facts() }, refuse(Reason::NoAddress)),
        (
            "an address elsewhere, by SAML",
            Facts { is_saml: true, is_own_address: false, ..held(candidate()) },
            refuse(Reason::OtherDomain),
        ),
        (
            "a domain that requires another way",
            Facts {
                rules: Some(Rules { needs_other_method: true, ..rules() }),
                ..held(candidate())
            },
            refuse(Reason::OtherMethod),
        ),
        (
            "a deactivated member",
            held(Candidate { is_active: false, ..candidate() }),
            refuse(Reason::Inactive),
        ),
        (
            "a member above the caller who made the settings",
            held(Candidate { is_above: true, ..candidate() }),
            refuse(Reason::Above),
        ),
        ("no member", held(outsider), refuse(Reason::NotMember)),
        (
            "no member, let in",
            Facts { rules: jit, ..held(outsider) },
            enters(true, Some(Joins::Domain)),
        ),
        (
            "no member, invited",
            Facts { rules: invited, ..held(outsider) },
            enters(true, Some(Joins::Invite)),
        ),
        (
            "a member of another organization, let in",
            Facts { rules: jit, ..held(elsewhere) },
            refuse(Reason::Elsewhere),
        ),
        (
            "a member of another organization, invited",
            Facts { rules: invited, ..held(elsewhere) },
            refuse(Reason::Elsewhere),
        ),
        ("a new user", facts(), refuse(Reason::NoJoining)),
        (
            "a new user, let in",
            Facts { rules: jit, ..facts() },
            Decision::Create(Some(Joins::Domain)),
        ),
        (
            "a new user, invited",
            Facts { rules: invited, ..facts() },
            Decision::Create(Some(Joins::Invite)),
        ),
        (
            "a new user, let in and invited",
            Facts { rules: invited.map(|rules| Rules { has_jit: true, ..rules }), ..facts() },
            Decision::Create(Some(Joins::Invite)),
        ),
        (
            "a new user, let in without trust",
            Facts { rules: distrusted(jit), ..facts() },
            Decision::Create(Some(Joins::Domain)),
        ),
        (
            "a new user, let in and invited without trust",
            Facts {
                rules: distrusted(invited).map(|rules| Rules { has_jit: true, ..rules }),
                ..facts()
            },
            Decision::Create(Some(Joins::Invite)),
        ),
        (
            "a new user, invited without trust",
            Facts { rules: distrusted(invited), ..facts() },
            refuse(Reason::NotTrusted),
        ),
        (
            "a new user, let in where there is no place",
            Facts { rules: full(jit), ..facts() },
            refuse(Reason::Full),
        ),
        (
            "a new user, invited where there is no place",
            Facts { rules: full(invited), ..facts() },
            refuse(Reason::Full),
        ),
        (
            "a new user, not let in where there is no place",
            Facts { rules: full(Some(rules())), ..facts() },
            refuse(Reason::NoJoining),
        ),
        (
            "no member, let in where there is no place",
            Facts { rules: full(jit), ..held(outsider) },
            refuse(Reason::Full),
        ),
        (
            "a member where there is no place",
            Facts { rules: full(jit), ..held(candidate()) },
            enters(true, None),
        ),
        (
            "a new user, let in, with an address that is not verified",
            Facts { is_verified: false, rules: distrusted(jit), ..facts() },
            refuse(Reason::NotVerified),
        ),
        (
            "a new user, let in, of a domain that requires another way",
            Facts {
                rules: distrusted(jit).map(|rules| Rules { needs_other_method: true, ..rules }),
                ..facts()
            },
            refuse(Reason::OtherMethod),
        ),
        (
            "a user who is no member, let in without trust",
            Facts { rules: distrusted(jit), ..held(outsider) },
            refuse(Reason::NotTrusted),
        ),
        ("no domain", Facts { rules: None, ..facts() }, refuse(Reason::NoOrganization)),
        (
            "a user of no domain",
            Facts { rules: None, ..held(candidate()) },
            refuse(Reason::NotLinked),
        ),
        ("no domain, with new organizations", offering(facts()), Decision::Create(None)),
        (
            "no domain, with new organizations, and an address that is not verified",
            Facts { is_verified: false, ..offering(facts()) },
            refuse(Reason::NotVerified),
        ),
        (
            "a user of no domain, with new organizations",
            offering(held(candidate())),
            refuse(Reason::NotLinked),
        ),
        (
            "a new user of a domain, with new organizations",
            Facts { offers_organizations: true, ..facts() },
            refuse(Reason::NoJoining),
        ),
    ] {
        assert_eq!(decide(&facts), expected, "{what}");
    }
}

#[test]
fn who_is_linked() {
    let linked = |user: Candidate| Facts { linked: Some(user), ..facts() };
    let left = Candidate { is_member: false, ..candidate() };
    let jit = Some(Rules { has_jit: true, ..rules() });
    let saml = |facts: Facts| Facts { is_saml: true, ..facts };
    let refuse = Decision::Refuse;
    for (what, facts, expected) in [
        ("a member", linked(candidate()), enters(false, None)),
        (
            "without any address",
            Facts { has_address: false, is_verified: false, rules: None, ..linked(candidate()) },
            enters(false, None),
        ),
        (
            "a deactivated user",
            linked(Candidate { is_active: false, ..candidate() }),
            refuse(Reason::Inactive),
        ),
        (
            "whose own domain requires another way",
            linked(Candidate { needs_other_method: true, ..candidate() }),
            refuse(Reason::OtherMethod),
        ),
        (
            "with the own account at the required provider",
            linked(Candidate { needs_this_method: true, ..candidate() }),
            enters(false, None),
        ),
        (
            "with a private account at the required provider",
            linked(Candidate { needs_this_method: true, is_own_account: false, ..candidate() }),
            refuse(Reason::OtherAccount),
        ),
        ("who left, by a provider of the instance", linked(left), enters(false, None)),
        (
            "who left and is let in",
            Facts { rules: jit, ..linked(left) },
            enters(false, Some(Joins::Domain)),
        ),
        (
            "who has another address than the provider says",
            Facts { rules: jit, ..linked(Candidate { has_address: false, ..left }) },
            enters(false, None),
        ),
        ("a member, by SAML", saml(linked(candidate())), enters(false, None)),
        (
            "a member above the caller who made the settings, by SAML",
            saml(linked(Candidate { is_above: true, ..candidate() })),
            refuse(Reason::Above),
        ),
        ("who left, by SAML", saml(linked(left)), refuse(Reason::NotMember)),
        (
            "who left and is let in, by SAML",
            Facts { rules: jit, ..saml(linked(left)) },
            enters(false, Some(Joins::Domain)),
        ),
        (
            "who left and is let in where there is no place",
            Facts { rules: full(jit), ..linked(left) },
            enters(false, None),
        ),
        (
            "who left and is let in where there is no place, by SAML",
            Facts { rules: full(jit), ..saml(linked(left)) },
            refuse(Reason::Full),
        ),
        (
            "who left for another organization, by SAML",
            Facts { rules: jit, ..saml(linked(Candidate { is_elsewhere: true, ..left })) },
            refuse(Reason::Elsewhere),
        ),
        (
            "whose address changed, by SAML",
            saml(linked(Candidate { has_address: false, ..candidate() })),
            refuse(Reason::OtherAddress),
        ),
        (
            "with an address elsewhere, by SAML",
            Facts { is_own_address: false, ..saml(linked(candidate())) },
            refuse(Reason::OtherDomain),
        ),
    ] {
        assert_eq!(decide(&facts), expected, "{what}");
    }
}
