//! Hiding secrets and addresses of people in log lines. Log lines of Weir have neither, but
//! a file may have lines of other programs too.

use weir_model::{keys, scim};

/// What is written instead.
const HIDDEN: &str = "***";
/// Words of at least this many letters and digits may be a token.
const LONG: usize = 24;
/// How keys and tokens begin. The last is a sealed secret.
const BEGINNINGS: [&str; 5] =
    [keys::PREFIX, keys::PROJECT_PREFIX, keys::PROJECT_SECRET_PREFIX, scim::PREFIX, "w1."];

/// A line of a log without anything that may be a secret or an address of a person, and
/// without control characters.
pub(super) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let mut is_credential = false;
    for letter in text.chars().chain(['\n']) {
        if is_of_word(letter) {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            out.push_str(if is_credential || is_secret(&word) { HIDDEN } else { &word });
            // The word after such a name is the value.
            is_credential = is_name(&word);
            word.clear();
        }
        if !letter.is_control() {
            out.push(letter);
        }
    }
    out
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_-.@+".contains(letter)
}

/// Names before a credential.
fn is_name(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    ["bearer", "basic", "password", "secret", "token", "authorization", "cookie"]
        .contains(&lower.as_str())
}

fn is_secret(word: &str) -> bool {
    let is_value = BEGINNINGS.iter().any(|beginning| word.starts_with(beginning));
    is_value || word.contains('@') || is_token(word)
}

/// Whether a word is long and looks random: letters and digits, and no id.
fn is_token(word: &str) -> bool {
    let count = |is: fn(&char) -> bool| word.chars().filter(is).count();
    let is_id = uuid::Uuid::try_parse(word).is_ok() && word.contains('-');
    let digits = count(char::is_ascii_digit);
    let letters = count(char::is_ascii_alphabetic);
    !is_id && !word.contains('.') && digits > 2 && letters > 2 && digits + letters >= LONG
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn secrets_and_addresses_of_people_are_hidden() {
        for (text, expected) in [
            ("key phx_a1B2c3 was refused", "key *** was refused"),
            ("key=phc_a1B2c3,", "key=***,"),
            ("mail to ada@mail.example failed", "mail to *** failed"),
            ("Authorization: Bearer abc", "Authorization: *** ***"),
            ("password=\"hunter2\" x", "password=\"***\" x"),
            ("sealed w1.0a.ff00 is damaged", "sealed *** is damaged"),
            ("session 5d41402abc4b2a76b9719d911017c592 ended", "session *** ended"),
            ("\u{1b}[31mERROR\u{1b}[0m a", "[31mERROR[0m a"),
        ] {
            assert_eq!(line(text), expected, "{text}");
        }
    }

    #[test]
    fn what_an_error_says_stays() {
        for text in [
            "2026-06-01T10:00:00.123456Z  WARN weir_server::serve: not all events were sealed",
            "run=01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de attempts=12 status=503",
            "file=/var/lib/weir/data/segments/1/0/00000000000000000001.parquet",
        ] {
            assert_eq!(line(text), text);
        }
    }
}
