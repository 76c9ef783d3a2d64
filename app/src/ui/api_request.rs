//! Shows an action of a page as a request to the API, so that users can automate it.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::blanks::{self, Conversion};
use super::copy::CopyButton;
use crate::page_facts::page_facts;

/// Explanations of fields that are not plain text.
const RULES: [(Conversion, &str); 5] = [
    (Conversion::Optional, " An optional field is null when it is empty."),
    (Conversion::Time, " A time is such as \"2026-01-02T03:04:00Z\", or null."),
    (Conversion::List, " A list is such as [\"one\", \"two\"], or null."),
    (Conversion::Object, " An object is such as {}, without quotation marks."),
    (Conversion::Secret, " A missing secret is null."),
];

/// A request to the API.
pub(crate) struct ApiCall {
    /// HTTP method.
    pub(crate) method: &'static str,
    /// Path, with its query.
    pub(crate) path: String,
    /// The scope that the key needs. Empty if any key is sufficient.
    pub(crate) scope: &'static str,
    /// The body. A string such as `"{name}"` stands for a field of the form around it
    /// (`blanks`).
    pub(crate) body: Option<Value>,
}

impl ApiCall {
    /// A request without a body.
    pub(crate) fn new(method: &'static str, path: String, scope: &'static str) -> Self {
        Self { method, path, scope, body: None }
    }

    /// The request that asks a question of a project.
    pub(crate) fn question(project: i64, query: Value) -> Self {
        let path = format!("/api/projects/{project}/query/");
        Self::new("POST", path, "query:read").with(json!({ "query": query }))
    }

    /// The request with a body.
    pub(crate) fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

/// A collapsed request to the API. In a form, scripts fill in the typed values
/// (`behaviours::api_request`).
#[component]
pub(crate) fn ApiRequest(
    call: ApiCall,
    /// The action, such as `switch off`, where the page does not name it next to the
    /// request.
    #[prop(into, optional)]
    of: String,
) -> impl IntoView {
    shown(curl(&origin(), &call), call.scope, of)
}

/// A collapsed request that uploads a file, for forms with a file.
#[component]
pub(crate) fn ApiUpload(
    /// The request, without a body.
    call: ApiCall,
    /// The field of the file.
    #[prop(into)]
    field: String,
    /// An example of a file name.
    file: &'static str,
    #[prop(into, optional)] of: String,
) -> impl IntoView {
    shown(upload(&origin(), &call, &field, file), call.scope, of)
}

fn origin() -> String {
    page_facts().origin
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

/// The request as a shell command.
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

/// The upload as a shell command.
fn upload(origin: &str, call: &ApiCall, field: &str, file: &str) -> String {
    format!("{} \\\n  -F {}", curl(origin, call), quoted(&format!("{field}=@{file}")))
}

/// Quotes a text as one word of a shell.
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
