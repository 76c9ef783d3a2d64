//! The values of settings that are more than a text or a number.
//!
//! What belongs here: what each accepts, and how it is written. What does not: settings with a
//! module of their own, and which settings there are (`config`).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use weir_model::sso::{PROVIDERS_MAX, ProviderName};
use weir_service::sso::Provider;
use weir_store::{BucketLocation, DatabaseAddress, Secret};

/// Origin of the links that the service creates; empty when not set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublicUrl(Option<http::Uri>);

impl PublicUrl {
    /// The origin without a slash at the end, such as `https://weir.example.org`.
    pub fn origin(&self) -> Option<String> {
        let uri = self.0.as_ref()?;
        Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
    }

    /// Host and port as a browser sends them.
    pub fn authority(&self) -> Option<&str> {
        self.0.as_ref()?.authority().map(http::uri::Authority::as_str)
    }

    /// The host name or address, without port and brackets.
    pub fn host(&self) -> Option<&str> {
        Some(self.0.as_ref()?.host()?.trim_matches(['[', ']']))
    }

    /// Whether the instance is reached over TLS.
    pub fn is_https(&self) -> bool {
        self.0.as_ref().and_then(http::Uri::scheme_str) == Some("https")
    }
}

impl FromStr for PublicUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str =
            "expected http:// or https://, a host and perhaps a port, without a path";
        if text.is_empty() {
            return Ok(Self(None));
        }
        let uri: http::Uri = text.parse().map_err(|_| WRONG)?;
        let scheme_fits = matches!(uri.scheme_str(), Some("http" | "https"));
        let host_fits =
            uri.authority().is_some_and(|a| !a.host().is_empty() && !a.as_str().contains('@'));
        if scheme_fits && host_fits && uri.path().len() <= 1 && uri.query().is_none() {
            Ok(Self(Some(uri)))
        } else {
            Err(WRONG)
        }
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin().unwrap_or_default())
    }
}

/// Where data is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKind {
    /// RocksDB under the data directory.
    RocksDb,
    /// A PostgreSQL database. The log and the files of events are in the data directory.
    Postgres(DatabaseAddress),
    /// In memory, for tests and trials.
    Memory,
}

impl FromStr for StoreKind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rocksdb" => Ok(Self::RocksDb),
            "mem://" => Ok(Self::Memory),
            _ if text.starts_with("postgres") => text.parse().map(Self::Postgres),
            _ => Err("expected `rocksdb`, postgres://… or `mem://`"),
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RocksDb => f.write_str("rocksdb"),
            Self::Postgres(address) => address.fmt(f),
            Self::Memory => f.write_str("mem://"),
        }
    }
}

/// The location of the bucket of event segments. `None`: they are in the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SegmentLocation(pub(super) Option<BucketLocation>);

impl FromStr for SegmentLocation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Ok(Self(None)),
            location => location.parse().map(|location| Self(Some(location))),
        }
    }
}

impl fmt::Display for SegmentLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |location| location.fmt(f))
    }
}

/// A text that is shown as stars.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretText(pub(super) Secret);

impl FromStr for SecretText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line per entry.
    Text,
    /// One JSON object per line.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected `text` or `json`"),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// An address, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionalAddress(pub Option<SocketAddr>);

impl OptionalAddress {
    /// No address: nothing listens.
    pub const OFF: Self = Self(None);
    pub(super) const METRICS: Self =
        Self(Some(SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9464)));
}

impl FromStr for OptionalAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" | "" => Ok(Self::OFF),
            address => address
                .parse()
                .map(|a| Self(Some(a)))
                .map_err(|_| "expected an address with a port, such as 127.0.0.1:9464, or `off`"),
        }
    }
}

impl fmt::Display for OptionalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// A set of networks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Whether an address is in one of the networks. An IPv4 address in IPv6 notation is
    /// compared as IPv4.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// All networks, in the order of the setting.
    pub fn all(&self) -> &[IpNet] {
        &self.0
    }
}

impl FromStr for Networks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let network = |item: &str| {
            item.parse::<IpNet>()
                .ok()
                .or_else(|| item.parse::<IpAddr>().ok().map(IpNet::from))
                .ok_or_else(|| {
                    format!("`{item}` is neither a network such as 10.0.0.0/8 nor an address")
                })
        };
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(network).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, network) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{network}")?;
        }
        Ok(())
    }
}

/// Name servers. An empty list means those of the system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameServers(pub Vec<SocketAddr>);

/// Port of a name server if the setting names none.
const DNS_PORT: u16 = 53;

impl FromStr for NameServers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let server = |item: &str| {
            let address = item.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, DNS_PORT));
            address.or_else(|_| item.parse()).map_err(|_| {
                format!("`{item}` is no address such as 9.9.9.9, 127.0.0.1:5353 or [::1]:53")
            })
        };
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(server).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for NameServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, server) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{server}")?;
        }
        Ok(())
    }
}

/// Providers of single sign-on. Their `Debug` and `Display` do not show secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SignInProviders(Vec<Provider>);

impl SignInProviders {
    /// All providers, in the order of the setting.
    pub fn all(&self) -> &[Provider] {
        &self.0
    }
}

impl FromStr for SignInProviders {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let mut providers: Vec<Provider> = Vec::new();
        for item in items {
            let mut words = item.split_whitespace();
            let name = words.next().unwrap_or_default();
            // The item has a secret, so the error names the provider alone.
            let wrong = |why: &str| format!("the provider `{name}` {why}");
            let name = ProviderName::parse(name).ok_or_else(|| {
                wrong("needs another name: lower case letters, digits and hyphens, at most 28")
            })?;
            let (Some(client_id), Some(secret)) = (words.next(), words.next()) else {
                return Err(wrong("needs a client id and a client secret"));
            };
            let issuer = words.next().unwrap_or_default().to_owned();
            if words.next().is_some() {
                return Err(wrong("has more than a client id, a client secret and an issuer"));
            }
            let is_known = name.label() != name.text();
            if issuer.is_empty() && !is_known {
                return Err(wrong("needs an issuer, such as https://issuer.example"));
            }
            if providers.iter().any(|other| other.name == name) {
                return Err(wrong("is there twice"));
            }
            providers.push(Provider {
                name,
                label: name.label().to_owned(),
                issuer,
                client_id: client_id.to_owned(),
                client_secret: secret.to_owned().into(),
            });
        }
        if providers.len() > PROVIDERS_MAX {
            return Err(format!("an instance may have at most {PROVIDERS_MAX} providers"));
        }
        Ok(Self(providers))
    }
}

impl fmt::Display for SignInProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, provider) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} {} ***", provider.name, provider.client_id)?;
            if !provider.issuer.is_empty() {
                write!(f, " {}", provider.issuer)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SignInProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

impl FromStr for ByteSize {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected a number of bytes, such as 1073741824, 256MiB or 1GiB";
        let (digits, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
            .ok_or(WRONG)?;
        let number: u64 = digits.trim().parse().map_err(|_| WRONG)?;
        number.checked_mul(factor).map(Self).ok_or(WRONG)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |factor: u64| self.0 != 0 && self.0.is_multiple_of(factor);
        match UNITS.iter().find(|(_, factor)| fits(*factor)) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}
