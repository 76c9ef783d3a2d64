//! Changes of accounts, and of how users sign in.

use weir_model::Timestamp;
use weir_model::mail::{SignInChange, TokenChange, UserChange};
use weir_model::organizations::Level;

use super::{Site, greeting, one_line};
use crate::message::Part;

/// A mail to a user about a change that another person may have made.
pub(super) fn user_changed(
    first_name: &str,
    change: UserChange,
    at: Timestamp,
    site: &Site,
) -> (&'static str, Vec<Part>) {
    let (origin, at) = (&site.origin, at.minute_text());
    let renew = format!("set a new password by \"Forgot your password?\" at {origin}/login");
    let (subject, what, caution) = match change {
        UserChange::Address => (
            "Your address on Weir was changed",
            format!(
                "The address of your account on the Weir instance at {origin} was changed on \
                 {at}. This one does not sign you in any more."
            ),
            "another person has your account: tell the operator of this instance immediately."
                .to_owned(),
        ),
        UserChange::Password => (
            "Your password on Weir was changed",
            format!(
                "The password of your account on the Weir instance at {origin} was changed on \
                 {at}. Every other session of the account has ended."
            ),
            format!("{renew} immediately, and tell the operator of this instance."),
        ),
        UserChange::SecondFactorOff => (
            "Two-step sign-in on Weir was turned off",
            format!(
                "Two-step sign-in of your account on the Weir instance at {origin} was turned off \
                 on {at}. The password alone signs you in now."
            ),
            format!(
                "{renew} immediately, turn two-step sign-in on, and tell the operator of this \
                 instance."
            ),
        ),
        UserChange::SecondFactorTakenAway => (
            "Two-step sign-in on Weir was turned off",
            format!(
                "Two-step sign-in of your account on the Weir instance at {origin} was turned off \
                 on {at} by its operator. The password alone signs you in now, and every \
                 session of the account has ended."
            ),
            "tell the operator of this instance.".to_owned(),
        ),
        UserChange::AccountLinked => (
            "An account was linked to yours on Weir",
            format!(
                "An account at another provider was linked to your account on the Weir instance \
                 at {origin} on {at}. It signs you in from now on."
            ),
            format!(
                "remove it at {origin}/account/security immediately, {renew}, and tell the \
                 operator of this instance."
            ),
        ),
        UserChange::AccountUnlinked => (
            "A linked account was removed from yours on Weir",
            format!(
                "A linked account was removed from your account on the Weir instance at {origin} \
                 on {at}. It does not sign you in any more."
            ),
            format!("{renew} immediately, and tell the operator of this instance."),
        ),
        UserChange::PasskeyAdded => (
            "A passkey was added to your account on Weir",
            format!(
                "A passkey was added to your account on the Weir instance at {origin} on {at}. It \
                 signs you in from now on, without the password."
            ),
            format!(
                "remove it at {origin}/account/security immediately, {renew}, and tell the \
                 operator of this instance."
            ),
        ),
        UserChange::PasskeyRemoved => (
            "A passkey was removed from your account on Weir",
            format!(
                "A passkey was removed from your account on the Weir instance at {origin} on \
                 {at}. It does not sign you in any more, and every other session of the account \
                 has ended."
            ),
            format!("{renew} immediately, and tell the operator of this instance."),
        ),
        UserChange::LastPasskeyRemoved => (
            "The last passkey was removed from your account on Weir",
            format!(
                "The last passkey was removed from your account on the Weir instance at {origin} \
                 on {at}. Two-step sign-in is off now: the password alone signs you in."
            ),
            format!(
                "{renew} immediately, turn two-step sign-in on, and tell the operator of this \
                 instance."
            ),
        ),
        UserChange::AuthenticatorAppAdded => (
            "An authenticator app was added to your account on Weir",
            format!(
                "An authenticator app was added to your account on the Weir instance at {origin} \
                 on {at}. After the password, a code of this app signs you in. There are new \
                 recovery codes, and every other session of the account has ended."
            ),
            format!(
                "{renew} immediately, and ask the operator of this instance to turn two-step \
                 sign-in of your account off."
            ),
        ),
        UserChange::AuthenticatorAppRemoved => (
            "The authenticator app was removed from your account on Weir",
            format!(
                "The authenticator app of your account on the Weir instance at {origin} was \
                 removed on {at}. After the password, sign-in asks for a passkey or a recovery \
                 code now."
            ),
            format!("{renew} immediately, and tell the operator of this instance."),
        ),
        UserChange::RecoveryCodesReplaced => (
            "The recovery codes of your account on Weir were replaced",
            format!(
                "New recovery codes of your account on the Weir instance at {origin} were created \
                 on {at}. The previous ones do not work any more."
            ),
            format!(
                "{renew} immediately, create new recovery codes at {origin}/account/security, and \
                 tell the operator of this instance."
            ),
        ),
        UserChange::OperatorSignIn => (
            "A link of the operator signed in to your account on Weir",
            format!(
                "A link that the operator of the Weir instance at {origin} made signed in to your \
                 account on {at}. It asked for no password and for no second factor."
            ),
            "ask the operator of this instance who used it.".to_owned(),
        ),
    };
    let (if_not, if_so) = match change {
        UserChange::SecondFactorTakenAway => (
            "If you did not ask for it,",
            "If you asked for it, turn two-step sign-in on again once you are signed in.",
        ),
        _ => ("If it was not you,", "If it was you, there is nothing to do."),
    };
    let parts = vec![
        Part::Text(greeting(first_name)),
        Part::Text(what),
        Part::Text(format!("{if_not} {caution}")),
        Part::Remark(if_so.to_owned()),
    ];
    (subject, parts)
}

/// Subject and text about a change of how users sign in.
pub(super) fn sign_in_changed(
    change: &SignInChange,
    by: Option<&str>,
    at: Timestamp,
    site: &Site,
) -> (String, String) {
    let (origin, at) = (&site.origin, at.minute_text());
    let by = by.map_or_else(|| "the operator of the instance".to_owned(), one_line);
    match change {
        SignInChange::ProviderSaved { name } => (
            "A sign-in provider of Weir was changed".to_owned(),
            format!(
                "The sign-in provider {name} of the Weir instance at {origin} was added or changed \
                 on {at} by {by}. Users of the instance can sign in through it."
            ),
        ),
        SignInChange::ProviderRemoved { name } => (
            "A sign-in provider of Weir was removed".to_owned(),
            format!(
                "The sign-in provider {name} of the Weir instance at {origin} was removed on {at} \
                 by {by}. No user can sign in through it any more."
            ),
        ),
        SignInChange::DomainRules { domain, organization, fields } => {
            let words: Vec<&str> = fields.iter().map(|field| domain_field(field)).collect();
            (
                format!("The sign-in rules of {domain} were changed"),
                format!(
                    "How people with an address of {domain} sign in to {} on the Weir instance at \
                     {origin} was changed on {at} by {by}: {}.",
                    one_line(organization),
                    words.join(", ")
                ),
            )
        }
        SignInChange::DomainVerified { domain, organization } => (
            format!("The domain {domain} was verified"),
            format!(
                "{by} verified the domain {domain} of {} on the Weir instance at {origin} on {at}. \
                 The SAML provider that is stored for it signs people in from now on.",
                one_line(organization)
            ),
        ),
        SignInChange::DomainRenamed { domain, before, organization } => (
            format!("The domain {before} was renamed"),
            format!(
                "{by} changed the domain {before} of {} on the Weir instance at {origin} to \
                 {domain} on {at}. The sign-in rules of {before} and its provisioning have ended.",
                one_line(organization)
            ),
        ),
        SignInChange::RulesSuspended { domain, organization, is_suspended } => {
            let home = one_line(organization);
            if *is_suspended {
                (
                    format!("The sign-in rules of {domain} are suspended"),
                    format!(
                        "The record that proves the domain {domain} of {home} has been missing for \
                         seven days. Its sign-in rules and its SAML provider on the Weir instance \
                         at {origin} do not act since {at}, until the record is found again."
                    ),
                )
            } else {
                (
                    format!("The sign-in rules of {domain} act again"),
                    format!(
                        "The record that proves the domain {domain} of {home} was found again. Its \
                         sign-in rules and its SAML provider on the Weir instance at {origin} act \
                         again since {at}."
                    ),
                )
            }
        }
        SignInChange::CertificateExpires { domain, organization, expires_at } => (
            format!("The SAML certificate of {domain} expires soon"),
            format!(
                "The certificate of the SAML provider of {domain} in {} on the Weir instance at \
                 {origin} expires on {}. From then on, people with an address of {domain} cannot \
                 sign in through it. Enter the next certificate of the provider before.",
                one_line(organization),
                expires_at.minute_text()
            ),
        ),
        SignInChange::ScimToken { domain, organization, change } => {
            let what = match change {
                TokenChange::Made => "made",
                TokenChange::Replaced => "replaced",
                TokenChange::Revoked => "revoked",
            };
            (
                format!("The SCIM token of {domain} was {what}"),
                format!(
                    "The token with which the identity provider of {domain} changes users of {} on \
                     the Weir instance at {origin} was {what} on {at} by {by}.",
                    one_line(organization)
                ),
            )
        }
        SignInChange::GroupLevel { domain, organization, group, level } => {
            let gives = match level {
                Some(Level::Owner) => "makes its members owners",
                Some(Level::Administrator) => "makes its members administrators",
                Some(Level::Member) => "makes its members members without further rights",
                None => "changes the level of no member",
            };
            (
                format!("The level of a group of {domain} was changed"),
                format!(
                    "The group {} of the identity provider of {domain} {gives} in {} on the Weir \
                     instance at {origin}. It was changed on {at} by {by}.",
                    one_line(group),
                    one_line(organization)
                ),
            )
        }
        SignInChange::UserDeactivated { domain, organization, email } => (
            format!("{} was deactivated", one_line(email)),
            format!(
                "The identity provider of {domain} deactivated the user {} of {} on the Weir \
                 instance at {origin} on {at}.",
                one_line(email),
                one_line(organization)
            ),
        ),
        SignInChange::DomainRemoved { domain, organization } => (
            format!("The domain {domain} was removed"),
            format!(
                "The domain {domain} of {} on the Weir instance at {origin} was removed on {at} by \
                 {by}, with its sign-in rules and its SAML provider.",
                one_line(organization)
            ),
        ),
    }
}

/// A field of a domain in words.
fn domain_field(name: &str) -> &str {
    match name {
        "sso_enforcement" => "the required way of signing in",
        "jit_provisioning_enabled" => "just-in-time provisioning",
        "saml_entity_id" => "the entity id of the SAML provider",
        "saml_acs_url" => "the sign-in address of the SAML provider",
        "saml_x509_cert" => "the certificate of the SAML provider",
        "saml_x509_cert_next" => "the second certificate of the SAML provider",
        "saml_sign_requests" => "signing of requests to the SAML provider",
        "settings_confirmed" => "for whom the stored settings count",
        other => other,
    }
}
