//! The answers that client libraries ask for when they start: settings, apps for the page
//! and feature flags (ING-8, ING-15).
//!
//! What belongs here: the answers. There are no feature flags, and every library accepts
//! an empty answer. What does not: keys that turn on a feature that is not served, such
//! as `surveys` or `sessionRecording`.
//!
//! Without these answers browser libraries send no `$autocapture`, do not compress, and
//! encode events in base64.

use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde_json::{Map, Value, json};
use weir_capture::{self as capture, CapturePath};
use weir_model::ProjectId;
use weir_service::Error as ServiceError;

use super::intake::{self, Received};
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::request_id::RequestId;
use crate::tokens::Verdict;

/// A new or deleted project becomes visible after this time.
pub(super) const CACHING: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// The settings that libraries of every age understand.
fn settings() -> Map<String, Value> {
    members(json!({
        "supportedCompression": ["gzip-js"],
        "autocapture_opt_out": false,
        "hasFeatureFlags": false,
        "analytics": { "endpoint": "/i/v0/e/" },
        // Persons are created when a page identifies a user. That is the default of
        // today's libraries; older ones ask here.
        "defaultIdentifiedOnly": true,
        "elementsChainAsString": true,
    }))
}

fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The settings with the apps of a project, if it has any.
async fn settings_of(app: &App, project: ProjectId) -> Map<String, Value> {
    let mut settings = settings();
    let apps = app.site_apps.of(project).await;
    if !apps.is_empty() {
        settings.insert("siteApps".to_owned(), json!(&apps[..]));
    }
    settings
}

/// Answers `GET /array/<key>/config`.
pub(super) async fn remote_config(app: &App, path: &str) -> ApiResult<Response> {
    let (_, project) = known_key(app, path).await?;
    let caching = [(header::CACHE_CONTROL, CACHING)];
    Ok((caching, Json(settings_of(app, project).await)).into_response())
}

/// Answers `GET /array/<key>/config.js`.
pub(super) async fn remote_config_script(app: &App, path: &str) -> ApiResult<Response> {
    let (key, project) = known_key(app, path).await?;
    let script = script(key, &Value::Object(settings_of(app, project).await));
    let javascript = HeaderValue::from_static("application/javascript");
    let headers = [(header::CACHE_CONTROL, CACHING), (header::CONTENT_TYPE, javascript)];
    Ok((headers, script).into_response())
}

/// A script that puts the settings where the library looks for them.
fn script(key: &str, settings: &Value) -> String {
    // The text must not be able to end a script element, wherever a page embeds it.
    let key = Value::from(key).to_string().replace('<', "\\u003c");
    format!(
        "(function(w){{w._POSTHOG_REMOTE_CONFIG=w._POSTHOG_REMOTE_CONFIG||{{}};\
         w._POSTHOG_REMOTE_CONFIG[{key}]={{config:{settings},siteApps:[]}};}})(window);\n"
    )
}

/// The key in `/array/<key>/…` and its project, if a project has this key.
async fn known_key<'a>(app: &App, path: &'a str) -> ApiResult<(&'a str, ProjectId)> {
    let key = path.strip_prefix("/array/").and_then(|rest| rest.split('/').next());
    let key = key.filter(|key| capture::is_project_key(key)).ok_or(ApiError::UnknownPath)?;
    match app.tokens.find(key).await {
        Verdict::Project(rules) => Ok((key, rules.id)),
        Verdict::Unknown => Err(ApiError::UnknownPath),
        Verdict::Undecided => Err(unavailable()),
    }
}

/// Answers `POST /flags/`.
pub(super) async fn flags(app: &App, request: Request) -> ApiResult<Response> {
    let no_flags = no_flags(&request)?;
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let wants_settings = pairs.any(|(name, value)| name == "config" && value == "true");
    let project = ask(app, request).await?;
    let mut answer = if wants_settings { settings_of(app, project).await } else { Map::new() };
    answer.extend(no_flags);
    Ok(Json(answer).into_response())
}

/// "There are no flags", in the format of today's libraries.
fn no_flags(request: &Request) -> ApiResult<Map<String, Value>> {
    let id = request.extensions().get::<RequestId>();
    let id = id.ok_or_else(|| ApiError::internal("the dispatcher did not see the request"))?;
    Ok(members(json!({
        "flags": {},
        "errorsWhileComputingFlags": false,
        "requestId": id.to_string(),
    })))
}

/// Answers `POST /decide/`.
pub(super) async fn decide(app: &App, request: Request) -> ApiResult<Response> {
    let no_flags = no_flags(&request)?;
    let project = ask(app, request).await?;
    let mut answer = settings_of(app, project).await;
    // Version 4 of the request reads `flags`; versions 2 and 3 read the other two
    // members.
    answer.extend(no_flags);
    answer.extend(members(json!({
        "config": { "enable_collect_everything": true },
        "featureFlags": {},
        "featureFlagPayloads": {},
        "sessionRecording": false,
    })));
    Ok(Json(answer).into_response())
}

/// Reads the request in the formats of events. Only its key matters: it selects the
/// project.
async fn ask(app: &App, request: Request) -> ApiResult<ProjectId> {
    let received = intake::receive(app, request).await?;
    received.load(app).run(app, project(received)).await
}

async fn project(mut received: Received) -> ApiResult<ProjectId> {
    let payload = received.decode(CapturePath::Settings)?;
    let question = capture::shape(&payload)?;
    match received.verdict(&question.token).await {
        Verdict::Project(rules) => Ok(rules.id),
        Verdict::Unknown => Err(ApiError::UnknownProjectKey),
        Verdict::Undecided => Err(unavailable()),
    }
}

fn unavailable() -> ApiError {
    ApiError::Service(ServiceError::Unavailable("the project key could not be looked up"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::script;

    #[test]
    fn a_key_cannot_break_out_of_the_script() {
        let text = script("a\"];alert(1);//</script>", &json!({"b": 1}));
        assert!(text.contains(r#"["a\"];alert(1);//\u003c/script>"]={config:{"b":1},"#), "{text}");
        assert!(!text.contains('<'));
    }
}
