//! The address of a database, as an operator writes it.

use std::fmt;
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use weir_egress::Trust;

/// How the address begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The parameter that says how TLS is used.
const SSL_MODE: &str = "sslmode";
const DEFAULT_PORT: u16 = 5432;

/// Why a text is no address of a database.
pub type AddressError = &'static str;

/// The address of a database, with the credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseAddress {
    /// Several, of which one is the primary.
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) password: Vec<u8>,
    pub(crate) trust: Trust,
}

impl DatabaseAddress {
    /// The settings with which a connection signs in.
    pub(crate) fn sign_in(&self) -> Config {
        let mut config = Config::new();
        config
            .user(&self.user)
            .password(&self.password)
            .dbname(&self.database)
            .application_name("weir")
            // The connection is protected already.
            .ssl_mode(SslMode::Disable);
        config
    }
}

impl FromStr for DatabaseAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: AddressError = "expected postgres://user:password@host:port/database, with \
                                     other hosts after commas, and perhaps ?sslmode=require or \
                                     ?sslmode=verify-full";
        if !SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            return Err(WRONG);
        }
        let (url, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut trust = Trust::Roots;
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            trust = match parameter.split_once('=') {
                Some((SSL_MODE, "require")) => Trust::AnyCertificate,
                Some((SSL_MODE, "verify-full")) => Trust::Roots,
                _ => return Err(WRONG),
            };
        }
        let config: Config = url.parse().map_err(|_| WRONG)?;
        let mut hosts = Vec::new();
        for (at, host) in config.get_hosts().iter().enumerate() {
            let Host::Tcp(host) = host else { return Err(WRONG) };
            if host.is_empty() {
                return Err(WRONG);
            }
            hosts.push((host.clone(), config.get_ports().get(at).copied().unwrap_or(DEFAULT_PORT)));
        }
        let user = config.get_user().filter(|user| !user.is_empty()).ok_or(WRONG)?.to_owned();
        if hosts.is_empty() {
            return Err(WRONG);
        }
        Ok(Self {
            hosts,
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: config.get_password().unwrap_or_default().to_vec(),
            trust,
        })
    }
}

/// In the form of the setting, with stars for the password.
impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}:***@", self.user)?;
        for (at, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
            write!(f, "{comma}{open}{host}{close}:{port}")?;
        }
        write!(f, "/{}", self.database)?;
        match self.trust {
            Trust::Roots => Ok(()),
            Trust::AnyCertificate => f.write_str("?sslmode=require"),
        }
    }
}

/// Without the password.
impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<DatabaseAddress>().unwrap().to_string()
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(shown("postgres://weir:p%40ss@db/events"), "postgres://weir:***@db:5432/events");
        assert_eq!(
            shown("postgresql://weir@a:1,b,[::1]:3?sslmode=require"),
            "postgres://weir:***@a:1,b:5432,[::1]:3/weir?sslmode=require"
        );
        let address: DatabaseAddress = "postgres://weir:p%40ss@db/events".parse().unwrap();
        assert_eq!(address.password, b"p@ss");
        assert_eq!(address.trust, Trust::Roots);
        assert!(!format!("{address:?}").contains("p@ss"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "weir",
            "mysql://weir@db/events",
            "postgres://db/events",
            "postgres://weir@/events",
            "postgres://weir@db:port/events",
            "postgres://weir@db/events?sslmode=prefer",
            "postgres://weir@db/events?options=-csynchronous_commit%3Doff",
        ] {
            assert!(text.parse::<DatabaseAddress>().is_err(), "{text}");
        }
    }
}
