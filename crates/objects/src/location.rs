//! Where a bucket is, as an operator writes it.

use std::fmt;
use std::str::FromStr;

/// A bucket and the beginning of the names of its objects: `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketLocation {
    /// The name of the bucket.
    pub bucket: String,
    /// The names of all objects begin with it and `/`. May be empty.
    pub prefix: String,
}

impl FromStr for BucketLocation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected s3://bucket or s3://bucket/prefix, of letters, digits, \
                             `-`, `.` and `_`";
        let rest = text.strip_prefix("s3://").ok_or(WRONG)?.trim_end_matches('/');
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        // `.` and `..` have a meaning in addresses.
        let is_part = |part: &str| part.bytes().any(|byte| byte != b'.') && is_name(part);
        let is_prefix = prefix.is_empty() || prefix.split('/').all(is_part);
        if !is_part(bucket) || !is_prefix {
            return Err(WRONG);
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for BucketLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, prefix } = self;
        let slash = if prefix.is_empty() { "" } else { "/" };
        write!(f, "s3://{bucket}{slash}{prefix}")
    }
}

/// How a bucket is reached: the address of its storage, and credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The address of the storage, such as `https://s3.example.org`; `None`: Amazon's.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: String,
    /// The access key.
    pub key: String,
    /// The secret of the access key.
    pub secret: Secret,
}

impl Access {
    /// What cannot be used in it, if anything.
    pub fn fault(&self) -> Option<&'static str> {
        if !is_name(&self.region) {
            return Some("a region is letters, digits, `-`, `.` and `_`");
        }
        let is_header = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if self.key.is_empty() || self.secret.0.is_empty() || !is_header(&self.key) {
            return Some("a bucket needs an access key and its secret");
        }
        None
    }
}

/// A text that is shown as stars.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub String);

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "***" })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    !text.is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_bucket_and_a_prefix() {
        for (text, written) in [
            ("s3://events", "s3://events"),
            ("s3://events/", "s3://events"),
            ("s3://my.events/weir/1", "s3://my.events/weir/1"),
        ] {
            assert_eq!(text.parse::<BucketLocation>().unwrap().to_string(), written);
        }
        for bad in ["", "events", "s3://", "s3:///a", "s3://a/../b", "s3://a//b", "s3://a?b"] {
            assert!(bad.parse::<BucketLocation>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret: Secret = "abc".parse().unwrap();
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
    }
}
