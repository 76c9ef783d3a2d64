//! The browser library as static files: `/static/array.js` and the files that it loads
//! (ING-16).
//!
//! What belongs here: the choice between the library in the site and the folder that the
//! operator configures, and finding a file of that folder and no file outside it. What does
//! not: the files of the site (`web::assets`), and which scripts it contains (`xtask`).

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use weir_service::Error as ServiceError;

use super::intake;
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::headers::accepts_encoding;
use crate::web::assets;

/// The file that a page asks for first. If the setting names a single file, it is served
/// under this name.
const ENTRY: &str = "array.js";
/// Largest file that is served, in bytes.
const LARGEST: u64 = 8 << 20;
/// Most files that are kept in memory. The library has fewer.
const KEPT: usize = 128;
/// Long enough for a visit, short enough after an update of the folder or of Weir.
const CACHING: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// The folder of the browser library, if the operator configures one. Cheap to clone.
#[derive(Clone)]
pub struct BrowserLibrary(Arc<Inner>);

struct Inner {
    /// A file or a folder; empty when not configured.
    location: PathBuf,
    kept: Mutex<HashMap<PathBuf, Arc<Script>>>,
}

/// A file in memory, with the version that was read.
struct Script {
    version: Version,
    plain: Bytes,
    gzip: Bytes,
    tag: HeaderValue,
}

/// Length and time of a file. They change when the file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    length: u64,
    modified_nanos: u128,
}

impl Version {
    fn of(file: &Metadata) -> io::Result<Self> {
        let modified = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { length: file.len(), modified_nanos: modified.as_nanos() })
    }

    /// A weak tag, because it is the same for all encodings.
    fn tag(self) -> HeaderValue {
        let text = format!("W/\"{:x}-{:x}\"", self.length, self.modified_nanos);
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("W/\"\""))
    }
}

impl BrowserLibrary {
    /// The library at `location`. An empty path means the one in the site.
    pub fn at(location: &Path) -> Self {
        if !location.as_os_str().is_empty()
            && let Err(error) = location.metadata()
        {
            tracing::warn!(%error, "browser_library names nothing that can be read");
        }
        Self(Arc::new(Inner { location: location.to_owned(), kept: Mutex::default() }))
    }

    fn is_set(&self) -> bool {
        !self.0.location.as_os_str().is_empty()
    }

    /// A file of the library by its name without a path; `None` when there is none.
    /// Blocks on the disk.
    fn find(&self, name: &str) -> io::Result<Option<Arc<Script>>> {
        let root = self.0.location.canonicalize()?;
        let path = if root.is_dir() {
            root.join(name).canonicalize()?
        } else if name == ENTRY {
            root.clone()
        } else {
            return Ok(None);
        };
        // A symbolic link may lead out of the folder.
        if !path.starts_with(&root) {
            return Ok(None);
        }
        let metadata = path.metadata()?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            return Ok(None);
        }
        let version = Version::of(&metadata)?;
        if let Some(script) = self.0.kept.lock().get(&path)
            && script.version == version
        {
            return Ok(Some(Arc::clone(script)));
        }
        let script = Arc::new(Script::read(&path, version)?);
        let mut kept = self.0.kept.lock();
        if kept.len() < KEPT || kept.contains_key(&path) {
            kept.insert(path, Arc::clone(&script));
        }
        Ok(Some(script))
    }
}

impl Script {
    fn read(path: &Path, version: Version) -> io::Result<Self> {
        let mut plain = Vec::new();
        File::open(path)?.take(LARGEST).read_to_end(&mut plain)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&plain)?;
        let gzip = encoder.finish()?.into();
        Ok(Self { version, plain: plain.into(), gzip, tag: version.tag() })
    }
}

/// Answers a request below `/static/`.
pub(super) async fn answer(app: &App, request: Request) -> ApiResult<Response> {
    let (parts, _body) = request.into_parts();
    let library = app.browser_library.clone();
    let name = file_name(parts.uri.path()).ok_or(ApiError::UnknownPath)?.to_owned();
    let _permit = intake::permit(app).map_err(|_| {
        ApiError::Service(ServiceError::Unavailable("too many capture requests at a time"))
    })?;
    if !library.is_set() {
        return of_site(&name, &parts.headers);
    }
    let found = tokio::task::spawn_blocking(move || library.find(&name))
        .await
        .map_err(|error| ApiError::Panicked(error.to_string()))?;
    match found {
        Ok(Some(script)) => Ok(send(&script, &parts.headers)),
        Ok(None) => Err(ApiError::UnknownPath),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ApiError::UnknownPath),
        Err(error) => {
            tracing::warn!(%error, "a file of the browser library could not be read");
            Err(ApiError::UnknownPath)
        }
    }
}

/// Sends a script of the site.
fn of_site(name: &str, request: &HeaderMap) -> ApiResult<Response> {
    match assets::response(&format!("static/{name}"), request) {
        Some(mut response) => {
            describe(response.headers_mut());
            Ok(response)
        }
        None if name == ENTRY => Err(ApiError::NoBrowserLibrary),
        None => Err(ApiError::UnknownPath),
    }
}

fn send(script: &Script, request: &HeaderMap) -> Response {
    let compressed = accepts_encoding(request, "gzip");
    let mut response = if request.get(header::IF_NONE_MATCH) == Some(&script.tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(if compressed { script.gzip.clone() } else { script.plain.clone() })
            .into_response()
    };
    let headers = response.headers_mut();
    describe(headers);
    headers.insert(header::ETAG, script.tag.clone());
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Sets the media type and the caching, which are the same for every script.
fn describe(headers: &mut HeaderMap) {
    let javascript = HeaderValue::from_static("application/javascript");
    headers.insert(header::CONTENT_TYPE, javascript);
    headers.insert(header::CACHE_CONTROL, CACHING);
}

/// `part.js` in `/static/part.js` and `/static/version/part.js`. The version in the path
/// is ignored: there is one version.
fn file_name(path: &str) -> Option<&str> {
    let mut segments = path.strip_prefix("/static/")?.trim_end_matches('/').rsplit('/');
    let name = segments.next()?;
    let version = segments.next();
    let plain = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
        !text.is_empty() && !text.starts_with('.') && text.bytes().all(allowed)
    };
    let fits = name.ends_with(".js") && plain(name) && version.is_none_or(plain);
    (fits && segments.next().is_none()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn names_of_files() {
        for (path, name) in [
            ("/static/array.js", Some("array.js")),
            ("/static/array.js/", Some("array.js")),
            ("/static/1.434.18/surveys.js", Some("surveys.js")),
            ("/static/1.434.18-rc.1+b/web-vitals_2.js", Some("web-vitals_2.js")),
            ("/static/", None),
            ("/static/array.css", None),
            ("/static/.hidden.js", None),
            ("/static/../array.js", None),
            ("/static/..%2Farray.js", None),
            ("/static//array.js", None),
            ("/static/a/b/array.js", None),
            ("/static/a\\array.js", None),
            ("/static/.js", None),
            ("/other/array.js", None),
        ] {
            assert_eq!(file_name(path), name, "{path}");
        }
    }
}
