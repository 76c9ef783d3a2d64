//! Data directories of released schemas: each is extracted and upgraded, and the API must say
//! what it said when the directory was made (DUR-26).
//!
//! What belongs here: making, compressing and comparing them. `scripts/fixture` makes one of the
//! present schema; `fixtures/data/README.md` says when.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::process::Command;
use weir_testkit::{Answer, Caller, until};

use crate::backup::state;
use crate::process::{Output, Serving, run, weir};

/// The releases, the newest first, and the schema version of each, which has an archive. Each
/// release in the changelog must be here.
const RELEASED: [(&str, i64); 1] = [("0.1.0", 28)];
const CHANGELOG: &str = include_str!("../../../CHANGELOG.md");
/// The directory of the archives.
const ARCHIVES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/data");
/// What an archive says about itself.
const ABOUT: &str = "fixture.json";
const DAYS: &str = "4";
/// Most pages of a list.
const PAGES: usize = 100;

/// The lists that are compared: the path, what identifies an entry, and fields that neither
/// time nor a start of the server changes.
const LISTS: [(&str, &str, &[&str]); 13] = [
    ("/api/organizations/", "/id", &["/name", "/slug", "/created_at"]),
    (
        "/api/organizations/@current/members/",
        "/user/uuid",
        &["/user/email", "/user/first_name", "/level", "/joined_at"],
    ),
    ("/api/organizations/@current/roles/", "/id", &["/name", "/created_at"]),
    ("/api/organizations/@current/domains/", "/id", &["/domain", "/verification_challenge"]),
    (
        "/api/organizations/@current/batch_exports/",
        "/id",
        &["/name", "/interval", "/model", "/paused", "/destination/type", "/created_at"],
    ),
    (
        "/api/organizations/@current/pipeline_destinations/",
        "/id",
        &["/plugin_type", "/url", "/organization_id"],
    ),
    ("/api/projects/", "/id", &["/uuid", "/name", "/api_token", "/timezone"]),
    (
        "{project}events/?limit=1000",
        "/uuid",
        &[
            "/event",
            "/distinct_id",
            "/timestamp",
            "/created_at",
            "/properties",
            "/person/uuid",
            "/elements_chain",
            "/historical",
        ],
    ),
    (
        "{project}persons/",
        "/uuid",
        &["/distinct_ids", "/properties", "/created_at", "/is_identified", "/event_count"],
    ),
    (
        "{project}groups/",
        "/group_key",
        &["/group_type", "/group_type_index", "/group_properties", "/created_at"],
    ),
    ("{project}event_definitions/", "/name", &["/created_at"]),
    ("{project}property_definitions/", "/name", &["/type", "/property_type"]),
    (
        "{project}pipeline_transformation_configs/",
        "/id",
        &["/plugin", "/enabled", "/order", "/config", "/created_at"],
    ),
];

/// All entries of a list.
pub(crate) async fn list(caller: &Caller, path: &str) -> Vec<Value> {
    let (mut entries, mut path) = (Vec::new(), path.to_owned());
    for number in 0.. {
        assert!(number < PAGES, "{path}: too many pages");
        let answer = caller.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
        let page = answer.json();
        entries.extend_from_slice(page["results"].as_array().unwrap());
        let Some(next) = page["next"].as_str() else { break };
        let (_, rest) = next.split_once("/api/").unwrap();
        path = format!("/api/{rest}");
    }
    entries
}

/// Runs the program on the data directory of a folder.
async fn command(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = weir(folder);
    command.args(arguments);
    run(command, "").await
}

/// Serves the data directory of a folder. Callers may ask without limit.
async fn serve(folder: &Path) -> Serving {
    let mut command = weir(folder);
    command.args(["--rate-per-minute", "0", "--rate-per-hour", "0"]);
    Serving::start_with(command).await
}

async fn stop(serving: Serving) {
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

#[track_caller]
fn accepted(answer: Answer) -> Value {
    assert!(matches!(answer.status, 200 | 201), "{:?}", answer.body);
    answer.json()
}

/// The caller and the path of the project that the demo has printed.
fn owner(serving: &Serving, made: &Value) -> (Caller, String) {
    let caller = serving.caller.with_key(text(made, "personal_api_key"));
    (caller, format!("/api/projects/{}/", made["project_id"]))
}

/// A digest of one field of all entries, with what identifies each.
fn digest(entries: &[Value], by: &str, field: &str) -> String {
    let of = |entry: &Value, pointer: &str| entry.pointer(pointer).cloned().unwrap_or_default();
    let texts = entries.iter().map(|entry| json!([of(entry, by), of(entry, field)]).to_string());
    let mut texts: Vec<String> = texts.collect();
    texts.sort_unstable();
    let bytes = Sha256::digest(texts.join("\n"));
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The number of entries of a list, and the digests of fields.
async fn ask(caller: &Caller, path: &str, by: &str, fields: &[&str]) -> Value {
    let entries = list(caller, path).await;
    let fields: Map<String, Value> = fields
        .iter()
        .map(|field| ((*field).to_owned(), digest(&entries, by, field).into()))
        .collect();
    json!({"by": by, "count": entries.len(), "fields": fields})
}

/// Where the API says something else than it did. The lists and fields are those that the
/// fixture was made with.
async fn differences(caller: &Caller, said: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (path, expected) in said.as_object().unwrap() {
        let fields = expected["fields"].as_object().unwrap();
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        let now = ask(caller, path, text(expected, "by"), &names).await;
        if now["count"] != expected["count"] {
            found.push(format!("{path}: {} entries, not {}", now["count"], expected["count"]));
        }
        let changed = names.iter().filter(|name| now["fields"][**name] != fields[**name]);
        found.extend(changed.map(|name| format!("{path}: {name} differs")));
    }
    found
}

/// Makes the data directory of a fixture with this program, and writes what the API says of
/// it: the demo with events in files and in blocks, paused exports of which one has a secret,
/// a role and a domain.
async fn make(folder: &Path) {
    let filled = command(folder, &["demo", "--json", "--days", DAYS, "--into", "data"]).await;
    assert!(filled.ok, "{}", filled.err);
    let made: Value = serde_json::from_str(&filled.out).unwrap();
    let sealed = command(folder, &["seal"]).await;
    assert!(sealed.ok, "{}", sealed.err);

    let serving = serve(folder).await;
    let (caller, project) = owner(&serving, &made);
    let exports = "/api/organizations/@current/batch_exports/";
    let secret = json!({
        "name": "hourly", "interval": "hour", "paused": true,
        "destination": {"type": "S3", "config": {
            "bucket_name": "b", "region": "r", "prefix": "p",
            "aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "not a secret",
        }},
    });
    accepted(caller.post(exports, &secret).await);
    for export in list(&caller, exports).await.iter().filter(|export| export["paused"] == false) {
        let path = format!("{exports}{}/pause/", text(export, "id"));
        accepted(caller.post(&path, &json!({})).await);
    }
    let role = json!({"name": "Support"});
    accepted(caller.post("/api/organizations/@current/roles/", &role).await);
    let domain = json!({"domain": "fernhill.example"});
    accepted(caller.post("/api/organizations/@current/domains/", &domain).await);
    send(&serving, &made, "sent after sealing").await;
    until(async || {
        let persons = list(&caller, &format!("{project}persons/")).await;
        persons.iter().all(|person| person["event_count"].is_u64())
    })
    .await;
    let mut said = Map::new();
    for (path, by, fields) in LISTS {
        let path = path.replace("{project}", &project);
        let answer = ask(&caller, &path, by, fields).await;
        assert_ne!(answer["count"], 0, "{path}: there is something to compare");
        said.insert(path, answer);
    }
    stop(serving).await;
    let about = json!({
        "schema": weir_store::schema_version(), "program": env!("CARGO_PKG_VERSION"),
        "made": made, "said": said,
    });
    fs::write(folder.join(ABOUT), serde_json::to_string_pretty(&about).unwrap()).unwrap();
}

/// Sends an event, and waits until it can be read.
async fn send(serving: &Serving, made: &Value, name: &str) {
    let (caller, project) = owner(serving, made);
    let event = json!({
        "api_key": made["project_api_key"], "event": name, "distinct_id": "fixture",
    });
    assert_eq!(serving.caller.post("/capture/", &event).await.status, 200);
    let path = format!("{project}events/?distinct_id=fixture");
    until(async || list(&caller, &path).await.iter().any(|event| event["event"] == name)).await;
}

/// The archive of a schema version in a directory.
fn archive(directory: &Path, schema: i64) -> PathBuf {
    directory.join(format!("schema-{schema}.tar.gz"))
}

async fn tar(arguments: &[&str], archive: &Path, folder: &Path, members: &[&str]) {
    let mut command = Command::new("tar");
    command.args(arguments).arg("--file").arg(archive).arg("--directory").arg(folder);
    command.args(members).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compresses what [`make`] has made, without what each start makes.
async fn compress(folder: &Path, archive: &Path) {
    let arguments = [
        "--create",
        "--gzip",
        "--sparse",
        "--exclude=data/ballast",
        "--exclude=data/LOCK",
        "--exclude=data/store/LOG*",
        "--exclude=data/exports/*",
    ];
    tar(&arguments, archive, folder, &["data", "data.key", ABOUT]).await;
}

/// Extracts an archive, upgrades the data directory, and compares what the API says.
async fn upgrade(archive: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tar(&["--extract", "--gzip", "--no-same-owner"], archive, folder, &[]).await;
    let about: Value = serde_json::from_slice(&fs::read(folder.join(ABOUT)).unwrap()).unwrap();
    let (made, said) = (&about["made"], &about["said"]);
    let data = folder.join("data");
    let before = state(&data);
    let checked = command(folder, &["upgrade", "--check"]).await;
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    let version = format!("has schema version {}", about["schema"]);
    assert!(checked.out.contains(&version), "{}", checked.out);
    let is_older = about["schema"] != weir_store::schema_version();
    assert_eq!(checked.out.contains("with these migrations"), is_older, "{}", checked.out);
    assert_eq!(state(&data), before, "a check changes nothing");

    let serving = serve(folder).await;
    let login = json!({"email": made["email"], "password": made["password"]});
    assert_eq!(serving.caller.post("/api/login/", &login).await.status, 200);
    let (caller, _) = owner(&serving, made);
    // Counts may have to be made from events.
    until(async || match differences(&caller, said).await {
        found if found.is_empty() => Ok(()),
        found => Err(found),
    })
    .await;
    let mut other = said.clone();
    let path = said.as_object().unwrap().keys().find(|path| path.contains("/events/")).unwrap();
    other[path.as_str()]["fields"]["/properties"] = "another digest".into();
    let found = differences(&caller, &other).await;
    assert_eq!(found, [format!("{path}: /properties differs")], "a difference is found");
    send(&serving, made, "sent after the upgrade").await;
    stop(serving).await;

    let checked = command(folder, &["upgrade", "--check"]).await;
    assert!(checked.out.contains("there is nothing to upgrade"), "{}", checked.out);
    let checked = command(folder, &["check"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
}

/// The versions of the releases in a changelog, the newest first.
fn releases(changelog: &str) -> Vec<&str> {
    let headings = changelog.lines().filter_map(|line| line.strip_prefix("## ["));
    let names = headings.filter_map(|heading| heading.split(']').next());
    names.filter(|name| *name != "Unreleased").collect()
}

#[test]
fn releases_are_found_in_a_changelog() {
    assert!(CHANGELOG.contains("\n## [Unreleased]\n"));
    let text = "## [Unreleased]\n\n## [0.2.0] - 2027-01-02\n\n## [0.1.0] - 2026-09-01\n";
    assert_eq!(releases(text), ["0.2.0", "0.1.0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_each_released_schema_is_upgraded() {
    let directory = Path::new(ARCHIVES);
    let releases = releases(CHANGELOG);
    let listed = RELEASED.map(|(version, _)| version);
    assert_eq!(releases, listed, "RELEASED must have each release of CHANGELOG.md");
    for (version, schema) in RELEASED {
        assert!(archive(directory, schema).exists(), "{version}: schema {schema} has no fixture");
    }
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    paths.sort();
    for path in paths {
        upgrade(&path).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixture_is_made_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path()).await;
    let archived = archive(folder.path(), weir_store::schema_version());
    compress(folder.path(), &archived).await;
    upgrade(&archived).await;
    // Small enough for the repository.
    assert!(archived.metadata().unwrap().len() < 2 << 20, "{:?}", archived.metadata());
}

/// Not a test: it writes the fixture of the present schema beside the others.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by scripts/fixture"]
async fn write_the_fixture_of_this_schema() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path()).await;
    let archived = archive(Path::new(ARCHIVES), weir_store::schema_version());
    compress(folder.path(), &archived).await;
}
