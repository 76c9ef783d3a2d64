//! Codes from the time (RFC 6238 over RFC 4226): SHA-1, six digits, thirty seconds, as
//! every authenticator app computes them.
//!
//! What belongs here: the code of a secret at a time, and reading a typed code. What
//! does not: codes that were used before (the store), how many attempts are allowed
//! (`throttle`).

use hmac::{Hmac, Mac as _};
use sha1::Sha1;
use weir_model::Timestamp;

use crate::Result;
use crate::error::Error;

/// Length of a secret, in bytes: the length of a SHA-1 hash.
pub(super) const SECRET: usize = 20;
/// Length of a step, in microseconds.
const STEP: i64 = 30 * 1_000_000;
/// How many steps before and after the present one are accepted, because clocks differ.
const DRIFT: i64 = 1;
/// Digits of a code.
const DIGITS: usize = 6;

/// The step at a time.
pub(super) fn step(now: Timestamp) -> i64 {
    now.micros().div_euclid(STEP)
}

/// A code as it was typed, in groups or not; `None`: it is not a code.
pub(super) fn typed(text: &str) -> Option<u32> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    let is_code = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_code { digits.parse().ok() } else { None }
}

/// The step around `now`, after `last`, whose code this is. A `last` beyond the
/// accepted steps was stored while the clock was ahead, and does not count.
///
/// # Errors
/// [`Error::Internal`] when the secret cannot be used.
pub(super) fn matching(
    secret: &[u8],
    typed: u32,
    now: Timestamp,
    last: Option<i64>,
) -> Result<Option<i64>> {
    let mut found = None;
    // All steps are computed, so that the time does not reveal the right one.
    for step in (step(now) - DRIFT..=step(now) + DRIFT).rev() {
        let is_new = last.is_none_or(|last| step > last || last > step + 2 * DRIFT);
        if code(secret, step)? == typed && is_new {
            found = Some(step);
        }
    }
    Ok(found)
}

/// The code of a step.
fn code(secret: &[u8], step: i64) -> Result<u32> {
    let unusable = || Error::Internal("the secret of a second factor cannot be used".to_owned());
    let mac = Hmac::<Sha1>::new_from_slice(secret).map_err(|_| unusable())?;
    let tag = mac.chain_update(step.to_be_bytes()).finalize().into_bytes();
    let at = usize::from(tag.last().copied().unwrap_or(0) & 15);
    let four = tag.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
    let number = u32::from_be_bytes(four.ok_or_else(unusable)?) & 0x7fff_ffff;
    Ok(number % 1_000_000)
}

/// Bytes in base32 (RFC 4648), the form in which a secret is typed into an app. The
/// number of bytes must fill whole digits.
pub(super) fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::new();
    let (mut rest, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        rest = rest << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            let digit = ALPHABET.get((rest >> bits & 31) as usize);
            text.push(digit.copied().map_or('A', char::from));
            rest &= (1 << bits) - 1;
        }
    }
    text
}

#[cfg(test)]
pub(super) fn code_at(secret: &[u8], now: Timestamp) -> String {
    format!("{:06}", code(secret, step(now)).unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of the tables in the RFC.
    const RFC: &[u8] = b"12345678901234567890";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// RFC 6238, appendix B, the last six of eight digits.
    #[test]
    fn codes_of_the_rfc() {
        for (seconds, expected) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(code_at(RFC, at(seconds)), expected, "{seconds}");
        }
    }

    /// RFC 4226, appendix D.
    #[test]
    fn codes_of_counters() {
        let expected = [
            755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583, 399_871,
            520_489,
        ];
        for (step, expected) in (0..).zip(expected) {
            assert_eq!(code(RFC, step).unwrap(), expected, "{step}");
        }
    }

    #[test]
    fn one_step_either_side_and_none_again() {
        let now = at(1_111_111_109);
        let here = step(now);
        for (apart, expected) in [(-2, None), (-1, Some(-1)), (0, Some(0)), (1, Some(1)), (2, None)]
        {
            let number = code(RFC, here + apart).unwrap();
            let found = matching(RFC, number, now, None).unwrap();
            assert_eq!(found, expected.map(|apart: i64| here + apart), "{apart}");
            let again = matching(RFC, number, now, Some(here + apart)).unwrap();
            assert_eq!(again, None, "{apart}");
        }
        // A code older than the last one is refused like the last one.
        let before = code(RFC, here - 1).unwrap();
        assert_eq!(matching(RFC, before, now, Some(here)).unwrap(), None);
    }

    #[test]
    fn typed_codes() {
        for (text, expected) in [
            ("287082", Some(287_082)),
            (" 287 082 ", Some(287_082)),
            ("005-924", Some(5924)),
            ("", None),
            ("28708", None),
            ("2870822", None),
            ("28708x", None),
            ("+28708", None),
            ("２８７０８２", None),
        ] {
            assert_eq!(typed(text), expected, "{text}");
        }
    }

    #[test]
    fn base32_of_the_rfc() {
        assert_eq!(base32(RFC), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(base32(b""), "");
        assert_eq!(base32(&[255; 5]), "77777777");
    }
}
