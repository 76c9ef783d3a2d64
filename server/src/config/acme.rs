//! The settings of ACME: host names, the mail address and the directory.
//!
//! What belongs here: which values they can have. What does not: obtaining certificates
//! (`weir-tls`).

use std::fmt;
use std::str::FromStr;

/// Most names of a certificate. Authorities accept no more.
const MOST: usize = 100;
/// Most characters of a host name.
const LONGEST: usize = 253;
/// Most characters of a part of a host name.
const LONGEST_PART: usize = 63;

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Host names in lower case, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostNames(Vec<String>);

impl HostNames {
    /// All names, in the order of the setting.
    pub fn all(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for HostNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut names = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let name = item.to_ascii_lowercase();
            if !is_host_name(&name) {
                return Err(format!(
                    "`{item}` is no host name such as weir.example.org; addresses and names \
                     with `*` are not possible"
                ));
            }
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > MOST {
            return Err(format!("a certificate has at most {MOST} names"));
        }
        Ok(Self(names))
    }
}

/// Whether a text is a name in DNS with at least two parts, and no address.
fn is_host_name(text: &str) -> bool {
    let is_part = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_short = !part.is_empty() && part.len() <= LONGEST_PART;
        is_short && part.bytes().all(allowed) && !part.starts_with('-') && !part.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let is_address = last.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= LONGEST && text.contains('.') && !is_address && text.split('.').all(is_part)
}

impl fmt::Display for HostNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// A mail address for the certificate authority; empty when not set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcmeContact(pub String);

impl FromStr for AcmeContact {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_address = text.split_once('@').is_some_and(|(user, host)| {
            let allowed = |c: char| c.is_ascii_graphic() && !",?&%<>\"".contains(c);
            !user.is_empty() && user.chars().all(allowed) && is_host_name(host)
        });
        if text.is_empty() || is_address {
            Ok(Self(text.to_owned()))
        } else {
            Err("expected a mail address, such as ada@example.org")
        }
    }
}

impl fmt::Display for AcmeContact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address of the directory of a certificate authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeDirectory(pub String);

impl Default for AcmeDirectory {
    fn default() -> Self {
        Self(LETS_ENCRYPT.to_owned())
    }
}

impl FromStr for AcmeDirectory {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected the https address of a directory of ACME";
        let address: http::Uri = text.parse().map_err(|_| WRONG)?;
        let has_host = address.authority().is_some_and(|authority| {
            !authority.host().is_empty() && !authority.as_str().contains('@')
        });
        if address.scheme_str() == Some("https") && has_host {
            Ok(Self(text.to_owned()))
        } else {
            Err(WRONG)
        }
    }
}

impl fmt::Display for AcmeDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{AcmeContact, AcmeDirectory, HostNames};

    #[test]
    fn host_names() {
        let names: HostNames = "Weir.Example, t.shop.example,weir.example,".parse().unwrap();
        assert_eq!(names.all(), ["weir.example", "t.shop.example"]);
        assert_eq!(names.to_string(), "weir.example,t.shop.example");
        assert!("".parse::<HostNames>().unwrap().all().is_empty());
        let long = format!("{}.example", "a".repeat(64));
        for text in [
            "localhost",
            "*.example.org",
            "192.0.2.1",
            "a_b.example",
            "-a.example",
            "a-.example",
            "a..example",
            ".example",
            "example.",
            "a.example:443",
            "https://a.example",
            "ä.example",
            &long,
        ] {
            let fault = text.parse::<HostNames>().unwrap_err();
            assert!(fault.contains(text), "{fault}");
        }
        let many: Vec<String> = (0..101).map(|number| format!("a{number}.example")).collect();
        assert!(many.join(",").parse::<HostNames>().unwrap_err().contains("at most 100"));
        assert!(many[1..].join(",").parse::<HostNames>().is_ok());
    }

    #[test]
    fn addresses_of_the_operator_and_of_the_directory() {
        for text in ["", "ada@example.org", "ada.b+c@mail.example.org"] {
            assert_eq!(text.parse::<AcmeContact>().unwrap().to_string(), text);
        }
        for text in
            ["ada", "@example.org", "ada@", "a b@example.org", "ada@example", "a,b@c.example"]
        {
            assert!(text.parse::<AcmeContact>().is_err(), "{text}");
        }
        for text in ["https://ca.example/dir", "https://127.0.0.1:14000/dir"] {
            assert_eq!(text.parse::<AcmeDirectory>().unwrap().to_string(), text);
        }
        for text in ["", "ca.example/dir", "http://ca.example/dir", "https://u:p@ca.example/dir"] {
            assert!(text.parse::<AcmeDirectory>().is_err(), "{text}");
        }
        assert!(AcmeDirectory::default().to_string().parse::<AcmeDirectory>().is_ok());
    }
}
