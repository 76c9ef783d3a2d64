//! An identity provider of SAML in the test: it reads the request that a browser brings,
//! and signs a response.
//!
//! What belongs here: a response that is right in every part, and the parts that a test
//! can change before it is signed. What does not: which change must be refused, and why.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use flate2::read::DeflateDecoder;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use super::provider_time;

const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
const SUCCESS: &str = "urn:oasis:names:tc:SAML:2.0:status:Success";

/// A key with its certificate, both as PEM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    key: &'static str,
    pub(super) certificate: &'static str,
}

/// The key of the identity provider.
pub(super) const OWN: Key = Key {
    key: include_str!("../../../../crates/saml/src/tests/keys/idp.key"),
    certificate: include_str!("../../../../crates/saml/src/tests/keys/idp.crt"),
};
/// The key that replaces it.
pub(super) const NEXT: Key = Key {
    key: include_str!("../../../../crates/saml/src/tests/keys/next.key"),
    certificate: include_str!("../../../../crates/saml/src/tests/keys/next.crt"),
};
/// The key of another organization's identity provider.
pub(super) const OTHER: Key = Key {
    key: include_str!("../../../../crates/saml/src/tests/keys/attacker.key"),
    certificate: include_str!("../../../../crates/saml/src/tests/keys/attacker.crt"),
};

/// A request to sign a user in, as it arrives at the identity provider.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) id: String,
    /// Where the response goes.
    pub(super) acs_url: String,
    /// The entity id of the service that asks.
    pub(super) service: String,
    pub(super) relay_state: String,
    /// Where the browser was sent, up to the query.
    pub(super) to: String,
    /// Whether the user must sign in once more there.
    pub(super) forces: bool,
    /// The query as it was sent.
    pub(super) query: String,
}

impl Request {
    /// The request in the address that a browser is sent to.
    #[expect(clippy::disallowed_methods, reason = "reads the short request of the test")]
    pub(super) fn read(location: &str) -> Self {
        let (to, query) = location.split_once('?').expect("a query");
        let field = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
        };
        let compressed = STANDARD.decode(field("SAMLRequest").expect("a request")).unwrap();
        let mut text = String::new();
        DeflateDecoder::new(compressed.as_slice()).read_to_string(&mut text).unwrap();
        let attribute = |name: &str| between(&text, &format!(" {name}=\""), "\"").to_owned();
        assert_eq!(attribute("Destination"), to);
        Self {
            id: attribute("ID"),
            acs_url: attribute("AssertionConsumerServiceURL"),
            service: between(&text, "<saml:Issuer>", "</saml:Issuer>").to_owned(),
            relay_state: field("RelayState").expect("a relay state"),
            to: to.to_owned(),
            forces: text.contains(" ForceAuthn=\"true\""),
            query: query.to_owned(),
        }
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).expect(before);
    rest.split_once(after).expect(after).0
}

/// What a response says.
#[derive(Debug, Clone)]
pub(super) struct Says {
    pub(super) issuer: String,
    pub(super) destination: String,
    pub(super) in_response_to: String,
    pub(super) recipient: String,
    pub(super) audience: String,
    pub(super) not_before: DateTime<Utc>,
    pub(super) not_on_or_after: DateTime<Utc>,
    /// When the user signed in there.
    pub(super) authenticated: DateTime<Utc>,
    /// What the identity provider calls the user.
    pub(super) name_id: String,
    /// Names and values of the attributes.
    pub(super) attributes: Vec<(String, String)>,
    /// The id of the assertion.
    pub(super) assertion: String,
    pub(super) status: &'static str,
    pub(super) key: Key,
    /// What happens to the document after it was signed.
    pub(super) forge: fn(String) -> String,
}

impl Says {
    /// The right response to a request: it signs in the user with this address.
    pub(super) fn about(request: &Request, entity_id: &str, email: &str) -> Self {
        let now = provider_time();
        Self {
            issuer: entity_id.to_owned(),
            destination: request.acs_url.clone(),
            in_response_to: request.id.clone(),
            recipient: request.acs_url.clone(),
            audience: request.service.clone(),
            not_before: now - TimeDelta::minutes(1),
            not_on_or_after: now + TimeDelta::minutes(5),
            authenticated: now,
            name_id: format!("subject of {email}"),
            attributes: vec![
                ("email".to_owned(), email.to_owned()),
                ("displayName".to_owned(), "Grace Hopper".to_owned()),
            ],
            // An id belongs to one request.
            assertion: format!("_assertion{}", request.id),
            status: SUCCESS,
            key: OWN,
            forge: |document| document,
        }
    }

    /// The value of the form field `SAMLResponse`.
    ///
    /// Each element is written as exclusive canonical XML writes it, so the text of the
    /// document is the text that is signed.
    pub(super) fn signed(&self) -> String {
        let Self { issuer, destination, in_response_to, recipient, audience, .. } = self;
        let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
        let (begins, ends) = (time(self.not_before), time(self.not_on_or_after));
        let at = time(provider_time());
        let attributes: String = self
            .attributes
            .iter()
            .map(|(name, value)| {
                format!(
                    "<saml:Attribute Name=\"{name}\"><saml:AttributeValue>{value}\
                     </saml:AttributeValue></saml:Attribute>"
                )
            })
            .collect();
        let id = &self.assertion;
        let opened = format!(
            "<saml:Assertion xmlns:saml=\"{ASSERTION}\" ID=\"{id}\" IssueInstant=\"{at}\" \
             Version=\"2.0\"><saml:Issuer>{issuer}</saml:Issuer>"
        );
        let rest = format!(
            "<saml:Subject><saml:NameID>{name}</saml:NameID>\
             <saml:SubjectConfirmation Method=\"urn:oasis:names:tc:SAML:2.0:cm:bearer\">\
             <saml:SubjectConfirmationData InResponseTo=\"{in_response_to}\" \
             NotOnOrAfter=\"{ends}\" Recipient=\"{recipient}\"></saml:SubjectConfirmationData>\
             </saml:SubjectConfirmation></saml:Subject>\
             <saml:Conditions NotBefore=\"{begins}\" NotOnOrAfter=\"{ends}\">\
             <saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience>\
             </saml:AudienceRestriction></saml:Conditions>\
             <saml:AuthnStatement AuthnInstant=\"{authenticated}\"><saml:AuthnContext>\
             <saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password\
             </saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>\
             <saml:AttributeStatement>{attributes}</saml:AttributeStatement></saml:Assertion>",
            name = self.name_id,
            authenticated = time(self.authenticated),
        );
        let signature = self.key.signature(id, &format!("{opened}{rest}"));
        let document = format!(
            "<samlp:Response xmlns:samlp=\"{PROTOCOL}\" Destination=\"{destination}\" \
             ID=\"_response{in_response_to}\" InResponseTo=\"{in_response_to}\" \
             IssueInstant=\"{at}\" Version=\"2.0\">\
             <saml:Issuer xmlns:saml=\"{ASSERTION}\">{issuer}</saml:Issuer>\
             <samlp:Status><samlp:StatusCode Value=\"{status}\"></samlp:StatusCode></samlp:Status>\
             {opened}{signature}{rest}</samlp:Response>",
            status = self.status,
        );
        STANDARD.encode((self.forge)(document))
    }
}

impl Key {
    fn pair(self) -> RsaKeyPair {
        let inner: String = self.key.lines().filter(|line| !line.starts_with('-')).collect();
        RsaKeyPair::from_pkcs8(&STANDARD.decode(inner).unwrap()).unwrap()
    }

    /// RSA with SHA-256.
    pub(super) fn sign(self, text: &[u8]) -> Vec<u8> {
        let pair = self.pair();
        let mut value = vec![0; pair.public().modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut value).unwrap();
        value
    }

    /// The public half, as a key of a key set.
    pub(super) fn jwk(self) -> Value {
        let key = PublicKeyComponents::<Vec<u8>>::from(self.pair().public());
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({
            "kty": "RSA", "kid": "a", "use": "sig", "alg": "RS256",
            "n": text(&key.n), "e": text(&key.e),
        })
    }

    /// The enveloped signature of the element with this id and this canonical text.
    fn signature(self, id: &str, text: &str) -> String {
        let digest = STANDARD.encode(digest(&SHA256, text.as_bytes()));
        let info = |namespace: &str| {
            format!(
                "<ds:SignedInfo{namespace}><ds:CanonicalizationMethod \
                 Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"></ds:CanonicalizationMethod>\
                 <ds:SignatureMethod Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256\">\
                 </ds:SignatureMethod><ds:Reference URI=\"#{id}\"><ds:Transforms><ds:Transform \
                 Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\">\
                 </ds:Transform><ds:Transform \
                 Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"></ds:Transform>\
                 </ds:Transforms><ds:DigestMethod \
                 Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"></ds:DigestMethod>\
                 <ds:DigestValue>{digest}</ds:DigestValue></ds:Reference></ds:SignedInfo>"
            )
        };
        let namespace = " xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"";
        format!(
            "<ds:Signature{namespace}>{}<ds:SignatureValue>{}</ds:SignatureValue></ds:Signature>",
            info(""),
            STANDARD.encode(self.sign(info(namespace).as_bytes()))
        )
    }
}
