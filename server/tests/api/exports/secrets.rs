//! A secret that was sent to the API is not found anywhere afterwards: not in an answer,
//! not in the files, not in the log (EXP-2, SEC-22).

use std::path::Path;

use rustix::process::Signal;
use tokio::process::Command;

use super::*;
use crate::process::{Serving, set_up, weir_through};

const PASSWORD: &str = "plum-otter-violin-93";

/// A text that nothing else contains.
const CANARY: &str = "c4n4ry-8d1f0e-hunter2";

fn every_type() -> Vec<Value> {
    let export = |kind: &str, config: Value| {
        json!({
            "name": kind, "interval": "hour", "destination": {"type": kind, "config": config},
        })
    };
    vec![
        export(
            "S3",
            json!({
                "bucket_name": "b", "region": "r", "prefix": "p",
                "aws_access_key_id": CANARY, "aws_secret_access_key": CANARY,
            }),
        ),
        export("AzureBlob", json!({"container_name": "c", "connection_string": CANARY})),
        export(
            "Postgres",
            json!({"host": "h", "database": "d", "user": CANARY, "password": CANARY}),
        ),
        export(
            "Redshift",
            json!({
                "host": "h", "database": "d", "user": CANARY, "password": CANARY, "mode": "COPY",
                "copy_inputs": {
                    "s3_bucket": "b", "region_name": "r",
                    "authorization": {"aws_access_key_id": CANARY, "aws_secret_access_key": CANARY},
                    "bucket_credentials": {
                        "aws_access_key_id": CANARY, "aws_secret_access_key": CANARY,
                    },
                },
            }),
        ),
        export(
            "Snowflake",
            json!({
                "account": "a", "database": "d", "warehouse": "w", "schema": "s", "user": CANARY,
                "password": CANARY, "private_key": CANARY, "private_key_passphrase": CANARY,
            }),
        ),
        export(
            "BigQuery",
            json!({
                "project_id": "p", "dataset_id": "d", "private_key": CANARY, "private_key_id": CANARY,
                "token_uri": format!("https://example.org/{CANARY}"), "client_email": CANARY,
            }),
        ),
        export(
            "Databricks",
            json!({
                "server_hostname": "h", "http_path": "p", "client_id": "i", "client_secret": CANARY,
                "catalog": "c", "schema": "s", "table_name": "t",
            }),
        ),
        export("GoogleCloudStorage", json!({"bucket_name": "b", "service_account_key": CANARY})),
        export("HTTP", json!({"url": "https://x.example/batch/", "token": CANARY})),
    ]
}

/// The program with its log in a file, at the finest level.
fn logged(folder: &Path) -> Command {
    let launcher = ["/bin/sh", "-c", "exec \"$0\" \"$@\" 2>>weir.log"].map(str::to_owned);
    let mut command = weir_through(&launcher, folder);
    command.args(["--log", "warn,weir=trace"]);
    command
}

/// The output of `setup`: the key and the path of the exports.
async fn instance(folder: &Path) -> (String, String) {
    let made = set_up(folder, PASSWORD).await;
    assert!(made.ok, "{}", made.err);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let organization = made["organization_id"].as_str().unwrap();
    let path = format!("/api/organizations/{organization}/batch_exports/");
    (made["personal_api_key"].as_str().unwrap().to_owned(), path)
}

async fn stop(serving: Serving) {
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_found_in_no_answer_no_file_and_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (key, path) = instance(folder).await;
    let serving = Serving::start_with(logged(folder)).await;
    let owner = serving.caller.with_key(&key);
    let hide = |answer: &Answer| {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains(CANARY), "{text}");
    };
    for body in every_type() {
        let answer = owner.post(&path, &body).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains("\"password\":") && !text.contains("aws_secret"), "{text}");
        hide(&answer);
        let export = format!("{path}{}/", answer.json()["id"].as_str().unwrap());
        hide(&owner.get(&export).await);
        hide(&owner.patch(&export, &json!({"name": "x", "destination": {"config": {}}})).await);
        hide(&owner.post(&format!("{export}pause/"), &json!({})).await);
        hide(&owner.post(&format!("{export}unpause/"), &json!({"backfill": true})).await);
    }
    // Secrets in a refused body are not repeated either.
    let mut wrong = every_type().remove(2);
    wrong["destination"]["config"]["port"] = json!(CANARY);
    hide(&owner.post(&path, &wrong).await);
    hide(&owner.get(&path).await);
    hide(&owner.get(&path.replace("batch_exports", "activity_log")).await);
    // Killed, so that the written data is in the files uncompressed.
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().await, None);

    let key = std::fs::read_to_string(folder.join("data.key")).unwrap();
    let log = std::fs::read_to_string(folder.join("weir.log")).unwrap();
    assert!(log.contains("keep a copy of it"), "the key is shown: {log}");
    let mut searched = 0;
    let mut names = 0;
    each_file(folder, &mut |file, bytes| {
        searched += 1;
        names += usize::from(contains(bytes, "Snowflake"));
        assert!(!contains(bytes, CANARY), "{}", file.display());
        let may_have_key = file.ends_with("data.key");
        assert!(may_have_key || !contains(bytes, key.trim()), "{}", file.display());
    });
    // The search works: it finds types of destinations, which are not sealed.
    assert!(searched > 5 && names > 0, "{searched} files");
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

fn each_file(directory: &Path, look: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, look);
        } else if path.file_name().is_some_and(|name| name != "ballast") {
            look(&path, &std::fs::read(&path).unwrap());
        }
    }
}

/// The success and output of a command that does not serve.
async fn output(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let output = weir_through(&[], folder).args(arguments).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_without_its_key_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (key, path) = instance(folder).await;
    let serving = Serving::start(folder).await;
    let answer = serving.caller.with_key(&key).post(&path, &postgres()).await;
    let export = format!("{path}{}/", answer.json()["id"].as_str().unwrap());
    stop(serving).await;

    let file = folder.join("data.key");
    let right = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let refused = async |part: &str| {
        let (ok, _, log) = output(folder, &["serve"]).await;
        assert!(!ok && log.contains(part), "{log}");
    };
    refused("put it back").await;
    std::fs::write(&file, "ab".repeat(32)).unwrap();
    restrict(&file, 0o644);
    refused("chmod 600").await;
    restrict(&file, 0o600);
    refused("put the right one there").await;
    let (ok, _, log) = output(folder, &["rotate-key"]).await;
    assert!(!ok && log.contains("nothing was changed"), "{log}");
    assert!(!folder.join("data.key.new").exists());
    std::fs::write(&file, &right).unwrap();

    // A new key: everything is sealed again, and can be opened.
    let (ok, said, log) = output(folder, &["rotate-key"]).await;
    assert!(ok && said.starts_with("Re-encrypted 1 secrets."), "{said}{log}");
    assert_ne!(std::fs::read(&file).unwrap(), right);
    let serving = Serving::start(folder).await;
    let owner = serving.caller.with_key(&key);
    // Only a secret that can be opened may be omitted from a change.
    let patch = json!({"destination": {"config": {"table_name": "t"}}});
    assert_eq!(owner.patch(&export, &patch).await.status, 200);
    stop(serving).await;
    std::fs::write(&file, &right).unwrap();
    refused("put the right one there").await;
}

fn restrict(file: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
}
