//! The snippets of the start page, with host and key filled in. The tests in `end2end`
//! run each snippet as it is shown.

/// Label and text of each snippet. If `whole` is false, the distinct id is missing.
pub(super) fn of(host: &str, key: &str, whole: bool) -> Vec<(&'static str, String)> {
    let event = if whole { "first event" } else { "broken event" };
    vec![
        ("curl", curl(host, key, event, whole)),
        ("HTTPie", httpie(host, key, event, whole)),
        ("Python", python(host, key, event, whole)),
        ("JavaScript", javascript(host, key, event, whole)),
    ]
}

/// The event as an object literal, which is the same in Python and JavaScript. All lines
/// except the first are indented by `margin`.
fn json(key: &str, event: &str, whole: bool, margin: &str) -> String {
    let whom = if whole { format!(",\n{margin}  \"distinct_id\": \"me\"") } else { String::new() };
    format!(
        "{{\n{margin}  \"api_key\": \"{key}\",\n{margin}  \"event\": \"{event}\"{whom}\n{margin}}}"
    )
}

fn curl(host: &str, key: &str, event: &str, whole: bool) -> String {
    let body = json(key, event, whole, "  ");
    format!("curl -sS {host}/i/v0/e/ \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'")
}

fn httpie(host: &str, key: &str, event: &str, whole: bool) -> String {
    let whom = if whole { " \\\n  distinct_id=me" } else { "" };
    format!("http POST {host}/i/v0/e/ \\\n  api_key={key} \\\n  event='{event}'{whom}")
}

fn python(host: &str, key: &str, event: &str, whole: bool) -> String {
    let body = json(key, event, whole, "");
    format!(
        "import json, urllib.request\n\
         event = {body}\n\
         request = urllib.request.Request(\n    \
             \"{host}/i/v0/e/\",\n    \
             data=json.dumps(event).encode(),\n    \
             headers={{\"Content-Type\": \"application/json\"}},\n\
         )\n\
         print(urllib.request.urlopen(request).status)"
    )
}

fn javascript(host: &str, key: &str, event: &str, whole: bool) -> String {
    let body = json(key, event, whole, "  ");
    format!(
        "const answer = await fetch(\"{host}/i/v0/e/\", {{\n  \
           method: \"POST\",\n  \
           headers: {{ \"Content-Type\": \"application/json\" }},\n  \
           body: JSON.stringify({body}),\n\
         }});\n\
         console.log(answer.status);"
    )
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn only_broken_snippets_lack_the_distinct_id() {
        for (label, text) in of("http://h:1", "phc_k", true) {
            assert!(text.contains("distinct_id") && text.contains("phc_k"), "{label}");
            assert!(text.contains("http://h:1/i/v0/e/"), "{label}: {text}");
        }
        for (label, text) in of("http://h:1", "phc_k", false) {
            assert!(!text.contains("distinct_id"), "{label}");
        }
    }
}
