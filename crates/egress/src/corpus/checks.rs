//! Checks for tests and the fuzz target `addresses` (`fuzz/`): they hold for every host and
//! every URL, valid or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::host::{Host, read_url};
use crate::rules::Rules;

/// Checks a text as a host, and as a URL.
pub(super) fn check_address(text: &str) {
    if let Some(host) = Host::read(text) {
        check_host(&host);
        // Within a URL it is the same host.
        if let Ok((_, within, _)) = read_url(&format!("http://{text}/")) {
            assert_eq!(within, host, "{text:?}");
        }
    }
    for written in [text.to_owned(), format!("http://{text}/"), format!("https://{text}:5432")] {
        let Ok((url, host, port)) = read_url(&written) else { continue };
        check_host(&host);
        assert!(matches!(url.scheme(), "http" | "https"), "{written:?}");
        assert!(url.username().is_empty() && url.password().is_none(), "{written:?}");
        let shown = url.host_str().unwrap_or_default();
        assert_eq!(Host::read(shown).as_ref(), Some(&host), "{written:?}");
        // The host that is dialled is the host of the written URL.
        let (_, same, same_port) = read_url(url.as_str()).expect("it was read before");
        assert_eq!((&same, same_port), (&host, port), "{written:?}");
    }
}

fn check_host(host: &Host) {
    match host {
        Host::Address(address) => check_inner(*address),
        Host::Name(name) => {
            assert!(!name.is_empty());
            let is_read_again = matches!(Host::read(name), Some(Host::Address(_)));
            assert!(!is_read_again, "{name:?} is a name and then an address");
            // Resolvers read numbers as addresses, in several forms.
            let name = name.strip_suffix('.').unwrap_or(name);
            let last = name.rsplit('.').next().unwrap_or_default();
            let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
            let is_decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
            let is_hexadecimal =
                hexadecimal.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert!(!is_decimal && !is_hexadecimal, "{name:?} ends in a number");
            let odd = |c: char| c.is_whitespace() || c.is_control() || "/\\@:?#[]%".contains(c);
            assert!(!name.contains(odd), "{name:?}");
        }
    }
}

/// An internal address is refused as internal in every spelling.
pub(super) fn check_inner(address: IpAddr) {
    let rules = Rules::default();
    let is_permitted = rules.permit(address, None);
    assert!(!(is_permitted && is_inner(address)), "{address} is inner");
    for written in spellings(address) {
        let Some(Host::Address(read)) = Host::read(&written) else {
            panic!("{written} is {address}");
        };
        assert_eq!(read.to_canonical(), address.to_canonical(), "{written}");
        assert_eq!(rules.permit(read, None), is_permitted, "{written}");
    }
}

/// The spellings of an address.
fn spellings(address: IpAddr) -> Vec<String> {
    let IpAddr::V4(address) = address else {
        return vec![format!("{address}"), format!("[{address}]")];
    };
    let bits = address.to_bits();
    let [a, b, c, d] = address.octets();
    vec![
        format!("{address}"),
        format!("{address}."),
        format!("{bits}"),
        format!("{bits:#x}"),
        format!("0{bits:o}"),
        format!("{a}.{}", bits & 0x00ff_ffff),
        format!("{a}.{b}.{}", bits & 0xffff),
        format!("{a:#X}.0{b:o}.{c}.{d:#x}"),
        format!("::ffff:{address}"),
        format!("[::ffff:{:x}:{:x}]", bits >> 16, bits & 0xffff),
    ]
}

/// Whether the standard library classifies an address as internal. The table of networks
/// has another source.
fn is_inner(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_inner_v4(address),
        IpAddr::V6(address) => {
            address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || within(address).is_some_and(is_inner_v4)
        }
    }
}

fn is_inner_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || a == 0
        || (a == 100 && b & 0xc0 == 64)
}

/// The IPv4 address within an address of NAT64, of 6to4, or of the old compatible form.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let low = u32::try_from(bits & 0xffff_ffff).ok()?;
    match (bits >> 32, bits >> 112) {
        (0, _) => Some(Ipv4Addr::from_bits(low)),
        (prefix, _) if prefix == 0x64_ff9b << 64 => Some(Ipv4Addr::from_bits(low)),
        (_, 0x2002) => u32::try_from((bits >> 80) & 0xffff_ffff).ok().map(Ipv4Addr::from_bits),
        _ => None,
    }
}
