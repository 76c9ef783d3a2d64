//! Inviting the people of a pasted text: one on a line, or with commas between them, as
//! addresses or as `Name <address>`.

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

/// Maximum length of the text, in characters.
const TEXT_MAX: usize = 10_000;
/// The maximum number of people that are read from a text. One request cannot invite
/// more.
const LOOKED_AT: usize = 100;

/// A person in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The text about this person.
    pub text: String,
    /// The checked address; the written text if it is not an address.
    pub email: String,
    /// The first name in it; may be empty.
    pub first_name: String,
    /// Whether the person can be invited.
    pub verdict: Verdict,
}

/// Whether a person can be invited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Ready,
    /// Yes; an earlier invite of the address ends with it.
    Again,
    /// The address is earlier in the text too.
    Duplicate,
    /// The person is a member.
    Member,
    /// It is not an address, with the reason.
    Wrong(String),
    /// One request cannot invite more people.
    TooMany,
}

impl Verdict {
    /// Whether the person is invited.
    pub fn is_invited(&self) -> bool {
        matches!(self, Self::Ready | Self::Again)
    }
}

impl Invites {
    /// The people of a text, and whether each can be invited.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Invalid`](crate::Error::Invalid) at `people` for a text that is too
    /// long.
    pub async fn preview(&self, org: &OrgCtx, people: &str) -> Result<Vec<Listed>> {
        policy::check(org, Action::ManageInvites)?;
        let people = validate::optional_text("people", people, TEXT_MAX)?;
        let parts: Vec<String> = parts(&people).into_iter().take(LOOKED_AT).collect();
        let addresses =
            parts.iter().filter_map(|text| validate::email("people", &person(text).1).ok());
        let keys: BTreeSet<String> = addresses.map(|email| emails::normalise(&email)).collect();
        let keys = keys.into_iter().collect();
        let pending = rows::invited(&self.core.store, org.organization, keys).await?;
        let mut seen = BTreeSet::new();
        let mut invited = 0;
        let mut listed = Vec::new();
        for text in parts {
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

    /// Invites the people of a text whom [`Invites::preview`] marks as invited.
    ///
    /// # Errors
    /// As [`Invites::preview`] and [`Invites::create_all`];
    /// [`Error::Invalid`](crate::Error::Invalid) at `people` when the text has no such
    /// person, at `message` for one that is too long.
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
            let detail = "No address in this list can be invited.";
            return Err(FieldError::new("people", "required", detail).into());
        }
        self.create_all(org, inputs).await
    }
}

/// Splits the text at line ends, commas and semicolons, except within quotation marks
/// and angle brackets.
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

/// First name and address of `Ada Lovelace <ada@mail.example>`, or no name and the
/// whole text.
fn person(text: &str) -> (String, String) {
    let Some((name, rest)) = text.split_once('<') else { return (String::new(), text.to_owned()) };
    let name = name.replace('"', " ");
    // "Lovelace, Ada" begins with the last name.
    let first = name.split_once(',').map_or(name.as_str(), |(_, first)| first);
    let first = first.split_whitespace().next().unwrap_or_default();
    let address = rest.split('>').next().unwrap_or_default().trim().to_owned();
    (first.chars().take(FIRST_NAME_MAX).collect(), address)
}

#[cfg(test)]
mod tests {
    use super::{parts, person};

    #[test]
    fn invited_people_are_separated() {
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
        // An open quotation mark or bracket ends with its line.
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
