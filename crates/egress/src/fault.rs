//! Faults of external servers as members may see them: classes, never text of the server.
//!
//! What belongs here: classifying errors. What does not: whether to retry, and sentences
//! for users (the callers).

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;

use crate::host::Refused;

/// A class of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultClass {
    /// The address must not be dialled.
    Forbidden,
    /// The name has no address, or is not valid.
    NotFound,
    /// No server listens there, or the host is unreachable.
    Refused,
    /// No answer came in time.
    TimedOut,
    /// The certificate is not trusted, or the TLS handshake failed.
    Tls,
    /// An answer with another status than success.
    Status(u16),
    /// The answer is larger than the caller's limit.
    TooLarge,
    /// The connection broke, or the server speaks another protocol.
    Broken,
}

impl FaultClass {
    /// A short text for users, without a sentence around it: `HTTP 403`.
    pub fn text(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Forbidden => "forbidden address",
            Self::NotFound => "name not found",
            Self::Refused => "connection refused",
            Self::TimedOut => "timed out",
            Self::Tls => "TLS",
            Self::Status(status) => return Cow::Owned(format!("HTTP {status}")),
            Self::TooLarge => "answer too large",
            Self::Broken => "connection broken",
        })
    }
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Why an external server was not reached, or gave no valid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{class}")]
pub struct Fault {
    /// The class of the fault.
    pub class: FaultClass,
}

impl From<FaultClass> for Fault {
    fn from(class: FaultClass) -> Self {
        Self { class }
    }
}

impl From<Refused> for Fault {
    fn from(_: Refused) -> Self {
        FaultClass::Forbidden.into()
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        of_io(&error).unwrap_or(FaultClass::Broken).into()
    }
}

impl From<reqwest::Error> for Fault {
    fn from(error: reqwest::Error) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(cause) = next {
            if let Some(class) = of_cause(cause) {
                return class.into();
            }
            next = cause.source();
        }
        if error.is_timeout() { FaultClass::TimedOut } else { FaultClass::Broken }.into()
    }
}

fn of_cause(cause: &(dyn Error + 'static)) -> Option<FaultClass> {
    if let Some(fault) = cause.downcast_ref::<Fault>() {
        return Some(fault.class);
    }
    if cause.is::<rustls::Error>() {
        return Some(FaultClass::Tls);
    }
    cause.downcast_ref::<io::Error>().and_then(of_io)
}

fn of_io(error: &io::Error) -> Option<FaultClass> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => Some(FaultClass::Refused),
        io::ErrorKind::TimedOut => Some(FaultClass::TimedOut),
        // The `source` of an I/O error skips the error that it wraps.
        _ => of_cause(error.get_ref()?),
    }
}
