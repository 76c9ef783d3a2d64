//! What an authenticator says of itself, of the user and of a new key (WebAuthn, 6.1).

use crate::Refusal;
use crate::cbor::Reader;
use crate::key::PublicKey;

/// The parts of the data that are read.
pub(crate) struct AuthenticatorData<'a> {
    /// SHA-256 of the id of the relying party.
    pub(crate) relying_party: &'a [u8],
    pub(crate) flags: Flags,
    pub(crate) counter: u32,
    /// The key that was made.
    pub(crate) attested: Option<Attested<'a>>,
}

/// A key that was made.
pub(crate) struct Attested<'a> {
    pub(crate) id: &'a [u8],
    pub(crate) key: PublicKey,
}

#[derive(Clone, Copy)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const fn user_present(self) -> bool {
        self.has(0)
    }

    pub(crate) const fn user_verified(self) -> bool {
        self.has(2)
    }

    pub(crate) const fn backup_eligible(self) -> bool {
        self.has(3)
    }

    pub(crate) const fn backed_up(self) -> bool {
        self.has(4)
    }

    const fn has_key(self) -> bool {
        self.has(6)
    }

    const fn has_extensions(self) -> bool {
        self.has(7)
    }

    const fn has(self, bit: u8) -> bool {
        self.0 >> bit & 1 == 1
    }
}

impl<'a> AuthenticatorData<'a> {
    /// Reads all bytes: what follows is refused.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Refusal> {
        Self::parts(bytes).unwrap_or(Err(Refusal::Unreadable("the data of the authenticator")))
    }

    fn parts(bytes: &'a [u8]) -> Option<Result<Self, Refusal>> {
        let (relying_party, rest) = bytes.split_at_checked(32)?;
        let (flags, rest) = rest.split_first()?;
        let flags = Flags(*flags);
        let (counter, mut rest) = rest.split_first_chunk::<4>()?;
        let mut attested = None;
        if flags.has_key() {
            // The model of the authenticator, which does not matter here.
            let (_, of_key) = rest.split_at_checked(16)?;
            let (length, of_key) = of_key.split_first_chunk::<2>()?;
            let (id, of_key) = of_key.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            let mut reader = Reader::new(of_key);
            let key = match PublicKey::read(&mut reader) {
                Ok(key) => key,
                Err(refusal) => return Some(Err(refusal)),
            };
            attested = Some(Attested { id, key });
            rest = reader.rest();
        }
        let mut reader = Reader::new(rest);
        if flags.has_extensions() {
            reader.item()?;
        }
        let counter = u32::from_be_bytes(*counter);
        reader.is_at_end().then_some(Ok(Self { relying_party, flags, counter, attested }))
    }
}
