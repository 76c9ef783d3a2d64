//! What was typed into a form that failed, on its way back to the page of the form:
//! in a short-lived cookie or, where it is too long for one, in the memory of this
//! process, under the session.
//!
//! What belongs here: what is kept, where, for how long. What does not: showing it
//! again (`weir-app`). Secrets are not kept: fields that are named or marked as one,
//! and addresses that carry one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use http::request::Parts;
use parking_lot::Mutex;
use weir_app::context::{Cookies, SECRET_MARK};
use weir_service::{Actor, Ctx};

use super::cookies;

/// What a page tells when it should show what was typed, and cannot.
pub(super) const LOST: &str = "What you typed was too long to keep. Enter it again.";
/// Fields that are not kept: secrets, and what the page knows by itself.
const NOT_KEPT: [&str; 9] = [
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
/// What the names of fields begin with that are secrets by their schema.
const SECRETS: &str = "secrets[";
/// What is in the names of the parameters of an address that are secrets. Rather one
/// word too many: what is not kept is entered again.
const SECRET_WORDS: [&str; 9] =
    ["token", "secret", "passw", "pwd", "key", "auth", "sig", "session", "credential"];
/// What was typed is kept for so many seconds.
const KEPT_SECONDS: u32 = 60;
/// Longest text in a cookie, in bytes: browsers drop cookies beyond 4096.
const COOKIE_BYTES: usize = 3000;
/// In the cookie, in the place of a text that is in memory. No form is written so.
const IN_MEMORY: &str = "*";
/// Bytes in memory of all sessions together.
const MEMORY_BYTES: usize = 16 << 20;

/// What is kept of these fields, encoded as a form is.
pub(super) fn of(fields: &[(Cow<'_, str>, Cow<'_, str>)]) -> String {
    // A field says by itself that it is a secret.
    let is_marked = |name: &str| {
        let mut marks = fields.iter().filter_map(|(name, _)| name.strip_prefix(SECRET_MARK));
        name.starts_with(SECRET_MARK) || marks.any(|secret| secret == name)
    };
    let mut kept = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        let is_secret = name.starts_with(SECRETS) || is_marked(name) || carries_secret(value);
        if !is_secret && !NOT_KEPT.contains(&&**name) {
            kept.append_pair(name, value);
        }
    }
    kept.finish()
}

/// Whether one line has an address with a secret in it: a password before the host, or
/// a parameter that is named like one.
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

/// The session that a text in memory is kept under.
pub(super) fn session(ctx: Option<&Ctx>) -> Option<&str> {
    match &ctx?.actor {
        Actor::Session { session, .. } => Some(session),
        Actor::Key { .. } => None,
    }
}

/// Texts that are too long for a cookie: the last one of each session.
#[derive(Default)]
pub(super) struct Drafts(Mutex<HashMap<String, Draft>>);

struct Draft {
    text: String,
    until: Instant,
}

impl Drafts {
    /// Keeps a text, and gives the cookie that leads to it. Where nobody is signed in
    /// a long one is lost, and the page says so.
    pub(super) fn keep(&self, session: Option<&str>, cookies: Cookies, text: &str) -> String {
        let name = cookies.typed_name();
        if text.len() <= COOKIE_BYTES {
            return cookies.hidden(name, text, KEPT_SECONDS);
        }
        if let Some(session) = session {
            self.put(session, text, Instant::now());
        }
        cookies.hidden(name, IN_MEMORY, KEPT_SECONDS)
    }

    /// What was typed into the form whose failure a page shows; `None`: it is lost.
    pub(super) fn typed(
        &self,
        session: Option<&str>,
        cookies: Cookies,
        parts: &Parts,
    ) -> Option<Vec<(String, String)>> {
        let shows_failure = parts.uri.query().is_some_and(|query| query.contains("__err="));
        if !shows_failure {
            return Some(Vec::new());
        }
        let kept = cookies::read(&parts.headers, cookies.typed_name()).unwrap_or_default();
        let text = match kept {
            IN_MEMORY => Cow::Owned(self.get(session?, Instant::now())?),
            text => Cow::Borrowed(text),
        };
        Some(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    fn put(&self, session: &str, text: &str, now: Instant) {
        let until = now + Duration::from_secs(KEPT_SECONDS.into());
        let mut drafts = self.0.lock();
        drafts.remove(session);
        drafts.retain(|_, draft| now < draft.until);
        let mut room = MEMORY_BYTES;
        for draft in drafts.values() {
            room = room.saturating_sub(draft.text.len());
        }
        while room < text.len() {
            let oldest = drafts.iter().min_by_key(|(_, draft)| draft.until);
            let Some(oldest) = oldest.map(|(session, _)| session.clone()) else { return };
            room += drafts.remove(&oldest).map_or(0, |draft| draft.text.len());
        }
        drafts.insert(session.to_owned(), Draft { text: text.to_owned(), until });
    }

    fn get(&self, session: &str, now: Instant) -> Option<String> {
        let drafts = self.0.lock();
        drafts.get(session).filter(|draft| now < draft.until).map(|draft| draft.text.clone())
    }
}

#[cfg(test)]
mod tests {

    use std::time::{Duration, Instant};

    use weir_app::context::Cookies;

    use super::{COOKIE_BYTES, Drafts, KEPT_SECONDS, MEMORY_BYTES, carries_secret, of};

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
            ("shelf=s&url=https%3A%2F%2Fgithub.com%2Fa%2Fb%3Fprivate_token%3Dt", "shelf=s"),
            ("url=https%3A%2F%2Fgithub.com%2Fa%2Fb", "url=https%3A%2F%2Fgithub.com%2Fa%2Fb"),
        ] {
            assert_eq!(kept(body), expected, "{body}");
        }
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
        let short = drafts.keep(Some("s"), cookies, "name=x");
        assert!(short.starts_with("typed=name=x; ") && short.contains("HttpOnly"), "{short}");
        assert_eq!(drafts.get("s", Instant::now()), None);
        let long = "x".repeat(COOKIE_BYTES + 1);
        let cookie = drafts.keep(Some("s"), cookies, &long);
        assert!(cookie.starts_with("typed=*; "), "{cookie}");
        assert_eq!(drafts.get("s", Instant::now()), Some(long));
        assert_eq!(drafts.get("t", Instant::now()), None);
    }

    #[test]
    fn memory_is_bounded() {
        let drafts = Drafts::default();
        let now = Instant::now();
        let part = "x".repeat(MEMORY_BYTES / 4);
        for number in 0..6 {
            drafts.put(&number.to_string(), &part, now + Duration::from_millis(number));
        }
        let later = now + Duration::from_secs(1);
        let left: Vec<u64> =
            (0..6).filter(|number| drafts.get(&number.to_string(), later).is_some()).collect();
        assert_eq!(left, [2, 3, 4, 5], "those that came first went");
        drafts.put("5", "short", later);
        assert_eq!(drafts.get("5", later).as_deref(), Some("short"));
        drafts.put("huge", &"x".repeat(MEMORY_BYTES + 1), later);
        assert_eq!(drafts.get("huge", later), None);
        drafts.put("7", "x", later);
        assert_eq!(drafts.get("7", later + Duration::from_secs(KEPT_SECONDS.into())), None);
    }
}
