//! Server functions: called by forms, and by scripts.
//!
//! A script gets the result of the function. A form is answered with a redirect back to its
//! page, which the form itself contains. The outcome is in the address of the redirect, and
//! the entered values of a failed form are kept as `kept_input` describes.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri, header};
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;
use weir_app::context::{self, Cookies};
use weir_app::error::UiError;
use weir_app::form_names::{DONE, ERROR, FAILED, FUNCTION};
use weir_app::local_path;
use weir_app::notice::Notice;
use weir_service::Ctx;

use super::admission::Sender;
use super::held_forms::{HELD, RequiredSignIn};
use super::{Web, held_forms, kept_input, visit};
use crate::dispatcher::RoutePattern;
use crate::http::error::ApiError;

/// Prefix of the addresses of server functions.
pub(super) const ROOT: &str = "/_fn/";
/// Longest answer of a failed function, in bytes.
const ERROR_BYTES: usize = 1 << 20;

/// Calls a server function.
pub(super) async fn call(State(web): State<Web>, request: Request) -> Response {
    let mut response = answer(&web, request).await;
    response.extensions_mut().insert(RoutePattern("/_fn/{function}"));
    response
}

async fn answer(web: &Web, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut visit = match visit::of(web, &parts).await {
        Ok(visit) => visit,
        Err(error) => return error.into_response(),
    };
    let limits = &web.app.limits;
    let Ok(bytes) = to_bytes(body, limits.web_body.size).await else {
        return ApiError::TooLarge(limits.web_body.size).into_response();
    };
    if let Err(fault) = check(&bytes, limits.form_fields) {
        return ApiError::Malformed(fault).into_response();
    }
    let path = parts.uri.path().to_owned();
    if !exists(&path) {
        return missing();
    }
    let form = visit.wants_page.then(|| Form::read(&bytes));
    visit.back = form.as_ref().map_or_else(|| page_of_script(&parts), |form| form.back.clone());
    let head = parts.clone();
    // The function returns its result, also to a form. This module leads the form back.
    parts.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let context = web.context();
    let (cookies, ctx) = (visit.cookies, visit.ctx.clone());
    let returning = match parts.extensions.get::<Sender>() {
        Some(Sender::Returning(user)) => Some(*user),
        Some(Sender::Member(_) | Sender::Unknown) | None => None,
    };
    let provide = move || context::provide(&context, &visit);
    let request = Request::from_parts(parts, Body::from(bytes.clone()));
    let response = leptos_axum::handle_server_fns_with_context(provide, request).await;
    let response = response.into_response();
    let notice = notice_of(cookies, &response);
    if let (Some(ctx), Some(notice)) = (&ctx, notice) {
        keep_message(web, ctx, &notice).await;
    }
    let (mut response, error) = with_error(response).await;
    let Some(form) = form else { return response };
    let user = ctx.as_ref().map(Ctx::user);
    let required_sign_in = RequiredSignIn::of(&response);
    let failed = form.lead_back(&path, error.as_ref(), &mut response);
    let mut typed_by = user;
    let seconds = match (failed, required_sign_in, &form.held, user) {
        (true, ..) => kept_input::SECONDS,
        (false, Some(RequiredSignIn::SignIn), ..) => {
            typed_by = user.or(returning);
            lead_to(&mut response, &held_forms::to_sign_in(&form.back));
            held_forms::SECONDS
        }
        (false, Some(RequiredSignIn::Confirm), _, Some(user)) => {
            let name = web.held.keep(user, held_forms::Sent { path: path.clone(), body: bytes });
            lead_to(&mut response, &held_forms::to_confirmation(&form.back, &name));
            held_forms::SECONDS
        }
        (false, None, Some(name), Some(user)) if held_forms::CONFIRM.contains(&&*path) => {
            return match web.held.take(user, name) {
                Some(form) => carry_out(web, head, cookies, form, response).await,
                None => too_late(cookies, response),
            };
        }
        (false, ..) => return response,
    };
    let kept = format!("{FUNCTION}={}&{}", local_path::encode(&path), form.kept);
    set_cookie(&mut response, &web.drafts.keep(typed_by, cookies, &kept, seconds));
    response
}

/// The page of a script that calls a function.
fn page_of_script(parts: &Parts) -> String {
    let referer = parts.headers.get(header::REFERER).and_then(|value| value.to_str().ok());
    let page = referer.map(local_path::path_of).and_then(local_path::safe);
    local_path::without_outcome(page.unwrap_or("/"))
}

/// The notice that an answer has for the next page.
fn notice_of(cookies: Cookies, response: &Response) -> Option<Notice> {
    let name = format!("{}=", cookies.notice_name());
    let set = response.headers().get_all(header::SET_COOKIE).iter();
    let notice = set.filter_map(|cookie| cookie.to_str().ok()?.strip_prefix(&name)).next_back();
    let notice = notice.and_then(|cookie| cookie.split(';').next());
    notice.and_then(|text| Notice::from_text(text, exists))
}

/// Lists a notice among the messages of the user. The form succeeded also when that cannot
/// be written.
async fn keep_message(web: &Web, ctx: &Ctx, notice: &Notice) {
    if let Err(error) = web.app.services.messages.put(ctx, &notice.text).await {
        tracing::warn!(%error, "a message was not kept");
    }
}

/// Runs a form that waited for a password, in the session that the confirmation opened.
/// Answers as the form does.
fn carry_out(
    web: &Web,
    mut head: Parts,
    cookies: Cookies,
    form: held_forms::Sent,
    confirmed: Response,
) -> BoxFuture<'_, Response> {
    let set: Vec<HeaderValue> =
        confirmed.headers().get_all(header::SET_COOKIE).iter().cloned().collect();
    Box::pin(async move {
        let session = format!("{}=", cookies.session_name());
        let session = set.iter().find(|cookie| cookie.as_bytes().starts_with(session.as_bytes()));
        let (Some(session), Ok(uri)) = (session, form.path.parse::<Uri>()) else {
            return confirmed;
        };
        head.uri = uri;
        // The session that sent this form has ended.
        head.extensions.remove::<Sender>();
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.insert(header::COOKIE, session.clone());
        let mut response = answer(web, Request::from_parts(head, Body::from(form.body))).await;
        // The form's cookies come last, because it may have opened another session.
        let headers = response.headers_mut();
        let own: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
        headers.remove(header::SET_COOKIE);
        for cookie in set.into_iter().chain(own) {
            headers.append(header::SET_COOKIE, cookie);
        }
        response
    })
}

/// The answer when the password was confirmed but the waiting form is gone.
fn too_late(cookies: Cookies, mut confirmed: Response) -> Response {
    let notice = Notice::new(held_forms::TOO_LATE).text_in_cookie();
    let cookie = cookies.hidden(cookies.notice_name(), &notice, kept_input::SECONDS);
    set_cookie(&mut confirmed, &cookie);
    confirmed
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

fn lead_to(response: &mut Response, location: &str) {
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
}

/// The answer at a path without a function.
pub(super) fn missing() -> Response {
    (StatusCode::NOT_FOUND, "Not found.\n").into_response()
}

/// Refuses a body that is not a form of the app, before it is read further.
fn check(body: &[u8], most: usize) -> Result<(), String> {
    let fields = 1 + body.iter().filter(|byte| **byte == b'&').count();
    if fields > most {
        return Err(format!("The form has {fields} fields. It may have {most}."));
    }
    match percent_encoding::percent_decode(body).decode_utf8() {
        Ok(_) => Ok(()),
        Err(_) => Err("The form is not in UTF-8.".to_owned()),
    }
}

/// The answer of a function, and the error if it failed. Functions report invalid input
/// without a status.
async fn with_error(response: Response) -> (Response, Option<UiError>) {
    if !response.headers().contains_key(SERVER_FN_ERROR_HEADER) {
        return (response, None);
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, ERROR_BYTES).await.unwrap_or_default();
    let error = serde_json::from_slice(&bytes).unwrap_or(UiError::NoAnswer);
    if parts.status == StatusCode::INTERNAL_SERVER_ERROR && matches!(error, UiError::Field(_)) {
        parts.status = StatusCode::BAD_REQUEST;
    }
    (Response::from_parts(parts, Body::from(bytes)), Some(error))
}

/// Whether there is a server function at this path.
pub(super) fn exists(path: &str) -> bool {
    leptos::server_fn::axum::server_fn_paths().any(|(known, _)| known == path)
}

/// The fields of a form that this module reads.
struct Form {
    /// The page of the form.
    back: String,
    /// Id of the part of the page that shows the outcome.
    part: Option<String>,
    /// The entered values, in case the form fails.
    kept: String,
    /// Name of the form that waits for this one.
    held: Option<String>,
}

impl Form {
    fn read(body: &Bytes) -> Self {
        let fields: Vec<_> = form_urlencoded::parse(body).collect();
        let back = fields.iter().find(|(name, _)| name == "back");
        let back = back.and_then(|(_, value)| local_path::safe(value)).unwrap_or("/");
        let is_id = |id: &str| {
            !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let part = fields.iter().find(|(name, id)| name == "back_part" && is_id(id));
        Self {
            back: local_path::without_outcome(back),
            part: part.map(|(_, id)| id.to_string()),
            kept: kept_input::of(&fields),
            held: fields.iter().find(|(name, _)| name == HELD).map(|(_, name)| name.to_string()),
        }
    }

    /// Turns the answer of a function into a redirect: where the function leads, else back
    /// to the page of the form, with the outcome in the address. Returns whether the address
    /// has an error.
    fn lead_back(&self, function: &str, error: Option<&UiError>, response: &mut Response) -> bool {
        *response.status_mut() = StatusCode::SEE_OTHER;
        *response.body_mut() = Body::empty();
        let headers = response.headers_mut();
        for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
            headers.remove(name);
        }
        let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        let location = match (location, error) {
            (Some(location), _) if location != self.back => return false,
            (_, Some(error)) => failed(&self.back, function, error),
            (_, None) => {
                let part = self.part.as_ref().map(|id| format!("#{id}")).unwrap_or_default();
                let done = format!("{DONE}={}{part}", local_path::encode(function));
                format!("{}{}{done}", self.back, sign(&self.back))
            }
        };
        lead_to(response, &location);
        error.is_some()
    }
}

/// The address of a page, with the error of its form.
pub(super) fn failed(back: &str, function: &str, error: &UiError) -> String {
    let (function, error) = (local_path::encode(function), error.for_query());
    format!("{back}{}{FAILED}={function}&{ERROR}={}", sign(back), local_path::encode(&error))
}

/// What separates a further parameter from an address.
fn sign(address: &str) -> char {
    if address.contains('?') { '&' } else { '?' }
}

#[cfg(test)]
mod tests {

    use axum::response::{IntoResponse, Response};
    use bytes::Bytes;
    use http::{StatusCode, header};

    use weir_app::error::UiError;

    use super::{Form, check};

    fn redirect(to: &'static str) -> Response {
        (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
    }

    #[test]
    fn forms_are_text_with_a_bounded_number_of_fields() {
        for good in ["", "a=1&b=%C3%A4+%F0%9F%8D%B5", "a=ä&b"] {
            assert_eq!(check(good.as_bytes(), 2), Ok(()), "{good}");
        }
        assert!(check(b"a&b&c", 2).unwrap_err().contains("3 fields"));
        for bad in [&b"a=\xff"[..], b"a=%ff", b"a=%C3&b=%A4", b"\xc3=1", b"a=%ED%A0%80"] {
            assert!(check(bad, 2).unwrap_err().contains("UTF-8"), "{bad:?}");
        }
    }

    #[test]
    fn a_form_names_its_page() {
        let body = "email=a%40b.de&password=x&token=t&back=%2Fsetup%3Ftoken%3Dt%26__err%3Dold";
        let form = Form::read(&Bytes::from_static(body.as_bytes()));
        assert_eq!(form.back, "/setup?token=t");
        assert_eq!(form.kept, "email=a%40b.de");
        for bad in [
            "back=%2F%2Fevil.example",
            "back=http%3A%2F%2Fevil",
            "back=%2F..%2F%2Fevil.example",
            "back=%2F%252e%252E%2F%2Fevil.example",
            "x=1",
        ] {
            assert_eq!(Form::read(&Bytes::from_static(bad.as_bytes())).back, "/", "{bad}");
        }
    }

    #[test]
    fn the_redirect_contains_the_outcome() {
        let at = |back: &str, part: Option<&str>| Form {
            back: back.to_owned(),
            part: part.map(str::to_owned),
            kept: String::new(),
            held: None,
        };
        let led = |form: &Form, error: Option<&UiError>, mut response: Response| {
            let has_error = form.lead_back("/_fn/f", error, &mut response);
            assert_eq!(response.status(), StatusCode::SEE_OTHER);
            let location = response.headers()[header::LOCATION].to_str().unwrap().to_owned();
            assert_eq!(has_error, location.contains("__err"));
            location
        };
        let plain = || StatusCode::OK.into_response();
        assert_eq!(led(&at("/a?b=1", None), None, plain()), "/a?b=1&__done=/_fn/f");
        assert_eq!(led(&at("/a", None), None, redirect("/a")), "/a?__done=/_fn/f");
        let part = at("/a", Some("step-check"));
        assert_eq!(led(&part, None, plain()), "/a?__done=/_fn/f#step-check");
        assert_eq!(led(&part, None, redirect("/projects/1")), "/projects/1");
        let failed = led(&part, Some(&UiError::NotFound), plain());
        assert_eq!(failed, "/a?__path=/_fn/f&__err=%22NotFound%22");
        let stays = led(&part, Some(&UiError::NotFound), redirect("/a"));
        assert_eq!(stays, failed, "an error is not an outcome");
        let sign_in = redirect("/login?next=/a");
        assert_eq!(led(&part, Some(&UiError::SignIn), sign_in), "/login?next=/a");
    }

    #[test]
    fn a_part_is_an_id() {
        let part = |body: &'static str| Form::read(&Bytes::from_static(body.as_bytes())).part;
        assert_eq!(part("back=%2Fa&back_part=step-check").as_deref(), Some("step-check"));
        assert_eq!(part("back=%2Fa&back_part=%0D%0Ax"), None);
    }
}
