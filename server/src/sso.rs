//! The protocols of single sign-on for the service: OpenID Connect and GitHub
//! (`weir-oidc`), and SAML (`weir-saml`).
//!
//! What belongs here: from the settings of the service to those of the protocols, and from
//! their answers to what the service understands. What does not: the checks of the
//! protocols, and who may sign in (`weir-service`).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use weir_egress::Egress;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::sso::{ProviderName, SamlCheck};
use weir_oidc::{Callback, InvalidSetting, Kind, Now, PendingLogin, Secret, Settings, SignOn};
use weir_saml::{
    Attribute, Certificate, Check, CheckOutcome, Connection, Entry, PendingLogin as PendingSaml,
    Received, Remembered, ReplayCache, ReplayUnavailable, Sent, ServiceProvider, SigningKey,
};
use weir_service::Clock;
use weir_service::sso::{
    Asking, Begun, Examined, Protocols, Provider, Refusal, SamlIdentityProvider, SamlKey,
    SamlServiceProvider, UsedAssertions, Verified,
};
use zeroize::Zeroizing;

/// Attributes that name a person, in the order in which they are tried.
const NAMES: [&str; 5] = [
    "displayname",
    "name",
    "cn",
    "http://schemas.microsoft.com/identity/claims/displayname",
    "urn:oid:2.16.840.1.113730.3.1.241",
];
/// Attributes with the first name, and with the last name.
const GIVEN: [&str; 5] = [
    "givenname",
    "firstname",
    "first_name",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/givenname",
    "urn:oid:2.5.4.42",
];
const SURNAMES: [&str; 6] = [
    "surname",
    "lastname",
    "last_name",
    "sn",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/surname",
    "urn:oid:2.5.4.4",
];

/// The protocols over the connections of this process.
pub struct AppProtocols {
    sign_on: SignOn,
    clock: Clock,
}

impl AppProtocols {
    /// The protocols with these connections.
    pub fn new(egress: Egress, clock: Clock) -> Self {
        Self { sign_on: SignOn::new(egress), clock }
    }

    fn now(&self) -> Now {
        Now { time: self.time(), uptime: self.clock.uptime() }
    }

    fn time(&self) -> DateTime<Utc> {
        time(self.clock.now())
    }
}

fn time(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(at.micros()).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn moment(time: DateTime<Utc>) -> Timestamp {
    Timestamp::from_micros(time.timestamp_micros())
}

/// What is kept of a SAML request.
#[derive(Serialize, Deserialize)]
struct KeptSaml {
    request_id: String,
    relay_state: String,
    created: i64,
}

#[async_trait]
impl Protocols for AppProtocols {
    fn check(&self, provider: &Provider) -> Result<(), FieldError> {
        settings(provider).map(drop).map_err(|fault| {
            let attr = match fault {
                InvalidSetting::Id => "name",
                InvalidSetting::DisplayName => "label",
                InvalidSetting::ClientId => "client_id",
                InvalidSetting::ClientSecret => "client_secret",
                InvalidSetting::Issuer | InvalidSetting::Api | InvalidSetting::Scopes => "issuer",
            };
            FieldError::new(attr, "invalid_input", fault.to_string())
        })
    }

    async fn begin(
        &self,
        provider: &Provider,
        redirect_uri: &str,
        asking: Asking,
    ) -> Result<Begun, Refusal> {
        let provider = settings(provider).map_err(|fault| Refusal(fault.to_string()))?;
        let begun = self.sign_on.begin(&provider, redirect_uri, self.now()).await;
        let begun = begun.map_err(|refusal| Refusal(refusal.for_administrators()))?;
        let begun = match asking {
            Asking::Again => begun.asking_again(),
            Asking::Silent => begun,
        };
        let kept = Zeroizing::new(begun.pending.to_stored().expose().to_owned());
        Ok(Begun { url: begun.url.into(), kept })
    }

    async fn finish(
        &self,
        provider: &Provider,
        kept: &str,
        query: &str,
    ) -> Result<Verified, Refusal> {
        let provider = settings(provider).map_err(|fault| Refusal(fault.to_string()))?;
        let unreadable = || Refusal("The sign-in was begun by another version.".to_owned());
        let pending = PendingLogin::from_stored(kept).ok_or_else(unreadable)?;
        let callback = Callback::read(query).map_err(|fault| Refusal(fault.text()))?;
        let identity = self.sign_on.finish(&provider, pending, &callback, self.now()).await;
        let identity = identity.map_err(|refusal| Refusal(refusal.for_administrators()))?;
        Ok(Verified {
            issuer: identity.issuer,
            subject: identity.subject,
            email_verified: identity.email.as_ref().is_some_and(|email| email.verified),
            email: identity.email.map(|email| email.address),
            name: identity.name,
            signed_in_at: identity.signed_in_at.map(moment),
        })
    }

    fn saml_metadata(&self, site: &SamlServiceProvider, certificate: Option<&str>) -> String {
        let certificate = certificate.and_then(|text| Certificate::read(text).ok());
        // The origin was checked when the settings were read.
        service(site).map(|service| service.metadata(certificate.as_ref())).unwrap_or_default()
    }

    fn new_saml_key(&self) -> Result<SamlKey, Refusal> {
        let made = SigningKey::generate(self.time()).map_err(|fault| Refusal(fault.to_string()))?;
        Ok(SamlKey { key: made.key, certificate: made.certificate.base64() })
    }

    fn begin_saml(
        &self,
        peer: &SamlIdentityProvider,
        site: &SamlServiceProvider,
        relay_state: &str,
        key: Option<&SamlKey>,
        asking: Asking,
    ) -> Result<Begun, Refusal> {
        let connection = connection(peer, site)?;
        let key = key.map(signing_key).transpose()?;
        let (key, now) = (key.as_ref(), self.time());
        let begun = match asking {
            Asking::Again => connection.begin_again(relay_state, key, now),
            Asking::Silent => connection.begin(relay_state, key, now),
        };
        let begun = begun.map_err(|fault| Refusal(fault.to_string()))?;
        let kept = KeptSaml {
            request_id: begun.pending.request_id,
            relay_state: begun.pending.relay_state,
            created: begun.pending.created.timestamp_micros(),
        };
        // Texts and a number always have a JSON form.
        let kept = serde_json::to_string(&kept).unwrap_or_default();
        Ok(Begun { url: begun.url, kept: Zeroizing::new(kept) })
    }

    async fn finish_saml(
        &self,
        peer: &SamlIdentityProvider,
        site: &SamlServiceProvider,
        kept: &str,
        answer: &str,
        used: &dyn UsedAssertions,
    ) -> Examined {
        let connection = match connection(peer, site) {
            Ok(connection) => connection,
            Err(refusal) => {
                return Examined {
                    outcome: Err(refusal),
                    is_signed: false,
                    checks: Vec::new(),
                    attributes: Vec::new(),
                };
            }
        };
        let pending = serde_json::from_str::<KeptSaml>(kept).ok();
        let pending = pending.map(|kept| PendingSaml {
            request_id: kept.request_id,
            relay_state: kept.relay_state,
            created: time(Timestamp::from_micros(kept.created)),
        });
        let relay_state = peer.domain.to_string();
        let received = Received { response: answer, relay_state: Some(&relay_state) };
        let outcome = connection.accept(received, pending.as_ref(), self.time(), &Used(used)).await;
        let sent = outcome.report.sent.as_ref();
        let is_verified = |entry: &Entry| {
            entry.check == Check::ResponseSignature && entry.outcome == CheckOutcome::Passed
        };
        Examined {
            is_signed: outcome.report.entries.iter().any(is_verified),
            checks: outcome.report.entries.iter().map(check).collect(),
            attributes: sent.map(shown).unwrap_or_default(),
            outcome: match outcome.result {
                Ok(identity) => Ok(Verified {
                    name: name_of(&identity.sent.attributes),
                    issuer: identity.issuer,
                    subject: identity.sent.name_id,
                    email: Some(identity.address),
                    // The identity provider of a domain confirms all of its addresses.
                    email_verified: true,
                    signed_in_at: Some(moment(identity.signed_in_at)),
                }),
                Err(refusal) => Err(Refusal(refusal.to_string())),
            },
        }
    }
}

/// The checked settings of a provider.
fn settings(provider: &Provider) -> Result<weir_oidc::Provider, InvalidSetting> {
    let kind = match provider.name {
        ProviderName::GOOGLE => Kind::Google,
        ProviderName::GITHUB => Kind::GitHub,
        ProviderName::GITLAB => Kind::GitLab,
        _ => Kind::OpenId,
    };
    weir_oidc::Provider::new(Settings {
        id: provider.name.text().to_owned(),
        kind,
        display_name: provider.label.clone(),
        issuer: provider.issuer.clone(),
        api: String::new(),
        client_id: provider.client_id.clone(),
        client_secret: Secret::new(provider.client_secret.to_string()),
        scopes: Vec::new(),
    })
}

fn signing_key(key: &SamlKey) -> Result<SigningKey, Refusal> {
    let certificate = Certificate::read(&key.certificate);
    let certificate = certificate.map_err(|fault| Refusal(fault.to_string()))?;
    SigningKey::read(&key.key, &certificate).map_err(|fault| Refusal(fault.to_string()))
}

fn service(site: &SamlServiceProvider) -> Result<ServiceProvider, Refusal> {
    ServiceProvider::new(&site.entity_id, &site.acs_url).map_err(|fault| Refusal(fault.to_string()))
}

fn connection(
    peer: &SamlIdentityProvider,
    site: &SamlServiceProvider,
) -> Result<Connection, Refusal> {
    let certificates = certificates(&peer.certificates)?;
    Connection::new(&peer.entity_id, &peer.sign_in_url, certificates, service(site)?)
        .map_err(|fault| Refusal(fault.to_string()))
}

/// The certificates that can be read. One that cannot must not keep the other one from
/// signing users in.
fn certificates(texts: &[String]) -> Result<Vec<Certificate>, Refusal> {
    let (mut readable, mut fault) = (Vec::new(), None);
    for text in texts {
        match Certificate::read(text) {
            Ok(certificate) => readable.push(certificate),
            Err(why) => fault = fault.or(Some(why)),
        }
    }
    match fault {
        Some(why) if readable.is_empty() => Err(Refusal(format!("The certificate: {why}."))),
        _ => Ok(readable),
    }
}

/// The assertions that the service remembers.
struct Used<'a>(&'a dyn UsedAssertions);

impl ReplayCache for Used<'_> {
    async fn remember(
        &self,
        issuer: &str,
        assertion: &str,
        until: DateTime<Utc>,
    ) -> Result<Remembered, ReplayUnavailable> {
        match self.0.use_once(&format!("{issuer}\0{assertion}"), moment(until)).await {
            Ok(true) => Ok(Remembered::Now),
            Ok(false) => Ok(Remembered::Before),
            Err(error) => {
                tracing::warn!(%error, "the use of an assertion was not stored");
                Err(ReplayUnavailable)
            }
        }
    }
}

fn check(entry: &Entry) -> SamlCheck {
    let (passed, detail) = match &entry.outcome {
        CheckOutcome::Passed => (Some(true), String::new()),
        CheckOutcome::Failed(reason) => (Some(false), reason.to_string()),
        CheckOutcome::NotReached => (None, String::new()),
    };
    SamlCheck { name: entry.check.title().to_owned(), passed, detail }
}

/// What the identity provider sent, for administrators.
fn shown(sent: &Sent) -> Vec<(String, Vec<String>)> {
    let format = sent.name_id_format.as_ref().map(|format| format!("NameID ({format})"));
    let name_id = (format.unwrap_or_else(|| "NameID".to_owned()), vec![sent.name_id.clone()]);
    let attributes = sent.attributes.iter().map(|one| {
        let name = match &one.friendly_name {
            Some(friendly) => format!("{} ({friendly})", one.name),
            None => one.name.clone(),
        };
        (name, one.values.clone())
    });
    std::iter::once(name_id).chain(attributes).collect()
}

/// The name of the person, from the attributes that identity providers usually send.
fn name_of(attributes: &[Attribute]) -> Option<String> {
    let find = |names: &[&str]| {
        let is_named = |one: &&Attribute, name: &str| {
            one.name.eq_ignore_ascii_case(name)
                || one.friendly_name.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        let found = names.iter().find_map(|name| attributes.iter().find(|one| is_named(one, name)));
        found.and_then(|one| one.values.first()).map(|value| value.trim().to_owned())
    };
    let parts = [find(&GIVEN), find(&SURNAMES)];
    let joined = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    find(&NAMES).filter(|name| !name.is_empty()).or(Some(joined)).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use weir_saml::Attribute;

    use super::name_of;

    fn attribute(name: &str, friendly: Option<&str>, value: &str) -> Attribute {
        Attribute {
            name: name.to_owned(),
            friendly_name: friendly.map(str::to_owned),
            values: vec![value.to_owned()],
        }
    }

    #[test]
    fn names_are_found_as_providers_send_them() {
        let entra = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/";
        for (attributes, expected) in [
            (vec![], None),
            (vec![attribute("displayName", None, " Grace Hopper ")], Some("Grace Hopper")),
            (
                vec![attribute("lastName", None, "Hopper"), attribute("firstName", None, "Grace")],
                Some("Grace Hopper"),
            ),
            (
                vec![
                    attribute("first_name", None, "Grace"),
                    attribute("last_name", None, "Hopper"),
                ],
                Some("Grace Hopper"),
            ),
            (vec![attribute("urn:oid:2.5.4.42", Some("givenName"), "Grace")], Some("Grace")),
            (
                vec![
                    attribute(&format!("{entra}givenname"), None, "Grace"),
                    attribute(&format!("{entra}surname"), None, "Hopper"),
                ],
                Some("Grace Hopper"),
            ),
            (vec![attribute("email", None, "g@mail.example")], None),
        ] {
            assert_eq!(name_of(&attributes).as_deref(), expected, "{attributes:?}");
        }
    }
}
