//! The entered values of a form that failed, for the page that shows the form again. They
//! are in a short-lived cookie. If they are too long for one, they are in the memory of
//! this process, under a name that is in the cookie.
//!
//! What belongs here: what is kept, where, and for how long. What does not: showing it
//! again (`weir-app`). Secrets are not kept: fields that are named or marked as secrets,
//! and addresses that contain one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Instant;

use http::request::Parts;
use weir_app::context::Cookies;
use weir_app::form_names::{KEPT, SECRET_MARK};
use weir_model::UserId;

use super::cookies;
use super::memory::Memory;

/// The message of a page when the entered values are lost.
pub(super) const LOST: &str = "What you typed could not be kept. Enter it again.";
/// Fields that are not kept: secrets, and values that the page has anyway.
const NOT_KEPT: [&str; 11] = [
    "answer",
    "client_secret",
    "password",
    "current_password",
    "token",
    "code",
    "last_code",
    "recovery_code",
    "back",
    "back_part",
    "id",
];
/// Prefix of the names of fields that are secrets by their schema.
const SECRETS: &str = "secrets[";
/// Parts of the names of address parameters that are secrets. The list is generous,
/// because a value that is not kept is simply entered again.
const SECRET_WORDS: [&str; 9] =
    ["token", "secret", "passw", "pwd", "key", "auth", "sig", "session", "credential"];
/// Seconds that the entered values of a failed form are kept.
pub(super) const SECONDS: u32 = 60;
/// Longest text in a cookie, in bytes. Browsers drop cookies beyond 4096.
const COOKIE_BYTES: usize = 3000;
/// The cookie's value if the text is in memory. An encoded form never has this value.
const IN_MEMORY: &str = "*";
/// Bytes in memory for users who are signed in, or have been in the same browser.
const MEMBERS_BYTES: usize = 16 << 20;
/// Bytes in memory for unknown senders. They cannot use up the bytes of users.
const UNKNOWN_SENDER_BYTES: usize = 4 << 20;

/// The values to keep of these fields, encoded like a form.
pub(super) fn of(fields: &[(Cow<'_, str>, Cow<'_, str>)]) -> String {
    // A form marks the fields that are secrets.
    let marked: HashSet<&str> =
        fields.iter().filter_map(|(name, _)| name.strip_prefix(SECRET_MARK)).collect();
    let is_marked = |name: &str| name.starts_with(SECRET_MARK) || marked.contains(name);
    let mut kept = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        let is_secret = name.starts_with(SECRETS) || is_marked(name) || carries_secret(value);
        if !is_secret && !NOT_KEPT.contains(&&**name) {
            kept.append_pair(name, value);
        }
    }
    kept.finish()
}

/// Whether one line has an address with a secret in it: a password before the host, or a
/// parameter with the name of a secret.
fn carries_secret(text: &str) -> bool {
    !text.trim().contains('\n') && text.split_whitespace().any(is_secret_address)
}

fn is_secret_address(word: &str) -> bool {
    let (place, rest) = word.split_at(word.find(['?', '#']).unwrap_or(word.len()));
    let host = place.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    let is_secret = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
        let name = name.to_ascii_lowercase();
        !value.is_empty() && SECRET_WORDS.iter().any(|word| name.contains(word))
    };
    host.is_some_and(|host| host.contains('@'))
        || rest
            .split(['?', '#', ';'])
            .any(|part| form_urlencoded::parse(part.as_bytes()).any(is_secret))
}

/// Texts that are too long for a cookie, with their users.
pub(super) struct Drafts {
    members: Memory<(UserId, String)>,
    unknown_senders: Memory<String>,
}

impl Default for Drafts {
    fn default() -> Self {
        Self {
            members: Memory::new(MEMBERS_BYTES),
            unknown_senders: Memory::new(UNKNOWN_SENDER_BYTES),
        }
    }
}

impl Drafts {
    /// Keeps a text for this many seconds, and returns its cookie.
    pub(super) fn keep(
        &self,
        user: Option<UserId>,
        cookies: Cookies,
        text: &str,
        seconds: u32,
    ) -> String {
        let name = cookies.typed_name();
        if text.len() <= COOKIE_BYTES {
            return cookies.hidden(name, text, seconds);
        }
        let (now, size, text) = (Instant::now(), text.len(), text.to_owned());
        let draft = match user {
            Some(user) => self.members.put((user, text), size, seconds, now),
            None => self.unknown_senders.put(text, size, seconds, now),
        };
        cookies.hidden(name, &format!("{IN_MEMORY}{draft}"), seconds)
    }

    /// The entered values of the form that a page shows again; `None` if they are lost.
    pub(super) fn typed(
        &self,
        user: Option<UserId>,
        cookies: Cookies,
        parts: &Parts,
    ) -> Option<Vec<(String, String)>> {
        let is_back = |pair: &str| {
            pair.split_once('=').is_some_and(|(name, _)| name == "__err" || name == KEPT)
        };
        if !parts.uri.query().is_some_and(|query| query.split('&').any(is_back)) {
            return Some(Vec::new());
        }
        let kept = cookies::read(&parts.headers, cookies.typed_name()).unwrap_or_default();
        let text = match kept.strip_prefix(IN_MEMORY) {
            Some(draft) => Cow::Owned(self.get(user, draft, Instant::now())?),
            None => Cow::Borrowed(kept),
        };
        Some(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    fn get(&self, user: Option<UserId>, draft: &str, now: Instant) -> Option<String> {
        let of_member = || {
            let (owner, text) = self.members.get(draft, now)?;
            (Some(owner) == user).then_some(text)
        };
        of_member().or_else(|| self.unknown_senders.get(draft, now))
    }
}

#[cfg(test)]
mod tests {

    use std::time::Instant;

    use weir_app::context::Cookies;
    use weir_model::UserId;

    use super::{COOKIE_BYTES, Drafts, SECONDS, carries_secret, of};

    fn kept(body: &str) -> String {
        let fields: Vec<_> = form_urlencoded::parse(body.as_bytes()).collect();
        of(&fields)
    }

    #[test]
    fn secrets_are_not_kept() {
        for (body, expected) in [
            ("email=a%40b.de&password=x&token=t&back=%2Fsetup", "email=a%40b.de"),
            (
                "config%5Bkey%5D=x&secret%3Aconfig%5Bkey%5D=&config%5Bhost%5D=h",
                "config%5Bhost%5D=h",
            ),
            ("secrets%5Bpassword%5D=x&name=n", "name=n"),
            (
                "plugin_list=s&url=https%3A%2F%2Fgithub.com%2Fa%2Fb%3Fprivate_token%3Dt",
                "plugin_list=s",
            ),
            ("url=https%3A%2F%2Fgithub.com%2Fa%2Fb", "url=https%3A%2F%2Fgithub.com%2Fa%2Fb"),
        ] {
            assert_eq!(kept(body), expected, "{body}");
        }
    }

    /// Eight times the fields may take little more than eight times as long. Searching
    /// all fields for each one would take 64 times as long.
    #[test]
    fn many_fields_take_time_in_proportion() {
        let time = |count: usize| {
            let body = "secret:a&a&".repeat(count / 2);
            let runs = (0..5).map(|_| {
                let began = Instant::now();
                assert_eq!(kept(&body), "");
                began.elapsed()
            });
            runs.min().unwrap()
        };
        let (few, many) = (time(4_000), time(32_000));
        assert!(many < few * 32, "{few:?} {many:?}");
    }

    #[test]
    fn addresses_with_secrets() {
        for text in [
            "https://github.com/a/b?private_token=t",
            "github.com/a/b?x=1&private_token=t",
            " https://gitlab.com/a b?PRIVATE%5Ftoken=t",
            "https://h.example/hook?api_key=1#top",
            "https://h.example/#access_token=1",
            "https://h.example/blob?sv=1;sig=2",
            "https://ada:pass@h.example/",
            "postgres://ada@h.example/db",
        ] {
            assert!(carries_secret(text), "{text}");
        }
        for text in [
            "",
            "https://h.example/hook?source=weir&page=2",
            "https://h.example/a@b",
            "ada@mail.example",
            "SELECT count() FROM events WHERE a = 1",
            "https://h.example/?token=",
            "const open = (a) => a?.key=1\nreturn open",
        ] {
            assert!(!carries_secret(text), "{text}");
        }
    }

    #[test]
    fn a_short_text_is_in_the_cookie_and_a_long_one_is_not() {
        let drafts = Drafts::default();
        let cookies = Cookies { secure: false };
        let user = |number| Some(UserId(uuid::Uuid::from_u128(number)));
        let short = drafts.keep(user(1), cookies, "name=x", SECONDS);
        assert!(short.starts_with("typed=name=x; ") && short.contains("HttpOnly"), "{short}");
        let long = format!("name={}", "x".repeat(COOKIE_BYTES));
        let kept = |typed_by, read_by, query: &str| {
            let cookie = drafts.keep(typed_by, cookies, &long, SECONDS);
            let cookie = cookie.split(';').next().unwrap();
            assert!(cookie.starts_with("typed=*") && cookie.len() < 100, "{cookie}");
            let request = http::Request::get(format!("/a{query}")).header("cookie", cookie);
            let (parts, ()) = request.body(()).unwrap().into_parts();
            drafts.typed(read_by, cookies, &parts)
        };
        let typed = Some(vec![("name".to_owned(), "x".repeat(COOKIE_BYTES))]);
        assert_eq!(kept(user(1), user(1), "?__err=e"), typed);
        assert_eq!(kept(user(1), user(1), "?a=1&__kept=1"), typed);
        assert_eq!(kept(user(1), user(1), "?a=__kept"), Some(Vec::new()));
        assert_eq!(kept(user(1), user(2), "?__err=e"), None, "of another user");
        // Sent after the session had ended, and read in the next session.
        assert_eq!(kept(None, user(1), "?__kept=1"), typed);
    }
}
