//! The setting that names the mail server: `smtp://[user:password@]host[:port]` or
//! `smtps://…`, with `?from=address` and `?tls=required` or `?tls=none`.
//!
//! What belongs here: parsing and showing the setting. What does not: connecting to the
//! server (`line`).

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde::{Serialize, Serializer};
use url::Url;

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte.
    Implicit,
    /// The server must offer STARTTLS.
    Required,
    /// TLS if the server offers it.
    Offered,
    /// No TLS, for a server on the same machine.
    None,
}

/// A mail server.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpServer {
    /// Host name or address.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// How the connection is protected.
    pub security: Security,
    /// User and password, if the server requires them.
    pub credentials: Option<(String, String)>,
    /// Sender address of mails. `None`: `weir` at the host of the instance.
    pub from: Option<String>,
}

/// Written by hand, so that the password does not appear.
impl fmt::Debug for SmtpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpServer")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("security", &self.security)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// The mail server of an instance. `None`: no mail is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmtpUrl(pub Option<SmtpServer>);

const WRONG: &str = "expected smtp://host:587 or smtps://host, perhaps with user:password@ before \
     the host and ?from=address behind it";

impl FromStr for SmtpUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let url: Url = text.parse().map_err(|_| WRONG)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(WRONG)?.to_owned();
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(WRONG);
        }
        let (mut from, mut tls) = (None, None);
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "from" if is_address(&value) => from = Some(value.into_owned()),
                "from" => return Err("`from` is to be one mail address"),
                "tls" => tls = Some(value.into_owned()),
                _ => return Err(WRONG),
            }
        }
        let user = decoded(url.username())?;
        let password = decoded(url.password().unwrap_or_default())?;
        let credentials = (!user.is_empty()).then_some((user, password));
        let security = match (url.scheme(), tls.as_deref()) {
            ("smtps", None | Some("required")) => Security::Implicit,
            // A password is never sent unencrypted, except on this machine.
            ("smtp", None) if credentials.is_some() && !is_this_machine(&host) => {
                Security::Required
            }
            ("smtp", None) => Security::Offered,
            ("smtp", Some("required")) => Security::Required,
            ("smtp", Some("none")) => Security::None,
            _ => return Err(WRONG),
        };
        let usual = if security == Security::Implicit { 465 } else { 587 };
        let port = url.port().unwrap_or(usual);
        Ok(Self(Some(SmtpServer { host, port, security, credentials, from })))
    }
}

fn decoded(text: &str) -> Result<String, &'static str> {
    percent_decode_str(text).decode_utf8().map(|text| text.into_owned()).map_err(|_| WRONG)
}

fn is_address(text: &str) -> bool {
    text.parse::<lettre::Address>().is_ok()
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// In the same form as shown: with stars for the password.
impl Serialize for SmtpUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// In the form of the setting, with stars for the password.
impl fmt::Display for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(server) = &self.0 else { return Ok(()) };
        f.write_str(if server.security == Security::Implicit { "smtps://" } else { "smtp://" })?;
        if let Some((user, _)) = &server.credentials {
            let user = url::form_urlencoded::byte_serialize(user.as_bytes()).collect::<String>();
            write!(f, "{user}:***@")?;
        }
        write!(f, "{}:{}", server.host, server.port)?;
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        match server.security {
            Security::Required => _ = query.append_pair("tls", "required"),
            Security::None => _ = query.append_pair("tls", "none"),
            Security::Implicit | Security::Offered => {}
        }
        if let Some(from) = &server.from {
            query.append_pair("from", from);
        }
        let query = query.finish();
        if query.is_empty() { Ok(()) } else { write!(f, "?{query}") }
    }
}

#[cfg(test)]
mod tests {
    use super::{Security, SmtpUrl};

    #[test]
    fn urls_are_read_and_shown_without_the_password() {
        let cases = [
            ("smtp://localhost:25", Security::Offered, "smtp://localhost:25"),
            ("smtp://mail.example", Security::Offered, "smtp://mail.example:587"),
            (
                "smtp://u%40x:p%2Fw@mail.example",
                Security::Required,
                "smtp://u%40x:***@mail.example:587?tls=required",
            ),
            ("smtp://u:p@127.0.0.1:2525", Security::Offered, "smtp://u:***@127.0.0.1:2525"),
            ("smtp://mail.example?tls=none", Security::None, "smtp://mail.example:587?tls=none"),
            ("smtps://u:p@mail.example", Security::Implicit, "smtps://u:***@mail.example:465"),
            ("smtp://h?from=a%40b.example", Security::Offered, "smtp://h:587?from=a%40b.example"),
        ];
        for (text, security, shown) in cases {
            let url: SmtpUrl = text.parse().unwrap();
            assert_eq!(url.0.as_ref().map(|server| server.security), Some(security), "{text}");
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("p/w"), "{url:?}");
        }
        let url: SmtpUrl = "smtp://u%40x:p%2Fw@mail.example".parse().unwrap();
        let credentials = url.0.unwrap().credentials;
        assert_eq!(credentials, Some(("u@x".to_owned(), "p/w".to_owned())));
        assert_eq!("".parse::<SmtpUrl>().unwrap().to_string(), "");
        for bad in [
            "mail.example",
            "http://h",
            "smtp://",
            "smtp://h/x",
            "smtp://h?tls=maybe",
            "smtps://h?tls=none",
            "smtp://h?from=a%40b.example%2Cc%40d.example",
            "smtp://h?from=a%40b.example%0D%0ABcc:x%40y.example",
            "smtp://h?x=y",
        ] {
            assert!(bad.parse::<SmtpUrl>().is_err(), "{bad}");
        }
    }
}
