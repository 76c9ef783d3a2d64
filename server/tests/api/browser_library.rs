//! The browser library as a static file (ING-16).

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use http::Method;
use weir_testkit::{Answer, TestApp};

const SCRIPT: &str = "window.library = 1;\n";

/// A server with a folder as the npm package has it, and a file outside it.
async fn app_with(folder: &Path) -> TestApp {
    let dist = folder.join("dist");
    std::fs::create_dir_all(dist.join("nested")).unwrap();
    std::fs::write(dist.join("array.js"), SCRIPT.repeat(100)).unwrap();
    std::fs::write(dist.join("surveys.js"), "surveys").unwrap();
    std::fs::write(dist.join("array.d.ts"), "types").unwrap();
    std::fs::write(dist.join(".hidden.js"), "hidden").unwrap();
    std::fs::write(dist.join("nested/inner.js"), "inner").unwrap();
    std::fs::write(folder.join("secret.js"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret.js", dist.join("out.js")).unwrap();
    std::os::unix::fs::symlink("surveys.js", dist.join("within.js")).unwrap();
    TestApp::start(|config| config.browser_library = dist, |_| {}).await
}

async fn get(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut call = app.anonymous().call(Method::GET, path);
    for (name, value) in headers {
        call = call.header(name, value);
    }
    call.send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let app = app_with(folder.path()).await;
    for (path, body) in [
        ("/static/array.js", SCRIPT.repeat(100)),
        ("/static/array.js/", SCRIPT.repeat(100)),
        ("/static/array.js?v=1.434.18", SCRIPT.repeat(100)),
        ("/static/surveys.js?v=1.434.18", "surveys".to_owned()),
        ("/static/1.434.18/surveys.js", "surveys".to_owned()),
        ("/static/within.js", "surveys".to_owned()),
    ] {
        let answer = get(&app, path, &[("origin", "https://shop.example")]).await;
        assert_eq!((answer.status, answer.body.as_ref()), (200, body.as_bytes()), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/javascript"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://shop.example"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("cross-origin"));
    }
    let head = app.anonymous().call(Method::HEAD, "/static/array.js").send().await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let answer = app.anonymous().call(Method::POST, "/static/array.js").send().await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_scripts_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let app = app_with(folder.path()).await;
    for path in [
        "/static/",
        "/static/none.js",
        "/static/array.d.ts",
        "/static/.hidden.js",
        "/static/nested",
        "/static/nested.js",
        "/static/out.js",
        "/static/../secret.js",
        "/static/%2e%2e/secret.js",
        "/static/..%2fsecret.js",
        "/static/1/../secret.js",
        "/static/1/2/array.js",
        "/static//etc/passwd",
    ] {
        let answer = get(&app, path, &[]).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.body.windows(6).any(|bytes| bytes == b"secret"), "{path}");
    }
    // The version in the path is ignored; the file is that of the folder.
    let inner = get(&app, "/static/nested/inner.js", &[]).await;
    assert_eq!(inner.status, 404);
}

#[expect(clippy::disallowed_methods, reason = "unpacks what the test itself has made")]
#[tokio::test(flavor = "multi_thread")]
async fn compressed_and_revalidated() {
    let folder = tempfile::tempdir().unwrap();
    let app = app_with(folder.path()).await;
    let compressed = get(&app, "/static/array.js", &[("accept-encoding", "br, gzip;q=0.8")]).await;
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    GzDecoder::new(compressed.body.as_ref()).read_to_string(&mut text).unwrap();
    assert_eq!(text, SCRIPT.repeat(100));
    assert!(compressed.headers.get_all("vary").iter().any(|value| value == "Accept-Encoding"));

    let tag = compressed.header("etag").unwrap().to_owned();
    let again = get(&app, "/static/array.js", &[("if-none-match", &tag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert!(again.header("access-control-allow-origin").is_some());

    // A new version of the folder is served immediately.
    std::fs::write(folder.path().join("dist/array.js"), "new").unwrap();
    let new = get(&app, "/static/array.js", &[("if-none-match", &tag)]).await;
    assert_eq!((new.status, new.body.as_ref()), (200, b"new".as_slice()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_file_is_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("posthog.js");
    std::fs::write(&file, SCRIPT).unwrap();
    let app = TestApp::start(|config| config.browser_library = file, |_| {}).await;
    assert_eq!(get(&app, "/static/array.js", &[]).await.body, SCRIPT);
    for path in ["/static/posthog.js", "/static/surveys.js"] {
        assert_eq!(get(&app, path, &[]).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_the_library_of_the_site_is_served() {
    let app = TestApp::empty().await;
    let answer = get(&app, "/static/array.js", &[("origin", "https://shop.example")]).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://shop.example"));
    if let Some(library) = library_of_the_site() {
        assert_eq!((answer.status, answer.body.as_ref()), (200, library.as_slice()));
        assert_eq!(answer.header("content-type"), Some("application/javascript"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
        let tag = answer.header("etag").unwrap();
        let again = get(&app, "/static/array.js", &[("if-none-match", tag)]).await;
        assert_eq!((again.status, again.body.len()), (304, 0));
        for path in ["/static/1.0.0/web-vitals.js", "/static/tracing-headers.js?v=1"] {
            assert_eq!(get(&app, path, &[]).await.status, 200, "{path}");
        }
    } else {
        let (status, kind, code, detail, _) = answer.error();
        assert_eq!((status, kind.as_str(), code.as_str()), (404, "invalid_request", "not_found"));
        assert!(detail.contains("`browser_library`"), "{detail}");
    }
    // Of the site only its scripts for pages are in this folder.
    for path in ["/static/boot.js", "/static/none.js", "/static/array.js.gz", "/static/weir.css"] {
        assert_eq!(get(&app, path, &[]).await.status, 404, "{path}");
    }
}

/// Does not depend on whether the library was downloaded: the test puts a script where the
/// library would be.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_the_scripts_of_the_site_are_served() {
    let folder = site().join("static");
    std::fs::create_dir_all(&folder).unwrap();
    let mut script =
        tempfile::Builder::new().prefix("test-").suffix(".js").tempfile_in(&folder).unwrap();
    script.write_all(SCRIPT.as_bytes()).unwrap();
    let name = script.path().file_name().unwrap().to_str().unwrap().to_owned();
    let app = TestApp::empty().await;
    for path in [format!("/static/{name}"), format!("/static/1.434.18/{name}?v=1")] {
        let answer = get(&app, &path, &[("origin", "https://shop.example")]).await;
        // The server finds the site only if the folder was there when it was compiled.
        assert_eq!(
            (answer.status, answer.text()),
            (200, SCRIPT.to_owned()),
            "{path} in {}",
            folder.display()
        );
        assert_eq!(answer.header("content-type"), Some("application/javascript"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://shop.example"));
        let tag = answer.header("etag").unwrap();
        let again = get(&app, &path, &[("if-none-match", tag)]).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    // With the setting, nothing comes from the site.
    let other = tempfile::tempdir().unwrap();
    let configured = app_with(other.path()).await;
    assert_eq!(get(&configured, &format!("/static/{name}"), &[]).await.status, 404);
    script.close().unwrap();
    assert_eq!(get(&app, &format!("/static/{name}"), &[]).await.status, 404);
}

/// The folder that a debug build of the server reads the site from.
fn site() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/site");
    option_env!("WEIR_SITE").map_or_else(default, PathBuf::from)
}

/// The library in the site. The site is built only for the browser tests.
fn library_of_the_site() -> Option<Vec<u8>> {
    std::fs::read(site().join("static/array.js")).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_names_nothing_serves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let app = TestApp::start(|config| config.browser_library = missing, |_| {}).await;
    assert_eq!(get(&app, "/static/array.js", &[]).await.status, 404);
}
