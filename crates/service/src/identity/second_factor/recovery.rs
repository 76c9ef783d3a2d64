//! Recovery codes, for users who have lost their authenticator app. There are ten, of
//! 80 random bits each, and each works once.

use weir_model::UserId;

use super::totp::base32;
use crate::{Result, secrets};

/// How many codes a user gets.
const CODES: usize = 10;
/// Length of a code, in random bytes.
const BYTES: usize = 10;
/// Length of a code, in letters and digits.
const LENGTH: usize = 16;
/// Length of the groups in which a code is written.
const GROUP: usize = 4;

/// New codes, as their owner gets them.
pub(super) fn new() -> Result<Vec<String>> {
    (0..CODES).map(|_| Ok(written(&secrets::random::<BYTES>()?))).collect()
}

fn written(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, letter) in base32(bytes).to_ascii_lowercase().chars().enumerate() {
        if at > 0 && at % GROUP == 0 {
            text.push('-');
        }
        text.push(letter);
    }
    text
}

/// The stored form of a typed code; `None`: it does not have the form of a code. The
/// hash includes the user, so that equal codes of two users have different hashes.
pub(super) fn hash(user: UserId, typed: &str) -> Option<String> {
    let code: String = typed
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let is_digit = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    let is_code = code.len() == LENGTH && code.bytes().all(is_digit);
    is_code.then(|| secrets::sha256_hex(&format!("weir recovery code {user} {code}")))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let user = UserId(Uuid::from_u128(1));
        let code = written(&[0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(code.len(), 19);
        let stored = hash(user, &code).unwrap();
        for same in [code.to_uppercase(), code.replace('-', ""), format!(" {code}\n")] {
            assert_eq!(hash(user, &same).as_ref(), Some(&stored), "{same}");
        }
        assert_ne!(hash(UserId(Uuid::from_u128(2)), &code), Some(stored));
        for bad in ["", "123456", "aaaa-aaaa-aaaa-aaa1", "aaaa-aaaa-aaaa-aaaaa", "ääää-aaaa-aaaa"]
        {
            assert_eq!(hash(user, bad), None, "{bad}");
        }
    }

    #[test]
    fn ten_different_codes() {
        let mut codes = new().unwrap();
        codes.sort();
        codes.dedup();
        assert_eq!(codes.len(), CODES);
    }
}
