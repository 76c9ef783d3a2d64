//! The response of an identity provider: every check, in the order of the report.
//!
//! ```text
//! base64 -> tree -> shape -> signature of the assertion in the tree -> what it says
//! ```
//!
//! What belongs here: what a response must be, and what is taken from it. What does not:
//! XML (`xml`), signatures (`signature`), and who the person is for Weir.

use std::collections::HashSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::connection::{Connection, PendingLogin};
use crate::replay::{Remembered, ReplayCache};
use crate::report::{Check, Refusal, Report};
use crate::shape::{
    ASSERTION, Children, PROTOCOL, SIGNATURE, attribute, attributes, id, is_empty, text, unexpected,
};
use crate::signature::Signature;
use crate::xml::{Document, Element};
use crate::{Quoted, Reason, address};

/// Bytes of a document.
const LENGTH: usize = 256 * 1024;
/// Bytes of the form field: base64 of that, with line ends.
const FIELD: usize = LENGTH / 3 * 4 + 16 * 1024;
/// How much two clocks may differ.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);
/// Bytes of a name id.
const NAME_ID: usize = 256;
/// Bytes of a time.
const TIME: usize = 40;

const SUCCESS: &str = "urn:oasis:names:tc:SAML:2.0:status:Success";
const BEARER: &str = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
const TRANSIENT: &str = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient";

/// The form that a browser posted, its fields decoded.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    /// The field `SAMLResponse`.
    pub response: &'a str,
    /// The field `RelayState`.
    pub relay_state: Option<&'a str>,
}

/// It signs a person in, so it is not shown.
impl fmt::Debug for Received<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Received").field("bytes", &self.response.len()).finish_non_exhaustive()
    }
}

/// How the checks ended, and whether the response is accepted.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Every check.
    pub report: Report,
    /// The person, or why not.
    pub result: Result<Identity, Refusal>,
}

/// A person, as a verified and accepted response names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The entity id of the identity provider. With the name id it identifies a person.
    pub issuer: String,
    /// What the identity provider sent.
    pub sent: Sent,
    /// The address, as it was sent (SAML-8).
    pub address: String,
    /// The session at the identity provider.
    pub session_index: Option<String>,
    /// When that session ends.
    pub session_ends: Option<DateTime<Utc>>,
    /// When the person signed in there: the earliest of the times that it states.
    pub signed_in_at: DateTime<Utc>,
}

/// What an identity provider sent about a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The name id.
    pub name_id: String,
    /// The format of the name id, if it has one.
    pub name_id_format: Option<String>,
    /// The attributes in the order of the response.
    pub attributes: Vec<Attribute>,
}

/// An attribute of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The name, which may be a URI.
    pub name: String,
    /// The name for people, if there is one.
    pub friendly_name: Option<String>,
    /// The values, in order.
    pub values: Vec<String>,
}

/// An accepted assertion, whose use is not recorded yet.
struct Verified {
    identity: Identity,
    assertion: String,
    /// After that time it is refused for its age.
    until: DateTime<Utc>,
}

impl Connection {
    /// Checks a response to a login that began here. `pending` is what the browser's
    /// login was stored with, `None` if there was none. It is used once: the caller
    /// removes it before.
    pub async fn accept(
        &self,
        received: Received<'_>,
        pending: Option<&PendingLogin>,
        now: DateTime<Utc>,
        replay: &impl ReplayCache,
    ) -> Outcome {
        let mut report = Report::new();
        let result = match self.verify(received, pending, now, &mut report) {
            Ok(verified) => {
                let Verified { identity, assertion, until } = verified;
                let remembered = replay.remember(&identity.issuer, &assertion, until).await;
                let first = match remembered {
                    Ok(Remembered::Now) => Ok(identity),
                    Ok(Remembered::Before) => Err(Reason::Replayed),
                    Err(_) => Err(Reason::ReplayUnavailable),
                };
                report.record(Check::Replay, first)
            }
            Err(refusal) => Err(refusal),
        };
        Outcome { report, result }
    }

    fn verify(
        &self,
        received: Received<'_>,
        pending: Option<&PendingLogin>,
        now: DateTime<Utc>,
        report: &mut Report,
    ) -> Result<Verified, Refusal> {
        let login = login(pending, received.relay_state, now);
        let login = report.record(Check::Login, login)?;
        let document = report.record(Check::Document, read(received.response))?;
        let response = report.record(Check::Response, Response::read(&document))?;
        report.record(Check::Status, status(response.status))?;
        let assertion = report.record(Check::Assertion, Assertion::read(&document, &response))?;

        let forms = signatures(&document, &response, &assertion);
        let (signature, of_response) = report.record(Check::SignatureForm, forms)?;
        let pinned = signature.certificates(&self.certificates, now);
        let pinned = report.record(Check::Certificate, pinned)?;
        report.record(Check::Signature, signature.verify(&pinned))?;
        let verified = of_response.map_or(Ok(()), |signature| {
            signature.verify(&signature.certificates(&self.certificates, now)?)
        });
        report.record(Check::ResponseSignature, verified)?;

        let sent = report.record(Check::Subject, self.sent(&assertion))?;
        report.sent = Some(sent.clone());
        report.record(Check::Issuer, self.check_issuers(&response, &assertion))?;
        report.record(Check::Destination, self.check_destination(&response))?;
        // One confirmation must pass all of these checks. If none does, the report is about
        // the first one.
        let confirmation = self.confirmation(&assertion, login, now);
        let answered = check_in_response_to(response.element, login)
            .and_then(|()| check_in_response_to(confirmation, login));
        report.record(Check::InResponseTo, answered)?;
        report.record(Check::Recipient, self.check_recipient(confirmation))?;
        let ends = report.record(Check::Time, check_times(&assertion, confirmation, now))?;
        report.record(Check::Audience, self.check_audience(&assertion))?;
        let session = report.record(Check::Session, session(&assertion, now))?;
        let address = report.record(Check::Address, address::choose(&sent))?;

        let Session { index: session_index, ends: session_ends, signed_in_at } = session;
        let issuer = self.idp_entity_id.clone();
        let identity =
            Identity { issuer, sent, address, session_index, session_ends, signed_in_at };
        // The login ends before or after the assertion; the earlier time refuses it.
        let until = ends.min(login.ends()) + LEEWAY;
        Ok(Verified { identity, assertion: assertion.id.to_owned(), until })
    }

    fn sent(&self, assertion: &Assertion<'_>) -> Result<Sent, Reason> {
        let name_id = assertion.name_id;
        attributes(name_id, &["Format", "NameQualifier", "SPNameQualifier", "SPProvidedID"])?;
        let own = &self.service.entity_id;
        if let Some(other) = name_id.attribute("SPNameQualifier").filter(|it| it != own) {
            return Err(Reason::NameQualifier(Quoted::new(other), Quoted::new(own)));
        }
        let name_id_format = name_id.attribute("Format").map(str::to_owned);
        if name_id_format.as_deref() == Some(TRANSIENT) {
            return Err(Reason::Transient);
        }
        let name_id = text(name_id)?;
        let fits = !name_id.is_empty() && name_id.len() <= NAME_ID && name_id.trim() == name_id;
        if !fits {
            return Err(Reason::NameId);
        }
        let mut found = Vec::new();
        for statement in &assertion.attributes {
            attributes(*statement, &[])?;
            let mut parts = Children::of(*statement)?;
            while let Some(part) = parts.next() {
                if !part.is(ASSERTION, "Attribute") {
                    return Err(unexpected(part, *statement));
                }
                found.push(read_attribute(part)?);
            }
        }
        Ok(Sent { name_id: name_id.to_owned(), name_id_format, attributes: found })
    }

    fn check_issuers(
        &self,
        response: &Response<'_>,
        assertion: &Assertion<'_>,
    ) -> Result<(), Reason> {
        for issuer in response.issuer.into_iter().chain([assertion.issuer]) {
            attributes(issuer, &["Format", "NameQualifier", "SPNameQualifier", "SPProvidedID"])?;
            let issuer = text(issuer)?;
            if issuer != self.idp_entity_id {
                let expected = Quoted::new(&self.idp_entity_id);
                return Err(Reason::Issuer(Quoted::new(issuer), expected));
            }
        }
        Ok(())
    }

    fn check_destination(&self, response: &Response<'_>) -> Result<(), Reason> {
        let destination = attribute(response.element, "Destination")?;
        let own = &self.service.acs_url;
        if destination == own {
            return Ok(());
        }
        Err(Reason::Destination(Quoted::new(destination), Quoted::new(own)))
    }

    /// The confirmation that the checks are about: the first one that passes them.
    fn confirmation<'a>(
        &self,
        assertion: &Assertion<'a>,
        login: &PendingLogin,
        now: DateTime<Utc>,
    ) -> Element<'a> {
        let confirms = |data: &Element<'a>| {
            check_in_response_to(*data, login).is_ok()
                && self.check_recipient(*data).is_ok()
                && check_times(assertion, *data, now).is_ok()
        };
        let mut others = assertion.other_confirmations.iter().copied();
        let first = assertion.confirmation;
        if confirms(&first) { first } else { others.find(confirms).unwrap_or(first) }
    }

    fn check_recipient(&self, confirmation: Element<'_>) -> Result<(), Reason> {
        let recipient = attribute(confirmation, "Recipient")?;
        let own = &self.service.acs_url;
        if recipient == own {
            return Ok(());
        }
        Err(Reason::Recipient(Quoted::new(recipient), Quoted::new(own)))
    }

    /// Every restriction must name Weir; there must be one.
    fn check_audience(&self, assertion: &Assertion<'_>) -> Result<(), Reason> {
        let mut restrictions = 0;
        let mut conditions = Children::of(assertion.conditions)?;
        while let Some(condition) = conditions.next() {
            if condition.is(ASSERTION, "OneTimeUse") || condition.is(ASSERTION, "ProxyRestriction")
            {
                continue;
            }
            if !condition.is(ASSERTION, "AudienceRestriction") {
                return Err(Reason::Condition(Quoted::new(condition.local())));
            }
            restrictions += 1;
            attributes(condition, &[])?;
            let mut audiences = Children::of(condition)?;
            let mut other = audiences.need(ASSERTION, "Audience").and_then(text)?;
            let own = self.service.entity_id.as_str();
            let mut named = other == own;
            while let Some(audience) = audiences.take(ASSERTION, "Audience") {
                other = text(audience)?;
                named |= other == own;
            }
            audiences.end()?;
            if !named {
                return Err(Reason::Audience(Quoted::new(other), Quoted::new(own)));
            }
        }
        if restrictions == 0 { Err(Reason::Missing("AudienceRestriction")) } else { Ok(()) }
    }
}

/// The login that a response must belong to.
fn login<'a>(
    pending: Option<&'a PendingLogin>,
    relay_state: Option<&str>,
    now: DateTime<Utc>,
) -> Result<&'a PendingLogin, Reason> {
    let pending = pending.ok_or(Reason::Unsolicited)?;
    if now >= pending.ends() || pending.created > now + LEEWAY {
        return Err(Reason::LoginExpired);
    }
    if relay_state != Some(pending.relay_state.as_str()) {
        return Err(Reason::RelayState);
    }
    Ok(pending)
}

/// The document in a form field. It is not compressed in this binding.
fn read(field: &str) -> Result<Document, Reason> {
    if field.len() > FIELD {
        return Err(Reason::TooLarge);
    }
    let digits: String = field.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(digits).map_err(|_| Reason::NotBase64)?;
    if bytes.len() > LENGTH {
        return Err(Reason::TooLarge);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Reason::NotUtf8)?;
    Document::read(text)
}

/// The parts of a response, each in its place of the schema.
struct Response<'a> {
    element: Element<'a>,
    /// Only a response without a signature may do without it. Then the signed assertion
    /// names the issuer.
    issuer: Option<Element<'a>>,
    signature: Option<Element<'a>>,
    status: Element<'a>,
    /// What comes after the status: one assertion.
    rest: Children<'a>,
}

impl<'a> Response<'a> {
    fn read(document: &'a Document) -> Result<Self, Reason> {
        let element = document.root();
        if !element.is(PROTOCOL, "Response") {
            return Err(Reason::NotAResponse);
        }
        check_ids(document)?;
        let known = ["ID", "Version", "IssueInstant", "Destination", "InResponseTo", "Consent"];
        attributes(element, &known)?;
        check_version(element)?;
        let mut parts = Children::of(element)?;
        let issuer = parts.take(ASSERTION, "Issuer");
        let signature = parts.take(SIGNATURE, "Signature");
        if issuer.is_none() && signature.is_some() {
            return Err(Reason::Missing("Issuer"));
        }
        let status = parts.need(PROTOCOL, "Status")?;
        Ok(Self { element, issuer, signature, status, rest: parts })
    }
}

/// The id, the version and the time that responses and assertions have.
fn check_version(element: Element<'_>) -> Result<(), Reason> {
    id(element)?;
    if attribute(element, "Version")? != "2.0" {
        return Err(Reason::Version);
    }
    time("IssueInstant", attribute(element, "IssueInstant")?).map(drop)
}

/// No two elements have one id, in any spelling of the attribute.
fn check_ids(document: &Document) -> Result<(), Reason> {
    let mut seen = HashSet::new();
    for element in document.elements() {
        for attribute in element.attributes() {
            if attribute.local.eq_ignore_ascii_case("id") && !seen.insert(attribute.value) {
                return Err(Reason::DuplicateId);
            }
        }
    }
    Ok(())
}

fn status(element: Element<'_>) -> Result<(), Reason> {
    attributes(element, &[])?;
    let mut parts = Children::of(element)?;
    let code = parts.need(PROTOCOL, "StatusCode")?;
    let value = attribute(code, "Value")?;
    if value == SUCCESS {
        return Ok(());
    }
    // The second code and the message say more than the first code.
    let second = Children::of(code)?.take(PROTOCOL, "StatusCode");
    let second = second.and_then(|code| code.attribute("Value"));
    let message = parts.take(PROTOCOL, "StatusMessage").map(text).transpose()?;
    let details: Vec<&str> = second.into_iter().chain(message).collect();
    Err(Reason::Status(Quoted::new(value), Quoted::new(&details.join(" "))))
}

/// The parts of the one assertion, each in its place of the schema.
struct Assertion<'a> {
    element: Element<'a>,
    id: &'a str,
    issuer: Element<'a>,
    signature: Option<Element<'a>>,
    name_id: Element<'a>,
    /// The data of the first confirmation of the subject by possession of the assertion.
    confirmation: Element<'a>,
    /// Those of the further ones.
    other_confirmations: Vec<Element<'a>>,
    conditions: Element<'a>,
    authentication: Vec<Element<'a>>,
    attributes: Vec<Element<'a>>,
}

impl<'a> Assertion<'a> {
    fn read(document: &'a Document, response: &Response<'a>) -> Result<Self, Reason> {
        let element = one_assertion(document, response)?;
        attributes(element, &["ID", "Version", "IssueInstant"])?;
        check_version(element)?;
        let mut parts = Children::of(element)?;
        let issuer = parts.need(ASSERTION, "Issuer")?;
        let signature = parts.take(SIGNATURE, "Signature");
        let subject = parts.need(ASSERTION, "Subject")?;
        let conditions = parts.need(ASSERTION, "Conditions")?;
        attributes(conditions, &["NotBefore", "NotOnOrAfter"])?;
        let mut authentication = Vec::new();
        let mut of_person = Vec::new();
        while let Some(statement) = parts.next() {
            if statement.is(ASSERTION, "AuthnStatement") {
                authentication.push(statement);
            } else if statement.is(ASSERTION, "AttributeStatement") {
                of_person.push(statement);
            } else {
                return Err(unexpected(statement, element));
            }
        }
        if authentication.is_empty() {
            return Err(Reason::Missing("AuthnStatement"));
        }

        attributes(subject, &[])?;
        let mut parts = Children::of(subject)?;
        let name_id = parts.need(ASSERTION, "NameID")?;
        let (confirmation, other_confirmations) = confirmations(parts)?;

        Ok(Self {
            element,
            id: id(element)?,
            issuer,
            signature,
            name_id,
            confirmation,
            other_confirmations,
            conditions,
            authentication,
            attributes: of_person,
        })
    }
}

/// The data of the confirmations by possession of the assertion, which are the rest of a
/// subject: the first one, and the others. Those by other methods are not read.
fn confirmations(mut parts: Children<'_>) -> Result<(Element<'_>, Vec<Element<'_>>), Reason> {
    let mut bearer = Vec::new();
    let mut other = None;
    while let Some(confirmation) = parts.take(ASSERTION, "SubjectConfirmation") {
        attributes(confirmation, &["Method"])?;
        match attribute(confirmation, "Method")? {
            BEARER => bearer.push(confirmation_data(confirmation)?),
            method => other = other.or(Some(method)),
        }
    }
    parts.end()?;
    let mut bearer = bearer.into_iter();
    match (bearer.next(), other) {
        (Some(first), _) => Ok((first, bearer.collect())),
        (None, Some(method)) => Err(Reason::Confirmation(Quoted::new(method))),
        (None, None) => Err(Reason::Missing("SubjectConfirmation")),
    }
}

fn confirmation_data(confirmation: Element<'_>) -> Result<Element<'_>, Reason> {
    let mut parts = Children::of(confirmation)?;
    let data = parts.need(ASSERTION, "SubjectConfirmationData")?;
    parts.end()?;
    attributes(data, &["NotBefore", "NotOnOrAfter", "Recipient", "InResponseTo", "Address"])?;
    is_empty(data)?;
    Ok(data)
}

/// The one element of the document that is named like an assertion, in any namespace and
/// at any depth: the child of the response after its status.
fn one_assertion<'a>(
    document: &'a Document,
    response: &Response<'a>,
) -> Result<Element<'a>, Reason> {
    let mut assertions = 0_usize;
    for element in document.elements() {
        match element.local() {
            "EncryptedAssertion" | "EncryptedID" | "EncryptedAttribute" | "EncryptedData" => {
                return Err(Reason::Encrypted);
            }
            "Assertion" => assertions += 1,
            "Response" if !element.same(response.element) => return Err(Reason::Assertions),
            _ => {}
        }
    }
    match assertions {
        0 => return Err(Reason::NoAssertion),
        1 => {}
        _ => return Err(Reason::Assertions),
    }
    let mut parts = response.rest.clone();
    let assertion = parts.take(ASSERTION, "Assertion").ok_or(Reason::Assertions)?;
    parts.end()?;
    Ok(assertion)
}

/// The signature of the assertion, and that of the response if there is one. The document
/// has no other signature.
fn signatures<'a>(
    document: &'a Document,
    response: &Response<'a>,
    assertion: &Assertion<'a>,
) -> Result<(Signature<'a>, Option<Signature<'a>>), Reason> {
    let expected = |element: &Element<'_>| {
        let known = [response.signature, assertion.signature];
        known.into_iter().flatten().any(|it| it.same(*element))
    };
    let mut named = document.elements().filter(|element| element.local() == "Signature");
    if named.any(|element| !expected(&element)) {
        return Err(Reason::Signatures);
    }
    let signature = assertion.signature.ok_or(Reason::NotSigned)?;
    let signature = Signature::read(signature, assertion.element)?;
    let of_response = response.signature.map(|it| Signature::read(it, response.element));
    Ok((signature, of_response.transpose()?))
}

fn read_attribute(element: Element<'_>) -> Result<Attribute, Reason> {
    let name = attribute(element, "Name")?.to_owned();
    let friendly_name = element.attribute("FriendlyName").map(str::to_owned);
    let mut values = Vec::new();
    let mut parts = Children::of(element)?;
    while let Some(part) = parts.take(ASSERTION, "AttributeValue") {
        values.push(text(part)?.to_owned());
    }
    parts.end()?;
    Ok(Attribute { name, friendly_name, values })
}

/// A response, or a confirmation, answers the request of this login.
fn check_in_response_to(element: Element<'_>, login: &PendingLogin) -> Result<(), Reason> {
    let answered = attribute(element, "InResponseTo")?;
    if answered == login.request_id { Ok(()) } else { Err(Reason::InResponseTo) }
}

/// When the assertion ends.
fn check_times(
    assertion: &Assertion<'_>,
    confirmation: Element<'_>,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, Reason> {
    let mut ends = DateTime::<Utc>::MAX_UTC;
    for element in [assertion.conditions, confirmation] {
        if let Some(begin) = element.attribute("NotBefore")
            && time("NotBefore", begin)? > now + LEEWAY
        {
            return Err(Reason::TooEarly("NotBefore", shown(now)));
        }
        let end = time("NotOnOrAfter", attribute(element, "NotOnOrAfter")?)?;
        check_end("NotOnOrAfter", end, now)?;
        ends = ends.min(end);
    }
    Ok(ends)
}

fn check_end(name: &'static str, end: DateTime<Utc>, now: DateTime<Utc>) -> Result<(), Reason> {
    if now < end + LEEWAY { Ok(()) } else { Err(Reason::TooLate(name, shown(now))) }
}

/// The session at the identity provider.
struct Session {
    index: Option<String>,
    ends: Option<DateTime<Utc>>,
    /// When the person signed in.
    signed_in_at: DateTime<Utc>,
}

/// The session at the identity provider, by all statements together.
fn session(assertion: &Assertion<'_>, now: DateTime<Utc>) -> Result<Session, Reason> {
    let mut index = None;
    let mut ends: Option<DateTime<Utc>> = None;
    let mut signed_in_at = now;
    for statement in &assertion.authentication {
        attributes(*statement, &["AuthnInstant", "SessionIndex", "SessionNotOnOrAfter"])?;
        let began = time("AuthnInstant", attribute(*statement, "AuthnInstant")?)?;
        signed_in_at = signed_in_at.min(began);
        if let Some(end) = statement.attribute("SessionNotOnOrAfter") {
            let end = time("SessionNotOnOrAfter", end)?;
            check_end("SessionNotOnOrAfter", end, now)?;
            ends = Some(ends.map_or(end, |other| other.min(end)));
        }
        if index.is_none() {
            index = statement.attribute("SessionIndex").map(str::to_owned);
        }
    }
    Ok(Session { index, ends, signed_in_at })
}

/// A time of SAML, which is in UTC and says so with a `Z`: the core of SAML allows no other
/// offset, `+00:00` included.
fn time(name: &'static str, text: &str) -> Result<DateTime<Utc>, Reason> {
    let wrong = || Reason::NotATime(name, Quoted::new(text));
    if text.len() > TIME || !text.ends_with('Z') {
        return Err(wrong());
    }
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| wrong())?;
    Ok(time.with_timezone(&Utc))
}

fn shown(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
