//! Recovery codes: for whoever has lost what makes codes. Ten, of 80 random bits,
//! each of which works once.

use weir_model::UserId;

use super::totp::base32;
use crate::{Result, secrets};

/// How many there are.
const CODES: usize = 10;
/// Bytes of one.
const BYTES: usize = 10;
/// Letters and digits of one.
const LENGTH: usize = 16;
/// Of these it is written in groups.
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

/// What is stored of the code that was typed; `None`: it has not the form of one.
/// It is of this account alone, so that equal codes of two have nothing in common.
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
