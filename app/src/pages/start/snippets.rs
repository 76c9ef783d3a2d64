//! The snippets of the start page, with the address of Weir and the key filled in.
//! The tests in `end2end` run each snippet as it is shown.

/// A snippet with placeholders: `HOST`, `KEY`, `EVENT`, and `WHOM` for the distinct id.
struct Snippet {
    label: &'static str,
    text: &'static str,
    /// What the distinct id looks like.
    whom: &'static str,
}

const SNIPPETS: [Snippet; 4] = [
    Snippet {
        label: "curl",
        text: r#"curl -sS HOST/i/v0/e/ \
  -H 'Content-Type: application/json' \
  -d '{
    "api_key": "KEY",
    "event": "EVENT"WHOM
  }'"#,
        whom: ",\n    \"distinct_id\": \"me\"",
    },
    Snippet {
        label: "HTTPie",
        text: r"http POST HOST/i/v0/e/ \
  api_key=KEY \
  event='EVENT'WHOM",
        whom: " \\\n  distinct_id=me",
    },
    Snippet {
        label: "Python",
        text: r#"import json, urllib.request
event = {
  "api_key": "KEY",
  "event": "EVENT"WHOM
}
request = urllib.request.Request(
    "HOST/i/v0/e/",
    data=json.dumps(event).encode(),
    headers={"Content-Type": "application/json"},
)
print(urllib.request.urlopen(request).status)"#,
        whom: ",\n  \"distinct_id\": \"me\"",
    },
    Snippet {
        label: "JavaScript",
        text: r#"const answer = await fetch("HOST/i/v0/e/", {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({
    "api_key": "KEY",
    "event": "EVENT"WHOM
  }),
});
console.log(answer.status);"#,
        whom: ",\n    \"distinct_id\": \"me\"",
    },
];

/// The element of a web page that loads the browser library, which sends events on its own.
const WEB_SITE: &str = r#"<script async src="HOST/static/array.js"
  onload="posthog.init('KEY', { api_host: 'HOST' })"></script>"#;

/// Label and text of the snippet for a web site.
pub(super) fn of_web_site(host: &str, key: &str) -> (&'static str, String) {
    ("Web site", filled(WEB_SITE, host, key))
}

/// The key comes last, because it may contain any letters.
fn filled(text: &str, host: &str, key: &str) -> String {
    text.replace("HOST", host).replace("KEY", key)
}

/// Label and text of each snippet. If `whole` is false, the distinct id is missing.
pub(super) fn of(host: &str, key: &str, whole: bool) -> Vec<(&'static str, String)> {
    let event = if whole { "first event" } else { "broken event" };
    let written = |snippet: &Snippet| {
        let whom = if whole { snippet.whom } else { "" };
        let text = snippet.text.replace("EVENT", event).replace("WHOM", whom);
        (snippet.label, filled(&text, host, key))
    };
    SNIPPETS.iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::{of, of_web_site};

    #[test]
    fn only_broken_snippets_lack_the_distinct_id() {
        for (label, text) in of("http://h:1", "phc_k", true) {
            assert!(text.contains("distinct_id") && text.contains("phc_k"), "{label}");
            assert!(text.contains("http://h:1/i/v0/e/"), "{label}: {text}");
            assert!(!["HOST", "KEY", "EVENT", "WHOM"].iter().any(|it| text.contains(it)), "{text}");
        }
        for (label, text) in of("http://h:1", "phc_k", false) {
            assert!(!text.contains("distinct_id"), "{label}");
        }
    }

    #[test]
    fn the_element_of_a_web_page_has_host_and_key() {
        let (_, text) = of_web_site("http://h:1", "phc_HOST");
        assert_eq!(
            text,
            "<script async src=\"http://h:1/static/array.js\"\n  \
             onload=\"posthog.init('phc_HOST', { api_host: 'http://h:1' })\"></script>"
        );
    }
}
