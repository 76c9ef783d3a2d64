//! One operation: rights, parameters, body and answers.

use serde_json::Value;

use super::html::Html;
use super::{id, summary};
use crate::openapi::document::SHARED;

/// Nested objects are shown to this depth; deeper ones by their examples.
const DEPTH: usize = 1;

pub(super) fn write(html: &mut Html, document: &Value, method: &str, path: &str, item: &Value) {
    html.raw(&format!("<section class=\"card\" id=\"{}\">", id(item)));
    html.element("h2", "", summary(item));
    html.open("p", "");
    html.element("code", "wrap", &format!("{method} {path}"));
    html.close("p");
    html.open("p", "faint");
    html.prose(item["description"].as_str().unwrap_or_default());
    html.close("p");
    // The page has the details of `PATCH`.
    if !id(item).starts_with(SHARED) {
        parameters(html, item);
        body(html, document, item);
        answers(html, document, item);
    }
    html.close("section");
}

fn parameters(html: &mut Html, item: &Value) {
    let parameters: Vec<&Value> = item["parameters"].as_array().into_iter().flatten().collect();
    if parameters.is_empty() {
        return;
    }
    html.element("h3", "", "Parameters");
    begin_table(html, &["Name", "Type", "Meaning"]);
    for parameter in parameters {
        row(
            html,
            parameter["name"].as_str().unwrap_or_default(),
            &kind(&parameter["schema"]),
            &[
                parameter["in"].as_str().filter(|place| *place == "path").map(|_| "In the path."),
                (parameter["required"] == true && parameter["in"] == "query")
                    .then_some("Required."),
                parameter["description"].as_str(),
            ],
        );
    }
    end_table(html);
}

fn body(html: &mut Html, document: &Value, item: &Value) {
    let content = &item["requestBody"]["content"]["application/json"];
    if content.is_null() {
        return;
    }
    html.element("h3", "", "Body");
    fields(html, document, &content["schema"], 0);
    example(html, &content["example"]);
}

fn answers(html: &mut Html, document: &Value, item: &Value) {
    let responses = item["responses"].as_object();
    let mut errors = Vec::new();
    for (status, response) in responses.into_iter().flatten() {
        if response.get("$ref").is_some() {
            errors.push(status.as_str());
            continue;
        }
        html.element("h3", "", &format!("Answer {status}"));
        let content = &response["content"]["application/json"];
        if content.is_null() {
            html.element("p", "faint", response["description"].as_str().unwrap_or_default());
        } else {
            fields(html, document, &content["schema"], 0);
            example(html, &content["example"]);
        }
    }
    html.open("p", "faint");
    html.text(&format!("Errors: {}.", errors.join(", ")));
    html.close("p");
}

fn fields(html: &mut Html, document: &Value, schema: &Value, depth: usize) {
    let target = target(document, schema);
    let item = target.get("items").map(|items| self::target(document, items));
    let of = item.unwrap_or(target);
    let Some(properties) = of["properties"].as_object() else { return };
    let required: Vec<&str> =
        of["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // In the order of the resource, as far as it is known.
    let place = |name: &str| required.iter().position(|known| *known == name).unwrap_or(usize::MAX);
    let mut sorted: Vec<(&String, &Value)> = properties.iter().collect();
    sorted.sort_by_key(|(name, _)| place(name));
    begin_table(html, &["Field", "Type", "Meaning"]);
    for (name, schema) in sorted {
        let notes = [
            (schema["readOnly"] == true).then_some("Read only."),
            (of.get("required").is_some() && is_body(of) && place(name) < usize::MAX)
                .then_some("Required."),
            schema["description"].as_str(),
        ];
        row(html, name, &kind(schema), &notes);
    }
    end_table(html);
    if let Some(results) = properties.get("results").filter(|_| depth < DEPTH) {
        html.element("p", "faint", "Each of the results:");
        fields(html, document, results, depth + 1);
    }
}

/// In a body only some fields are required. In an answer all are present.
fn is_body(schema: &Value) -> bool {
    let length = |key: &str| match &schema[key] {
        Value::Array(items) => items.len(),
        Value::Object(items) => items.len(),
        _ => 0,
    };
    length("required") < length("properties")
}

fn target<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|address| address.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// The name of a type for readers.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|address| address.rsplit('/').next()) {
        return name.to_owned();
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(parts) = schema[key].as_array() {
            return parts.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let format = schema["format"].as_str().map(|format| match format {
        "date-time" => "time",
        "uuid" => "UUID",
        "uri" => "address",
        other => other,
    });
    let name = |kind: &str| match kind {
        "string" => format.unwrap_or("text").to_owned(),
        "array" => format!("list of {}", kind_of_items(schema)),
        other => other.to_owned(),
    };
    let mut text = match &schema["type"] {
        Value::String(kind) => name(kind),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).map(name).collect::<Vec<_>>().join(" or ")
        }
        _ => "anything".to_owned(),
    };
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        text.push_str(&format!(": {}", choices.join(", ")));
    }
    if let Some(most) = schema["maxLength"].as_u64() {
        text.push_str(&format!(", at most {most} characters"));
    }
    text
}

fn kind_of_items(schema: &Value) -> String {
    kind(&schema["items"])
}

fn example(html: &mut Html, example: &Value) {
    let text = serde_json::to_string_pretty(example).unwrap_or_default();
    html.raw("<details><summary>Example</summary><pre class=\"block\"><code>");
    html.text(&text);
    html.raw("</code></pre></details>");
}

fn begin_table(html: &mut Html, heads: &[&str]) {
    html.raw("<table><thead><tr>");
    for head in heads {
        html.element("th", "", head);
    }
    html.raw("</tr></thead><tbody>");
}

fn row(html: &mut Html, name: &str, kind: &str, notes: &[Option<&str>]) {
    html.open("tr", "");
    html.open("td", "");
    html.element("code", "", name);
    html.close("td");
    html.element("td", "", kind);
    html.open("td", "");
    let notes: Vec<&str> = notes.iter().flatten().copied().collect();
    html.prose(&notes.join(" "));
    html.close("td");
    html.close("tr");
}

fn end_table(html: &mut Html) {
    html.raw("</tbody></table>");
}
