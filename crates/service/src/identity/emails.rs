//! The canonical form in which addresses are compared.

use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of an address, in characters. The rest is ignored.
const LONGEST: usize = 320;

/// The form in which addresses are unique and attempts are counted: Unicode form NFKC,
/// lower case, without surrounding blanks. All spellings that these rules make equal
/// belong to the same mailbox.
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
