//! A registry of npm with the published plugins of `end2end/plugins.txt`. It serves the
//! original archives.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::stub::{Stub, StubAnswer, StubRequest};
use super::tools;

/// The registry. Ends when dropped.
pub struct Npm(Stub);

/// A version of a package.
struct Package {
    version: String,
    integrity: String,
    archive: PathBuf,
}

impl Npm {
    /// Starts the registry.
    ///
    /// # Panics
    /// When the archives are missing.
    pub async fn start() -> Self {
        let packages = packages();
        Self(Stub::start(move |request| Some(answer(&packages, request))).await)
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        self.0.url()
    }
}

/// The packages that `scripts/setup` has downloaded, by name.
fn packages() -> BTreeMap<String, Package> {
    let folder = tools().join("plugins");
    let list = std::fs::read_to_string(folder.join(".weir-plugins"));
    let list = list.expect("published plugins: run scripts/setup test");
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let package = |line: &str| {
        let (package, integrity) = line.split_once(' ').unwrap();
        let (name, version) = package.rsplit_once('@').unwrap();
        let file = format!("{}-{version}.tgz", name.trim_start_matches('@').replace('/', "-"));
        let (version, integrity) = (version.to_owned(), integrity.to_owned());
        (name.to_owned(), Package { version, integrity, archive: folder.join(file) })
    };
    lines.map(package).collect()
}

fn answer(packages: &BTreeMap<String, Package>, request: &StubRequest) -> StubAnswer {
    let path = request.path.replace("%2f", "/").replace("%2F", "/").replace("%40", "@");
    let path = path.trim_matches('/');
    if let Some((name, _)) = path.split_once("/-/") {
        let Some(package) = packages.get(name) else { return StubAnswer::empty(404) };
        let body = std::fs::read(&package.archive).unwrap();
        return StubAnswer { body, ..StubAnswer::empty(200) };
    }
    let host = request.header("host");
    // Each version also has a path.
    let of_version = || {
        let (name, version) = path.rsplit_once('/')?;
        let package = packages.get(name)?;
        (version == "latest" || version == package.version).then(|| released(name, package, host))
    };
    let found = packages.get(path).map(|package| description(path, package, host));
    match found.or_else(of_version) {
        Some(found) => StubAnswer::json(200, &found),
        None => StubAnswer::json(404, &json!({"error": "Not found"})),
    }
}

/// The registry's document about a package.
fn description(name: &str, package: &Package, host: &str) -> Value {
    let version = &package.version;
    json!({
        "name": name, "dist-tags": {"latest": version},
        "versions": {version: released(name, package, host)},
    })
}

fn released(name: &str, package: &Package, host: &str) -> Value {
    let Package { version, integrity, .. } = package;
    let (_, bare) = name.rsplit_once('/').unwrap_or(("", name));
    let tarball = format!("http://{host}/{name}/-/{bare}-{version}.tgz");
    json!({
        "name": name, "version": version, "dist": {"tarball": tarball, "integrity": integrity},
    })
}
