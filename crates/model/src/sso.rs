//! Single sign-on: names of providers, and how a session was opened (API-40, SSO-21).
//!
//! What belongs here: the words of the addresses, the store and the API. What does not:
//! who may sign in (`weir-service`), and the protocols (`weir-oidc`, `weir-saml`).

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::DomainId;
use crate::time::Timestamp;

/// Longest name of a provider, in bytes.
pub const PROVIDER_NAME_MAX: usize = 28;
/// Most providers of an instance.
pub const PROVIDERS_MAX: usize = 20;
/// Longest client id, client secret and issuer of a provider, in bytes.
pub const PROVIDER_TEXT_MAX: usize = 512;
/// What begins the text of a SAML connection.
const SAML: &str = "saml:";
/// Names that addresses below `/login/` and the API use for something else.
const RESERVED: [&str; 6] = ["saml", "2fa", "again", "link", "token", "precheck"];

/// The name of a provider, such as `google-oauth2`: a part of its addresses. Lower case
/// letters and digits, in parts with hyphens between them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderName {
    bytes: [u8; PROVIDER_NAME_MAX],
    length: usize,
}

impl ProviderName {
    /// Google.
    pub const GOOGLE: Self = Self::known("google-oauth2");
    /// GitHub, which has its own protocol.
    pub const GITHUB: Self = Self::known("github");
    /// GitLab.
    pub const GITLAB: Self = Self::known("gitlab");

    const fn known(text: &str) -> Self {
        let from = text.as_bytes();
        let mut bytes = [0; PROVIDER_NAME_MAX];
        let mut at = 0;
        while at < from.len() {
            bytes[at] = from[at];
            at += 1;
        }
        Self { bytes, length: from.len() }
    }

    /// The name with this text; `None`: no provider can have it.
    pub fn parse(text: &str) -> Option<Self> {
        let part_fits = |part: &str| {
            !part.is_empty() && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        let fits = text.len() <= PROVIDER_NAME_MAX
            && text.split('-').all(part_fits)
            && !RESERVED.contains(&text);
        fits.then(|| Self::known(text))
    }

    /// The text.
    pub fn text(&self) -> &str {
        // Only ASCII is ever written.
        self.bytes.get(..self.length).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default()
    }

    /// The name that people read, unless the operator has chosen another.
    pub fn label(&self) -> &str {
        match *self {
            Self::GOOGLE => "Google",
            Self::GITHUB => "GitHub",
            Self::GITLAB => "GitLab",
            _ => self.text(),
        }
    }
}

impl fmt::Debug for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for ProviderName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for ProviderName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a name of a provider"))
    }
}

/// A connection to an identity provider: what confirms who a user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Connection {
    /// A provider of the instance.
    Provider(ProviderName),
    /// The SAML provider of a domain.
    Saml(DomainId),
}

impl Connection {
    /// The connection with this text; `None`: this program does not know it.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(SAML) {
            Some(domain) => domain.parse().ok().map(Self::Saml),
            None => ProviderName::parse(text).map(Self::Provider),
        }
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(name) => f.write_str(name.text()),
            Self::Saml(domain) => write!(f, "{SAML}{domain}"),
        }
    }
}

/// How the user of a session proved their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenedBy {
    /// With a password, or with a link that replaces it.
    Password,
    /// Through an identity provider.
    Connection(Connection),
    /// With a link that the operator made on the host.
    Operator,
    /// With a passkey.
    Passkey,
}

impl OpenedBy {
    const PASSWORD: &'static str = "=password";
    const OPERATOR: &'static str = "=operator";
    const PASSKEY: &'static str = "=passkey";

    /// The text in the store.
    pub fn word(self) -> String {
        match self {
            Self::Password => Self::PASSWORD.to_owned(),
            Self::Operator => Self::OPERATOR.to_owned(),
            Self::Passkey => Self::PASSKEY.to_owned(),
            Self::Connection(connection) => connection.to_string(),
        }
    }

    /// The value of a text in the store. A word of a newer program counts as a password,
    /// which allows the least.
    pub fn of_word(word: Option<&str>) -> Self {
        match word {
            Some(Self::OPERATOR) => Self::Operator,
            Some(Self::PASSKEY) => Self::Passkey,
            Some(word) => Connection::parse(word).map_or(Self::Password, Self::Connection),
            None => Self::Password,
        }
    }
}

/// One check of a SAML answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamlCheck {
    /// What was checked.
    pub name: String,
    /// Whether it passed; `None`: an earlier check failed, so it was not reached.
    pub passed: Option<bool>,
    /// Why it failed, for administrators.
    pub detail: String,
}

/// The result of a test of a domain's SAML connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionTest {
    /// When the answer came.
    pub at: Timestamp,
    /// The checks, in their order.
    pub checks: Vec<SamlCheck>,
    /// What the identity provider sent: name and values of each attribute. Only of an
    /// answer that passed every check.
    pub attributes: Vec<(String, Vec<String>)>,
    /// What would have happened at a sign-in, as a sentence.
    pub outcome: String,
    /// Whether a user could have signed in.
    pub works: bool,
}

#[cfg(test)]
mod tests {
    use super::{Connection, OpenedBy, ProviderName};
    use crate::ids::DomainId;

    #[test]
    fn names_are_parts_of_addresses() {
        for good in ["google-oauth2", "github", "okta", "a1-b2", "abcdefghijklmnopqrstuvwxyz01"] {
            assert_eq!(ProviderName::parse(good).unwrap().text(), good);
        }
        for bad in [
            "",
            "Okta",
            "okta_eu",
            "-okta",
            "okta-",
            "ok--ta",
            "a/b",
            "saml",
            "2fa",
            "again",
            "link",
            "ökta",
            "abcdefghijklmnopqrstuvwxyz012",
            "saml:x",
        ] {
            assert_eq!(ProviderName::parse(bad), None, "{bad}");
        }
        assert_eq!(ProviderName::parse("github"), Some(ProviderName::GITHUB));
        assert_eq!(ProviderName::GITHUB.label(), "GitHub");
    }

    #[test]
    fn ways_are_read_as_they_were_written() {
        let domain = DomainId(uuid::Uuid::from_u128(7));
        for way in [
            OpenedBy::Password,
            OpenedBy::Operator,
            OpenedBy::Passkey,
            OpenedBy::Connection(Connection::Provider(ProviderName::GITLAB)),
            OpenedBy::Connection(Connection::Saml(domain)),
        ] {
            assert_eq!(OpenedBy::of_word(Some(&way.word())), way);
        }
        for unknown in [None, Some("=newer"), Some("saml:nothing"), Some("")] {
            assert_eq!(OpenedBy::of_word(unknown), OpenedBy::Password, "{unknown:?}");
        }
    }
}
