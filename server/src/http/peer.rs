//! The address of the client, the origin and the trace of the request. Forwarded headers
//! count only when the connection comes from a configured proxy. They are read from the
//! right, because the client can write anything on the left.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::uri::Authority;
use http::{HeaderMap, Uri, header};

use crate::config::Config;

/// The headers in which a proxy describes the request that it passes on.
const FORWARDED: [&str; 4] =
    ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", TRACE_PARENT];
/// The header of the W3C with the trace and the span that a request belongs to.
const TRACE_PARENT: &str = "traceparent";

/// The client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The networks of the client that sent a request. Requests without the dispatcher's
    /// extensions share one set of networks.
    pub fn networks(extensions: &http::Extensions) -> [IpAddr; 3] {
        let client = extensions.get::<Self>();
        networks_of(client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |client| client.0))
    }
}

/// The networks that a client is counted under, each within the next: the smallest
/// network of a subscriber, a site (it may have 256 or 65,536 of the first), and a
/// provider.
///
/// IPv4: the address, /24, /16. IPv6: /64, /48, /32; a /56 is between the first two.
/// Addresses of private networks are counted by the first alone: they belong to the
/// operator, and all clients of a small installation may be in one of them.
pub fn networks_of(peer: IpAddr) -> [IpAddr; 3] {
    match peer.to_canonical() {
        IpAddr::V4(address) => {
            let is_own = address.is_private() || address.is_loopback() || address.is_link_local();
            let prefixes = if is_own { [32; 3] } else { [32, 24, 16] };
            let host = |bits: u32| u32::MAX.checked_shr(bits).unwrap_or(0);
            prefixes.map(|bits| Ipv4Addr::from_bits(address.to_bits() & !host(bits)).into())
        }
        IpAddr::V6(address) => {
            let is_own = address.is_loopback()
                || address.is_unique_local()
                || address.is_unicast_link_local();
            let prefixes = if is_own { [64; 3] } else { [64, 48, 32] };
            let host = |bits: u32| u128::MAX >> bits;
            prefixes.map(|bits| Ipv6Addr::from_bits(address.to_bits() & !host(bits)).into())
        }
    }
}

/// Path and query as the caller wrote them, before the slash at the end is removed.
#[derive(Debug, Clone)]
pub struct RequestedUri(pub Uri);

/// Scheme and host for absolute links to this instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(pub String);

/// The address of the client that connects through `peer`.
pub fn client_address(config: &Config, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
    let peer = peer.to_canonical();
    if !config.trusted_proxies.contain(peer) {
        return ClientAddress(peer);
    }
    let mut client = peer;
    let hops = headers.get_all("x-forwarded-for").iter().rev();
    for hop in hops.filter_map(|value| value.to_str().ok()).flat_map(|line| line.rsplit(',')) {
        let Some(address) = forwarded_address(hop) else { break };
        client = address;
        if !config.trusted_proxies.contain(address) {
            break;
        }
    }
    ClientAddress(client)
}

/// The trace and the span that a proxy names for a request (SEC-41).
pub fn trace_parent<'a>(config: &Config, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
    let is_used = config.traces_parent && config.trusted_proxies.contain(peer);
    is_used.then(|| headers.get(TRACE_PARENT)).flatten()?.to_str().ok()
}

/// Removes the headers that only a proxy may send. A proxy that passes on bytes without the
/// address of their client has not written these headers, although they come from it.
pub fn forget_forwarded(headers: &mut HeaderMap) {
    for name in FORWARDED {
        headers.remove(name);
    }
}

/// Some proxies add the port.
fn forwarded_address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let address = hop
        .parse()
        .ok()
        .or_else(|| hop.parse().ok().map(|with_port: std::net::SocketAddr| with_port.ip()))
        .or_else(|| hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(IpAddr::to_canonical(&address))
}

/// The origin that the caller used. The configured public URL fills in missing parts.
pub fn origin(config: &Config, peer: IpAddr, headers: &HeaderMap, uri: &Uri) -> Origin {
    let behind_proxy = config.trusted_proxies.contain(peer);
    let forwarded = |name: &str| {
        let value = behind_proxy.then(|| headers.get(name)).flatten()?.to_str().ok()?;
        value.rsplit(',').next().map(str::trim)
    };
    let host = forwarded("x-forwarded-host")
        .or_else(|| headers.get(header::HOST).and_then(|value| value.to_str().ok()))
        .or_else(|| uri.authority().map(Authority::as_str))
        .filter(|host| is_host(host));
    let Some(host) = host else {
        return Origin(config.public_url.origin().unwrap_or_default());
    };
    if config.public_url.authority() == Some(host) {
        return Origin(config.public_url.origin().unwrap_or_default());
    }
    let scheme = match forwarded("x-forwarded-proto") {
        Some("https") => "https",
        None if config.serves_tls() => "https",
        Some(_) | None => "http",
    };
    Origin(format!("{scheme}://{host}"))
}

fn is_host(text: &str) -> bool {
    !text.contains('@') && text.parse::<Authority>().is_ok_and(|a| !a.host().is_empty())
}

#[cfg(test)]
mod tests {

    use http::{HeaderMap, Uri};

    use super::{
        ClientAddress, client_address, forget_forwarded, networks_of, origin, trace_parent,
    };
    use crate::config::{Config, Settings};

    fn config() -> Config {
        Settings {
            trusted_proxies: Some("10.0.0.0/8".parse().unwrap()),
            public_url: Some("https://weir.example".parse().unwrap()),
            ..Settings::default()
        }
        .over(Settings::default())
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn networks() {
        for (address, networks) in [
            ("192.0.2.7", ["192.0.2.7", "192.0.2.0", "192.0.0.0"]),
            ("::ffff:192.0.2.7", ["192.0.2.7", "192.0.2.0", "192.0.0.0"]),
            ("2001:db8:1:2:3:4:5:6", ["2001:db8:1:2::", "2001:db8:1::", "2001:db8::"]),
            ("10.1.2.3", ["10.1.2.3"; 3]),
            ("127.0.0.1", ["127.0.0.1"; 3]),
            ("fd00:1:2:3:4::5", ["fd00:1:2:3::"; 3]),
            ("::1", ["::"; 3]),
        ] {
            let expected = networks.map(|text| text.parse::<std::net::IpAddr>().unwrap());
            assert_eq!(networks_of(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn only_configured_proxies_are_believed() {
        let cases = [
            ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
            ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
            ("10.0.0.1", "203.0.113.9, 198.51.100.7", "198.51.100.7"),
            ("10.0.0.1", "198.51.100.7, 10.0.0.9", "198.51.100.7"),
            ("10.0.0.1", "10.0.0.8, 10.0.0.9", "10.0.0.8"),
            ("10.0.0.1", "junk, 10.0.0.9", "10.0.0.9"),
            ("10.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
            ("10.0.0.1", "[2001:db8::7]", "2001:db8::7"),
            ("::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ];
        for (peer, forwarded, client) in cases {
            let found = client_address(
                &config(),
                peer.parse().unwrap(),
                &headers(&[("x-forwarded-for", forwarded)]),
            );
            assert_eq!(found, ClientAddress(client.parse().unwrap()), "{peer} {forwarded}");
        }
    }

    #[test]
    fn links_name_the_host_that_was_asked() {
        type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);
        let cases: [Case; 6] = [
            ("192.0.2.1", &[("host", "h:8000")], "http://h:8000"),
            ("192.0.2.1", &[("host", "weir.example")], "https://weir.example"),
            ("192.0.2.1", &[], "https://weir.example"),
            ("192.0.2.1", &[("host", "a b")], "https://weir.example"),
            (
                "192.0.2.1",
                &[("host", "h"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "evil")],
                "http://h",
            ),
            (
                "10.0.0.1",
                &[
                    ("host", "h"),
                    ("x-forwarded-proto", "https"),
                    ("x-forwarded-host", "out.example"),
                ],
                "https://out.example",
            ),
        ];
        for (peer, pairs, expected) in cases {
            let uri = Uri::from_static("/api/x/");
            let found = origin(&config(), peer.parse().unwrap(), &headers(pairs), &uri);
            assert_eq!(found.0, expected, "{pairs:?}");
        }
    }

    #[test]
    fn what_an_unnamed_client_forwards_is_forgotten() {
        let mut config = config();
        config.traces_parent = true;
        let mut headers = headers(&[
            ("host", "h"),
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-for", "203.0.113.8"),
            ("x-forwarded-host", "evil"),
            ("x-forwarded-proto", "https"),
            ("traceparent", "00"),
        ]);
        let peer = "10.0.0.1".parse().unwrap();
        assert_eq!(trace_parent(&config, peer, &headers), Some("00"));
        forget_forwarded(&mut headers);
        assert_eq!(trace_parent(&config, peer, &headers), None);
        assert_eq!(client_address(&config, peer, &headers), ClientAddress(peer));
        let found = origin(&config, peer, &headers, &Uri::from_static("/api/x/"));
        assert_eq!(found.0, "http://h");
    }

    #[test]
    fn proxies_name_a_trace_if_the_setting_says_so() {
        let headers = headers(&[("traceparent", "00")]);
        for (is_set, peer, found) in
            [(true, "10.0.0.1", Some("00")), (true, "192.0.2.1", None), (false, "10.0.0.1", None)]
        {
            let mut config = config();
            config.traces_parent = is_set;
            assert_eq!(trace_parent(&config, peer.parse().unwrap(), &headers), found, "{peer}");
        }
    }

    #[test]
    fn links_begin_with_https_where_weir_has_the_certificate() {
        let mut config = config();
        config.acme_domains = "weir.example,other.example".parse().unwrap();
        type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);
        let cases: [Case; 3] = [
            ("192.0.2.1", &[("host", "other.example")], "https://other.example"),
            ("10.0.0.1", &[("host", "h"), ("x-forwarded-proto", "http")], "http://h"),
            ("10.0.0.1", &[("host", "h")], "https://h"),
        ];
        for (peer, pairs, expected) in cases {
            let uri = Uri::from_static("/api/x/");
            let found = origin(&config, peer.parse().unwrap(), &headers(pairs), &uri);
            assert_eq!(found.0, expected, "{pairs:?}");
        }
    }
}
