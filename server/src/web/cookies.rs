//! Writing and reading cookies.

use http::{HeaderMap, header};
use weir_app::context::Cookies;

use crate::config::Config;

/// The policy for the cookies of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CookiePolicy {
    pub(crate) cookies: Cookies,
    /// Whether a session can be opened.
    pub(crate) keeps_sessions: bool,
}

/// Cookies are secure, except over http on this machine, where not all browsers would
/// keep them. Without a public URL the request itself must show that it is on this
/// machine, because behind a proxy the same cookie would cross networks unencrypted. A
/// session can be opened only where its cookie is secure or stays on this machine.
pub(crate) fn of(config: &Config, origin: &str, headers: &HeaderMap) -> CookiePolicy {
    let plain = match config.public_url.authority() {
        Some(authority) => !config.public_url.is_https() && is_this_machine(authority),
        None => {
            let host = origin.strip_prefix("http://");
            host.is_some_and(is_this_machine) && !says_tls(headers)
        }
    };
    CookiePolicy {
        cookies: Cookies { secure: !plain },
        keeps_sessions: plain || config.public_url.is_https(),
    }
}

/// Whether a proxy says that the client connected over TLS. Some proxies put their own
/// name for this server into `Host`. Any client may send the header, because it only
/// makes the policy stricter.
fn says_tls(headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| {
        let mut lines = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        lines.any(|line| line.to_ascii_lowercase().contains(word))
    };
    says("x-forwarded-proto", "https") || says("forwarded", "proto=https")
}

/// Whether an authority, with or without port, names this machine.
pub(crate) fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The value of the first cookie of this name.
pub(crate) fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).find_map(|cookie| {
        let (found, value) = cookie.trim().split_once('=')?;
        (found == name).then_some(value)
    })
}

#[cfg(test)]
mod tests {

    use http::{HeaderMap, header};

    use super::{is_this_machine, of, read};
    use crate::config::{Config, Settings};

    fn config(public: &str) -> Config {
        let public_url = Some(public.parse().unwrap());
        Settings { public_url, ..Settings::default() }.over(Settings::default())
    }

    #[test]
    fn only_http_on_this_machine_goes_without_tls() {
        // Public URL, origin of the request, whether cookies are secure, whether a
        // session can be opened.
        for (public, origin, secure, keeps) in [
            ("", "http://127.0.0.1:8000", false, true),
            ("", "http://localhost:8000", false, true),
            ("", "http://[::1]:8000", false, true),
            ("", "http://weir.example", true, false),
            ("", "http://10.0.0.1:8000", true, false),
            ("", "http://localhost.evil.example", true, false),
            ("", "", true, false),
            // A trusted proxy sent this; links still need a configured name.
            ("", "https://weir.example", true, false),
            ("", "https://localhost", true, false),
            ("https://weir.example", "https://weir.example", true, true),
            ("https://weir.example", "http://127.0.0.1:8000", true, true),
            ("https://localhost", "https://localhost", true, true),
            ("http://localhost:8000", "http://localhost:8000", false, true),
            ("http://weir.example", "http://weir.example", true, false),
        ] {
            let policy = of(&config(public), origin, &HeaderMap::new());
            assert_eq!(policy.cookies.secure, secure, "{public} {origin}");
            assert_eq!(policy.keeps_sessions, keeps, "{public} {origin}");
        }
    }

    #[test]
    fn a_proxy_that_speaks_tls_is_not_this_machine() {
        for (name, value, keeps) in [
            ("x-forwarded-proto", "https", false),
            ("x-forwarded-proto", "HTTPS, http", false),
            ("forwarded", "for=192.0.2.1;proto=https", false),
            ("x-forwarded-proto", "http", true),
            ("x-forwarded-for", "192.0.2.1", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let policy = of(&config(""), "http://127.0.0.1:8000", &headers);
            assert_eq!(policy.keeps_sessions, keeps, "{name}: {value}");
            assert_eq!(policy.cookies.secure, !keeps, "{name}: {value}");
            let policy = of(&config("https://weir.example"), "http://127.0.0.1:8000", &headers);
            assert!(policy.keeps_sessions && policy.cookies.secure, "{name}: {value}");
        }
    }

    #[test]
    fn names_of_this_machine() {
        for name in ["localhost", "LOCALHOST:1", "127.0.0.1:0", "127.9.9.9", "[::1]:8000"] {
            assert!(is_this_machine(name), "{name}");
        }
        for name in ["", "0.0.0.0:1", "localhost.example", "10.0.0.1", "[::]:8000"] {
            assert!(!is_this_machine(name), "{name}");
        }
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "xsession=a; session=b=c; session=d".parse().unwrap());
        assert_eq!(read(&headers, "session"), Some("b=c"));
        assert_eq!(read(&headers, "sess"), None);
    }
}
