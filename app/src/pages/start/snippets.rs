//! The snippets of the start page, with host and key filled in. The tests in `end2end`
//! run each snippet as it is shown.

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

/// Label and text of each snippet. If `whole` is false, the distinct id is missing.
pub(super) fn of(host: &str, key: &str, whole: bool) -> Vec<(&'static str, String)> {
    let event = if whole { "first event" } else { "broken event" };
    let filled = |snippet: &Snippet| {
        let whom = if whole { snippet.whom } else { "" };
        // The key comes last, because it may contain any letters.
        let text = snippet.text.replace("EVENT", event).replace("WHOM", whom);
        (snippet.label, text.replace("HOST", host).replace("KEY", key))
    };
    SNIPPETS.iter().map(filled).collect()
}

#[cfg(test)]
mod tests {
    use super::of;

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
}
