//! Paths within this site: safe targets of redirects, and texts in queries.

/// The path, if it stays on this site: `/x`, but not `//x` or `/\x`. Also not `/..//x`,
/// which libraries and browsers resolve to `//x`; no path of the app has such segments.
pub fn safe(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('/')?;
    let is_text = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let steps = rest.split(['?', '#']).next().unwrap_or_default();
    let stays = !rest.starts_with('/') && !steps.split('/').any(is_dots);
    (is_text && stays).then_some(path)
}

/// Whether a path segment means the same or the parent directory. Dots can be encoded.
fn is_dots(part: &str) -> bool {
    let dots = part.replace("%2e", ".").replace("%2E", ".");
    dots == "." || dots == ".."
}

/// An address without scheme and host.
pub fn path_of(address: &str) -> &str {
    match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => address,
    }
}

/// Encodes a text as the value of a query parameter.
pub fn encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/') {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                encoded.push(char::from(DIGITS[usize::from(digit)]));
            }
        }
    }
    encoded
}

/// Decodes pairs of names and values, as forms and queries have them.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let split = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    split.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// Decodes a part of a path.
pub fn decode_part(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// Decodes a text of a form or query. What is not encoded validly stays as it is.
fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    match percent_encoding::percent_decode_str(&spaced).decode_utf8() {
        Ok(text) => text.into_owned(),
        Err(_) => spaced,
    }
}

/// A path and query without the outcome that a form added to it.
pub fn without_outcome(path: &str) -> String {
    without(path, &["__path=", "__err=", "__done=", "__kept="])
}

/// The same for a page that is opened later: it still shows what was entered.
pub fn to_open_later(path: &str) -> String {
    without(path, &["__path=", "__err=", "__done="])
}

fn without(path: &str, names: &[&str]) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let is_one = |pair: &&str| names.iter().any(|name| pair.starts_with(name));
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_one(pair)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::{decode_part, encode, path_of, safe, to_open_later, without_outcome};

    #[test]
    fn only_paths_of_this_site_are_safe() {
        for good in ["/", "/projects/1/events?q=a%20b", "/a#b", "/a..b/.c", "/a?q=/..//b"] {
            assert_eq!(safe(good), Some(good));
        }
        for bad in ["", "x", "//x", "/\\x", "/a\\b", "/a\r\nb", "http://x", "/a b", "/ä"] {
            assert_eq!(safe(bad), None, "{bad}");
        }
        for dots in ["/..//x", "/.//x", "/a/../..//x", "/%2e%2E//x", "/.%2e//x", "/%2E//x", "/a/.."]
        {
            assert_eq!(safe(dots), None, "{dots}");
        }
    }

    #[test]
    fn addresses_lose_their_host() {
        assert_eq!(path_of("http://h:1/a?b"), "/a?b");
        assert_eq!(path_of("http://h:1"), "/");
        assert_eq!(path_of("/a"), "/a");
    }

    #[test]
    fn parts_of_paths_are_decoded() {
        assert_eq!(decode_part("acme%2Ftea+pot%C3%A4"), "acme/tea+potä");
        assert_eq!(decode_part("100%"), "100%");
    }

    #[test]
    fn texts_are_encoded() {
        assert_eq!(encode("/a?b=ä&c"), "/a%3Fb%3D%C3%A4%26c");
    }

    #[test]
    fn the_outcome_of_a_form_is_removed_from_an_address() {
        assert_eq!(without_outcome("/a"), "/a");
        assert_eq!(without_outcome("/a?__path=x&__err=y"), "/a");
        assert_eq!(without_outcome("/a?b=1&__path=x&c=2&__err=y"), "/a?b=1&c=2");
        assert_eq!(without_outcome("/a?__done=/_fn/f&b=1"), "/a?b=1");
        assert_eq!(without_outcome("/a?b=1&__kept=1"), "/a?b=1");
        assert_eq!(to_open_later("/a?b=1&__kept=1&__err=y"), "/a?b=1&__kept=1");
    }
}
