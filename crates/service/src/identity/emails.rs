//! The one form under which an address is compared.

use unicode_normalization::UnicodeNormalization as _;

/// Longest address that is looked at, in characters.
const LONGEST: usize = 320;

/// The form in which addresses are unique and tries are counted: Unicode form
/// NFKC, lower case, without blanks around it. Every spelling that a mail
/// system would deliver to the same box by these rules has the same form.
pub(crate) fn normalise(address: &str) -> String {
    let composed: String = address.trim().chars().take(LONGEST).nfkc().collect();
    composed.to_lowercase().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::normalise;

    #[test]
    fn spellings_meet() {
        for spelling in [
            "ada@mail.example",
            "  ADA@Mail.Example ",
            "ａｄａ@mail.example",
            "\u{a0}ada@mail.example\u{3000}",
        ] {
            assert_eq!(normalise(spelling), "ada@mail.example", "{spelling:?}");
        }
        assert_eq!(normalise(&"x".repeat(1_000_000)).len(), 320);
    }
}
