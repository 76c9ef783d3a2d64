//! The API document as pages for people: complete HTML without scripts. They load only
//! the style sheet of the app.

mod html;
mod operation;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde_json::Value;
use weir_service::{Error as ServiceError, error};

use self::html::Html;
use crate::http::error::ApiResult;
use crate::web;

/// Pages run no scripts and load files of this server only.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// The usual order of reading.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A page.
#[derive(Debug)]
pub struct Page(String);

impl Page {
    /// The first page: facts about all operations, and a list of them.
    ///
    /// # Errors
    /// As [`document`](super::document()).
    pub fn overview() -> ApiResult<Self> {
        let document = super::document()?;
        let mut html = begin(document, "Weir API", None);
        heading(&mut html, "Weir API");
        let introduction = document["info"]["description"].as_str().unwrap_or_default();
        for paragraph in introduction.split("\n\n") {
            html.open("p", "lead");
            html.prose(paragraph);
            html.close("p");
        }
        html.raw("<p class=\"lead\">The same for programs: <a href=\"/api/schema/\">OpenAPI 3.1</a>.</p>");
        for tag in tags(document) {
            html.open("section", "card");
            html.open("h2", "");
            html.link(&address(tag), "", tag);
            html.close("h2");
            html.open("ul", "plain");
            for (method, path, item) in operations(document, tag) {
                html.open("li", "");
                html.link(&format!("{}#{}", address(tag), id(item)), "", summary(item));
                html.raw(" ");
                html.element("code", "faint", &format!("{method} {path}"));
                html.close("li");
            }
            html.close("ul");
            html.close("section");
        }
        errors(&mut html, document);
        Ok(Self(end(html)))
    }

    /// The operations of one resource.
    ///
    /// # Errors
    /// There is no resource of this name, or as [`document`](super::document()).
    pub fn of(name: &str) -> ApiResult<Self> {
        let document = super::document()?;
        let tag = tags(document).find(|tag| slug(tag) == name);
        let tag = tag.ok_or(ServiceError::NotFound(error::NOT_FOUND))?;
        let mut html = begin(document, &format!("{tag}, Weir API"), Some(tag));
        heading(&mut html, tag);
        for (method, path, item) in operations(document, tag) {
            operation::write(&mut html, document, &method, path, item);
        }
        Ok(Self(end(html)))
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let policy = HeaderValue::from_static(POLICY);
        let headers = [(header::CONTENT_SECURITY_POLICY, policy)];
        (headers, axum::response::Html(self.0)).into_response()
    }
}

fn begin(document: &Value, title: &str, current: Option<&str>) -> Html {
    let mut html = Html::default();
    html.raw(
        "<!DOCTYPE html><html lang=\"en\" data-theme=\"system\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"/mark.svg\" type=\"image/svg+xml\">",
    );
    if let Some(address) = web::style_sheet() {
        html.raw("<link rel=\"stylesheet\" href=\"");
        html.text(&address);
        html.raw("\">");
    }
    html.element("title", "", title);
    html.raw(
        "</head><body><div class=\"frame\"><header class=\"rail\">\
         <a class=\"brand\" href=\"/\"><img class=\"mark\" src=\"/mark.svg\" alt=\"\"> \
         <span>Weir</span></a><nav class=\"nav\" aria-label=\"API\"><div class=\"nav-group\">",
    );
    nav_link(&mut html, "/api/docs/", "Overview", current.is_none());
    html.raw("</div><div class=\"nav-group\">");
    for tag in tags(document) {
        nav_link(&mut html, &address(tag), tag, current == Some(tag));
    }
    html.raw("</div></nav></header><main id=\"main\" class=\"api\">");
    html
}

fn heading(html: &mut Html, text: &str) {
    html.open("div", "page-head");
    html.element("h1", "", text);
    html.close("div");
}

fn end(mut html: Html) -> String {
    html.raw("</main></div></body></html>");
    html.into_text()
}

fn nav_link(html: &mut Html, address: &str, text: &str, is_here: bool) {
    html.raw("<a class=\"nav-link\"");
    if is_here {
        html.raw(" aria-current=\"page\"");
    }
    html.raw(" href=\"");
    html.text(address);
    html.raw("\">");
    html.text(text);
    html.close("a");
}

fn errors(html: &mut Html, document: &Value) {
    html.open("section", "card");
    html.element("h2", "", "Errors");
    html.raw("<table><thead><tr><th>When</th><th>Body</th></tr></thead><tbody>");
    let responses = document["components"]["responses"].as_object();
    for response in responses.into_iter().flatten().map(|(_, response)| response) {
        html.open("tr", "");
        html.open("td", "");
        html.prose(response["description"].as_str().unwrap_or_default());
        html.close("td");
        html.open("td", "");
        let example = &response["content"]["application/json"]["example"];
        html.element("code", "wrap", &example.to_string());
        html.close("td");
        html.close("tr");
    }
    html.raw("</tbody></table>");
    html.close("section");
}

fn tags(document: &Value) -> impl Iterator<Item = &str> {
    let tags = document["tags"].as_array().into_iter().flatten();
    tags.filter_map(|tag| tag["name"].as_str())
}

/// Method, path and operation of all operations with this tag.
fn operations<'a>(
    document: &'a Value,
    tag: &'a str,
) -> impl Iterator<Item = (String, &'a str, &'a Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        METHODS.iter().filter_map(move |method| {
            let item = item.get(method.to_ascii_lowercase())?;
            Some(((*method).to_owned(), path.as_str(), item))
        })
    });
    all.filter(move |(_, _, item)| item["tags"][0] == tag)
}

fn slug(tag: &str) -> String {
    tag.to_ascii_lowercase().replace(' ', "_")
}

fn address(tag: &str) -> String {
    format!("/api/docs/{}/", slug(tag))
}

fn id(item: &Value) -> &str {
    item["operationId"].as_str().unwrap_or_default()
}

fn summary(item: &Value) -> &str {
    item["summary"].as_str().unwrap_or_default()
}
