//! Against moto: the XML interface of Google is the one of S3, as far as exports use it.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_testkit::servers::{GoogleStorage, python};

use super::read::{assert_odd, events};
use super::server::Server;
use super::support::{
    KINDS, STEM, dependencies, destination, export, job, many, odd, opened, test, with, write,
};
use crate::warehouse::KEY;

fn config(url: &str, others: Value) -> Value {
    let config = json!({
        "bucket_name": "events", "service_account_key": GoogleStorage::KEY, "prefix": "out",
        "endpoint_url": url, "file_format": "JSONLines", "compression": null,
        "max_file_size_mb": null,
    });
    with(config, others)
}

async fn fetch(directory: &TempDir, url: &str, name: &str) -> PathBuf {
    let path = directory.path().join(name.rsplit('/').next().unwrap());
    let script = "
import json, sys, urllib.parse, urllib.request
given = json.load(sys.stdin)
url = given['url'] + '/events/' + urllib.parse.quote(given['name'])
with urllib.request.urlopen(url) as answer, open(given['path'], 'wb') as file:
    file.write(answer.read())
print('{}')";
    let given = json!({"url": url, "name": name, "path": path.to_str().unwrap()});
    python(script, &given).await;
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_every_kind_hold_every_value() {
    let storage = storage().await;
    let directory = TempDir::new().unwrap();
    for (format, codec, extension) in KINDS {
        let others = json!({"prefix": "{table}", "file_format": format, "compression": codec});
        let google = destination("GoogleCloudStorage", &config(&storage.url(), others));
        export(google.as_ref(), &odd()).await.unwrap();
        let name = format!("events/{STEM}.{extension}");
        assert_odd(&fetch(&directory, &storage.url(), &name).await).await;
    }
}

async fn storage() -> GoogleStorage {
    let storage = GoogleStorage::start().await;
    s3(&storage, "s3.create_bucket(Bucket='events')\nprint('{}')").await;
    storage
}

async fn s3(storage: &GoogleStorage, script: &str) -> Value {
    let prelude = "
import json, sys, boto3
s3 = boto3.client('s3', endpoint_url=json.load(sys.stdin), region_name='us-east-1',
                  aws_access_key_id='a', aws_secret_access_key='b')
";
    python(&format!("{prelude}{script}"), &json!(storage.url())).await
}

async fn names(storage: &GoogleStorage) -> Value {
    s3(
        storage,
        "print(json.dumps([o['Key'] for o in
            s3.list_objects_v2(Bucket='events').get('Contents', [])]))",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn large_files_go_in_parts_and_are_taken_back() {
    let storage = storage().await;
    let directory = TempDir::new().unwrap();
    let google = destination("GoogleCloudStorage", &config(&storage.url(), json!({})));
    export(google.as_ref(), &many(20_000)).await.unwrap();
    let name = format!("out/{STEM}.jsonl");
    assert_eq!(names(&storage).await, json!([name]));
    assert_eq!(events(&fetch(&directory, &storage.url(), &name).await).await, 20_000);

    let mut writer = google.begin(job(google.as_ref())).await.unwrap();
    write(google.as_ref(), writer.as_mut(), &many(20_000)).await.unwrap();
    writer.abort().await;
    let uploads = "print(len(s3.list_multipart_uploads(Bucket='events').get('Uploads', [])))";
    assert_eq!(s3(&storage, uploads).await, 0);

    let cut = json!({"prefix": "cut", "max_file_size_mb": 9});
    let google = destination("GoogleCloudStorage", &config(&storage.url(), cut));
    export(google.as_ref(), &many(20_000)).await.unwrap();
    export(google.as_ref(), &odd()).await.unwrap();
    let left = json!([format!("cut/{STEM}-0.jsonl"), format!("cut/{STEM}_manifest.json"), name]);
    assert_eq!(names(&storage).await, left);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_test_names_the_step_and_leaves_nothing() {
    let storage = storage().await;
    let google = destination("GoogleCloudStorage", &config(&storage.url(), json!({})));
    assert_eq!(test(google.as_ref()).await, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(names(&storage).await, json!([]));
    let others = config(&storage.url(), json!({"bucket_name": "others"}));
    let google = destination("GoogleCloudStorage", &others);
    assert_eq!(test(google.as_ref()).await, [Err("NoSuchBucket"); 3]);
}

#[tokio::test]
async fn a_key_signs_and_is_never_repeated() {
    let server = Server::start(403, "root:x:0:0").await;
    let key = json!({
        "type": "service_account", "private_key": KEY, "private_key_id": "id",
        "client_email": "weir@example.iam.gserviceaccount.com",
        "token_uri": "http://127.0.0.1:9/", "gcs_base_url": "http://127.0.0.1:9",
    });
    let signing = json!({"service_account_key": key.to_string()});
    let google = destination("GoogleCloudStorage", &config(&server.url(), signing));
    let failure = export(google.as_ref(), &odd()).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("AccessDenied", false));
    assert!(!failure.to_string().contains("root:x"), "{failure}");
    let head = server.heads().pop().unwrap();
    // The token is signed here. No server was asked for one, least of all the server that
    // the key names.
    assert!(head.to_lowercase().contains("authorization: bearer ey"), "{head}");
    assert!(head.starts_with("PUT /events/out%2F2026"), "{head}");

    for wrong in ["", "{}", "s3cret", r#"{"private_key": "s3cret"}"#] {
        let wrong = config(&server.url(), json!({"service_account_key": wrong}));
        let failure = opened("GoogleCloudStorage", &wrong, &dependencies(None)).err().unwrap();
        assert_eq!((failure.class, failure.is_retryable), ("InvalidCredentials", false));
        assert!(!failure.to_string().contains("s3cret"), "{failure}");
    }
}
