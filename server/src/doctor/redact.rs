//! Hiding secrets and addresses of people in log lines. Log lines of Weir have neither, but
//! a file may have lines of other programs too.

use weir_model::{keys, scim};

/// What is written instead.
const HIDDEN: &str = "***";
/// Words of at least this many letters and digits may be a token.
const LONG: usize = 24;
/// How keys and tokens begin. The last two are a sealed secret and a JSON Web Token.
const BEGINNINGS: [&str; 6] =
    [keys::PREFIX, keys::PROJECT_PREFIX, keys::PROJECT_SECRET_PREFIX, scim::PREFIX, "w1.", "eyJ"];
/// What names before a credential contain, such as `access_token`.
const NAMES: [&str; 13] = [
    "accesskey",
    "accountkey",
    "apikey",
    "authorization",
    "basic",
    "bearer",
    "cookie",
    "credential",
    "passphrase",
    "password",
    "secret",
    "signature",
    "token",
];

/// A line of a log without anything that may be a secret or an address of a person, and
/// without control characters.
pub(super) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let mut is_credential = false;
    for letter in without_users(text).chars().chain(['\n']) {
        let continues_value = is_credential && !word.is_empty() && is_of_value(letter);
        if is_of_word(letter) || continues_value {
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

/// A text with stars instead of the user and the password in each URL.
fn without_users(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, url)) = rest.split_once("://") {
        let is_end = |letter: char| letter.is_whitespace() || "/?#\"'`".contains(letter);
        let (authority, after) = url.split_at(url.find(is_end).unwrap_or(url.len()));
        out.push_str(before);
        out.push_str("://");
        match authority.rsplit_once('@') {
            Some((_, host)) => out.extend([HIDDEN, "@", host]),
            None => out.push_str(authority),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_-.@+".contains(letter)
}

/// Credentials have characters that other words do not have.
fn is_of_value(letter: char) -> bool {
    !letter.is_whitespace() && !letter.is_control() && !"\"'`&,;)".contains(letter)
}

/// Names before a credential.
fn is_name(word: &str) -> bool {
    let letters = word.chars().filter(char::is_ascii_alphanumeric);
    let letters = letters.collect::<String>().to_ascii_lowercase();
    NAMES.iter().any(|name| letters.contains(name))
}

fn is_secret(word: &str) -> bool {
    let is_value = BEGINNINGS.iter().any(|beginning| word.starts_with(beginning));
    // Without a name before it, the host of a URL follows.
    let is_address = word.find('@').is_some_and(|at| at > 0);
    is_value || is_address || word.split('.').any(is_token)
}

/// Whether a part of a word is long and looks random: letters and digits, and no id.
fn is_token(word: &str) -> bool {
    let count = |is: fn(&char) -> bool| word.chars().filter(is).count();
    let is_id = uuid::Uuid::try_parse(word).is_ok() && word.contains('-');
    let digits = count(char::is_ascii_digit);
    let letters = count(char::is_ascii_alphabetic);
    !is_id && digits > 2 && letters > 2 && digits + letters >= LONG
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
            ("password=hun/ter:2%, x", "password=***, x"),
            ("/a?access_token=a%2Fb&x=1", "/a?access_token=***&x=1"),
            ("x-amz-signature: 9/9+9= y", "x-amz-signature: *** y"),
            ("{\"client_secret\":\"abc\"}", "{\"client_secret\":\"***\"}"),
            ("smtp://weir:hunter2@mail.example:587", "smtp://***@mail.example:587"),
            ("to https://a:b%40c:d@e.example/f", "to https://***@e.example/f"),
            ("id eyJhbGciOiJub25lIn0.e30. x", "id *** x"),
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
