//! Requests that other sites make a browser send (SEC-11). The session's cookie is not
//! enough for a change: the browser must say that the request comes from a page of this
//! instance.

use http::{HeaderMap, Method, header};

use super::cookies::is_this_machine;
use crate::config::Config;

/// Whether a request is allowed: a read, or a change from a page of this instance.
pub(crate) fn may_pass(config: &Config, method: &Method, headers: &HeaderMap) -> bool {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return true;
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // Pages cannot set this header. The browser sets it by comparing with the origin of
    // the target.
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    text(header::ORIGIN.as_str()).is_some_and(|origin| is_ours(config, headers, origin))
}

/// Whether a request comes from no page of another site: it names no origin, as those of
/// programs do, or that of this instance. A name of another site can lead to this machine.
pub(crate) fn is_of_no_other_site(config: &Config, headers: &HeaderMap) -> bool {
    headers
        .get(header::ORIGIN)
        .is_none_or(|origin| origin.to_str().is_ok_and(|origin| is_ours(config, headers, origin)))
}

/// Whether this is the origin of this instance.
fn is_ours(config: &Config, headers: &HeaderMap, origin: &str) -> bool {
    match config.public_url.origin() {
        Some(ours) => origin == ours,
        // Without a public URL only this machine is certain.
        None => {
            let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
            let host = host.unwrap_or_default();
            is_this_machine(&config.listen)
                && is_this_machine(host)
                && origin.strip_prefix("http://") == Some(host)
        }
    }
}

#[cfg(test)]
mod tests {

    use http::{HeaderMap, Method};

    use super::{is_of_no_other_site, may_pass};
    use crate::config::{Config, Settings};

    const LOCAL: &str = "127.0.0.1:8000";
    const PUBLIC: &str = "https://weir.example";

    type Headers = &'static [(&'static str, &'static str)];

    fn config(listen: &str, public: &str) -> Config {
        let settings = Settings {
            listen: Some(listen.to_owned()),
            public_url: Some(public.parse().unwrap()),
            ..Settings::default()
        };
        settings.over(Settings::default())
    }

    fn headers(pairs: Headers) -> HeaderMap {
        let parsed =
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        parsed.collect()
    }

    fn passes(listen: &str, public: &str, pairs: Headers) -> bool {
        may_pass(&config(listen, public), &Method::POST, &headers(pairs))
    }

    #[test]
    fn programs_name_no_origin() {
        let cases: [(&str, Headers, bool); 7] = [
            ("", &[], true),
            ("", &[("origin", "http://127.0.0.1:8000"), ("host", "127.0.0.1:8000")], true),
            ("", &[("origin", "http://evil.example:8000"), ("host", "evil.example:8000")], false),
            ("", &[("origin", "null"), ("host", "127.0.0.1:8000")], false),
            (PUBLIC, &[("origin", PUBLIC)], true),
            (PUBLIC, &[("origin", "https://evil.example")], false),
            (PUBLIC, &[("origin", "")], false),
        ];
        for (url, pairs, expected) in cases {
            let found = is_of_no_other_site(&config(LOCAL, url), &headers(pairs));
            assert_eq!(found, expected, "{url} {pairs:?}");
        }
    }

    #[test]
    fn changes_come_from_our_own_pages_only() {
        let cases: [(&str, &str, Headers, bool); 13] = [
            (LOCAL, "", &[("sec-fetch-site", "same-origin")], true),
            (LOCAL, "", &[("sec-fetch-site", "same-site")], false),
            (LOCAL, "", &[("sec-fetch-site", "cross-site")], false),
            (LOCAL, "", &[("sec-fetch-site", "none")], false),
            // The first header decides: the second is not read.
            (LOCAL, PUBLIC, &[("sec-fetch-site", "cross-site"), ("origin", PUBLIC)], false),
            (LOCAL, "", &[], false),
            (LOCAL, "", &[("origin", "http://127.0.0.1:8000"), ("host", "127.0.0.1:8000")], true),
            (LOCAL, "", &[("origin", "http://127.0.0.1:9"), ("host", "127.0.0.1:8000")], false),
            (LOCAL, "", &[("origin", "http://evil.example"), ("host", "evil.example")], false),
            ("0.0.0.0:80", "", &[("origin", "http://10.0.0.1"), ("host", "10.0.0.1")], false),
            (LOCAL, PUBLIC, &[("origin", PUBLIC), ("host", "weir.example")], true),
            (LOCAL, PUBLIC, &[("origin", "http://weir.example"), ("host", "weir.example")], false),
            (LOCAL, PUBLIC, &[("origin", "null")], false),
        ];
        for (listen, url, pairs, expected) in cases {
            assert_eq!(passes(listen, url, pairs), expected, "{listen} {url} {pairs:?}");
        }
    }

    #[test]
    fn reads_pass() {
        let config = Settings::default().over(Settings::default());
        assert!(may_pass(&config, &Method::GET, &HeaderMap::new()));
        assert!(!may_pass(&config, &Method::DELETE, &HeaderMap::new()));
    }
}
