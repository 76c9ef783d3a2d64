//! Inviting the people of a text that somebody pasted: one on a line, or with
//! commas between them, as addresses or as `Name <address>`.

use std::collections::BTreeSet;

use weir_model::errors::FieldError;
use weir_model::invites::{BULK_MAX, FIRST_NAME_MAX, Invite, InviteInput, MESSAGE_MAX};
use weir_model::organizations::Level;
use weir_model::validate;
use weir_store::invites as rows;

use super::Invites;
use crate::Result;
use crate::ctx::OrgCtx;
use crate::identity::emails;
use crate::policy::{self, Action};

/// Longest text that is looked at, in characters.
const TEXT_MAX: usize = 10_000;
/// Most people of a text that are looked at; more are of no use to one request.
const LOOKED_AT: usize = 100;

/// Somebody of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What was written.
    pub text: String,
    /// The address in it, checked; as it was written where it is none.
    pub email: String,
    /// The first name in it; may be empty.
    pub first_name: String,
    /// Whether the person can be invited.
    pub verdict: Verdict,
}

/// Whether somebody can be invited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Ready,
    /// Yes; an earlier invite of the address ends with it.
    Again,
    /// The address stands further up in the text.
    Duplicate,
    /// The person is a member.
    Member,
    /// This is no address; says why.
    Wrong(String),
    /// One request invites no more people.
    TooMany,
}

impl Verdict {
    /// Whether the person is invited.
    #[must_use]
    pub fn is_invited(&self) -> bool {
        matches!(self, Self::Ready | Self::Again)
    }
}

impl Invites {
    /// Whom a text would invite, and whom not.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Invalid`](crate::Error::Invalid) at `people` for a text that is too
    /// long.
    pub async fn preview(&self, org: &OrgCtx, people: &str) -> Result<Vec<Listed>> {
        policy::check(org, Action::ManageInvites)?;
        let people = validate::optional_text("people", people, TEXT_MAX)?;
        let store = &self.core.store;
        let ids = rows::ordered(store, org.organization).await?;
        let pending = rows::rows(store, org.organization, &ids).await?.into_iter();
        let pending: BTreeSet<String> = pending.map(|row| row.email_key).collect();
        let mut seen = BTreeSet::new();
        let mut invited = 0;
        let mut listed = Vec::new();
        for text in parts(&people).into_iter().take(LOOKED_AT) {
            let (first_name, address) = person(&text);
            let mut one = match validate::email("people", &address) {
                Ok(email) => Listed { text, email, first_name, verdict: Verdict::Ready },
                Err(fault) => {
                    let verdict = Verdict::Wrong(fault.detail);
                    listed.push(Listed { text, email: address, first_name, verdict });
                    continue;
                }
            };
            let key = emails::normalise(&one.email);
            one.verdict = if !seen.insert(key.clone()) {
                Verdict::Duplicate
            } else if self.is_member(org, &key).await? {
                Verdict::Member
            } else if invited == BULK_MAX {
                Verdict::TooMany
            } else if pending.contains(&key) {
                Verdict::Again
            } else {
                Verdict::Ready
            };
            invited += usize::from(one.verdict.is_invited());
            listed.push(one);
        }
        Ok(listed)
    }

    /// Invites whom [`Invites::preview`] says can be invited.
    ///
    /// # Errors
    /// As [`Invites::preview`] and [`Invites::create_all`];
    /// [`Error::Invalid`](crate::Error::Invalid) at `people` when there is nobody,
    /// at `message` for one that is too long.
    pub async fn create_listed(
        &self,
        org: &OrgCtx,
        people: &str,
        level: Level,
        message: &str,
    ) -> Result<Vec<Invite>> {
        let message = validate::optional_text("message", message, MESSAGE_MAX)?;
        let listed = self.preview(org, people).await?;
        let input = |one: Listed| InviteInput {
            target_email: one.email,
            first_name: one.first_name,
            level,
            message: (!message.is_empty()).then(|| message.clone()),
            send_email: true,
        };
        let inputs: Vec<InviteInput> =
            listed.into_iter().filter(|one| one.verdict.is_invited()).map(input).collect();
        if inputs.is_empty() {
            let detail = "Nobody in this list can be invited.";
            return Err(FieldError::new("people", "required", detail).into());
        }
        self.create_all(org, inputs).await
    }
}

/// The text at its line ends, commas and semicolons, except within quotation
/// marks and angle brackets.
fn parts(text: &str) -> Vec<String> {
    let (mut quoted, mut bracketed) = (false, false);
    let mut parts = vec![String::new()];
    for c in text.chars() {
        match c {
            '\n' | '\r' => (quoted, bracketed) = (false, false),
            '"' => quoted = !quoted,
            '<' => bracketed = true,
            '>' => bracketed = false,
            _ => {}
        }
        let ends = matches!(c, '\n' | '\r') || (matches!(c, ',' | ';') && !quoted && !bracketed);
        match parts.last_mut() {
            Some(last) if !ends => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// First name and address of `Ada Lovelace <ada@mail.example>`, or no name and
/// the text itself.
fn person(text: &str) -> (String, String) {
    let Some((name, rest)) = text.split_once('<') else { return (String::new(), text.to_owned()) };
    let name = name.replace('"', " ");
    // "Lovelace, Ada" is a last name first.
    let first = name.split_once(',').map_or(name.as_str(), |(_, first)| first);
    let first = first.split_whitespace().next().unwrap_or_default();
    let address = rest.split('>').next().unwrap_or_default().trim().to_owned();
    (first.chars().take(FIRST_NAME_MAX).collect(), address)
}

#[cfg(test)]
mod tests {
    use super::{parts, person};

    #[test]
    fn people_are_told_apart() {
        let text = "ada@a.example, grace@b.example;\n\"Lovelace, Ada\" <ada@c.example>\r\n\n linus@d.example ";
        assert_eq!(
            parts(text),
            [
                "ada@a.example",
                "grace@b.example",
                "\"Lovelace, Ada\" <ada@c.example>",
                "linus@d.example",
            ]
        );
        // A mark that is not closed ends with its line.
        assert_eq!(parts("\"ada\ngrace <g,h\nlinus"), ["\"ada", "grace <g,h", "linus"]);
        assert!(parts(" ,;\n").is_empty());
    }

    #[test]
    fn names_stand_before_addresses() {
        for (text, name, address) in [
            ("ada@a.example", "", "ada@a.example"),
            ("Ada Lovelace <ada@a.example>", "Ada", "ada@a.example"),
            ("\"Lovelace, Ada\" < ada@a.example >", "Ada", "ada@a.example"),
            ("<ada@a.example", "", "ada@a.example"),
            ("Ada <>", "Ada", ""),
        ] {
            assert_eq!(person(text), (name.to_owned(), address.to_owned()), "{text}");
        }
        assert_eq!(person(&format!("{} <a@b.co>", "x".repeat(99))).0.len(), 30);
    }
}
