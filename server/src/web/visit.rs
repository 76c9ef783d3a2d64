//! The request of a page: session, theme, address.

use http::request::Parts;
use http::{HeaderMap, header};
use weir_app::context::{Cookies, Visit};
use weir_app::notice::Notice;
use weir_app::theme::{self, Theme};
use weir_model::preferences::Preferences;
use weir_service::Ctx;
use weir_service::identity::Peer;

use super::admission::Sender;
use super::{Web, cookies, functions, kept_input};
use crate::http::error::{ApiError, ApiResult};
use crate::http::peer::{ClientAddress, Origin};
use crate::http::request_id::RequestId;
use crate::limits::UserPermit;

/// Reads the request, with the session of its cookie.
pub(super) async fn of(web: &Web, parts: &Parts) -> ApiResult<Visit> {
    let headers = &parts.headers;
    let request_id = parts.extensions.get::<RequestId>().map(ToString::to_string);
    let request_id = request_id.unwrap_or_default();
    let requested_origin = parts.extensions.get::<Origin>().map(|origin| origin.0.clone());
    let requested_origin = requested_origin.unwrap_or_default();
    let policy = cookies::of(&web.app.config, &requested_origin, headers);
    let cookies = policy.cookies;
    let token = cookies::read(headers, cookies.session_name()).map(str::to_owned);
    let pending = cookies::read(headers, cookies.pending_name()).map(str::to_owned);
    let passkey = cookies::read(headers, cookies.passkey_name()).map(str::to_owned);
    let ctx = match (parts.extensions.get::<Sender>(), &token) {
        (Some(sender), _) => sender.ctx().cloned(),
        (None, Some(token)) => web.app.services.identity.session(token, request_id.clone()).await?,
        (None, None) => None,
    };
    if let (Some(ctx), Some(permit)) = (&ctx, parts.extensions.get::<UserPermit>()) {
        permit.enter(ctx.user()).map_err(ApiError::TooManyRequests)?;
    }
    let preferences = match &ctx {
        Some(ctx) => web.app.services.preferences.get(ctx).await?,
        None => Preferences::default(),
    };
    let host = requested_origin.strip_prefix("http://");
    let typed = web.drafts.typed(ctx.as_ref().map(Ctx::user), cookies, parts);
    let lost = typed.is_none().then(|| Notice::new(kept_input::LOST));
    let is_call = parts.uri.path().starts_with(functions::ROOT);
    Ok(Visit {
        ctx,
        token,
        pending,
        passkey,
        peer: Peer {
            address: parts.extensions.get::<ClientAddress>().map(|address| address.0),
            agent: text(headers, header::USER_AGENT.as_str()).map(str::to_owned),
            browser: cookies::read(headers, cookies.browser_name()).map(str::to_owned),
        },
        request_id,
        cookies,
        keeps_sessions: policy.keeps_sessions,
        preferences,
        theme: Theme::from_word(cookies::read(headers, theme::COOKIE).unwrap_or_default()),
        insecure: !policy.keeps_sessions
            || cookies.secure && host.is_some_and(|host| !cookies::is_this_machine(host)),
        origin: web.app.config.public_url.origin().unwrap_or(requested_origin),
        wants_page: !is_call || wants_page(headers),
        is_call,
        back: String::new(),
        typed: typed.unwrap_or_default(),
        notice: if is_call { None } else { notice(cookies, parts).or(lost) },
    })
}

/// Whether the answer is for a form and not for a script. Server functions decide by the
/// same header.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    text(headers, header::ACCEPT.as_str()).is_some_and(|accept| accept.contains("text/html"))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The notice about the form that led to this page. A forged cookie can name only
/// functions of this app.
fn notice(cookies: Cookies, parts: &Parts) -> Option<Notice> {
    let kept = cookies::read(&parts.headers, cookies.notice_name())?;
    let pairs = form_urlencoded::parse(kept.as_bytes()).into_owned().collect();
    Notice::from_pairs(pairs, functions::exists)
}
