//! The texts of each kind of mail.
//!
//! What belongs here: subjects and paragraphs. What does not: their form (`message`), and
//! when a mail is stored (`weir-service`).

use weir_model::Timestamp;
use weir_model::limits::{LimitAction, LimitName};
use weir_model::mail::{
    AlertNews, ExportNamed, Mail, MailContent, OneTimeLink, SignInChange, TokenChange, UserChange,
};
use weir_model::organizations::Level;
use weir_model::user_links::LinkKind;

use crate::message::{Message, Part};
use crate::reports;

/// The instance that mails come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its public URL without a trailing slash.
    pub origin: String,
}

impl Site {
    /// The host of the URL, or `localhost` if it has none.
    pub fn host(&self) -> String {
        let host = url::Url::parse(&self.origin).ok();
        let host = host.as_ref().and_then(|url| url.domain());
        host.unwrap_or("localhost").to_owned()
    }
}

/// The message for a mail.
pub fn message(mail: &Mail, site: &Site) -> Message {
    let (subject, reply_to, parts) = match &mail.news {
        MailContent::Invited {
            token,
            first_name,
            inviter_name,
            inviter_email,
            organization,
            message,
            expires_at,
            ..
        } => {
            let (inviter, home) = (one_line(inviter_name), one_line(organization));
            let mut parts = vec![
                Part::Text(greeting(first_name)),
                Part::Text(format!(
                    "{inviter} ({inviter_email}) invited you to join {home} on Weir, where its \
                     product events are kept and read."
                )),
            ];
            if let Some(message) = message.as_deref().map(str::trim).filter(|m| !m.is_empty()) {
                parts.push(Part::Text(format!("{inviter} wrote:")));
                parts.push(Part::Quote(shown(message)));
            }
            if let Some(token) = token {
                let url = format!("{}{}", site.origin, token.path());
                parts.push(Part::Link { label: format!("Join {home}"), url });
            }
            parts.push(Part::Text(format!(
                "The link is for {} only and works until {}.",
                mail.to,
                expires_at.minute_text()
            )));
            parts.push(Part::Remark(format!(
                "This mail was sent by the Weir instance at {}. If you do not know why you got \
                 it, you can ignore it: nothing happens.",
                site.origin
            )));
            let subject = format!("{inviter} invited you to join {home} on Weir");
            (subject, Some((inviter, inviter_email.clone())), parts)
        }
        MailContent::Joined { member_name, member_email, organization } => {
            let (member, home) = (one_line(member_name), one_line(organization));
            let parts = vec![
                Part::Text("Hello,".to_owned()),
                Part::Text(format!("{member} ({member_email}) joined {home} on Weir.")),
                Part::Link { label: "Open Weir".to_owned(), url: site.origin.clone() },
                Part::Remark(format!(
                    "This mail was sent by the Weir instance at {}. An administrator of {home} \
                     can switch such mails off.",
                    site.origin
                )),
            ];
            (format!("{member} joined you on Weir"), None, parts)
        }
        MailContent::ExportFailed { export, start, end, error } => {
            let (name, place) = place(export);
            let range = match start {
                Some(start) => format!("{} to {}", start.minute_text(), end.minute_text()),
                None => format!("the beginning to {}", end.minute_text()),
            };
            let mut parts = vec![
                Part::Text("Hello,".to_owned()),
                Part::Text(format!("The batch export {place} failed for {range}.")),
            ];
            parts.extend(because(error.as_deref()));
            parts.push(Part::Text(
                "The events stay in Weir. Once the cause is mended, retry the run. You hear of \
                 this export again when a run fails after one that did not."
                    .to_owned(),
            ));
            parts.extend(to_administrators(&export.organization, site));
            (format!("The export {name} failed"), None, parts)
        }
        MailContent::ExportPaused { export, failed, of, error } => {
            let (name, place) = place(export);
            let mut parts = vec![
                Part::Text("Hello,".to_owned()),
                Part::Text(format!(
                    "The batch export {place} was paused, because {failed} of its last {of} runs \
                     failed. Its backfills were cancelled."
                )),
            ];
            parts.extend(because(error.as_deref()));
            parts.push(Part::Text(
                "The events stay in Weir. Once the cause is mended, unpause the export with a \
                 backfill: then it exports what was missed."
                    .to_owned(),
            ));
            parts.extend(to_administrators(&export.organization, site));
            (format!("The export {name} was paused"), None, parts)
        }
        MailContent::PluginDisabled { plugin, project, organization, error } => {
            let (name, project) = (one_line(plugin), one_line(project));
            let mut parts = vec![
                Part::Text("Hello,".to_owned()),
                Part::Text(format!(
                    "The plugin {name} of the project {project} was disabled, because it failed \
                     over and over."
                )),
            ];
            parts.extend(because(Some(error)));
            parts.push(Part::Text(
                "Events are stored without it. Once the cause is mended, enable it again."
                    .to_owned(),
            ));
            parts.extend(to_administrators(organization, site));
            (format!("The plugin {name} was disabled"), None, parts)
        }
        MailContent::ConfirmAddress { link, .. } => {
            let must_confirm = link.as_ref().is_some_and(|link| link.must_confirm);
            let said = LinkTexts {
                what: format!(
                    "A person entered this address for an account on the Weir instance at {}. If \
                     it was you, confirm that the address is yours.",
                    site.origin
                ),
                caution: must_confirm.then(|| {
                    format!(
                        "The account has a password already. If you did not choose it yourself, \
                         another person knows it: do not confirm here, but set a new one by \
                         \"Forgot your password?\" at {}/login. That confirms the address too.",
                        site.origin
                    )
                }),
                label: "Confirm address",
                after: "",
                remark: "If it was not you, do not open the link: without it the address is not \
                         confirmed.",
            };
            let parts = to_account(link.as_ref(), LinkKind::Confirm, site, said);
            ("Confirm your address on Weir".to_owned(), None, parts)
        }
        MailContent::ResetPassword { link, .. } => {
            let said = LinkTexts {
                what: format!(
                    "A person asked for a new password for your account on the Weir instance at \
                     {}. If it was you, set one.",
                    site.origin
                ),
                caution: None,
                label: "Set a new password",
                after: " A new password ends every session of the account.",
                remark: "If it was not you, you can ignore this mail: your password stays as it is.",
            };
            let parts = to_account(link.as_ref(), LinkKind::Reset, site, said);
            ("Set a new password on Weir".to_owned(), None, parts)
        }
        MailContent::UserChanged { first_name, change, at } => {
            let (subject, parts) = user_changed(first_name, *change, *at, site);
            (subject.to_owned(), None, parts)
        }
        MailContent::SignInChanged { first_name, change, by, at, path } => {
            let (subject, what) = sign_in_changed(change, by.as_deref(), *at, site);
            let is_announced = matches!(change, SignInChange::CertificateExpires { .. });
            let caution = "If this is wrong, correct it immediately.".to_owned();
            let caution = (!is_announced).then_some(Part::Text(caution));
            let link = Part::Link {
                label: "Check the settings".to_owned(),
                url: format!("{}{path}", site.origin),
            };
            let parts = [Part::Text(greeting(first_name)), Part::Text(what)];
            let parts = parts.into_iter().chain(caution).chain([link]).collect();
            (subject, None, parts)
        }
        MailContent::Alert { first_name, alert, project, news, path } => {
            let (name, project) = (one_line(alert), one_line(project));
            let (subject, said, sentence, after) = match news {
                AlertNews::Fires(sentence) => (
                    format!("The alert {name} fires"),
                    format!("The alert {name} of the project {project} began to fire."),
                    sentence,
                    "You get another mail when it fires again after a check within its bounds.",
                ),
                AlertNews::Fails(sentence) => (
                    format!("The alert {name} cannot be checked"),
                    format!("The last checks of the alert {name} of {project} failed."),
                    sentence,
                    "It is checked again at its usual times. You get another mail about failures \
                     after a check that succeeded.",
                ),
            };
            let parts = vec![
                Part::Text(greeting(first_name)),
                Part::Text(said),
                Part::Quote(shown(sentence)),
                Part::Link {
                    label: "See the alert".to_owned(),
                    url: format!("{}{path}", site.origin),
                },
                Part::Text(after.to_owned()),
                Part::Remark(format!(
                    "This mail was sent by the Weir instance at {}, because a member of {project} \
                     entered you as a subscriber of the alert.",
                    site.origin
                )),
            ];
            (subject, None, parts)
        }
        MailContent::Subscription { first_name, is_test, digest } => {
            let (subject, mut parts) = reports::parts(digest, *is_test, site);
            parts.insert(0, Part::Text(greeting(first_name)));
            (subject, None, parts)
        }
        MailContent::LimitReached {
            first_name,
            organization,
            limit,
            percent,
            used,
            most,
            action,
            path,
        } => {
            let home = one_line(organization);
            let subject = match *percent {
                100.. => format!("{home} has reached its limit: {}", limit_words(*limit)),
                _ => format!("{home} has used {percent} % of its limit: {}", limit_words(*limit)),
            };
            let parts = vec![
                Part::Text(greeting(first_name)),
                Part::Text(format!(
                    "{home} on the Weir instance at {} uses {} of {} {}.",
                    site.origin,
                    amount(*limit, *used),
                    amount(*limit, *most),
                    limit_noun(*limit)
                )),
                Part::Text(beyond(*limit, *action).to_owned()),
                Part::Link {
                    label: "See the limits".to_owned(),
                    url: format!("{}{path}", site.origin),
                },
                Part::Remark(format!(
                    "This mail was sent because you are an owner of {home}. The operator of the \
                     instance sets the limits. In a month, you get one such mail at 80 % and one at \
                     100 % of each limit."
                )),
            ];
            (subject, None, parts)
        }
    };
    Message { to: mail.to.clone(), reply_to, subject, parts }
}

/// An export by its name, and by the fields that distinguish it from others.
fn place(export: &ExportNamed) -> (String, String) {
    let name = one_line(&export.name);
    let place = format!(
        "{name} of the project {} to {}",
        one_line(&export.project),
        one_line(&export.destination)
    );
    (name, place)
}

/// The fault, in the text that members see in the app.
fn because(error: Option<&str>) -> Vec<Part> {
    match error.map(str::trim).filter(|error| !error.is_empty()) {
        None => Vec::new(),
        Some(error) => {
            vec![Part::Text("What went wrong last:".to_owned()), Part::Quote(shown(error))]
        }
    }
}

/// A link to Weir, and the reason for this mail.
fn to_administrators(organization: &str, site: &Site) -> [Part; 2] {
    [
        Part::Link { label: "Open Weir".to_owned(), url: site.origin.clone() },
        Part::Remark(format!(
            "This mail was sent by the Weir instance at {}, because you are an administrator of \
             {}.",
            site.origin,
            one_line(organization)
        )),
    ]
}

/// The texts around the one-time link of a mail.
struct LinkTexts {
    what: String,
    /// A warning before the link is opened.
    caution: Option<String>,
    label: &'static str,
    after: &'static str,
    remark: &'static str,
}

/// The parts of a mail to one user about that user, with an optional one-time link.
fn to_account(
    link: Option<&OneTimeLink>,
    kind: LinkKind,
    site: &Site,
    said: LinkTexts,
) -> Vec<Part> {
    let name = link.map_or("", |link| link.first_name.as_str());
    let mut parts = vec![Part::Text(greeting(name)), Part::Text(said.what)];
    parts.extend(said.caution.map(Part::Text));
    if let Some(link) = link {
        let url = format!("{}{}", site.origin, kind.path(link.user, &link.token));
        parts.push(Part::Link { label: said.label.to_owned(), url });
        parts.push(Part::Text(format!(
            "The link works once, until {}.{}",
            link.expires_at.minute_text(),
            said.after
        )));
    }
    parts.push(Part::Remark(said.remark.to_owned()));
    parts
}

/// A mail to a user about a change that another person may have made.
fn user_changed(
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
fn sign_in_changed(
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

/// A limit in a subject.
const fn limit_words(limit: LimitName) -> &'static str {
    match limit {
        LimitName::EventsPerMonth => "events per month",
        LimitName::EventsPerSecond => "events per second",
        LimitName::DiskBytes => "disk space",
        LimitName::Members => "members",
        LimitName::Exports => "batch exports",
    }
}

/// What the number of a limit counts.
const fn limit_noun(limit: LimitName) -> &'static str {
    match limit {
        LimitName::EventsPerMonth => "events of this calendar month (UTC)",
        LimitName::EventsPerSecond => "events in a second, on average over a minute",
        LimitName::DiskBytes => "for stored events",
        LimitName::Members => "members",
        LimitName::Exports => "batch exports",
    }
}

/// What happens beyond a limit.
const fn beyond(limit: LimitName, action: LimitAction) -> &'static str {
    match (limit, action) {
        (_, LimitAction::Warn) => "Nothing else happens when the limit is exceeded.",
        (LimitName::Members, _) => {
            "When the limit is reached, no further members can join. Present members stay."
        }
        (LimitName::Exports, _) => {
            "When the limit is reached, no further exports can be added. Present exports continue."
        }
        (_, LimitAction::Drop) => {
            "When the limit is reached, further events are dropped. The page Health of each \
             project shows how many."
        }
        (_, LimitAction::Reject) => {
            "When the limit is reached, requests with events are refused with the status 429. \
             Client libraries send some of these events again later, and lose others. The page \
             Health of each project shows the refused requests."
        }
    }
}

/// A number of a limit, with its digits in groups, or as a size.
fn amount(limit: LimitName, number: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    let unit = UNITS.into_iter().find(|(size, _)| number >= *size);
    if let (LimitName::DiskBytes, Some((size, name))) = (limit, unit) {
        let tenths = u128::from(number) * 10 / u128::from(size);
        return format!("{}.{} {name}", tenths / 10, tenths % 10);
    }
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if limit == LimitName::DiskBytes { format!("{text} bytes") } else { text }
}

fn greeting(first_name: &str) -> String {
    let first_name = one_line(first_name);
    if first_name.is_empty() { "Hello,".to_owned() } else { format!("Hello {first_name},") }
}

/// A text as one line. Text of users must not begin a new header or another paragraph.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text of several lines without other control characters.
fn shown(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let visible = line.chars().map(|c| if c.is_control() { ' ' } else { c });
        visible.collect::<String>().trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
