//! The header `Accept`: the media types that a client accepts.

use http::{HeaderMap, header};

/// Whether the client accepts JSON. Without the header it accepts everything.
pub fn takes_json(headers: &HeaderMap) -> bool {
    let json = ["*/*", "application/*", "application/json"];
    !headers.contains_key(header::ACCEPT) || names(headers, &json)
}

/// Whether the header contains one of these media types or ranges.
pub fn names(headers: &HeaderMap, wanted: &[&str]) -> bool {
    weight(headers, wanted).is_some()
}

/// The highest weight of these media types or ranges in the header, above 0 and at most
/// 1. `None` if the header has none of them, or refuses it.
pub fn weight(headers: &HeaderMap, wanted: &[&str]) -> Option<f32> {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let weights = lines.flat_map(|line| line.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        if !wanted.contains(&media.as_str()) {
            return None;
        }
        let weight =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        // An unreadable weight is ignored.
        let weight: Option<f32> = weight.and_then(|weight| weight.parse().ok());
        let weight = weight.map_or(1.0, |weight| weight.min(1.0));
        (weight > 0.0).then_some(weight)
    });
    weights.reduce(f32::max)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::{names, takes_json, weight};

    fn accept(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, text.parse().unwrap());
        headers
    }

    #[test]
    fn json_will_do() {
        for (text, expected) in [
            ("*/*", true),
            ("text/html, application/*;q=0.5", true),
            ("Application/JSON; indent=4", true),
            ("text/html", false),
            ("application/json;q=0", false),
            ("", false),
        ] {
            assert_eq!(takes_json(&accept(text)), expected, "{text}");
        }
        assert!(takes_json(&HeaderMap::new()));
    }

    #[test]
    fn a_type_that_is_named() {
        let is_named = |text| names(&accept(text), &["text/javascript"]);
        assert!(is_named("application/json, Text/JavaScript;q=0.5"));
        for text in ["*/*", "text/*", "text/javascript;q=0", "text/javascripts"] {
            assert!(!is_named(text), "{text}");
        }
    }

    #[test]
    fn how_much_a_type_is_wanted() {
        let wanted = ["application/json", "text/javascript"];
        for (text, expected) in [
            ("application/json;q=0.25, text/javascript; Q=0.5", Some(0.5)),
            ("text/javascript, application/json;q=0", Some(1.0)),
            ("text/javascript;charset=utf-8;q=0.5", Some(0.5)),
            ("text/javascript;q=x", Some(1.0)),
            ("text/javascript;q=7", Some(1.0)),
            ("text/javascript;q=-1", None),
            ("text/html, */*", None),
        ] {
            assert_eq!(weight(&accept(text), &wanted), expected, "{text}");
        }
    }
}
