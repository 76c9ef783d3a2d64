//! Hosts and URLs as members write them.
//!
//! What belongs here: parsing, from the text alone. What does not: which addresses may be
//! dialled (`rules`), the addresses of a name (`address_filter`).
//!
//! The fuzz targets include this file too (`fuzz/`), so it uses no other module.

use std::net::IpAddr;

use url::Url;

/// Why a request was refused before it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The text is not a valid host or URL.
    #[error("this is no address")]
    Malformed,
    /// Its scheme is neither `http` nor `https`.
    #[error("an address begins with http:// or https://")]
    Scheme,
    /// It contains a user or a password.
    #[error("an address holds no user and no password")]
    UserInfo,
    /// Its host contains other characters than visible ASCII, or a `%`.
    #[error("a host is written in ASCII letters, without percent codes")]
    Spelling,
    /// The address must not be dialled.
    #[error("forbidden address")]
    Address,
}

/// A host as members write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// An address in any spelling: decimal, octal, hexadecimal, short.
    Address(IpAddr),
    Name(String),
}

impl Host {
    /// Parses a host. `None` if the text is not a host.
    pub(crate) fn read(text: &str) -> Option<Self> {
        // Without a port, an IPv6 address has no brackets.
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        url::Host::parse(text).ok().map(Self::from)
    }

    /// Parses a host that is about to be stored. Every later reader of the text must see
    /// the same host in it, so a host that is rewritten on parsing is refused.
    ///
    /// # Errors
    /// [`Refused::Spelling`], [`Refused::Malformed`].
    pub(crate) fn read_strictly(text: &str) -> Result<Self, Refused> {
        if !is_plain(text) {
            return Err(Refused::Spelling);
        }
        Self::read(text).ok_or(Refused::Malformed)
    }
}

fn is_plain(host: &str) -> bool {
    host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%')
}

impl From<url::Host<String>> for Host {
    fn from(host: url::Host<String>) -> Self {
        match host {
            url::Host::Ipv4(address) => Self::Address(address.into()),
            url::Host::Ipv6(address) => Self::Address(address.into()),
            url::Host::Domain(name) => Self::Name(name),
        }
    }
}

/// The host that a text names: as a host alone, with a port, or in a URL. `None` if the
/// text names no host.
pub(crate) fn named(text: &str) -> Option<Host> {
    let text = text.trim();
    if let Some(host) = Host::read(text) {
        return Some(host);
    }
    // Schemes other than those of the web keep the host as it was written. `host:1`
    // parses as a scheme and a path, and names no host in this form.
    let of_url = |text: &str| match Url::parse(text).ok()?.host()?.to_owned() {
        url::Host::Domain(name) => Host::read(&name),
        address => Some(address.into()),
    };
    of_url(text).or_else(|| of_url(&format!("http://{}", text.trim_start_matches(['/', '\\']))))
}

/// Checks a URL that is about to be stored, see [`Host::read_strictly`].
///
/// # Errors
/// [`Refused`], except [`Refused::Address`].
pub(crate) fn check_url_strictly(text: &str) -> Result<(), Refused> {
    // URL parsers drop tabs and line breaks, and read `\` as `/`.
    let (_, rest) = text.split_once("://").ok_or(Refused::Malformed)?;
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    if !is_plain(authority) {
        return Err(Refused::Spelling);
    }
    read_url(text).map(drop)
}

/// Parses a URL: the URL itself, its host and its port.
///
/// # Errors
/// [`Refused`], except [`Refused::Address`]: the address is not judged here.
pub(crate) fn read_url(text: &str) -> Result<(Url, Host, u16), Refused> {
    let url = Url::parse(text).map_err(|_| Refused::Malformed)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::UserInfo);
    }
    let host = url.host().ok_or(Refused::Malformed)?.to_owned();
    let port = url.port_or_known_default().ok_or(Refused::Malformed)?;
    Ok((url, host.into(), port))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{Host, Refused, check_url_strictly, named};

    fn host(text: &str) -> Option<Host> {
        Host::read(text)
    }

    #[test]
    fn addresses_are_read_in_every_spelling() {
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7F.1",
            "0177.0.0.1",
            "017700000001",
            "0x7f.0x0.0x0.0x1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "①②⑦.⓪.⓪.①",
            "127。0。0。1",
        ] {
            assert_eq!(host(text), Some(Host::Address(Ipv4Addr::LOCALHOST.into())), "{text}");
        }
        for text in ["::1", "[::1]", "0:0:0:0:0:0:0:1", "[0::0:1]"] {
            assert_eq!(host(text), Some(Host::Address("::1".parse().unwrap())), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_not_found() {
        for text in [
            "",
            " ",
            "a b",
            "host:5432",
            "user@host",
            "/var/run/postgresql",
            "a/b",
            "a\\b",
            "a?b",
            "a#b",
            "a%00b",
            "fe80::1%eth0",
            "[::1",
            "1.2.3.4.5",
            "256.0.0.1",
            "0x100000000",
        ] {
            assert_eq!(host(text), None, "{text}");
        }
        assert_eq!(host("DB.Example"), Some(Host::Name("db.example".to_owned())));
    }

    #[test]
    fn the_host_of_any_text_is_found() {
        for text in [
            "127.0.0.1",
            " 127.0.0.1. ",
            "127.0.0.1:8123",
            "2130706433:80",
            "http://127.0.0.1/x?y",
            "HTTPS://0177.1:9000",
            "http:\\\\127.0.0.1",
            "http:127.0.0.1",
            "//127.0.0.1/x",
            "user:word@127.0.0.1:1/x",
            "postgres://user:word@0x7f000001:5432/db",
            "redis://127.1",
            "ws://127.0.0.1./",
        ] {
            assert_eq!(named(text), Some(Host::Address(Ipv4Addr::LOCALHOST.into())), "{text}");
        }
        for text in ["[::ffff:127.0.0.1]:80", "http://[::ffff:7f00:1]/", "::ffff:127.0.0.1"] {
            let mapped = Some(Host::Address("::ffff:127.0.0.1".parse().unwrap()));
            assert_eq!(named(text), mapped, "{text}");
        }
        assert_eq!(named("localhost:80"), Some(Host::Name("localhost".to_owned())));
        for text in ["", "a b", "{\"a\": 1}", "mailto:a"] {
            let found = named(text);
            assert!(!matches!(found, Some(Host::Address(_))), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_stored_host_is_written_as_it_is_read() {
        for text in ["münchen.example", "①②⑦.0.0.1", "%31%32%37.0.0.1", "a b", "a\tb"] {
            assert_eq!(Host::read_strictly(text), Err(Refused::Spelling), "{text}");
            let url = format!("https://{text}/");
            assert_eq!(check_url_strictly(&url).err(), Some(Refused::Spelling), "{url}");
        }
        for text in [
            "postgres://db.example/events",
            "/var/run/postgresql",
            "db.example:5432",
            "user@db.example",
            "256.0.0.1",
            "",
        ] {
            assert_eq!(Host::read_strictly(text), Err(Refused::Malformed), "{text}");
        }
        for text in ["db.example", "DB_1.example.", "::1", "[2600::1]", "8.8.8.8"] {
            assert!(Host::read_strictly(text).is_ok(), "{text}");
        }
        for url in ["https:a.example", "https:/a.example", "a.example", "https://b.256.0.0.1/"] {
            assert_eq!(check_url_strictly(url).err(), Some(Refused::Malformed), "{url}");
        }
        assert!(check_url_strictly("https://a.example:8443/ä?b=%20").is_ok());
    }

    proptest! {
        #[test]
        fn numbers_are_the_address_that_they_stand_for(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets();
            let low = bits & 0x00ff_ffff;
            let expected = Some(Host::Address(address.into()));
            for text in [
                format!("{address}"),
                format!("{bits}"),
                format!("{bits:#x}"),
                format!("0{bits:o}"),
                format!("{a}.{low}"),
                format!("{a:#x}.0{b:o}.{c}.{d:#X}"),
            ] {
                prop_assert_eq!(host(&text), expected.clone(), "{}", text);
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            let _ = (host(&text), named(&text));
        }
    }
}
