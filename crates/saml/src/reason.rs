//! Why a response is refused, as sentences for administrators.
//!
//! What belongs here: one variant for each cause that an administrator can tell apart.
//! What does not: words for visitors. They read one text, which the app has.

use std::fmt;

/// Characters of a value that a sentence quotes.
const QUOTED: usize = 200;

/// A value from a response, shortened, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    pub(crate) fn new(text: &str) -> Self {
        let mut short: String = text.chars().take(QUOTED).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        // Marks that change the direction of a text would disguise the rest of a sentence.
        let unsafe_letter = |letter: char| {
            letter.is_control()
                || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2066}'..='\u{2069}' | '\u{feff}')
        };
        Self(short.replace(unsafe_letter, "\u{fffd}"))
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "“{}”", self.0)
    }
}

/// Why a response is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    // The login.
    /// No login was begun in this browser.
    #[error(
        "Weir began no login that this response belongs to. Begin at the sign-in page of Weir, not at the identity provider."
    )]
    Unsolicited,
    /// The login took too long.
    #[error("The login began more than 10 minutes ago. Begin again.")]
    LoginExpired,
    /// The relay state is missing, or that of another login.
    #[error("The relay state is not the one that Weir sent.")]
    RelayState,

    // The document.
    /// The form field is not base64.
    #[error("The response is not base64.")]
    NotBase64,
    /// The document is longer than 256 KiB.
    #[error("The response is longer than 256 KiB. Send fewer attributes or groups.")]
    TooLarge,
    /// The text is not UTF-8, or says that it is not.
    #[error("The response is not encoded as UTF-8.")]
    NotUtf8,
    /// The text begins with a byte order mark.
    #[error("The response begins with a byte order mark.")]
    ByteOrderMark,
    /// The text is not XML.
    #[error("The response is not well-formed XML.")]
    NotWellFormed,
    /// There are too many elements, attributes or levels.
    #[error("The response has too many elements, attributes or levels.")]
    TooComplex,
    /// A namespace is not declared, or declared in a way that is not allowed.
    #[error("The response uses a namespace prefix that is not declared, or must not be.")]
    Namespace,
    /// The document has a document type.
    #[error("The response has a document type declaration (DOCTYPE).")]
    DocumentType,
    /// The document refers to an entity.
    #[error("The response refers to an entity.")]
    Entity,
    /// The document has a processing instruction.
    #[error("The response has a processing instruction.")]
    ProcessingInstruction,
    /// The document has a comment.
    #[error("The response has a comment.")]
    Comment,
    /// The document has a CDATA section.
    #[error("The response has a CDATA section.")]
    CharacterData,

    // The shape.
    /// The document is another message.
    #[error("The document is not a SAML 2.0 response.")]
    NotAResponse,
    /// Another version.
    #[error("The version is not 2.0.")]
    Version,
    /// An element that is needed is not there.
    #[error("The element {0} is missing, or in another place.")]
    Missing(&'static str),
    /// An element that is not expected there.
    #[error("The element {0} must not be in {1}.")]
    Unexpected(Quoted, Quoted),
    /// A text between elements.
    #[error("There is text in {0}, where only elements are expected.")]
    UnexpectedText(Quoted),
    /// An element that must be text.
    #[error("The element {0} must have text only.")]
    NotText(Quoted),
    /// An attribute that is needed is not there.
    #[error("The XML attribute {0} of {1} is missing.")]
    MissingAttribute(&'static str, Quoted),
    /// An attribute that is not expected there.
    #[error("The XML attribute {0} of {1} is not expected.")]
    UnexpectedAttribute(Quoted, Quoted),
    /// An id has a form that XML does not allow.
    #[error("An ID is empty, too long, or not a name.")]
    Id,
    /// Two elements have one id.
    #[error("Two elements have the same ID.")]
    DuplicateId,
    /// There is no assertion.
    #[error("The response has no assertion.")]
    NoAssertion,
    /// There is more than one assertion, or one in another place.
    #[error("The response must have exactly one assertion, directly inside it.")]
    Assertions,
    /// The assertion is encrypted.
    #[error(
        "The assertion is encrypted. Turn encryption of assertions off at the identity provider: the connection itself is encrypted."
    )]
    Encrypted,
    /// The status is not success.
    #[error("The identity provider answered with the status {0}: {1}.")]
    Status(Quoted, Quoted),

    // The signature.
    /// The assertion is not signed.
    #[error(
        "The assertion is not signed. Turn signing of assertions on at the identity provider; a signed response alone is not enough."
    )]
    NotSigned,
    /// There is a signature in another place.
    #[error("There is a signature in a place where none is expected.")]
    Signatures,
    /// The signature has no value.
    #[error("The signature is empty.")]
    EmptySignature,
    /// A value of the signature is not base64.
    #[error("A value of the signature is not base64.")]
    SignatureEncoding,
    /// SHA-1 is broken.
    #[error("The signature uses SHA-1, which is broken. Choose SHA-256 at the identity provider.")]
    Sha1,
    /// Another algorithm.
    #[error("The algorithm {0} is not accepted. Choose RSA or ECDSA with SHA-256.")]
    Algorithm(Quoted),
    /// The canonical form or a transform is another one.
    #[error(
        "The signature uses the transform {0}. Only the enveloped signature, followed by canonical XML without comments, is accepted."
    )]
    Transform(Quoted),
    /// The signature is not over the element that it is in.
    #[error("The signature refers to {0}, and not to the element that it is in.")]
    Reference(Quoted),
    /// The certificates are not valid at this time.
    #[error(
        "No certificate of the connection is valid today. Enter the current one of the identity provider."
    )]
    CertificateExpired,
    /// The certificates have another kind of key.
    #[error("No valid certificate of the connection has a key for the algorithm of the signature.")]
    KeyKind,
    /// Another key signed, or the signature was changed.
    #[error(
        "The signature is not by a certificate of the connection. Compare its fingerprint with that at the identity provider."
    )]
    WrongSignature,
    /// The content was changed after it was signed.
    #[error("The content was changed after it was signed.")]
    WrongDigest,

    // What the response says.
    /// Another identity provider.
    #[error("The issuer is {0}. The connection has the entity id {1}.")]
    Issuer(Quoted, Quoted),
    /// For another address.
    #[error("The destination is {0}. Weir receives responses at {1}.")]
    Destination(Quoted, Quoted),
    /// For another recipient.
    #[error("The recipient is {0}. Weir receives responses at {1}.")]
    Recipient(Quoted, Quoted),
    /// The answer to another request.
    #[error("The response answers another request than the one of this login.")]
    InResponseTo,
    /// The subject is not confirmed by possession of the assertion.
    #[error("The subject confirmation method is {0}, and not bearer.")]
    Confirmation(Quoted),
    /// A time that is not one.
    #[error("{0} is not a time in UTC with Z at its end, which SAML requires: {1}.")]
    NotATime(&'static str, Quoted),
    /// Not valid yet.
    #[error("{0} is later than the time of Weir ({1} UTC). Check both clocks.")]
    TooEarly(&'static str, String),
    /// Not valid any more.
    #[error("{0} is earlier than the time of Weir ({1} UTC). Check both clocks.")]
    TooLate(&'static str, String),
    /// For another audience.
    #[error("The audience is {0}. The entity id of Weir is {1}.")]
    Audience(Quoted, Quoted),
    /// A condition that Weir does not know, so cannot say that it holds.
    #[error("The condition {0} is not known to Weir.")]
    Condition(Quoted),
    /// The name id is for another service provider.
    #[error("The name id is for {0}. The entity id of Weir is {1}.")]
    NameQualifier(Quoted, Quoted),
    /// The name id is empty, or begins or ends with white space.
    #[error("The name id is empty, too long, or has white space around it.")]
    NameId,
    /// The name id is another one at every login.
    #[error(
        "The name id is transient: it is another one at every login. The address that was sent does not identify a person either, because addresses change their owners. Choose the format persistent or emailAddress at the identity provider."
    )]
    Transient,
    /// There are two addresses.
    #[error("The attribute {0} has more than one address.")]
    Addresses(Quoted),
    /// A value is not an address.
    #[error("{0} is not an e-mail address: {1}.")]
    Address(&'static str, Quoted),
    /// There is no address.
    #[error(
        "No e-mail address was sent. Send it as the name id with the format emailAddress, or as the attribute “email”."
    )]
    NoAddress,

    // The replay.
    /// The assertion was used.
    #[error("This assertion was used before.")]
    Replayed,
    /// It cannot be known whether the assertion was used.
    #[error("Weir could not record the use of the assertion. Try again.")]
    ReplayUnavailable,
}
