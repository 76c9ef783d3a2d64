//! Faults of requests, as the protocol names them (RFC 7644, 3.12).

/// The name of a fault, `scimType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The filter cannot be read, or compares what cannot be compared.
    InvalidFilter,
    /// There are more operations or members than allowed.
    TooMany,
    /// A value that must be unique belongs to another resource.
    Uniqueness,
    /// The attribute cannot be changed or removed.
    Mutability,
    /// The body does not have the form of the protocol.
    InvalidSyntax,
    /// The path of an operation cannot be read.
    InvalidPath,
    /// The path of an operation finds nothing.
    NoTarget,
    /// A value is missing or wrong.
    InvalidValue,
}

impl FaultKind {
    /// The name on the wire.
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidFilter => "invalidFilter",
            Self::TooMany => "tooMany",
            Self::Uniqueness => "uniqueness",
            Self::Mutability => "mutability",
            Self::InvalidSyntax => "invalidSyntax",
            Self::InvalidPath => "invalidPath",
            Self::NoTarget => "noTarget",
            Self::InvalidValue => "invalidValue",
        }
    }

    /// The status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::Uniqueness => 409,
            _ => 400,
        }
    }
}

/// A fault of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", kind.text())]
pub struct Fault {
    /// Its name.
    pub kind: FaultKind,
    /// A sentence for people.
    pub detail: String,
}

impl Fault {
    /// A fault.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// A wrong value.
    pub fn value(detail: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidValue, detail)
    }
}
