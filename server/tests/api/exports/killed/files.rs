//! Files: another attempt replaces the files of the same names, and the manifest is
//! written last.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::{Value, json};
use weir_testkit::servers::{Azurite, GoogleStorage, Hold, HoldingProxy, Moto, python};
use weir_testkit::until;

use super::{BUCKET, Instance, boto, texts};

/// Prefix of the names of the run's files.
const STEM: &str = "2025-03-04T00:00:00+00:00-2025-03-05T00:00:00+00:00_backfill";
/// In the second file, and after the manifest.
const HOLDS: [Hold; 2] = [Hold::Bytes(9 << 20), Hold::Answer(b"{\"files\":[")];

/// Asserts that a manifest names all files, in order.
fn assert_listed(manifest: &Value, mut names: Vec<String>) {
    let files = texts(&manifest["files"]);
    assert!(files.len() > 2, "{manifest}");
    let expected: Vec<String> =
        (0..files.len()).map(|number| format!("out/{STEM}-{number}.jsonl")).collect();
    assert_eq!(files, expected);
    names.sort_unstable();
    let mut expected = [files, vec![format!("out/{STEM}_manifest.json")]].concat();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

/// Waits until this file has been replaced by another one.
async fn replaced(file: &Path, before: Option<u64>) -> u64 {
    until(async || {
        let found = fs::metadata(file).ok()?.ino();
        (before != Some(found)).then_some(found)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_on_the_server_hold_each_event_once() {
    let mut instance = Instance::start().await;
    let config = json!({"path": "out", "max_file_size_mb": 1});
    let directory = instance.exports().join("out");
    let first = directory.join(format!("{STEM}-0.jsonl"));
    let export = instance.export("LocalDirectory", &config).await;
    let mut before = None;
    for _ in 0..2 {
        // The first of several files is complete.
        before = Some(replaced(&first, before).await);
        instance.kill().await;
        assert!(!directory.join(format!("{STEM}_manifest.json")).exists());
        instance.go_on().await;
    }
    instance.assert_completed(&export, 3).await;

    let mut names = Vec::new();
    let mut found = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".jsonl") {
            let text = fs::read_to_string(directory.join(&name)).unwrap();
            for line in text.lines() {
                let row: Value = serde_json::from_str(line).unwrap();
                found.push(row["uuid"].as_str().unwrap().to_owned());
            }
        }
        names.push(format!("out/{name}"));
    }
    let manifest = fs::read(directory.join(format!("{STEM}_manifest.json"))).unwrap();
    assert_listed(&serde_json::from_slice(&manifest).unwrap(), names);
    instance.assert_each_once(found);
}

/// The content of a storage: names of files, the manifest, ids of events. The files are
/// in `files`, contents by names.
const TOLD: &str = "
lines = [line for name in files if name.endswith('.jsonl') for line in files[name].splitlines()]
manifest = [json.loads(files[name]) for name in files if name.endswith('_manifest.json')]
print(json.dumps({'names': list(files), 'manifest': manifest[0] if manifest else None,
                  'uuids': [json.loads(line)['uuid'] for line in lines]}))
";

/// All files of a bucket.
const IN_BUCKET: &str = "
keys = [o['Key'] for o in s3.list_objects_v2(Bucket='events').get('Contents', [])]
files = {key: s3.get_object(Bucket='events', Key=key)['Body'].read() for key in keys}";

#[tokio::test(flavor = "multi_thread")]
async fn files_in_s3_hold_each_event_once() {
    let moto = Moto::start().await;
    boto(&moto.url(), "eu-west-1", BUCKET).await;
    let proxy = HoldingProxy::start(moto.address()).await;
    let config = json!({
        "bucket_name": "events", "region": "eu-west-1", "prefix": "out",
        "aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret",
        "endpoint_url": proxy.url(), "max_file_size_mb": 1,
    });
    let mut instance = Instance::start().await;
    instance.export_and_kill(&proxy, &HOLDS, "S3", &config).await;
    let output = boto(&moto.url(), "eu-west-1", &format!("{IN_BUCKET}{TOLD}")).await;
    assert_listed(&output["manifest"], texts(&output["names"]));
    instance.assert_each_once(texts(&output["uuids"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_at_google_hold_each_event_once() {
    let storage = GoogleStorage::start().await;
    let make = "s3.create_bucket(Bucket='events')\nprint('{}')";
    boto(&storage.url(), "us-east-1", make).await;
    let proxy = HoldingProxy::start(storage.address()).await;
    let config = json!({
        "bucket_name": "events", "prefix": "out", "service_account_key": GoogleStorage::KEY,
        "endpoint_url": proxy.url(), "max_file_size_mb": 1,
    });
    let mut instance = Instance::start().await;
    instance.export_and_kill(&proxy, &HOLDS, "GoogleCloudStorage", &config).await;
    let output = boto(&storage.url(), "us-east-1", &format!("{IN_BUCKET}{TOLD}")).await;
    assert_listed(&output["manifest"], texts(&output["names"]));
    instance.assert_each_once(texts(&output["uuids"]));
}

const AZURE: &str = "
import json, sys
from azure.storage.blob import BlobServiceClient
service = BlobServiceClient.from_connection_string(json.load(sys.stdin))
container = service.get_container_client('events')
";

#[tokio::test(flavor = "multi_thread")]
async fn files_in_azure_hold_each_event_once() {
    let azurite = Azurite::start().await;
    let to = json!(azurite.connection_string());
    let azure = async |script: &str| python(&format!("{AZURE}{script}"), &to).await;
    azure("container.create_container()\nprint('{}')").await;
    let proxy = HoldingProxy::start(azurite.address()).await;
    let config = json!({
        "container_name": "events", "prefix": "out", "max_file_size_mb": 1,
        "connection_string": Azurite::connection_string_at(proxy.address()),
    });
    let mut instance = Instance::start().await;
    instance.export_and_kill(&proxy, &HOLDS, "AzureBlob", &config).await;
    let read = "
files = {blob.name: container.download_blob(blob.name).readall()
         for blob in container.list_blobs()}";
    let output = azure(&format!("{read}{TOLD}")).await;
    assert_listed(&output["manifest"], texts(&output["names"]));
    instance.assert_each_once(texts(&output["uuids"]));
}
