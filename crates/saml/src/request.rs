//! Messages of Weir to an identity provider: its metadata, and the request to sign a
//! person in, by the HTTP-Redirect binding.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::address::UNSPECIFIED;
use crate::certificate::Certificate;
use crate::connection::{Connection, PendingLogin, ServiceProvider, is_relay_state};
use crate::signing_key::SigningKey;

const RSA_SHA256: &str = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";

/// Why a login cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The relay state is empty, too long or not printable ASCII.
    #[error("a relay state has 1 to 80 printable ASCII characters")]
    RelayState,
    /// The system gave no random bytes.
    #[error("the system has no random bytes")]
    Random,
    /// The request could not be compressed.
    #[error("the request could not be compressed")]
    Compression,
    /// The request could not be signed.
    #[error("the request could not be signed")]
    Signature,
}

/// A login that begins: where to send the browser, and what to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunLogin {
    /// The URL of the identity provider, with the request.
    pub url: String,
    /// What the response is compared with.
    pub pending: PendingLogin,
}

impl Connection {
    /// Begins a login. `relay_state` is the id of the domain; `key` signs the request.
    ///
    /// # Errors
    /// [`RequestFault`] when the relay state does not fit, or the system fails.
    pub fn begin(
        &self,
        relay_state: &str,
        key: Option<&SigningKey>,
        now: DateTime<Utc>,
    ) -> Result<BegunLogin, RequestFault> {
        self.begin_as(relay_state, key, now, false)
    }

    /// Begins a login at which the identity provider must let the person sign in once more,
    /// even if the person has a session there (SSO-41).
    ///
    /// # Errors
    /// As [`Connection::begin`].
    pub fn begin_again(
        &self,
        relay_state: &str,
        key: Option<&SigningKey>,
        now: DateTime<Utc>,
    ) -> Result<BegunLogin, RequestFault> {
        self.begin_as(relay_state, key, now, true)
    }

    fn begin_as(
        &self,
        relay_state: &str,
        key: Option<&SigningKey>,
        now: DateTime<Utc>,
        asks_again: bool,
    ) -> Result<BegunLogin, RequestFault> {
        if !is_relay_state(relay_state) {
            return Err(RequestFault::RelayState);
        }
        let request_id = new_id()?;
        let request = self.request(&request_id, now, asks_again);
        let encoded = STANDARD.encode(compressed(&request)?);
        let mut query = format!("SAMLRequest={}", percent(&encoded));
        query.push_str(&format!("&RelayState={}", percent(relay_state)));
        if let Some(key) = key {
            query.push_str(&format!("&SigAlg={}", percent(RSA_SHA256)));
            // The signature is over the text of the query exactly as it is sent.
            let signature = key.sign(query.as_bytes()).ok_or(RequestFault::Signature)?;
            query.push_str(&format!("&Signature={}", percent(&STANDARD.encode(signature))));
        }
        let joint = if self.idp_sso_url.contains('?') { '&' } else { '?' };
        let url = format!("{}{joint}{query}", self.idp_sso_url);
        let relay_state = relay_state.to_owned();
        Ok(BegunLogin { url, pending: PendingLogin { request_id, relay_state, created: now } })
    }

    /// The identity provider decides about the format of the name id: the request says so,
    /// because without a policy some providers send a transient one. The schema demands the
    /// policy behind the issuer.
    fn request(&self, id: &str, now: DateTime<Utc>, asks_again: bool) -> String {
        let force = if asks_again { " ForceAuthn=\"true\"" } else { "" };
        format!(
            "<samlp:AuthnRequest xmlns:samlp=\"urn:oasis:names:tc:SAML:2.0:protocol\" \
             xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" ID=\"{id}\" Version=\"2.0\"{force} \
             IssueInstant=\"{}\" Destination=\"{}\" \
             ProtocolBinding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\" \
             AssertionConsumerServiceURL=\"{}\">\
             <saml:Issuer>{}</saml:Issuer>\
             <samlp:NameIDPolicy Format=\"{UNSPECIFIED}\" AllowCreate=\"true\"/>\
             </samlp:AuthnRequest>",
            now.to_rfc3339_opts(SecondsFormat::Secs, true),
            escaped(&self.idp_sso_url),
            escaped(&self.service.acs_url),
            escaped(&self.service.entity_id),
        )
    }
}

impl ServiceProvider {
    /// The metadata document that an identity provider reads. With the certificate of a
    /// signing key, it says that requests are signed.
    pub fn metadata(&self, certificate: Option<&Certificate>) -> String {
        let signing = certificate.map(|certificate| {
            format!(
                "<md:KeyDescriptor use=\"signing\">\
                 <ds:KeyInfo xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"><ds:X509Data>\
                 <ds:X509Certificate>{}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>\
                 </md:KeyDescriptor>",
                certificate.base64(),
            )
        });
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\" \
             entityID=\"{entity_id}\">\
             <md:SPSSODescriptor AuthnRequestsSigned=\"{signed}\" WantAssertionsSigned=\"true\" \
             protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">{signing}\
             <md:NameIDFormat>urn:oasis:names:tc:SAML:2.0:nameid-format:persistent\
             </md:NameIDFormat>\
             <md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress\
             </md:NameIDFormat>\
             <md:AssertionConsumerService index=\"0\" isDefault=\"true\" \
             Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\" Location=\"{acs_url}\"/>\
             </md:SPSSODescriptor></md:EntityDescriptor>\n",
            entity_id = escaped(&self.entity_id),
            signed = certificate.is_some(),
            signing = signing.unwrap_or_default(),
            acs_url = escaped(&self.acs_url),
        )
    }
}

/// 128 random bits. An id of XML does not begin with a digit.
fn new_id() -> Result<String, RequestFault> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| RequestFault::Random)?;
    Ok(format!("_{:032x}", u128::from_be_bytes(bytes)))
}

fn compressed(text: &str) -> Result<Vec<u8>, RequestFault> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text.as_bytes());
    written.and_then(|()| encoder.finish()).map_err(|_| RequestFault::Compression)
}

fn percent(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
