//! Parsing the time of an event (ING-39).
//!
//! What belongs here: how strictly a time of an export is read. What does not: which
//! texts are a time (`weir_model::time::text`), and whether a time is plausible (`event`).
//!
//! It is stricter than capture: for history, an ambiguous time is reported instead of
//! guessed.

use weir_json as json;
use weir_model::Timestamp;
use weir_model::time::text::{self, Forms};

/// Parses a JSON text or number as a time.
pub(crate) fn read(json: &str) -> Option<Timestamp> {
    let time = match json::string(json) {
        Some(text) => text::read(&text, Forms::Unambiguous),
        None => text::epoch(json, Forms::Unambiguous),
    };
    time.map(Timestamp::from_micros)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn reads_what_exports_write() {
        for (json, expected) in [
            (r#""2026-06-01T10:00:00Z""#, "2026-06-01T10:00:00Z"),
            (r#""2026-06-01T12:00:00.123456789+02:00""#, "2026-06-01T10:00:00.123456Z"),
            (r#""2026-06-01 10:00:00.5""#, "2026-06-01T10:00:00.500000Z"),
            (r#""2026-06-01 10:00:00.123000+00:00""#, "2026-06-01T10:00:00.123000Z"),
            (r#"" 2026/06/01 10:00 ""#, "2026-06-01T10:00:00Z"),
            (r#""2026-06-01""#, "2026-06-01T00:00:00Z"),
            (r#""Mon, 1 Jun 2026 10:00:00 +0000""#, "2026-06-01T10:00:00Z"),
            ("1780308000", "2026-06-01T10:00:00Z"),
            ("1780308000.25", "2026-06-01T10:00:00.250000Z"),
            ("1780308000123", "2026-06-01T10:00:00.123000Z"),
            ("1780308000123.5", "2026-06-01T10:00:00.123500Z"),
            ("1780308000123456", "2026-06-01T10:00:00.123456Z"),
            (r#""1780308000""#, "2026-06-01T10:00:00Z"),
        ] {
            let read = read(json).map(|time| time.to_string());
            assert_eq!(read.as_deref(), Some(expected), "{json}");
        }
        for bad in [
            r#""""#,
            r#""yesterday""#,
            r#""06/01/2026""#,
            r#""2026-13-01T10:00:00Z""#,
            r#""2026-06-01T25:00""#,
            "20260601",
            "2026",
            "-1",
            "1e9",
            "true",
            "{}",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
