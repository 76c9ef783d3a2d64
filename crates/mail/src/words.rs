//! What each kind of mail says.

use weir_model::invites;
use weir_model::mail::{Mail, News};

use crate::letter::{Letter, Part};

/// The instance that mails come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its public address without a slash at the end.
    pub origin: String,
}

impl Site {
    /// The host of the address; `localhost` where it has no name.
    #[must_use]
    pub fn host(&self) -> String {
        let host = url::Url::parse(&self.origin).ok();
        let host = host.as_ref().and_then(|url| url.domain());
        host.unwrap_or("localhost").to_owned()
    }
}

/// The mail as somebody reads it.
#[must_use]
pub fn letter(mail: &Mail, site: &Site) -> Letter {
    let (subject, reply_to, parts) = match &mail.news {
        News::Invited {
            invite,
            first_name,
            inviter_name,
            inviter_email,
            organization,
            message,
            expires_at,
        } => {
            let (inviter, home) = (one_line(inviter_name), one_line(organization));
            let first_name = one_line(first_name);
            let greeting = if first_name.is_empty() {
                "Hello,".to_owned()
            } else {
                format!("Hello {first_name},")
            };
            let url = format!("{}{}", site.origin, invites::path(*invite));
            let mut parts = vec![
                Part::Text(greeting),
                Part::Text(format!(
                    "{inviter} ({inviter_email}) invited you to join {home} on Weir, where its \
                     product events are kept and looked at."
                )),
            ];
            if let Some(message) = message.as_deref().map(str::trim).filter(|m| !m.is_empty()) {
                parts.push(Part::Text(format!("{inviter} wrote:")));
                parts.push(Part::Quote(shown(message)));
            }
            parts.push(Part::Link { label: format!("Join {home}"), url });
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
        News::Joined { member_name, member_email, organization } => {
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
    };
    Letter { to: mail.to.clone(), reply_to, subject, parts }
}

/// A text as one line: what came from people must not begin a new header or
/// another paragraph.
fn one_line(text: &str) -> String {
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
