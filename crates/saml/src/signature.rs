//! XML signatures, in the one form that SAML needs: enveloped in the element that they
//! are over, with canonical XML without comments.
//!
//! What belongs here: the form of a signature, and its verification. What does not: which
//! element must be signed.
//!
//! A signature names the element that it is in. No element is searched by its id, so none
//! can replace another one (SAML-3). `KeyInfo` is not read (SAML-6).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use ring::digest::{self, SHA256, SHA384, SHA512};

use crate::canonical::Inclusive;
use crate::certificate::{Algorithm, Certificate};
use crate::shape::{Children, SIGNATURE, attribute, attributes, id, is_empty, text};
use crate::xml::Element;
use crate::{Quoted, Reason, canonical};

/// Inclusive canonical XML, 1.0 and 1.1.
const INCLUSIVE: [&str; 2] =
    ["http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "http://www.w3.org/2006/12/xml-c14n11"];
const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";
/// Prefixes whose namespaces a signature wants to be written.
const PREFIXES: usize = 16;

/// A signature of the accepted form, not yet verified.
pub(crate) struct Signature<'a> {
    target: Element<'a>,
    element: Element<'a>,
    info: Element<'a>,
    /// Prefixes of the canonical text of `info`.
    info_inclusive: Inclusive<'a>,
    algorithm: Algorithm,
    /// Prefixes of the canonical text of `target`.
    inclusive: Inclusive<'a>,
    hash: &'static digest::Algorithm,
    digest: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Signature<'a> {
    /// Reads the signature in `element`, a child of `target`.
    pub(crate) fn read(element: Element<'a>, target: Element<'a>) -> Result<Self, Reason> {
        attributes(element, &["Id"])?;
        let mut parts = Children::of(element)?;
        let info = parts.need(SIGNATURE, "SignedInfo")?;
        let value = parts.need(SIGNATURE, "SignatureValue")?;
        attributes(value, &["Id"])?;
        // Not read: the key is that of the connection.
        parts.take(SIGNATURE, "KeyInfo");
        parts.end()?;

        attributes(info, &["Id"])?;
        let mut parts = Children::of(info)?;
        let method = parts.need(SIGNATURE, "CanonicalizationMethod")?;
        let info_inclusive = canonical_form(method)?;
        let method = parts.need(SIGNATURE, "SignatureMethod")?;
        let algorithm = signature_algorithm(named(method)?)?;
        // It could hold the length of an HMAC.
        is_empty(method)?;
        let reference = parts.need(SIGNATURE, "Reference")?;
        parts.end()?;

        attributes(reference, &["Id", "Type", "URI"])?;
        let uri = attribute(reference, "URI")?;
        if uri.strip_prefix('#') != Some(id(target)?) {
            return Err(Reason::Reference(Quoted::new(uri)));
        }
        let mut parts = Children::of(reference)?;
        let inclusive = transforms(parts.need(SIGNATURE, "Transforms")?)?;
        let method = parts.need(SIGNATURE, "DigestMethod")?;
        let hash = digest_algorithm(named(method)?)?;
        is_empty(method)?;
        let digest = parts.need(SIGNATURE, "DigestValue")?;
        attributes(digest, &[])?;
        parts.end()?;

        let digest = bytes(digest)?;
        let value = bytes(value)?;
        Ok(Self {
            target,
            element,
            info,
            info_inclusive,
            algorithm,
            inclusive,
            hash,
            digest,
            value,
        })
    }

    /// The certificates that can verify this signature now.
    pub(crate) fn certificates<'c>(
        &self,
        pinned: &'c [Certificate],
        now: DateTime<Utc>,
    ) -> Result<Vec<&'c Certificate>, Reason> {
        let mut usable: Vec<_> = pinned.iter().filter(|it| it.is_valid(now)).collect();
        if usable.is_empty() {
            return Err(Reason::CertificateExpired);
        }
        usable.retain(|certificate| certificate.fits(self.algorithm));
        if usable.is_empty() { Err(Reason::KeyKind) } else { Ok(usable) }
    }

    /// Verifies that one of the certificates signed the target, as it is in the tree.
    pub(crate) fn verify(&self, certificates: &[&Certificate]) -> Result<(), Reason> {
        let info = canonical::text(self.info, None, &self.info_inclusive)?;
        let verifies = |it: &&Certificate| it.verifies(self.algorithm, &info, &self.value);
        if !certificates.iter().any(verifies) {
            return Err(Reason::WrongSignature);
        }
        let target = canonical::text(self.target, Some(self.element), &self.inclusive)?;
        let digest = digest::digest(self.hash, &target);
        if digest.as_ref() == self.digest { Ok(()) } else { Err(Reason::WrongDigest) }
    }
}

/// The algorithm that an element names, which has no other attribute.
fn named(element: Element<'_>) -> Result<&str, Reason> {
    attributes(element, &["Algorithm"])?;
    attribute(element, "Algorithm")
}

fn signature_algorithm(name: &str) -> Result<Algorithm, Reason> {
    match name {
        "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256" => Ok(Algorithm::RsaSha256),
        "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384" => Ok(Algorithm::RsaSha384),
        "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512" => Ok(Algorithm::RsaSha512),
        "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256" => Ok(Algorithm::EcdsaSha256),
        "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384" => Ok(Algorithm::EcdsaSha384),
        "http://www.w3.org/2000/09/xmldsig#rsa-sha1"
        | "http://www.w3.org/2000/09/xmldsig#dsa-sha1"
        | "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha1" => Err(Reason::Sha1),
        other => Err(Reason::Algorithm(Quoted::new(other))),
    }
}

fn digest_algorithm(name: &str) -> Result<&'static digest::Algorithm, Reason> {
    match name {
        "http://www.w3.org/2001/04/xmlenc#sha256" => Ok(&SHA256),
        "http://www.w3.org/2001/04/xmldsig-more#sha384" => Ok(&SHA384),
        "http://www.w3.org/2001/04/xmlenc#sha512" => Ok(&SHA512),
        "http://www.w3.org/2000/09/xmldsig#sha1" => Err(Reason::Sha1),
        other => Err(Reason::Algorithm(Quoted::new(other))),
    }
}

/// The enveloped signature, then canonical XML, and nothing else.
fn transforms(element: Element<'_>) -> Result<Inclusive<'_>, Reason> {
    attributes(element, &[])?;
    let mut parts = Children::of(element)?;
    let enveloped = parts.need(SIGNATURE, "Transform")?;
    let algorithm = named(enveloped)?;
    if algorithm != ENVELOPED {
        return Err(Reason::Transform(Quoted::new(algorithm)));
    }
    is_empty(enveloped)?;
    let inclusive = canonical_form(parts.need(SIGNATURE, "Transform")?)?;
    match parts.next() {
        None => Ok(inclusive),
        Some(other) => {
            Err(Reason::Transform(Quoted::new(other.attribute("Algorithm").unwrap_or_default())))
        }
    }
}

/// The form of canonical XML without comments that an element names.
fn canonical_form(element: Element<'_>) -> Result<Inclusive<'_>, Reason> {
    let algorithm = named(element)?;
    if INCLUSIVE.contains(&algorithm) {
        is_empty(element)?;
        return Ok(Inclusive::All);
    }
    if algorithm != EXCLUSIVE {
        return Err(Reason::Transform(Quoted::new(algorithm)));
    }
    let mut parts = Children::of(element)?;
    let list = parts.take(EXCLUSIVE, "InclusiveNamespaces");
    parts.end()?;
    let Some(list) = list else { return Ok(Inclusive::Listed(Vec::new())) };
    attributes(list, &["PrefixList"])?;
    is_empty(list)?;
    let prefixes: Vec<&str> = attribute(list, "PrefixList")?.split_ascii_whitespace().collect();
    if prefixes.len() > PREFIXES {
        Err(Reason::TooComplex)
    } else {
        Ok(Inclusive::Listed(prefixes))
    }
}

fn bytes(element: Element<'_>) -> Result<Vec<u8>, Reason> {
    let digits: String = text(element)?.split_ascii_whitespace().collect();
    if digits.is_empty() {
        return Err(Reason::EmptySignature);
    }
    STANDARD.decode(digits).map_err(|_| Reason::SignatureEncoding)
}
