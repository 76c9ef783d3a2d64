//! How cookies are written and read.

use http::{HeaderMap, header};
use weir_app::context::Cookies;

use crate::config::Config;

/// Secure cookies, apart from http on this machine: there browsers would not
/// all keep them.
pub(super) fn of(config: &Config) -> Cookies {
    let plain = match config.public_url.authority() {
        Some(authority) => !config.public_url.is_https() && is_this_machine(authority),
        None => is_this_machine(&config.listen),
    };
    Cookies { secure: !plain }
}

/// Whether an authority, with or without port, names this machine.
pub(super) fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The value of the first cookie of this name.
pub(super) fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
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
    use crate::config::Settings;

    #[test]
    fn only_http_on_this_machine_goes_without_tls() {
        for (listen, public, secure) in [
            ("127.0.0.1:8000", "", false),
            ("0.0.0.0:8000", "", true),
            ("127.0.0.1:8000", "https://weir.example", true),
            ("0.0.0.0:8000", "http://localhost:8000", false),
            ("127.0.0.1:8000", "http://weir.example", true),
            ("127.0.0.1:8000", "https://localhost", true),
        ] {
            let settings = Settings {
                listen: Some(listen.to_owned()),
                public_url: Some(public.parse().unwrap()),
                ..Settings::default()
            };
            let cookies = of(&settings.over(Settings::default()));
            assert_eq!(cookies.secure, secure, "{listen} {public}");
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
