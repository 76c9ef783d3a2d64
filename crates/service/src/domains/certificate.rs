//! Reading an identity provider's certificate.
//!
//! What belongs here: whether a text is a certificate, its subject, and until when it
//! is valid. What does not: trust. Entering a certificate pins it.

use weir_model::Timestamp;
use x509_cert::Certificate;
use x509_cert::der::DecodePem as _;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// Characters on a line of PEM.
const LINE: usize = 64;

/// The facts by which people identify a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its subject, such as `CN=idp.example.com`.
    pub(super) subject: String,
    /// Until when it is valid.
    pub(super) expires_at: Timestamp,
}

/// The facts of a certificate; `None` for a blank text. The text is PEM, or only the
/// base64 text between its first and its last line, as in the metadata of identity
/// providers.
///
/// # Errors
/// Why it is no certificate.
pub(super) fn read(text: &str) -> Result<Option<Facts>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = |why: &str| format!("This is not an X.509 certificate in PEM: {why}.");
    let inner = match text.strip_prefix(BEGIN) {
        Some(rest) => {
            let end = format!("it does not end with {END}");
            rest.strip_suffix(END).ok_or_else(|| wrong(&end))?
        }
        None => text,
    };
    if inner.contains("-----") {
        return Err(wrong("it must be one certificate and nothing else"));
    }
    let digits: Vec<u8> = inner.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let mut pem = format!("{BEGIN}\n").into_bytes();
    for line in digits.chunks(LINE) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    pem.extend_from_slice(END.as_bytes());
    pem.push(b'\n');
    let certificate = Certificate::from_pem(&pem).map_err(|error| wrong(&error.to_string()))?;
    let certificate = certificate.tbs_certificate;
    let end = certificate.validity.not_after.to_unix_duration();
    let micros = i64::try_from(end.as_micros()).unwrap_or(i64::MAX);
    Ok(Some(Facts {
        subject: certificate.subject.to_string(),
        expires_at: Timestamp::from_micros(micros),
    }))
}
