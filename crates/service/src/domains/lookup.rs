//! Asking name servers for the proof of a domain, and comparing the answer (API-38).
//!
//! What belongs here: the interface to name servers, and the comparison. What does not:
//! resolvers (`weir-dns`).

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use weir_model::domains::challenge_name;

/// The timeout of one answer.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(5);
/// How many records of an answer are shown.
const SHOWN_RECORDS: usize = 3;
/// How many characters of a record are shown.
const MAX_SHOWN_CHARS: usize = 100;

/// One TXT record: its strings.
pub type TxtRecord = Vec<Vec<u8>>;
/// The future of a lookup.
pub type Pending<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<TxtRecord>, LookupError>> + Send + 'a>>;

/// The interface to name servers.
pub trait TxtLookup: Send + Sync {
    /// The TXT records at a name, after any alias. No records, or no such name, are an
    /// empty list. The caller stops waiting after five seconds.
    ///
    /// # Errors
    /// No answer, or an answer that cannot be read.
    fn txt<'a>(&'a self, name: &'a str) -> Pending<'a>;
}

/// Why name servers gave no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct LookupError(pub String);

/// Why a domain is not proved.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Unproved {
    #[error("there is no TXT record at this name")]
    NothingThere,
    #[error("the record is another one: {0}")]
    Others(String),
    #[error("no answer from the name servers: {0}")]
    NoAnswer(String),
}

/// The answer of the name servers, for people.
pub(super) fn answer(proved: &Result<(), Unproved>) -> String {
    match proved {
        Ok(()) => "a TXT record with this value".to_owned(),
        Err(why) => why.to_string(),
    }
}

/// Checks that the challenge of a domain is in its records.
pub(super) async fn prove(
    lookup: &dyn TxtLookup,
    domain: &str,
    challenge: &str,
) -> Result<(), Unproved> {
    let name = challenge_name(domain);
    let records = match tokio::time::timeout(TIME_LIMIT, lookup.txt(&name)).await {
        Ok(Ok(records)) => records,
        Ok(Err(error)) => return Err(Unproved::NoAnswer(error.to_string())),
        Err(_elapsed) => return Err(Unproved::NoAnswer("it takes too long".to_owned())),
    };
    if records.iter().any(|record| holds(record, challenge)) {
        Ok(())
    } else if records.is_empty() {
        Err(Unproved::NothingThere)
    } else {
        Err(Unproved::Others(described(&records)))
    }
}

/// The first records as one text. Records can contain any bytes.
fn described(records: &[TxtRecord]) -> String {
    let one = |record: &TxtRecord| {
        let text = String::from_utf8_lossy(&record.concat()).into_owned();
        let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let text: String = text.chars().map(plain).take(MAX_SHOWN_CHARS).collect();
        format!("\"{text}\"")
    };
    records.iter().take(SHOWN_RECORDS).map(one).collect::<Vec<_>>().join(", ")
}

/// Whether a record is the challenge: its first string, or all strings together, for
/// servers that split a text.
fn holds(record: &[Vec<u8>], challenge: &str) -> bool {
    let first = record.first().is_some_and(|first| first == challenge.as_bytes());
    first || record.concat() == challenge.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::{described, holds};

    #[test]
    fn a_record_is_compared_exactly() {
        let record = |strings: &[&str]| -> Vec<Vec<u8>> {
            strings.iter().map(|string| string.as_bytes().to_vec()).collect()
        };
        for right in [&["abc"][..], &["abc", "more"], &["a", "bc"], &["", "abc"]] {
            assert!(holds(&record(right), "abc"), "{right:?}");
        }
        for wrong in [&[][..], &["ABC"], &["abc "], &["more", "abc"], &["ab"], &["xabc"]] {
            assert!(!holds(&record(wrong), "abc"), "{wrong:?}");
        }
    }

    #[test]
    fn descriptions_of_records_are_short_and_plain() {
        let record = |text: &str| vec![text.as_bytes().to_vec()];
        assert_eq!(
            described(&[record("v=spf1 -all"), record("a\nb")]),
            "\"v=spf1 -all\", \"a\u{fffd}b\""
        );
        let long = "x".repeat(1000);
        let many: Vec<_> = (0..50).map(|_| record(&long)).collect();
        assert!(described(&many).chars().count() < 400);
        assert_eq!(described(&[vec![vec![0xff]]]), "\"\u{fffd}\"");
    }
}
