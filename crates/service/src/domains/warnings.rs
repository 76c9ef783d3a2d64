//! Warnings about a domain: what is stored and does not work, or not for every user.
//!
//! What belongs here: when there is such a warning, and its text. What does not: faults that
//! refuse a change (the parent module).

use weir_model::domains::{DomainWarning, SsoEnforcement, WayImpact};
use weir_store::domains::DomainRow;

use super::{has_saml, trust};
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

/// The code of a change that could lock out all owners (SSO-32).
pub(super) const LOCK_OUT: &str = "would_lock_out";
/// What such a change means.
pub(super) const NO_OWNER: &str = "Every owner has an address of this domain, and none of them \
     has signed in this way with these settings.";
/// The code of settings that a key saved (SSO-45).
const BY_KEY: &str = "settings_by_key";
/// Most members whom a warning names. `impact/` names all.
const NAMED_MAX: usize = 20;

pub(super) fn of(attr: &str, code: &str, detail: &str) -> DomainWarning {
    DomainWarning { attr: attr.to_owned(), code: code.to_owned(), detail: detail.to_owned() }
}

/// The warning about a required way of signing in that no owner is known to be able to use.
/// It names members only to a caller who may read them.
pub(super) fn lock_out(org: &OrgCtx, impact: &WayImpact) -> DomainWarning {
    let unproved = &impact.unproved;
    let count = unproved.len();
    let who = match policy::check(org, Action::ReadMembers) {
        Ok(()) if count <= NAMED_MAX => unproved.join(", "),
        Ok(()) => format!("{}, and {} more", unproved[..NAMED_MAX].join(", "), count - NAMED_MAX),
        Err(_) => format!("{count} of the members whom impact/ lists"),
    };
    let detail = format!(
        "{NO_OWNER} The change is stored. These users may not be able to sign in any more: {who}. \
         If no owner can sign in, the operator makes a link with weir user sign-in-link."
    );
    of("sso_enforcement", LOCK_OUT, &detail)
}

/// Warnings about settings that sign in members alone by their address, because a key saved
/// them. `has_google` says whether Google is a provider of the instance: just-in-time
/// provisioning lets it sign in users who exist too.
pub(super) fn by_key(row: &DomainRow, has_google: bool) -> Vec<DomainWarning> {
    let mut found = Vec::new();
    let mut warn = |attr: &str, what: &str, provider: &str, save: &str| {
        let detail = format!(
            "An API key saved {what}, or an earlier version of Weir did. So the {provider} does \
             not sign in administrators, owners, members of other organizations and the staff of \
             the instance by their address. They link it on the Security page. Or an owner \
             presses {save} on the page of the domain: then it signs in owners too."
        );
        found.push(of(attr, BY_KEY, &detail));
    };
    if has_saml(row) && trust::is_lowest(row.provider_rank) {
        warn("saml_entity_id", "the SAML settings", "SAML provider", "Save SAML");
    }
    let is_provider = matches!(row.sso_enforcement, SsoEnforcement::Provider(_));
    if is_provider && trust::is_lowest(row.rules_rank) {
        warn("sso_enforcement", "this rule", "provider", "Save single sign-on");
    }
    let trusts_google =
        has_google && row.jit_provisioning_enabled && row.sso_enforcement == SsoEnforcement::Off;
    if trusts_google && trust::is_lowest(row.rules_rank) {
        let (what, save) = ("the rules of this domain", "Save just-in-time provisioning");
        warn("jit_provisioning_enabled", what, "provider Google", save);
    }
    found
}
