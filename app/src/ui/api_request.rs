//! What a page does, as a request to the API that anybody can repeat.

use leptos::prelude::*;
use serde_json::Value;

use super::blanks::{self, As};
use super::copy::CopyButton;
use crate::context::visit;

/// How to write fields that are more than a text.
const RULES: [(As, &str); 5] = [
    (As::Optional, " One that is optional is null when it is empty."),
    (As::Time, " A time is such as \"2026-01-02T03:04:00Z\", or null."),
    (As::List, " A list is such as [\"one\", \"two\"], or null."),
    (As::Object, " An object is such as {}, without quotation marks."),
    (As::Secret, " A secret that there is none of is null."),
];

/// A request to the API.
pub(crate) struct ApiCall {
    /// Method.
    pub(crate) method: &'static str,
    /// Path, with its query.
    pub(crate) path: String,
    /// The scope that the key needs; empty when any key will do.
    pub(crate) scope: &'static str,
    /// What is sent. A string such as `"{name}"` stands for a field of the form
    /// around it (`blanks`).
    pub(crate) body: Option<Value>,
}

impl ApiCall {
    /// A request that sends nothing.
    pub(crate) fn new(method: &'static str, path: String, scope: &'static str) -> Self {
        Self { method, path, scope, body: None }
    }

    /// The same with what is sent.
    pub(crate) fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

/// A request to the API, for whoever asks for it. Within a form scripts fill in
/// what is typed (`behaviours::api_request`).
#[component]
pub(crate) fn ApiRequest(
    /// The request.
    call: ApiCall,
    /// What it does, where what it stands beside does not say so: `switch off`.
    #[prop(into, optional)]
    of: String,
) -> impl IntoView {
    shown(curl(&origin(), &call), call.scope, of)
}

/// A request that sends a file, for whoever asks for it: the form that it stands for
/// carries one too.
#[component]
pub(crate) fn ApiUpload(
    /// The request, without a body.
    call: ApiCall,
    /// The field that carries the file.
    #[prop(into)]
    field: String,
    /// A name in the place of the file's.
    file: &'static str,
    /// What it does.
    #[prop(into, optional)]
    of: String,
) -> impl IntoView {
    shown(upload(&origin(), &call, &field, file), call.scope, of)
}

fn origin() -> String {
    visit().map(|visit| visit.origin).unwrap_or_default()
}

fn shown(command: String, scope: &'static str, of: String) -> AnyView {
    let mut kinds = Vec::new();
    blanks::fill(&command, |_, kind| {
        kinds.push(kind);
        None
    });
    let follows_form = (!kinds.is_empty()).then_some("");
    let rules: String =
        RULES.iter().filter(|(kind, _)| kinds.contains(kind)).map(|(_, rule)| *rule).collect();
    let needed = match scope {
        "" => "any personal API key".into_any(),
        scope => view! { "a personal API key with the scope " <code>{scope}</code> }.into_any(),
    };
    view! {
        <details class="api-request" data-api-request=follows_form>
            <summary>
                "Show as API request"
                {(!of.is_empty()).then(|| view! { ": " {of} })}
            </summary>
            <p class="hint">
                "Needs " {needed} " in " <code>"WEIR_API_KEY"</code> ". "
                <a href="/account/keys">"Your keys"</a>
            </p>
            {follows_form.map(|_| view! {
                <p class="hint needs-no-scripts">"Names in braces stand for the fields of the form." {rules}</p>
            })}
            <div class="snippet" data-copyable="">
                <pre tabindex="0"><code>{command}</code></pre>
                <CopyButton what="request" />
            </div>
        </details>
    }
    .into_any()
}

/// The request as a command for a shell.
fn curl(origin: &str, call: &ApiCall) -> String {
    let ApiCall { method, path, body, .. } = call;
    let mut lines = Vec::new();
    let method = if *method == "GET" { String::new() } else { format!(" -X {method}") };
    lines.push(format!("curl{method} {}", quoted(&format!("{origin}{path}"))));
    lines.push("  -H \"Authorization: Bearer $WEIR_API_KEY\"".to_owned());
    if let Some(body) = body {
        lines.push("  -H 'Content-Type: application/json'".to_owned());
        lines.push(format!("  -d {}", quoted(&format!("{body:#}"))));
    }
    lines.join(" \\\n")
}

/// The same with a file.
fn upload(origin: &str, call: &ApiCall, field: &str, file: &str) -> String {
    format!("{} \\\n  -F {}", curl(origin, call), quoted(&format!("{field}=@{file}")))
}

/// The text as one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ApiCall, curl, upload};

    #[test]
    fn requests_run_as_printed() {
        let call = |method, body| ApiCall {
            method,
            path: "/api/organizations/1/?a=b&c=d".to_owned(),
            scope: "organization:write",
            body,
        };
        assert_eq!(
            curl("https://weir.example", &call("GET", None)),
            "curl 'https://weir.example/api/organizations/1/?a=b&c=d' \\\n  \
             -H \"Authorization: Bearer $WEIR_API_KEY\""
        );
        assert_eq!(
            curl("http://h", &call("PATCH", Some(json!({"name": "Ada's"})))),
            "curl -X PATCH 'http://h/api/organizations/1/?a=b&c=d' \\\n  \
             -H \"Authorization: Bearer $WEIR_API_KEY\" \\\n  \
             -H 'Content-Type: application/json' \\\n  \
             -d '{\n  \"name\": \"Ada'\\''s\"\n}'"
        );
        assert_eq!(
            upload("http://h", &call("POST", None), "archive", "plugin.zip"),
            "curl -X POST 'http://h/api/organizations/1/?a=b&c=d' \\\n  \
             -H \"Authorization: Bearer $WEIR_API_KEY\" \\\n  \
             -F 'archive=@plugin.zip'"
        );
    }
}
