//! The site: the built files that the browser loads, embedded in release builds.
//!
//! Assets with a hash in their names never change and are cached for a year. Others are
//! checked on each use. Assets are compressed at build time and sent compressed.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rust_embed::{EmbeddedFile, RustEmbed};
use weir_app::context::Assets;

use crate::http::headers::accepts_encoding;

/// The files of the site. In a debug build the files are read on request.
#[derive(RustEmbed)]
#[folder = "${WEIR_SITE:-../target/site}"]
#[allow_missing = true]
struct FrontEnd;

/// Compressed forms, best first: the name in headers, the extension of the file.
const COMPRESSED: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];
/// The script that loads the code of areas.
const LOADER: &str = "__wasm_split.js";
/// Least length of a hash, between two dots of a name or as the name of a folder.
const MIN_HASH_LENGTH: usize = 16;

/// The script that starts the app in a site that cargo-leptos built, which has no such script.
const PLAIN_BOOT: &str = "pkg/boot.js";
/// What the names of the files of such a site begin with.
const PLAIN: &str = "pkg/weir.";

/// Addresses of the files that pages load, as xtask recorded them, or where cargo-leptos puts
/// them. Empty without a built site: pages work without it.
pub(super) fn page_assets() -> Assets {
    let Some(manifest) = FrontEnd::get("manifest.json") else { return plain_assets() };
    let manifest: HashMap<String, String> =
        serde_json::from_slice(&manifest.data).unwrap_or_default();
    let address = |name: &str| manifest.get(name).map(|path| format!("/{path}"));
    let areas = manifest.get("areas.json").and_then(|path| FrontEnd::get(path));
    let areas: HashMap<String, Vec<String>> =
        areas.and_then(|areas| serde_json::from_slice(&areas.data).ok()).unwrap_or_default();
    let addresses = |files: Vec<String>| {
        files.iter().filter_map(|file| address(&format!("{file}.wasm"))).collect()
    };
    Assets {
        start_script: address("boot.js"),
        scripts: ["weir.js", LOADER].into_iter().filter_map(address).collect(),
        css: address("weir.css"),
        area_code: Arc::new(
            areas.into_iter().map(|(area, files)| (area, addresses(files))).collect(),
        ),
    }
}

fn plain_assets() -> Assets {
    let Some(script) = plain_file("js") else { return Assets::default() };
    Assets {
        start_script: Some(format!("/{PLAIN_BOOT}")),
        scripts: vec![format!("/{script}")],
        css: plain_file("css").map(|css| format!("/{css}")),
        area_code: Arc::default(),
    }
}

fn plain_boot() -> Option<String> {
    let (script, code) = (plain_file("js")?, plain_file("wasm")?);
    Some(format!(
        "import * as app from \"/{script}\";\n\
         await app.default({{ module_or_path: \"/{code}\" }});\n\
         app.hydrate();\n"
    ))
}

/// The file with this ending that cargo-leptos built last.
fn plain_file(ending: &str) -> Option<String> {
    let built = |name: &str| FrontEnd::get(name)?.metadata.last_modified();
    last_built(FrontEnd::iter().map(|name| (built(&name), name.into_owned())), ending)
}

/// `cargo leptos watch` hashes names only at first. It renames the file then, so one without a
/// hash is newer than all others.
fn last_built(files: impl Iterator<Item = (Option<u64>, String)>, ending: &str) -> Option<String> {
    let files = files.filter(|(_, name)| is_plain(name, ending));
    files.max_by_key(|(built, name)| (!is_hashed(name), *built)).map(|(_, name)| name)
}

/// Whether the name is `pkg/weir.ending` or `pkg/weir.<hash>.ending`.
fn is_plain(name: &str, ending: &str) -> bool {
    let rest = name.strip_prefix(PLAIN).and_then(|rest| rest.strip_suffix(ending));
    rest.is_some_and(|rest| rest.is_empty() || is_hashed(name))
}

/// The response for an asset, if one has this name.
pub(crate) fn response(name: &str, request: &HeaderMap) -> Option<Response> {
    // The compressed forms are not addressable.
    if name.is_empty() || COMPRESSED.iter().any(|(_, ending)| name.ends_with(ending)) {
        return None;
    }
    let Some(plain) = FrontEnd::get(name) else {
        let headers =
            [(header::CONTENT_TYPE, media_type(PLAIN_BOOT)), (header::CACHE_CONTROL, "no-cache")];
        let script = if name == PLAIN_BOOT { plain_boot() } else { None };
        return script.map(|script| (headers, script).into_response());
    };
    let compressed =
        COMPRESSED.iter().filter(|(encoding, _)| accepts_encoding(request, encoding)).find_map(
            |(encoding, ending)| Some((*encoding, FrontEnd::get(&format!("{name}{ending}"))?)),
        );
    let (encoding, file) = match compressed {
        Some((encoding, file)) => (Some(encoding), file),
        None => (None, plain),
    };
    let tag = entity_tag(&file);
    let mut response = if request.get(header::IF_NONE_MATCH) == Some(&tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(file.data).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
    headers.insert(header::ETAG, tag);
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let caching = if is_hashed(name) { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Some(response)
}

fn entity_tag(file: &EmbeddedFile) -> HeaderValue {
    use std::fmt::Write as _;
    let mut tag = String::from("\"");
    for byte in file.metadata.sha256_hash().iter().take(16) {
        // Writing into a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether the name is `something.<hash>.ending`, or in a folder `pkg/<hash>`.
fn is_hashed(name: &str) -> bool {
    let is_hash = |part: &str| {
        part.len() >= MIN_HASH_LENGTH
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if name
        .strip_prefix("pkg/")
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(folder, _)| is_hash(folder))
    {
        return true;
    }
    let file = name.rsplit('/').next().unwrap_or_default();
    let mut parts = file.rsplit('.').skip(1);
    parts.next().is_some_and(is_hash) && parts.next().is_some()
}

/// The media type of a file of this name.
pub(super) fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "ico" => "image/x-icon",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "wasm" => "application/wasm",
        "webmanifest" => "application/manifest+json",
        "webp" => "image/webp",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {

    use super::{is_hashed, is_plain, last_built};

    #[test]
    fn hashed_names() {
        for (name, expected) in [
            ("pkg/weir.5k3bKtO1HnOi6tXh_y8ZVw.js", true),
            ("pkg/5k3bKtO1HnOi6tXh_y8ZVw/weir.js", true),
            ("pkg/weir.js", false),
            ("pkg/weir.min.js", false),
            ("5k3bKtO1HnOi6tXh_y8ZVw.js", false),
            ("favicon.svg", false),
        ] {
            assert_eq!(is_hashed(name), expected, "{name}");
        }
    }

    #[test]
    fn names_that_cargo_leptos_gives() {
        for (name, expected) in [
            ("pkg/weir.js", true),
            ("pkg/weir.5k3bKtO1HnOi6tXh_y8ZVw.js", true),
            ("pkg/weir.5k3bKtO1HnOi6tXh_y8ZVw.js.br", false),
            ("pkg/weir.5k3bKtO1HnOi6tXh_y8ZVw.css", false),
            ("pkg/weir.min.js", false),
            ("pkg/boot.js", false),
            ("weir.js", false),
        ] {
            assert_eq!(is_plain(name, "js"), expected, "{name}");
        }
    }

    #[test]
    fn a_file_without_a_hash_is_the_newest() {
        let old = "pkg/weir.5k3bKtO1HnOi6tXh_y8ZVw.js";
        let new = "pkg/weir.zzzzKtO1HnOi6tXh_y8ZVw.js";
        let last = |files: &[(u64, &str)]| {
            let files = files.iter().map(|(built, name)| (Some(*built), (*name).to_owned()));
            last_built(files, "js")
        };
        assert_eq!(last(&[(1, old), (2, new), (3, "pkg/boot.js")]).as_deref(), Some(new));
        // The time of a file has whole seconds.
        for built in [1, 2] {
            let plain = (built, "pkg/weir.js");
            assert_eq!(last(&[plain, (2, old)]).as_deref(), Some("pkg/weir.js"));
            assert_eq!(last(&[(2, old), plain]).as_deref(), Some("pkg/weir.js"));
        }
        assert_eq!(last(&[(1, "pkg/weir.css")]), None);
    }
}
