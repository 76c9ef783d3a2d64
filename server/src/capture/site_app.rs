//! The code of apps that run in visited pages: `/site_app/<config>/<token>/<hash>/`. The
//! settings of browser libraries contain these addresses (PLG-22).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use weir_service::Error as ServiceError;

use super::intake;
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};

/// The text at an address with the current hash never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// An outdated hash returns the newest text, with a short cache time.
const SHORTLY: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// Answers a request below `/site_app/`.
pub(super) async fn answer(app: &App, path: &str) -> ApiResult<Response> {
    let (config, token, hash) = parts(path).ok_or(ApiError::UnknownPath)?;
    let _permit = intake::permit(app).map_err(|_| {
        ApiError::Service(ServiceError::Unavailable("too many capture requests at a time"))
    })?;
    let found = app.services.plugin_configs.site_script(config, token).await?;
    let script = found.ok_or(ApiError::UnknownPath)?;
    let caching = if script.hash == hash { FOR_EVER } else { SHORTLY };
    let javascript = HeaderValue::from_static("application/javascript");
    let headers = [(header::CACHE_CONTROL, caching), (header::CONTENT_TYPE, javascript)];
    Ok((headers, script.text).into_response())
}

/// Config, token and hash of a path.
fn parts(path: &str) -> Option<(&str, &str, &str)> {
    let rest = path.strip_prefix("/site_app/")?;
    let mut words = rest.strip_suffix('/').unwrap_or(rest).split('/');
    let found = (words.next()?, words.next()?, words.next()?);
    words.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn paths() {
        for path in ["/site_app/7/token/hash/", "/site_app/7/token/hash"] {
            assert_eq!(parts(path), Some(("7", "token", "hash")));
        }
        for path in ["/site_app/7/token", "/site_app/7/token/hash/x", "/other/7/token/hash"] {
            assert_eq!(parts(path), None, "{path}");
        }
    }
}
