//! Why an answer was refused.

/// The check that failed. The text is for the log: it has no value of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is too long.
    #[error("the answer is too long")]
    TooLong,
    /// It has another form. The text says which part.
    #[error("{0} is not readable")]
    Unreadable(&'static str),
    /// It was made for something else than this.
    #[error("the answer is of another type")]
    OtherType,
    /// It answers another challenge.
    #[error("the answer is to another challenge")]
    OtherChallenge,
    /// The page is of another site, or in a frame of one.
    #[error("the answer comes from another origin")]
    OtherOrigin,
    /// The authenticator signed for another relying party.
    #[error("the answer is for another relying party")]
    OtherRelyingParty,
    /// The authenticator did not see a user.
    #[error("no user was present")]
    NotPresent,
    /// The authenticator did not verify the user.
    #[error("the user was not verified")]
    NotVerified,
    /// The answer is about another credential.
    #[error("the answer is about another credential")]
    OtherCredential,
    /// A new credential without a public key.
    #[error("there is no public key")]
    NoKey,
    /// The public key is of a type that was not requested.
    #[error("the public key has another type")]
    OtherKey,
    /// The signature does not fit.
    #[error("the signature is wrong")]
    WrongSignature,
    /// The passkey says something else than before about copies on other devices.
    #[error("whether it can be copied has changed")]
    BackupChanged,
    /// The counter is not greater than before: there may be a copy of the authenticator.
    #[error("the counter went back")]
    CounterWentBack,
}
