//! The texts of each kind of mail.
//!
//! What belongs here: subjects and paragraphs. What does not: their form (`message`), and
//! when a mail is stored (`weir-service`).

mod changes;
mod limits;

use weir_model::mail::{AlertNews, ExportNamed, Mail, MailContent, OneTimeLink, SignInChange};
use weir_model::user_links::LinkKind;

use self::changes::{sign_in_changed, user_changed};
use self::limits::{amount, beyond, limit_noun, limit_words};
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
                Part::Text(format!("The export {place} failed for {range}.")),
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
                    "The export {place} was paused, because {failed} of its last {of} runs \
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
