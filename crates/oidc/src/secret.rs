//! Secrets of this crate: client secrets, tokens, and what binds a login to a browser.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::Refusal;

/// A secret text. Its `Debug` does not show it, and its memory is wiped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for the request or the record that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether both are the same text, in a time that does not depend on where they
    /// differ.
    pub(crate) fn is(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }

    /// A new text of 256 random bits: 43 characters that need no escapes.
    pub(crate) fn random() -> Result<Self, Refusal> {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        getrandom::fill(&mut *bytes).map_err(|_| Refusal::NoRandomness)?;
        Ok(Self::new(URL_SAFE_NO_PAD.encode(bytes.as_slice())))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_not_shown_and_is_compared_whole() {
        let secret = Secret::new("abc".to_owned());
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert!(secret.is("abc"));
        for other in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!secret.is(other), "{other}");
        }
        let (one, two) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_eq!(one.expose().len(), 43);
        assert!(!one.is(two.expose()));
    }
}
