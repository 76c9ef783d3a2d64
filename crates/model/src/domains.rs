//! Domains of organizations: the resource and its input (API-37).

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::errors::FieldError;
use crate::ids::DomainId;
use crate::patch::Patch;
use crate::sso::ProviderName;
use crate::time::Timestamp;
use crate::validate;

/// Maximum domains of an organization.
pub const DOMAINS_MAX: usize = 200;
/// Longest domain name, in characters.
pub const DOMAIN_MAX: usize = 128;
/// Longest `sso_enforcement`, in characters.
pub const SSO_ENFORCEMENT_MAX: usize = 28;
/// Longest `saml_entity_id` and `saml_acs_url`, in characters.
pub const SAML_TEXT_MAX: usize = 512;
/// Longest certificate, in characters. Real ones have about two thousand.
pub const CERTIFICATE_MAX: usize = 65_536;
/// The message for a name that is not a domain.
pub const WRONG_NAME: &str = "Please enter a valid domain or subdomain name.";
/// Code of the warning and the error at a claim of a domain that another organization has
/// verified.
pub const VERIFIED_ELSEWHERE: &str = "verified_elsewhere";
/// Label before a domain. Together they are the name of the TXT record of the challenge.
const CHALLENGE_LABEL: &str = "_posthog-challenge";

/// How users with an address of the domain must sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SsoEnforcement {
    /// Any sign-in method.
    #[default]
    Off,
    /// Through this provider of the instance.
    Provider(ProviderName),
    /// Through the SAML provider of the domain.
    Saml,
}

impl SsoEnforcement {
    /// Values that every instance knows. Further ones are names of providers.
    pub const KNOWN: [Self; 5] = [
        Self::Off,
        Self::Provider(ProviderName::GOOGLE),
        Self::Provider(ProviderName::GITHUB),
        Self::Provider(ProviderName::GITLAB),
        Self::Saml,
    ];

    /// The text on the wire.
    pub fn text(&self) -> &str {
        match self {
            Self::Off => "",
            Self::Provider(name) => name.text(),
            Self::Saml => "saml",
        }
    }

    /// The value with this text. Whether the instance has such a provider is not checked.
    ///
    /// # Errors
    /// `invalid_choice` at `sso_enforcement`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        match text {
            "" => Ok(Self::Off),
            "saml" => Ok(Self::Saml),
            name => match ProviderName::parse(name) {
                Some(name) => Ok(Self::Provider(name)),
                None => Err(validate::invalid_choice("sso_enforcement", &text)),
            },
        }
    }
}

impl Serialize for SsoEnforcement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for SsoEnforcement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|fault| D::Error::custom(fault.detail))
    }
}

/// A domain as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Domain {
    /// Unique id of the domain.
    pub id: DomainId,
    /// Name, in lower case. Several organizations can claim the same name; the first one
    /// that verifies it owns it.
    pub domain: String,
    /// Whether the organization has proved that it owns the domain.
    pub is_verified: bool,
    /// Time of the verification.
    pub verified_at: Option<Timestamp>,
    /// The text that a TXT record at `_posthog-challenge.<domain>` must contain.
    pub verification_challenge: String,
    /// Whether users with an address of the domain become members when they sign in
    /// through a provider. Ignored when a domain is created: it is false until the domain
    /// is verified and changed.
    pub jit_provisioning_enabled: bool,
    /// How users with an address of the domain must sign in. Ignored when a domain is
    /// created: it is empty until the domain is verified and changed.
    pub sso_enforcement: SsoEnforcement,
    /// Whether all three SAML fields are filled in.
    pub has_saml: bool,
    /// Entity id of the identity provider.
    pub saml_entity_id: Option<String>,
    /// Sign-in URL of the identity provider.
    pub saml_acs_url: Option<String>,
    /// Certificate of the identity provider, in PEM or only its base64 text. Any text of
    /// at most 65,536 characters is stored as sent; `warnings` reports an invalid
    /// certificate.
    pub saml_x509_cert: Option<String>,
    /// A second certificate that is accepted too, while the identity provider changes to
    /// it. In the same form.
    pub saml_x509_cert_next: Option<String>,
    /// Whether requests to the identity provider are signed. The certificate is in the
    /// metadata of the domain.
    pub saml_sign_requests: bool,
    /// Stored values that do not work, or not for every user.
    pub warnings: Vec<DomainWarning>,
}

/// A stored value that does not work, or not for every user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DomainWarning {
    /// The field that it is about: `domain`, `jit_provisioning_enabled`, `sso_enforcement`,
    /// `saml_entity_id`, `saml_x509_cert` or `saml_x509_cert_next`.
    pub attr: String,
    /// `verified_elsewhere`; `invalid_certificate`; `settings_by_key`: an API key saved the
    /// settings, so they count for members alone; `would_lock_out`: no owner is known to be able
    /// to sign in any more. The last one is only in the answer to the change.
    pub code: String,
    /// Description of the fault.
    pub detail: String,
}

/// The SAML fields of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SamlPatch {
    /// `saml_entity_id`.
    pub entity_id: Patch<String>,
    /// `saml_acs_url`.
    pub acs_url: Patch<String>,
    /// `saml_x509_cert`, not yet validated.
    pub x509_cert: Patch<String>,
    /// `saml_x509_cert_next`, not yet validated.
    pub x509_cert_next: Patch<String>,
    /// `saml_sign_requests`; null counts as false.
    pub sign_requests: Patch<bool>,
}

/// Input for a new domain, without the fields that only a verified domain can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainInput {
    /// Name, not yet validated.
    pub domain: String,
    /// SAML fields.
    pub saml: SamlPatch,
}

/// A change of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DomainPatch {
    /// Name, not yet validated.
    pub domain: Patch<String>,
    /// `jit_provisioning_enabled`.
    pub jit_provisioning_enabled: Patch<bool>,
    /// `sso_enforcement`, not yet validated: an unverified domain can have no value.
    pub sso_enforcement: Patch<String>,
    /// SAML fields.
    pub saml: SamlPatch,
    /// The name of the domain, typed on its page to confirm that no owner may be able to sign
    /// in. The API has no such field: a key confirms nothing.
    pub confirmed_name: Option<String>,
}

/// What the rules for signing in of a domain affect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SignInImpact {
    /// Addresses of the members with an address of the domain, in the order in which they
    /// joined.
    pub members: Vec<String>,
    /// Whether the caller is one of them.
    pub includes_you: bool,
    /// Addresses of owners with an address elsewhere: the rules do not affect them.
    pub owners_elsewhere: Vec<String>,
    /// The ways of signing in that the domain can require now.
    pub ways: Vec<WayImpact>,
}

/// What happens if a domain requires a way of signing in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WayImpact {
    /// The way.
    pub sso_enforcement: SsoEnforcement,
    /// Addresses of the members who have signed in this way.
    pub proved: Vec<String>,
    /// Addresses of the members who have not: they may not be able to sign in any more.
    pub unproved: Vec<String>,
    /// Whether no owner is known to be able to sign in any more. Requiring the way is then
    /// answered with the warning `would_lock_out`.
    pub locks_out_owners: bool,
}

/// What the page of domains shows in addition to the resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainDetails {
    /// The domain.
    pub domain: Domain,
    /// The name that the TXT record must have.
    pub challenge_name: String,
    /// When name servers were last asked for the record.
    pub checked_at: Option<Timestamp>,
    /// The answer at that time, as a message.
    pub last_answer: Option<String>,
    /// Time of the next automatic check. `None`: an unverified domain is checked only on
    /// request.
    pub next_check_at: Option<Timestamp>,
    /// Since when the record of the verified domain is missing.
    pub verification_failing_since: Option<Timestamp>,
    /// Whether the record has been missing for so long that the sign-in rules of the
    /// domain are suspended.
    pub is_suspended: bool,
    /// Subject of the certificate.
    pub saml_certificate_subject: Option<String>,
    /// Until when the certificate is valid.
    pub saml_certificate_expires_at: Option<Timestamp>,
    /// Until when the second certificate is valid.
    pub saml_next_certificate_expires_at: Option<Timestamp>,
    /// The certificate of the key that signs requests, as PEM. It stays when signing is
    /// turned off.
    pub saml_signing_certificate: Option<String>,
}

/// The sign-in methods for a mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Precheck {
    /// The only sign-in method that the domain of the address allows, or null.
    pub sso_enforcement: Option<SsoEnforcement>,
    /// Whether users with such an address can sign in with SAML.
    pub saml_available: bool,
}

/// The name of the TXT record that verifies a domain.
pub fn challenge_name(domain: &str) -> String {
    format!("{CHALLENGE_LABEL}.{domain}")
}

/// Validates a name of the form `^([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}$` of at most 128
/// characters. The name is not normalized: other spellings are refused.
///
/// # Errors
/// `blank`, `max_length` or `invalid_input` at `domain`.
pub fn name(value: &str) -> Result<String, FieldError> {
    let value = validate::text("domain", value, DOMAIN_MAX)?;
    let label_fits = |label: &str| {
        label.len() <= 63
            && label.split('-').all(|part| {
                !part.is_empty()
                    && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            })
    };
    // A Unicode name in ASCII form has two consecutive hyphens.
    let encoded_fits = |label: &str| label.strip_prefix("xn--").is_some_and(label_fits);
    let last_fits = |last: &str| last.len() >= 2 && last.bytes().all(|c| c.is_ascii_lowercase());
    let fits = value.rsplit_once('.').is_some_and(|(front, last)| {
        last_fits(last) && front.split('.').all(|label| label_fits(label) || encoded_fits(label))
    });
    if fits { Ok(value) } else { Err(FieldError::new("domain", "invalid_input", WRONG_NAME)) }
}

#[cfg(test)]
mod tests {
    use super::{SsoEnforcement, name};

    #[test]
    fn names() {
        for good in ["acme.com", "tea.acme.co", "a-b.c-d-e.museum", "7.acme.io"] {
            assert_eq!(name(&format!(" {good} ")).as_deref(), Ok(good));
        }
        for bad in [
            "acme",
            "Acme.com",
            "acme.com.",
            ".acme.com",
            "acme..com",
            "-acme.com",
            "acme-.com",
            "ac--me.com",
            "acme.c",
            "acme.c0m",
            "*.acme.com",
            "acme.com:443",
            "https://acme.com",
            "127.0.0.1",
            "[::1]",
            "täst.de",
            "acme_tea.com",
        ] {
            assert_eq!(name(bad).unwrap_err().code, "invalid_input", "{bad}");
        }
        assert_eq!(name(" ").unwrap_err().code, "blank");
        assert_eq!(name(&format!("{}.com", "a.".repeat(64))).unwrap_err().code, "max_length");
        assert_eq!(name(&format!("{}.com", "a".repeat(64))).unwrap_err().code, "invalid_input");
    }

    #[test]
    fn enforcement_is_a_known_word_or_the_name_of_a_provider() {
        for value in SsoEnforcement::KNOWN {
            assert_eq!(SsoEnforcement::parse(value.text()), Ok(value));
            let json = serde_json::to_value(value).unwrap();
            assert_eq!(json, value.text());
            assert_eq!(serde_json::from_value::<SsoEnforcement>(json).unwrap(), value);
        }
        assert_eq!(SsoEnforcement::parse("okta-eu").unwrap().text(), "okta-eu");
        let error = SsoEnforcement::parse("Okta").unwrap_err();
        assert_eq!(error.detail, "\"Okta\" is not a valid choice.");
    }
}
