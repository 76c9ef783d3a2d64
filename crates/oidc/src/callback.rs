//! The parameters of a callback, from the query of the request (SSO-3).
//!
//! What belongs here: parsing within bounds. What does not: what the parameters mean
//! (`lib`, `pending`).
//!
//! The fuzz targets include this file too (`fuzz/`), so it uses no other module.

use std::fmt;

use percent_encoding::percent_decode;

/// The longest query that is read. Codes of large providers have up to 2 KiB.
const MAX_QUERY: usize = 8 * 1024;
/// The highest number of parameters. Providers add few of their own.
const MAX_PARAMETERS: usize = 32;

/// The parameters that have a meaning, each with the greatest length of its value.
const KNOWN: [(&str, usize); 4] = [("state", 128), ("code", 4096), ("iss", 512), ("error", 256)];

/// Why the parameters cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackFault {
    /// The query or a value is too long, or there are too many parameters.
    TooLong,
    /// The query is not encoded as a form is, or a value has other characters than
    /// visible ASCII.
    Malformed,
    /// This parameter is there more than once.
    Twice(&'static str),
}

impl CallbackFault {
    /// The text for the administrator.
    pub fn text(self) -> String {
        match self {
            Self::TooLong => "The callback has too many or too long parameters.".to_owned(),
            Self::Malformed => {
                "A parameter of the callback is empty, or not encoded as a form is.".to_owned()
            }
            Self::Twice(name) => format!("The callback has the parameter \"{name}\" twice."),
        }
    }
}

/// The parameters of a callback. `Debug` does not show them.
#[derive(Clone, Default)]
pub struct Callback {
    values: [Option<String>; KNOWN.len()],
}

impl Callback {
    /// Parses the query of a request, without `?`.
    ///
    /// Unknown parameters are ignored, as the standards ask for. Known ones must be there
    /// once, because two readers of a duplicate could read different values.
    ///
    /// # Errors
    /// [`CallbackFault`].
    pub fn read(query: &str) -> Result<Self, CallbackFault> {
        if query.len() > MAX_QUERY {
            return Err(CallbackFault::TooLong);
        }
        let mut values = [const { None }; KNOWN.len()];
        let parts = query.split('&').filter(|part| !part.is_empty());
        for (number, part) in parts.enumerate() {
            if number >= MAX_PARAMETERS {
                return Err(CallbackFault::TooLong);
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decode(name)?;
            let Some(at) = KNOWN.iter().position(|(known, _)| *known == name) else { continue };
            let (known, max) = KNOWN[at];
            let value = decode(value)?;
            if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(CallbackFault::Malformed);
            }
            if value.len() > max {
                return Err(CallbackFault::TooLong);
            }
            if values[at].replace(value).is_some() {
                return Err(CallbackFault::Twice(known));
            }
        }
        Ok(Self { values })
    }

    /// The state: which login this is.
    pub fn state(&self) -> Option<&str> {
        self.values[0].as_deref()
    }

    /// The code that the provider exchanges for a token.
    pub fn code(&self) -> Option<&str> {
        self.values[1].as_deref()
    }

    /// The issuer (RFC 9207).
    pub fn issuer(&self) -> Option<&str> {
        self.values[2].as_deref()
    }

    /// The error code of the provider.
    pub fn error(&self) -> Option<&str> {
        self.values[3].as_deref()
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback(..)")
    }
}

/// Decodes a name or a value of a form. Faults are not repaired: a proxy in between might
/// repair them in another way.
fn decode(text: &str) -> Result<String, CallbackFault> {
    let bytes = text.as_bytes();
    let is_escape = |at: usize| {
        let digits = bytes.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if (0..bytes.len()).any(|at| bytes[at] == b'%' && !is_escape(at)) {
        return Err(CallbackFault::Malformed);
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8();
    decoded.map(Into::into).map_err(|_| CallbackFault::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Callback, CallbackFault, MAX_PARAMETERS, MAX_QUERY};

    #[test]
    fn known_parameters_are_decoded_and_others_ignored() {
        let query = "code=a%2Fb&state=s-1_&iss=https%3A%2F%2Fissuer.example&scope=a+b&scope=c";
        let callback = Callback::read(query).unwrap();
        assert_eq!(callback.code(), Some("a/b"));
        assert_eq!(callback.state(), Some("s-1_"));
        assert_eq!(callback.issuer(), Some("https://issuer.example"));
        assert_eq!(callback.error(), None);
        assert_eq!(format!("{callback:?}"), "Callback(..)");
        let refused = Callback::read("error=access_denied&error_description=a%20b&state=s");
        assert_eq!(refused.unwrap().error(), Some("access_denied"));
        assert_eq!(Callback::read("").unwrap().state(), None);
    }

    #[test]
    fn a_parameter_is_there_once_however_it_is_written() {
        for (query, name) in [
            ("state=a&state=a", "state"),
            ("code=a&state=s&code=b", "code"),
            ("state=a&st%61te=b", "state"),
            ("iss=a&&iss=b", "iss"),
            ("error=a&error=b", "error"),
        ] {
            assert_eq!(Callback::read(query).err(), Some(CallbackFault::Twice(name)), "{query}");
        }
    }

    #[test]
    fn faults_are_refused_and_not_repaired() {
        for query in [
            "state=%",
            "state=%4",
            "state=%zz",
            "state=%ff",
            "state=",
            "state",
            "code=a%00b",
            "code=a%0d%0ab",
            "code=a+b",
            "code=%C3%A4",
            "%ff=a",
            "st%te=a",
        ] {
            assert_eq!(Callback::read(query).err(), Some(CallbackFault::Malformed), "{query}");
        }
        for query in [
            format!("state={}", "a".repeat(129)),
            format!("code={}", "a".repeat(4097)),
            format!("error=a&error_description={}", "a".repeat(MAX_QUERY)),
            "a=b&".repeat(MAX_PARAMETERS + 1),
        ] {
            assert_eq!(Callback::read(&query).err(), Some(CallbackFault::TooLong));
        }
    }

    proptest! {
        #[test]
        fn any_query_is_read_without_a_panic(query in any::<String>()) {
            let _ = Callback::read(&query);
        }

        #[test]
        fn values_are_read_as_they_were_written(code in "[!-~]{1,64}", state in "[!-~]{1,64}") {
            let encode = |text: &str| -> String {
                text.bytes().map(|byte| format!("%{byte:02x}")).collect()
            };
            let query = format!("state={}&code={}", encode(&state), encode(&code));
            let callback = Callback::read(&query).unwrap();
            prop_assert_eq!(callback.state(), Some(state.as_str()));
            prop_assert_eq!(callback.code(), Some(code.as_str()));
            prop_assert!(callback.issuer().is_none());
        }
    }
}
