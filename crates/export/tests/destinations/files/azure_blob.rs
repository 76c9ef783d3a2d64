use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_testkit::servers::{Azurite, python};

use super::read::{assert_odd, events};
use super::server::Server;
use super::support::{
    KINDS, STEM, dependencies, destination, export, job, many, odd, opened, test, with, write,
};

/// A container of azurite, checked with the client of Azure.
struct Container {
    azurite: Azurite,
    directory: TempDir,
}

const PRELUDE: &str = "
import json, sys
from azure.storage.blob import BlobServiceClient
given = json.load(sys.stdin)
service = BlobServiceClient.from_connection_string(given['to'])
container = service.get_container_client('events')
";

impl Container {
    async fn start() -> Self {
        let container =
            Self { azurite: Azurite::start().await, directory: TempDir::new().unwrap() };
        container.azure("container.create_container()\nprint('{}')", json!({})).await;
        container
    }

    async fn azure(&self, script: &str, given: Value) -> Value {
        let given = with(given, json!({"to": self.azurite.connection_string()}));
        python(&format!("{PRELUDE}{script}"), &given).await
    }

    fn config(&self, others: Value) -> Value {
        let config = json!({
            "container_name": "events", "connection_string": self.azurite.connection_string(),
            "prefix": "out", "file_format": "JSONLines", "compression": null,
            "max_file_size_mb": null,
        });
        with(config, others)
    }

    async fn names(&self) -> Value {
        let script = "print(json.dumps([blob.name for blob in container.list_blobs()]))";
        self.azure(script, json!({})).await
    }

    async fn fetch(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name.rsplit('/').next().unwrap());
        let script = "
with open(given['path'], 'wb') as file:
    file.write(container.download_blob(given['name']).readall())
print('{}')";
        self.azure(script, json!({"name": name, "path": path.to_str().unwrap()})).await;
        path
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_every_kind_hold_every_value() {
    let container = Container::start().await;
    for (format, codec, extension) in KINDS {
        let config = json!({
            "prefix": "{table}/naïve +/", "file_format": format, "compression": codec,
        });
        let azure = destination("AzureBlob", &container.config(config));
        export(azure.as_ref(), &odd()).await.unwrap();
        let name = format!("events/naïve +/{STEM}.{extension}");
        assert_odd(&container.fetch(&name).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_files_go_in_parts_and_are_cut_when_that_is_wanted() {
    let container = Container::start().await;
    let azure = destination("AzureBlob", &container.config(json!({"prefix": ""})));
    for _ in 0..2 {
        export(azure.as_ref(), &many(20_000)).await.unwrap();
    }
    let whole = format!("{STEM}.jsonl");
    assert_eq!(container.names().await, json!([whole]));
    assert_eq!(events(&container.fetch(&whole).await).await, 20_000);

    let config = json!({"prefix": "cut", "max_file_size_mb": 9});
    let azure = destination("AzureBlob", &container.config(config));
    export(azure.as_ref(), &many(20_000)).await.unwrap();
    let cut = |number: usize| format!("cut/{STEM}-{number}.jsonl");
    let manifest = format!("cut/{STEM}_manifest.json");
    assert_eq!(container.names().await, json!([whole, cut(0), cut(1), cut(2), manifest]));
    export(azure.as_ref(), &odd()).await.unwrap();
    assert_eq!(container.names().await, json!([whole, cut(0), manifest]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cut_short_leaves_no_file() {
    let container = Container::start().await;
    let azure = destination("AzureBlob", &container.config(json!({})));
    let mut writer = azure.begin(job(azure.as_ref())).await.unwrap();
    write(azure.as_ref(), writer.as_mut(), &many(20_000)).await.unwrap();
    writer.abort().await;
    assert_eq!(container.names().await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_test_names_the_step_and_leaves_nothing() {
    let container = Container::start().await;
    let steps = async |others: Value| {
        test(destination("AzureBlob", &container.config(others)).as_ref()).await
    };
    assert_eq!(steps(json!({})).await, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(container.names().await, json!([]));
    assert_eq!(steps(json!({"container_name": "others"})).await, [Err("NoSuchBucket"); 3]);
    let right = container.azurite.connection_string();
    let wrong = right.replace("AccountKey=E", "AccountKey=F");
    assert_eq!(steps(json!({"connection_string": wrong})).await, [Err("AccessDenied"); 3]);
}

#[tokio::test]
async fn a_string_says_where_to_and_is_never_repeated() {
    let server = Server::start(503, "root:x:0:0").await;
    let string = |more: &str| format!("AccountName=acc;BlobEndpoint={}/acc;{more}", server.url());
    let signature = string("SharedAccessSignature=sv=2024-01-01&sig=c2VjcmV0");
    let config = json!({"container_name": "events", "connection_string": signature});
    let azure = destination("AzureBlob", &config);
    let failure = export(azure.as_ref(), &odd()).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("StorageUnavailable", true));
    assert!(!failure.to_string().contains("root:x"), "{failure}");
    let head = server.heads().pop().unwrap();
    assert!(head.starts_with("PUT /acc/events/2026-08-21T14"), "{head}");
    assert!(head.contains("sig=c2VjcmV0"), "{head}");

    for wrong in ["", "AccountName=a", &string("AccountKey=no base64: s3cret!")] {
        let config = json!({"container_name": "events", "connection_string": wrong});
        let failure = opened("AzureBlob", &config, &dependencies(None)).err().unwrap();
        assert_eq!(failure.class, "InvalidCredentials", "{wrong}");
        assert!(!failure.to_string().contains("s3cret"), "{failure}");
    }
}
