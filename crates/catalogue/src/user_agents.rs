//! Browser, system and device of a user agent.
//!
//! What belongs here: the marks of common browsers and systems, with the names that the
//! browser library uses. What does not: models of devices, and bots (`bots`).

/// The known parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct UserAgent {
    pub(crate) browser: Option<&'static str>,
    /// Major and minor version.
    pub(crate) browser_version: Option<f64>,
    pub(crate) os: Option<&'static str>,
    pub(crate) os_version: Option<String>,
    pub(crate) device: Option<&'static str>,
    pub(crate) device_type: Option<&'static str>,
}

/// The text before the version. Most browsers also contain the marks of other browsers
/// for compatibility, so the order decides.
const BROWSERS: &[(&str, &str)] = &[
    ("Edg/", "Microsoft Edge"),
    ("EdgA/", "Microsoft Edge"),
    ("EdgiOS/", "Microsoft Edge"),
    ("Edge/", "Microsoft Edge"),
    ("OPR/", "Opera"),
    ("OPX/", "Opera"),
    ("OPT/", "Opera"),
    ("Opera Mini/", "Opera Mini"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("UCBrowser/", "UC Browser"),
    ("YaBrowser/", "Yandex Browser"),
    ("Vivaldi/", "Vivaldi"),
    ("FBAV/", "Facebook Mobile"),
    ("CriOS/", "Chrome iOS"),
    ("FxiOS/", "Firefox iOS"),
    ("Firefox/", "Firefox"),
    ("Chromium/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("MSIE ", "Internet Explorer"),
];

impl UserAgent {
    pub(crate) fn of(text: &str) -> Self {
        let (os, os_version) = system(text);
        let (browser, browser_version) = browser(text);
        let is_tablet = text.contains("iPad")
            || text.contains("Tablet")
            || (text.contains("Android") && !text.contains("Mobile"));
        let is_mobile = text.contains("Mobile") || text.contains("iPhone") || text.contains("iPod");
        let device_type = match os {
            _ if is_tablet => Some("Tablet"),
            _ if is_mobile => Some("Mobile"),
            Some("Windows" | "Mac OS X" | "Linux" | "Chrome OS") => Some("Desktop"),
            _ => None,
        };
        let devices = ["iPhone", "iPad", "iPod", "Android"];
        let device = devices.into_iter().find(|device| text.contains(device));
        Self { browser, browser_version, os, os_version, device, device_type }
    }
}

fn browser(text: &str) -> (Option<&'static str>, Option<f64>) {
    for (mark, name) in BROWSERS {
        if let Some(version) = version_after(text, mark) {
            return (Some(name), Some(version));
        }
    }
    if text.contains("Trident/") {
        return (Some("Internet Explorer"), version_after(text, "rv:"));
    }
    if let Some(version) = version_after(text, "Version/") {
        return match (text.contains("Opera"), text.contains("Safari/")) {
            (true, _) => (Some("Opera"), Some(version)),
            (_, true) if text.contains("Android") => (Some("Android Mobile"), Some(version)),
            (_, true) if text.contains("Mobile") => (Some("Mobile Safari"), Some(version)),
            (_, true) => (Some("Safari"), Some(version)),
            _ => (None, None),
        };
    }
    (None, None)
}

/// Major and minor version as one number, as the browser library sends it.
fn version_after(text: &str, mark: &str) -> Option<f64> {
    let version = digits(after(text, mark)?, '.');
    let mut parts = version.split('.');
    let major = parts.next().filter(|major| !major.is_empty())?;
    let minor = parts.next().filter(|minor| !minor.is_empty()).unwrap_or("0");
    if major.len() + minor.len() > 12 {
        return None;
    }
    format!("{major}.{minor}").parse().ok()
}

fn system(text: &str) -> (Option<&'static str>, Option<String>) {
    if let Some(rest) = after(text, "Windows Phone ") {
        return (Some("Windows Phone"), version(rest.trim_start_matches("OS "), '.'));
    }
    if let Some(rest) = after(text, "Windows NT ") {
        let version = digits(rest, '.');
        let name = match version.as_str() {
            "10.0" => "10",
            "6.3" => "8.1",
            "6.2" => "8",
            "6.1" => "7",
            "6.0" => "Vista",
            "5.2" | "5.1" => "XP",
            other => other,
        };
        return (Some("Windows"), Some(name.to_owned()).filter(|name| !name.is_empty()));
    }
    if ["iPhone", "iPad", "iPod"].iter().any(|device| text.contains(device)) {
        let rest = after(text, "iPhone OS ").or_else(|| after(text, "CPU OS "));
        return (Some("iOS"), rest.and_then(|rest| version(rest, '_')));
    }
    if let Some(rest) = after(text, "Android") {
        return (Some("Android"), version(rest.trim_start(), '.'));
    }
    if let Some(rest) = after(text, "CrOS ") {
        let rest = rest.split_once(' ').map_or("", |(_, version)| version);
        return (Some("Chrome OS"), version(rest, '.'));
    }
    if let Some(rest) = after(text, "Mac OS X") {
        let rest = rest.trim_start();
        return (Some("Mac OS X"), version(rest, '_').or_else(|| version(rest, '.')));
    }
    if text.contains("Windows") {
        return (Some("Windows"), None);
    }
    if text.contains("Linux") || text.contains("X11;") {
        return (Some("Linux"), None);
    }
    (None, None)
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).and_then(|at| text.get(at + mark.len()..))
}

/// Digits with their separators, written with dots.
fn digits(text: &str, separator: char) -> String {
    let taken: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == separator || *c == '.')
        .take(32)
        .collect();
    taken.replace(separator, ".").trim_end_matches('.').to_owned()
}

fn version(text: &str, separator: char) -> Option<String> {
    Some(digits(text, separator))
        .filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::UserAgent;

    #[test]
    fn common_ones() {
        let rows = [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
                "Chrome 120 Windows 10 - Desktop",
            ),
            (
                "Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko",
                "Internet Explorer 11 Windows 7 - Desktop",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Edg/120.0.2210.61",
                "Microsoft Edge 120 Windows 10 - Desktop",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2 Safari/605.1.15",
                "Safari 17.2 Mac OS X 10.15.7 - Desktop",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:121.0) Gecko/20100101 Firefox/121.0",
                "Firefox 121 Mac OS X 10.15 - Desktop",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2 Mobile/15E148 Safari/604.1",
                "Mobile Safari 17.2 iOS 17.2.1 iPhone Mobile",
            ),
            (
                "Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/120.0.6099.50 Mobile/15E148 Safari/604.1",
                "Chrome iOS 120 iOS 16.6 iPad Tablet",
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-S911B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36",
                "Samsung Internet 23 Android 14 Android Mobile",
            ),
            (
                "Mozilla/5.0 (Linux; Android 13; SM-X700) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
                "Chrome 120 Android 13 Android Tablet",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
                "Firefox 121 Linux - - Desktop",
            ),
            (
                "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 OPR/106.0.0.0",
                "Opera 106 Chrome OS 14541.0.0 - Desktop",
            ),
            (
                "Opera/9.80 (Windows NT 5.1) Presto/2.12 Version/12.16",
                "Opera 12.16 Windows XP - Desktop",
            ),
            ("curl/8.5.0", "- - - - - -"),
            ("", "- - - - - -"),
            ("Chrome/ Android Firefox/99999999999999999999.1 ü", "- - Android - Android Tablet"),
        ];
        for (text, expected) in rows {
            let found = UserAgent::of(text);
            let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let line = [
                known(found.browser.map(str::to_owned)),
                known(found.browser_version.map(|version| version.to_string())),
                known(found.os.map(str::to_owned)),
                known(found.os_version),
                known(found.device.map(str::to_owned)),
                known(found.device_type.map(str::to_owned)),
            ]
            .join(" ");
            assert_eq!(line, expected, "{text}");
        }
    }
}
