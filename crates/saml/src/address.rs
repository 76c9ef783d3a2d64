//! Which e-mail address a response names (SAML-8).
//!
//! 1. A name id of the format `emailAddress`.
//! 2. The first attribute of [`ATTRIBUTES`] that was sent.
//! 3. A name id without a format, or of the format `unspecified`, that has the form of an
//!    address.
//! 4. The first attribute of [`PRINCIPAL_NAMES`] that was sent.
//!
//! What the first rule that applies finds must be one address: no later rule is tried.

use crate::response::Sent;
use crate::{Quoted, Reason};

pub(crate) const EMAIL_ADDRESS: &str = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress";
pub(crate) const UNSPECIFIED: &str = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified";

/// Names of attributes for the address: those that providers use, then the usual short
/// ones.
const ATTRIBUTES: [&str; 10] = [
    // Entra
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
    // Keycloak, Shibboleth: `mail` of LDAP, and the older `emailAddress`
    "urn:oid:0.9.2342.19200300.100.1.3",
    "urn:oid:1.2.840.113549.1.9.1",
    // Okta, Google, others
    "email",
    "Email",
    "mail",
    "emailAddress",
    "EmailAddress",
    "emailaddress",
    "user.email",
];

/// Names of attributes for the name of a user at the provider, which has the form of an
/// address, and often is one. They come last, because it can be another address.
const PRINCIPAL_NAMES: [&str; 2] = [
    // Shibboleth: `eduPersonPrincipalName`
    "urn:oid:1.3.6.1.4.1.5923.1.1.1.6",
    // Entra
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn",
];

/// Bytes of an address, and of the part before its `@`.
const LENGTH: usize = 254;
const LOCAL: usize = 64;

/// The address of a person, as it was sent.
pub(crate) fn choose(sent: &Sent) -> Result<String, Reason> {
    let format = sent.name_id_format.as_deref();
    if format == Some(EMAIL_ADDRESS) {
        return address("The name id", &sent.name_id);
    }
    if let Some(found) = of_attributes(sent, &ATTRIBUTES) {
        return found;
    }
    let open = format.is_none_or(|format| format == UNSPECIFIED);
    if open && is_address(&sent.name_id) {
        return Ok(sent.name_id.clone());
    }
    of_attributes(sent, &PRINCIPAL_NAMES).unwrap_or(Err(Reason::NoAddress))
}

/// The address in the first of these attributes that was sent; `None`: none was.
fn of_attributes(sent: &Sent, names: &[&str]) -> Option<Result<String, Reason>> {
    names.iter().find_map(|name| {
        let named = sent.attributes.iter().filter(|attribute| attribute.name == *name);
        let mut values = named.flat_map(|attribute| &attribute.values);
        let first = values.next()?;
        Some(match values.any(|other| other != first) {
            true => Err(Reason::Addresses(Quoted::new(name))),
            false => address("The attribute for the address", first),
        })
    })
}

fn address(what: &'static str, text: &str) -> Result<String, Reason> {
    if is_address(text) {
        Ok(text.to_owned())
    } else {
        Err(Reason::Address(what, Quoted::new(text)))
    }
}

/// Whether a text has the form of one address in ASCII. No quotes, no comments, no
/// address in brackets: there is one `@`, so every reader finds the same domain.
fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let dotted = |text: &str, label: fn(u8) -> bool| {
        text.split('.').all(|part| !part.is_empty() && part.bytes().all(label))
    };
    let of_local =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    let of_domain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.len() <= LENGTH
        && local.len() <= LOCAL
        && dotted(local, of_local)
        && dotted(domain, of_domain)
        && domain.contains('.')
}
