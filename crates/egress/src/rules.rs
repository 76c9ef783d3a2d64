//! Which addresses may be dialled (SEC-27).
//!
//! What belongs here: judging one address. What does not: resolving names (`address_filter`),
//! connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// IPv4 networks without public services.
const FORBIDDEN_V4: &[Ipv4Net] = &[
    // This host, on this network.
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    // Shared by the customers of a provider.
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    // Link-local: the metadata services of clouds return credentials here.
    v4(169, 254, 0, 0, 16),
    // Azure: the host of a virtual machine, which returns settings and certificates of
    // that machine.
    v4(168, 63, 129, 16, 32),
    v4(172, 16, 0, 0, 12),
    // Protocol assignments.
    v4(192, 0, 0, 0, 24),
    // Documentation.
    v4(192, 0, 2, 0, 24),
    // Relays to IPv6, no longer in use.
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    // Benchmarks.
    v4(198, 18, 0, 0, 15),
    // Documentation.
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    // Multicast, reserved, broadcast.
    v4(224, 0, 0, 0, 3),
];

/// The public range of IPv6. Outside of it are this host, local networks, multicast, and
/// IPv4 addresses in the forms of translators.
const PUBLIC_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Networks in [`PUBLIC_V6`] without public services.
const FORBIDDEN_V6: &[Ipv6Net] = &[
    // Protocol assignments, tunnels.
    v6(0x2001, 0, 23),
    // Documentation.
    v6(0x2001, 0x0db8, 32),
    // Tunnels to an IPv4 address.
    v6(0x2002, 0, 16),
    // Documentation.
    v6(0x3fff, 0, 20),
];

/// The operator's settings about addresses.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Networks that may be dialled although they are not public.
    pub allow: Vec<IpNet>,
    /// The addresses that this service listens on.
    pub own: Vec<SocketAddr>,
}

impl Rules {
    /// Every address may be dialled, because the operator has chosen it.
    pub fn any() -> Self {
        let allow = ["0.0.0.0/0", "::/0"].iter().filter_map(|all| all.parse().ok()).collect();
        Self { allow, own: Vec::new() }
    }

    /// Whether this address may be dialled. Without a port, whether at least one of its
    /// ports may be.
    pub fn permit(&self, address: IpAddr, port: Option<u16>) -> bool {
        // An IPv4 address that is written as IPv6 is judged as IPv4.
        let address = address.to_canonical();
        if carried(address).is_some_and(|inner| !self.permit(inner, port)) {
            return false;
        }
        if self.allow.iter().any(|network| network.contains(&address)) {
            return true;
        }
        !is_forbidden(address) && !port.is_some_and(|port| self.is_own(address, port))
    }

    fn is_own(&self, address: IpAddr, port: u16) -> bool {
        self.own.iter().filter(|own| own.port() == port).any(|own| {
            let listens_at = own.ip().to_canonical();
            listens_at == address || (listens_at.is_unspecified() && is_of_this_host(address))
        })
    }
}

fn is_forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => FORBIDDEN_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            !PUBLIC_V6.contains(&address)
                || FORBIDDEN_V6.iter().any(|network| network.contains(&address))
        }
    }
}

/// The IPv4 address to which a translator or a tunnel forwards an IPv6 address.
fn carried(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let [a, b, c, d, e, f, g, h] = address.segments();
    let (high, low) = match [a, b, c, d, e, f] {
        // `::` and `::1` contain none.
        [0, 0, 0, 0, 0, 0] if g != 0 || h > 1 => (g, h),
        // IPv4-translated (SIIT), and NAT64.
        [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => (g, h),
        [0x2002, ..] => (b, c),
        _ => return None,
    };
    Some(IpAddr::V4(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low))))
}

/// Whether packets to this address stay on this host. The source address is then the same
/// address. Nothing is sent.
fn is_of_this_host(address: IpAddr) -> bool {
    if address.is_loopback() || address.is_unspecified() {
        return true;
    }
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn permit(rules: &Rules, address: &str) -> bool {
        rules.permit(address.parse().unwrap(), Some(443))
    }

    fn allowing(networks: &[&str]) -> Rules {
        let allow = networks.iter().map(|network| network.parse().unwrap()).collect();
        Rules { allow, own: Vec::new() }
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        let rules = Rules::default();
        // The first and the last address of each network in the table.
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("168.63.129.16", "168.63.129.16"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
            ("::", "::1"),
            ("::2", "::ffff:ffff"),
            ("::ffff:10.0.0.1", "::ffff:127.0.0.1"),
            ("64:ff9b::", "64:ff9b::ffff:ffff"),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
            ("100::", "100::ffff:ffff:ffff:ffff"),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert!(!permit(&rules, first), "{first}");
            assert!(!permit(&rules, last), "{last}");
        }
    }

    #[test]
    fn public_addresses_are_dialled() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2600::1",
            "2a00:1450::1",
        ] {
            assert!(permit(&Rules::default(), address), "{address}");
        }
    }

    #[test]
    fn the_operator_allows_networks() {
        let rules = allowing(&["10.1.0.0/16", "fd00::/8", "::1/128"]);
        for address in ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "fd12::1", "::1"] {
            assert!(permit(&rules, address), "{address}");
        }
        for address in ["10.0.255.255", "10.2.0.0", "127.0.0.1", "fc00::1", "::2"] {
            assert!(!permit(&rules, address), "{address}");
        }
    }

    #[test]
    fn an_address_within_an_allowed_one_is_judged_too() {
        let rules = allowing(&["64:ff9b::/96", "2002::/16", "::/8", "10.0.0.0/8"]);
        for inner in ["8.8.8.8", "10.0.0.1"] {
            let inner: Ipv4Addr = inner.parse().unwrap();
            let [a, b, c, d] = inner.octets();
            assert!(permit(&rules, &format!("64:ff9b::{inner}")));
            assert!(permit(&rules, &format!("::ffff:0:{inner}")));
            assert!(permit(&rules, &format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1")));
        }
        for address in
            ["64:ff9b::127.0.0.1", "::ffff:0:169.254.169.254", "2002:7f00:1::1", "::192.168.0.1"]
        {
            assert!(!permit(&rules, address), "{address}");
        }
    }

    #[test]
    fn our_own_listeners_are_refused_on_their_ports() {
        let own = ["8.8.8.8:8000", "[2600::1]:9464"].map(|own| own.parse().unwrap()).to_vec();
        let rules = Rules { allow: Vec::new(), own };
        let permit = |address: &str, port| rules.permit(address.parse().unwrap(), port);
        assert!(!permit("8.8.8.8", Some(8000)) && !permit("::ffff:8.8.8.8", Some(8000)));
        assert!(!permit("2600::1", Some(9464)));
        assert!(permit("8.8.8.8", Some(9464)) && permit("2600::1", Some(8000)));
        // A name is saved without a port.
        assert!(permit("8.8.8.8", None));
    }

    #[test]
    fn a_listener_on_every_address_is_on_those_of_this_host_alone() {
        let rules = Rules { allow: Vec::new(), own: vec!["0.0.0.0:8000".parse().unwrap()] };
        assert!(rules.is_own("127.0.0.7".parse().unwrap(), 8000));
        assert!(rules.is_own("0.0.0.0".parse().unwrap(), 8000));
        assert!(rules.is_own("::1".parse().unwrap(), 8000));
        assert!(!rules.is_own("127.0.0.1".parse().unwrap(), 8001));
        assert!(rules.permit("8.8.8.8".parse().unwrap(), Some(8000)));
    }

    proptest! {
        #[test]
        fn ipv4_is_judged_alike_in_every_form(bits in any::<u32>()) {
            let rules = Rules::default();
            let address = Ipv4Addr::from_bits(bits);
            let plain = rules.permit(address.into(), None);
            prop_assert_eq!(rules.permit(address.to_ipv6_mapped().into(), None), plain);
            // Allowing the networks of translators allows no other network.
            let [a, b, c, d] = address.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let translators = allowing(&["64:ff9b::/96", "2002::/16"]);
            let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
            let tunnel = Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1);
            prop_assert_eq!(translators.permit(nat64.into(), None), plain);
            prop_assert_eq!(translators.permit(tunnel.into(), None), plain);
        }

        #[test]
        fn ipv6_is_public_or_refused(bits in any::<u128>()) {
            let address = Ipv6Addr::from_bits(bits);
            if Rules::default().permit(address.into(), None) {
                let is_global = bits >> 125 == 1 || address.to_ipv4_mapped().is_some();
                prop_assert!(is_global, "{}", address);
            }
        }

        #[test]
        fn an_allowed_network_is_allowed_whole(bits in any::<u32>(), length in 0_u8..=32) {
            let address = Ipv4Addr::from_bits(bits);
            let network = Ipv4Net::new(address, length).unwrap().trunc();
            let rules = Rules { allow: vec![network.into()], own: Vec::new() };
            for address in [address, network.network(), network.broadcast()] {
                prop_assert!(rules.permit(address.into(), Some(1)));
            }
        }
    }
}
