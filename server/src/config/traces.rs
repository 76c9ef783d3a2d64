//! The settings of traces: where they are sent, with which headers, and how many.
//!
//! What belongs here: which values they can have. What does not: recording and sending
//! (`traces`).

use std::fmt;
use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// Most headers.
const MOST: usize = 16;
/// The last bits of a trace id that decide. All ids end with at least 56 random bits, and
/// this many fit into a number with a point.
const DECIDING_BITS: u32 = 52;

/// The address of a collector, with its path; empty when not set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TracesEndpoint(Option<Uri>);

impl TracesEndpoint {
    /// The address.
    pub fn url(&self) -> Option<String> {
        self.0.as_ref().map(Uri::to_string)
    }
}

impl FromStr for TracesEndpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected an address such as http://127.0.0.1:4318/v1/traces, without \
                             a user and a query";
        if text.is_empty() {
            return Ok(Self(None));
        }
        let address: Uri = text.parse().map_err(|_| WRONG)?;
        let is_web = matches!(address.scheme_str(), Some("http" | "https"));
        let has_host = address.authority().is_some_and(|authority| {
            !authority.host().is_empty() && !authority.as_str().contains('@')
        });
        if is_web && has_host && address.path().len() > 1 && address.query().is_none() {
            Ok(Self(Some(address)))
        } else {
            Err(WRONG)
        }
    }
}

impl fmt::Display for TracesEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |address| address.fmt(f))
    }
}

/// Headers of the requests to the collector. Their values are shown as stars.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TracesHeaders(HeaderMap);

impl TracesHeaders {
    /// All headers.
    pub fn all(&self) -> &HeaderMap {
        &self.0
    }
}

impl FromStr for TracesHeaders {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut headers = HeaderMap::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            // The item may be a secret, so an error does not show it.
            const WRONG: &str = "expected headers such as authorization=Bearer abc, \
                                 separated by commas";
            let (name, value) = item.split_once('=').ok_or(WRONG)?;
            let name: HeaderName = name.trim().parse().map_err(|_| WRONG)?;
            let mut value: HeaderValue = value.trim().parse().map_err(|_| WRONG)?;
            value.set_sensitive(true);
            if headers.contains_key(&name) {
                return Err(format!("the header `{name}` is there twice"));
            }
            if headers.len() == MOST {
                return Err(format!("at most {MOST} headers can be sent"));
            }
            headers.insert(name, value);
        }
        Ok(Self(headers))
    }
}

impl fmt::Display for TracesHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.keys().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}=***")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TracesHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The share of traces that are recorded, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceShare(f64);

impl TraceShare {
    /// Whether the trace with this id is recorded. All services that decide by the id decide
    /// the same.
    pub fn takes(self, trace: u128) -> bool {
        let all = 1_u64 << DECIDING_BITS;
        let part = (trace % u128::from(all)) as f64;
        part < self.0 * all as f64
    }
}

impl Default for TraceShare {
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for TraceShare {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        share.map(Self).ok_or("expected a number from 0 to 1, such as 0.1")
    }
}

impl fmt::Display for TraceShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::{TraceShare, TracesEndpoint, TracesHeaders};

    #[test]
    fn addresses_of_collectors() {
        for text in ["", "http://127.0.0.1:4318/v1/traces", "https://otel.example/a/v1/traces"] {
            assert_eq!(text.parse::<TracesEndpoint>().unwrap().to_string(), text);
        }
        assert_eq!("".parse::<TracesEndpoint>().unwrap().url(), None);
        for text in [
            "otel.example:4317",
            "grpc://otel.example/v1/traces",
            "http://otel.example:4318",
            "http://u:p@otel.example/v1/traces",
            "http://otel.example/v1/traces?key=a",
        ] {
            assert!(text.parse::<TracesEndpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_of_headers_are_never_shown() {
        let headers: TracesHeaders =
            "Authorization=Bearer hushed==, x-team = shop".parse().unwrap();
        assert_eq!(headers.to_string(), "authorization=***,x-team=***");
        assert_eq!(format!("{headers:?}"), headers.to_string());
        assert_eq!(headers.all()["authorization"], "Bearer hushed==");
        assert_eq!(headers.all()["x-team"], "shop");
        for wrong in ["hushed", "hushed b=c", "a=hushed\u{7f}", "a=hushed,A=hushed"] {
            let fault = wrong.parse::<TracesHeaders>().unwrap_err();
            assert!(!fault.contains("hushed"), "{fault}");
        }
        let many: Vec<String> = (0..17).map(|number| format!("a{number}=b")).collect();
        assert!(many.join(",").parse::<TracesHeaders>().is_err());
        assert!(many[1..].join(",").parse::<TracesHeaders>().is_ok());
    }

    #[test]
    fn shares_are_of_the_random_part_of_an_id() {
        let share = |text: &str| text.parse::<TraceShare>().unwrap();
        assert_eq!(share("0.25").to_string(), "0.25");
        let quarter = 1_u128 << 50;
        let other_part = 7_u128 << 52;
        assert!(share("0.25").takes(other_part + quarter - 1));
        assert!(!share("0.25").takes(other_part + quarter));
        assert!(share("1").takes(u128::MAX) && !share("0").takes(0));
        for wrong in ["", "-0.1", "1.1", "10%", "NaN", "inf"] {
            assert!(wrong.parse::<TraceShare>().is_err(), "{wrong}");
        }
    }
}
