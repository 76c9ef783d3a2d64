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
    let Some(origin) = text(header::ORIGIN.as_str()) else { return false };
    match config.public_url.origin() {
        Some(ours) => origin == ours,
        // Without a public URL only this machine is certain.
        None => {
            let host = text(header::HOST.as_str()).unwrap_or_default();
            is_this_machine(&config.listen)
                && is_this_machine(host)
                && origin.strip_prefix("http://") == Some(host)
        }
    }
}

#[cfg(test)]
mod tests {

    use http::{HeaderMap, Method};

    use super::may_pass;
    use crate::config::Settings;

    const LOCAL: &str = "127.0.0.1:8000";
    const PUBLIC: &str = "https://weir.example";

    type Headers = &'static [(&'static str, &'static str)];

    fn passes(listen: &str, public: &str, pairs: Headers) -> bool {
        let settings = Settings {
            listen: Some(listen.to_owned()),
            public_url: Some(public.parse().unwrap()),
            ..Settings::default()
        };
        let headers: HeaderMap = pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        may_pass(&settings.over(Settings::default()), &Method::POST, &headers)
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
