//! Who signed in, as a provider says and as it was checked (SSO-7).
//!
//! What belongs here: from claims to an identity. What does not: which user of Weir it is
//! (`weir-service`).

use chrono::{DateTime, Utc};

use crate::Refusal;
use crate::provider::Provider;

/// The longest subject, by the standard.
const MAX_SUBJECT: usize = 255;
/// The longest address.
const MAX_EMAIL: usize = 254;
/// The longest name, in characters. A longer one is cut.
const MAX_NAME: usize = 200;

/// An identity at a provider. Provider, issuer and subject together are its key; an
/// address is not part of it, because addresses change their owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The id of the provider.
    pub provider: String,
    /// The issuer, or for GitHub the address of its pages.
    pub issuer: String,
    /// The subject: the provider's own name of the user, which it never gives to another.
    pub subject: String,
    /// The address, if the provider sent one.
    pub email: Option<Email>,
    /// The name to show, if the provider sent one.
    pub name: Option<String>,
    /// When the user signed in at the provider, if it says so.
    pub signed_in_at: Option<DateTime<Utc>>,
}

/// An address that a provider sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// The address as it was sent: ASCII, with one `@`.
    pub address: String,
    /// Whether the provider says that it verified the address, and may say so.
    pub verified: bool,
}

/// Verified claims of a token or of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) subject: String,
    pub(crate) email: Option<String>,
    pub(crate) email_verified: Option<bool>,
    pub(crate) name: Option<String>,
    /// The domain of the organization that the user belongs to, at Google.
    pub(crate) hosted_domain: Option<String>,
    /// When the user signed in there.
    pub(crate) signed_in_at: Option<DateTime<Utc>>,
}

impl Identity {
    pub(crate) fn new(provider: &Provider, claims: Claims) -> Result<Self, Refusal> {
        let is_printable = |byte: u8| matches!(byte, b' '..=b'~');
        let subject = claims.subject;
        if subject.trim().is_empty()
            || subject.len() > MAX_SUBJECT
            || !subject.bytes().all(is_printable)
        {
            return Err(Refusal::Subject);
        }
        let is_hosted = claims.hosted_domain.is_some_and(|domain| !domain.is_empty());
        let email = match claims.email {
            Some(address) if !is_address(&address) => return Err(Refusal::EmailForm),
            Some(address) => {
                let verified = claims.email_verified == Some(true)
                    && (!provider.is_google() || is_hosted || is_gmail(&address));
                Some(Email { address, verified })
            }
            None => None,
        };
        let name = claims.name.map(|name| clean(&name)).filter(|name| !name.is_empty());
        let (id, issuer) = (provider.id.clone(), provider.issuer.clone());
        Ok(Self { provider: id, issuer, subject, email, name, signed_in_at: claims.signed_in_at })
    }
}

/// Whether Google itself owns the address. Of an address elsewhere, Google only knows
/// that it was verified when the account was made: a colleague who left may still have
/// that account.
fn is_gmail(address: &str) -> bool {
    address.rsplit_once('@').is_some_and(|(_, domain)| domain.eq_ignore_ascii_case("gmail.com"))
}

/// Whether a text is one address: visible ASCII around one `@`.
fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    text.len() <= MAX_EMAIL
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !local.is_empty()
        && !domain.is_empty()
        && !text.contains([',', ';', '<', '>', '"', '\\'])
        && !domain.contains('@')
}

/// A name without what could change the text around it.
fn clean(name: &str) -> String {
    let turns_text = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let kept = name.chars().filter(|c| !c.is_control() && !turns_text(*c));
    kept.take(MAX_NAME).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Claims, Email, Identity, clean, is_address};
    use crate::provider::{Kind, Provider, Settings};
    use crate::{Refusal, Secret};

    fn provider(kind: Kind, id: &str, issuer: &str) -> Provider {
        Provider::new(Settings {
            id: id.to_owned(),
            kind,
            display_name: "Example".to_owned(),
            issuer: issuer.to_owned(),
            api: String::new(),
            client_id: "client".to_owned(),
            client_secret: Secret::new("hidden".to_owned()),
            scopes: Vec::new(),
        })
        .unwrap()
    }

    fn claims(email: &str, verified: Option<bool>, hosted: Option<&str>) -> Claims {
        Claims {
            subject: "1".to_owned(),
            email: Some(email.to_owned()),
            email_verified: verified,
            name: None,
            hosted_domain: hosted.map(str::to_owned),
            signed_in_at: None,
        }
    }

    #[test]
    fn an_address_is_verified_only_if_the_provider_says_true() {
        let issuer = provider(Kind::OpenId, "keycloak", "https://issuer.example");
        for (says, expected) in [(Some(true), true), (Some(false), false), (None, false)] {
            let identity = Identity::new(&issuer, claims("a@b.example", says, None)).unwrap();
            let email = Email { address: "a@b.example".to_owned(), verified: expected };
            assert_eq!(identity.email, Some(email));
        }
    }

    #[test]
    fn google_verifies_addresses_of_its_own_domains() {
        let google = provider(Kind::Google, "google-oauth2", "");
        for (address, hosted, expected) in [
            ("a@gmail.com", None, true),
            ("a@b.example", Some("b.example"), true),
            ("a@alias.example", Some("b.example"), true),
            ("a@b.example", None, false),
            ("a@b.example", Some(""), false),
            ("a@notgmail.com", None, false),
        ] {
            let identity = Identity::new(&google, claims(address, Some(true), hosted)).unwrap();
            assert_eq!(identity.email.unwrap().verified, expected, "{address} {hosted:?}");
        }
        // The issuer says who verifies, not the name of the provider.
        let verifies = |provider: &Provider| {
            let identity = Identity::new(provider, claims("a@b.example", Some(true), None));
            identity.unwrap().email.unwrap().verified
        };
        let by_another_name = provider(Kind::OpenId, "workspace", "https://accounts.google.com");
        assert!(!verifies(&by_another_name));
        let other_issuer = provider(Kind::Google, "google-oauth2", "https://issuer.example");
        assert!(verifies(&other_issuer));
    }

    #[test]
    fn subjects_and_addresses_have_a_form() {
        let issuer = provider(Kind::OpenId, "keycloak", "https://issuer.example");
        for (subject, is_valid) in [
            ("a|b-1", true),
            (&*"a".repeat(255), true),
            (&*"a".repeat(256), false),
            ("", false),
            ("   ", false),
            ("ä", false),
            ("a\nb", false),
        ] {
            let mut claims = claims("a@b.example", None, None);
            claims.subject = subject.to_owned();
            let found = Identity::new(&issuer, claims).err();
            assert_eq!(found, (!is_valid).then_some(Refusal::Subject), "{subject}");
        }
        assert!(is_address("first.last+tag@sub.b.example"));
        for text in [
            "",
            "a",
            "@b.example",
            "a@",
            "a@b@c.example",
            "a b@c.example",
            "a@b.example\n",
            "a@b.example,c@d.example",
            "<a@b.example>",
            "ä@b.example",
            "\"a\"@b.example",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[test]
    fn a_name_is_one_plain_line() {
        assert_eq!(clean("  Ada\r\n Lovelace\u{202e} "), "Ada Lovelace");
        assert_eq!(clean(&"ä".repeat(300)).chars().count(), 200);
        assert_eq!(clean("\u{0}\u{200f}"), "");
    }
}
