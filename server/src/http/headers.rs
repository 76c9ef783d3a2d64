//! Headers that every answer of a surface carries (ING-7, SEC-12). A header that the
//! handler has set is not changed.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};

const CROSS_ORIGIN_OPENER_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-opener-policy");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// For answers that are not pages: nothing may be loaded or framed.
const CLOSED_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// For pages. The page's own policy with the nonce replaces it.
const PAGE_POLICY: &str = "default-src 'self'; object-src 'none'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'";
/// The app needs no feature of the browser except passkeys, which its own pages use.
const FEATURES: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), \
     fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), \
     payment=(), publickey-credentials-create=(self), publickey-credentials-get=(self), \
     screen-wake-lock=(), usb=()";

/// Headers of the management API and of the probes. `hsts` is the value of
/// `Strict-Transport-Security`, if it is sent.
pub fn secure_api(headers: &mut HeaderMap, hsts: Option<&HeaderValue>) {
    default(headers, header::CONTENT_SECURITY_POLICY, CLOSED_POLICY);
    secure(headers, hsts);
}

/// Headers of the web app.
pub fn secure_web(headers: &mut HeaderMap, hsts: Option<&HeaderValue>) {
    default(headers, header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
    default(headers, PERMISSIONS_POLICY, FEATURES);
    secure(headers, hsts);
}

fn secure(headers: &mut HeaderMap, hsts: Option<&HeaderValue>) {
    default(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    default(headers, header::REFERRER_POLICY, "same-origin");
    default(headers, CROSS_ORIGIN_OPENER_POLICY, "same-origin");
    default(headers, CROSS_ORIGIN_RESOURCE_POLICY, "same-origin");
    default(headers, header::CACHE_CONTROL, "no-store");
    demand_https(headers, hsts);
}

fn demand_https(headers: &mut HeaderMap, hsts: Option<&HeaderValue>) {
    if let Some(hsts) = hsts {
        headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert_with(|| hsts.clone());
    }
}

/// The headers in which a browser describes the page that sends a request.
#[derive(Debug, Clone, Default)]
pub struct CrossOrigin {
    origin: Option<HeaderValue>,
    wanted_headers: Option<HeaderValue>,
}

impl CrossOrigin {
    /// Reads the headers of a request.
    pub fn of(request: &HeaderMap) -> Self {
        Self {
            origin: request.get(header::ORIGIN).cloned(),
            wanted_headers: request.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned(),
        }
    }

    /// Sets the headers of the capture endpoints, also on errors. Older browser libraries
    /// send requests with credentials. Allowing that is safe, because cookies are never
    /// read here and nothing readable is returned.
    pub fn allow(self, headers: &mut HeaderMap, hsts: Option<&HeaderValue>) {
        let yes = HeaderValue::from_static("true");
        let methods = HeaderValue::from_static("GET, POST, OPTIONS");
        let readable = HeaderValue::from_static("Retry-After");
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_ORIGIN,
            self.origin.unwrap_or(HeaderValue::from_static("*")),
        );
        headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, readable);
        if let Some(wanted) = self.wanted_headers {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted);
        }
        default(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        default(headers, CROSS_ORIGIN_RESOURCE_POLICY, "cross-origin");
        default(headers, header::CACHE_CONTROL, "no-store");
        demand_https(headers, hsts);
    }
}

/// Whether the client accepts an encoding of bodies.
pub fn accepts_encoding(request: &HeaderMap, encoding: &str) -> bool {
    let lines =
        request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case(encoding) && !refused
    })
}

fn default(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {

    use http::{HeaderMap, header};

    use super::accepts_encoding;

    #[test]
    fn encodings() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, "gzip;q=0.5, BR".parse().unwrap());
        assert!(accepts_encoding(&headers, "br") && accepts_encoding(&headers, "gzip"));
        headers.insert(header::ACCEPT_ENCODING, "br;q=0, identity".parse().unwrap());
        assert!(!accepts_encoding(&headers, "br") && !accepts_encoding(&headers, "gzip"));
    }
}
