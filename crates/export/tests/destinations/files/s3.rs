//! S3 on moto, and servers with prepared answers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use weir_egress::{Egress, Resolve, Rules};
use weir_export::destinations::Dependencies;
use weir_testkit::servers::free_address;

use super::bucket::Bucket;
use super::read::{assert_odd, events, lines};
use super::server::Server;
use super::support::{
    KINDS, STEM, dependencies, destination, export, job, many, odd, opened, test, with, write,
};

#[tokio::test(flavor = "multi_thread")]
async fn files_of_every_kind_hold_every_value() {
    let bucket = Bucket::start().await;
    let prefix = "/{table}/y={year}/naïve +%20/";
    for (format, codec, extension) in KINDS {
        let config = json!({"prefix": prefix, "file_format": format, "compression": codec});
        let s3 = destination("S3", &bucket.config(config));
        export(s3.as_ref(), &odd()).await.unwrap();
        let key = format!("events/y=2026/naïve +%20/{STEM}.{extension}");
        assert_odd(&bucket.fetch(&key).await).await;
    }
    assert_eq!(bucket.keys().await.len(), KINDS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_goes_in_parts_and_a_further_try_replaces_it() {
    let bucket = Bucket::start().await;
    let s3 = destination("S3", &bucket.config(json!({})));
    let events = many(40_000);
    for _ in 0..2 {
        export(s3.as_ref(), &events).await.unwrap();
    }
    let key = format!("out/{STEM}.jsonl");
    assert_eq!(bucket.keys().await, std::slice::from_ref(&key));
    let head = "print(json.dumps(s3.head_object(Bucket='events', Key=given['key'])['ETag']))";
    let tag = bucket.boto(head, json!({"key": key})).await;
    let path = bucket.fetch(&key).await;
    // The parts have 8 MiB. The tag of such an object contains their number.
    let parts = path.metadata().unwrap().len().div_ceil(8 << 20).to_string();
    let counted = tag.as_str().unwrap().trim_matches('"').rsplit('-').next();
    assert_eq!(counted, Some(parts.as_str()), "{tag}");
    let lines = lines(&path);
    assert_eq!(lines.len(), 40_000);
    for (number, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("\"properties\":{{\"n\":{number},")), "{number}");
    }
    assert_eq!(bucket.uploads().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_runs_are_cut_and_the_list_says_into_what() {
    let bucket = Bucket::start().await;
    for (format, codec) in [("Parquet", json!("zstd")), ("JSONLines", json!(null))] {
        let prefix = format!("{format}/");
        let config = json!({
            "prefix": prefix, "max_file_size_mb": 9, "file_format": format, "compression": codec,
        });
        let s3 = destination("S3", &bucket.config(config));
        export(s3.as_ref(), &many(30_000)).await.unwrap();
        let list = bucket.fetch(&format!("{prefix}{STEM}_manifest.json")).await;
        let list: Value = serde_json::from_slice(&std::fs::read(list).unwrap()).unwrap();
        let files = list["files"].as_array().unwrap();
        assert!(files.len() > 1, "{list}");
        let mut count = 0;
        for (number, key) in files.iter().enumerate() {
            let key = key.as_str().unwrap();
            assert!(key.starts_with(&format!("{prefix}{STEM}-{number}.")), "{key}");
            let path = bucket.fetch(key).await;
            let size = path.metadata().unwrap().len();
            assert!(size < 11 << 20, "{key} has {size} bytes");
            count += events(&path).await;
        }
        assert_eq!(count, 30_000, "{format}");

        // A retry with fewer rows leaves no file of the earlier attempt.
        export(s3.as_ref(), &odd()).await.unwrap();
        let keys = bucket.keys().await;
        let left = keys.iter().filter(|key| key.starts_with(&prefix)).count();
        assert_eq!(left, 2, "{keys:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn encryption_is_asked_for_small_and_large_files() {
    let bucket = Bucket::start().await;
    let head = "
h = s3.head_object(Bucket='events', Key=given['key'])
print(json.dumps([h.get('ServerSideEncryption'), h.get('SSEKMSKeyId')]))";
    let key = "arn:aws:kms:eu-west-1:1:key/2";
    for (encryption, id, expected) in [
        (json!("AES256"), json!(key), json!(["AES256", null])),
        (json!("aws:kms"), json!(key), json!(["aws:kms", key])),
        (Value::Null, json!(key), json!([null, null])),
    ] {
        for records in [odd(), many(20_000)] {
            let config = json!({"encryption": encryption, "kms_key_id": id});
            let s3 = destination("S3", &bucket.config(config));
            export(s3.as_ref(), &records).await.unwrap();
            let found = bucket.boto(head, json!({"key": format!("out/{STEM}.jsonl")})).await;
            // Buckets have a default encryption today.
            let found = match (&found[0], &encryption) {
                (Value::String(default), Value::Null) if default == "AES256" => json!([null, null]),
                _ => found,
            };
            assert_eq!(found, expected, "{encryption} {}", records.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cut_short_leaves_neither_file_nor_parts() {
    let bucket = Bucket::start().await;
    let s3 = destination("S3", &bucket.config(json!({})));
    let events = many(30_000);
    let mut writer = s3.begin(job(s3.as_ref())).await.unwrap();
    write(s3.as_ref(), writer.as_mut(), &events).await.unwrap();
    writer.abort().await;
    assert_eq!(bucket.uploads().await, 0);

    let mut writer = s3.begin(job(s3.as_ref())).await.unwrap();
    write(s3.as_ref(), writer.as_mut(), &events).await.unwrap();
    drop(writer);
    let waited = tokio::time::timeout(std::time::Duration::from_secs(30), async {
        while bucket.uploads().await != 0 {}
    });
    waited.await.unwrap();
    assert_eq!(bucket.keys().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_test_names_the_step_and_leaves_nothing() {
    let bucket = Bucket::start().await;
    let steps =
        async |others: Value| test(destination("S3", &bucket.config(others)).as_ref()).await;
    assert_eq!(steps(json!({})).await, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(bucket.keys().await, Vec::<String>::new());
    assert_eq!(steps(json!({"bucket_name": "others"})).await, [Err("NoSuchBucket"); 3]);
    let closed_address = format!("http://{}", free_address());
    assert_eq!(steps(json!({"endpoint_url": closed_address})).await, [Err("ConnectionRefused"); 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_classes_and_say_whether_to_try_again() {
    let bucket = Bucket::start().await;
    let failed = async |config: Value| {
        let s3 = destination("S3", &bucket.config(config));
        let failure = export(s3.as_ref(), &odd()).await.unwrap_err();
        assert!(!failure.to_string().contains("root:x"), "{failure}");
        (failure.class, failure.is_retryable)
    };
    assert_eq!(failed(json!({"bucket_name": "others"})).await, ("NoSuchBucket", false));
    let closed_address = format!("http://{}", free_address());
    assert_eq!(failed(json!({"endpoint_url": closed_address})).await, ("ConnectionRefused", true));
    let denied = "<Error><Code>AccessDenied</Code><Message>root:x:0:0</Message></Error>";
    let wrong = "<Error><Code>SignatureDoesNotMatch</Code><Message>root:x</Message></Error>";
    for (status, body, expected) in [
        (403, denied, ("AccessDenied", false)),
        (403, wrong, ("InvalidCredentials", false)),
        (403, "root:x:0:0", ("AccessDenied", false)),
        (301, "root:x:0:0", ("WrongRegion", false)),
        (400, "root:x:0:0", ("HttpStatus", false)),
        (503, "root:x:0:0", ("StorageUnavailable", true)),
        (200, "root:x:0:0", ("UnexpectedAnswer", true)),
    ] {
        let server = Server::start(status, body).await;
        assert_eq!(failed(json!({"endpoint_url": server.url()})).await, expected, "{status}");
        assert!(!server.heads().is_empty());
    }
    // The number of retries is bounded.
    let server = Server::start(503, "").await;
    failed(json!({"endpoint_url": server.url()})).await;
    assert_eq!(server.heads().len(), 4);
}

#[tokio::test]
async fn addresses_of_this_network_are_not_dialled() {
    let server = Server::start(200, "").await;
    let rules = Rules { allow: Vec::new(), own: Vec::new() };
    let closed = Dependencies::new(Egress::new(rules).unwrap(), None);
    let config = json!({
        "bucket_name": "events", "region": "eu-west-1", "prefix": "out",
        "endpoint_url": server.url(),
    });
    let s3 = opened("S3", &config, &closed).unwrap();
    let failure = export(s3.as_ref(), &odd()).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("ForbiddenAddress", false));
    assert_eq!(test(s3.as_ref()).await, [Err("ForbiddenAddress"); 3]);
    assert_eq!(server.heads(), Vec::<String>::new());
}

/// Resolves every name to this machine.
struct Here;

#[async_trait]
impl Resolve for Here {
    async fn addresses(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

#[tokio::test]
async fn the_bucket_is_part_of_the_path_or_of_the_host() {
    let server = Server::start(403, "").await;
    let rules = Rules { allow: vec!["127.0.0.1/32".parse().unwrap()], own: Vec::new() };
    let egress = Egress::with_resolver(rules, Arc::new(Here)).unwrap();
    let around = Dependencies::new(egress, None);
    let port = server.address.port();
    let config = json!({
        "bucket_name": "events", "region": "eu-west-1", "prefix": "out",
        "endpoint_url": format!("http://s3.test:{port}"),
    });
    let name = STEM.replace(':', "%3A").replace('+', "%2B");
    for (is_virtual, path, host) in [(false, "/events", "s3.test"), (true, "", "events.s3.test")] {
        let config = with(config.clone(), json!({"use_virtual_style_addressing": is_virtual}));
        let s3 = opened("S3", &config, &around).unwrap();
        export(s3.as_ref(), &odd()).await.unwrap_err();
        let head = server.heads().pop().unwrap();
        assert!(head.starts_with(&format!("PUT {path}/out/{name}.jsonl HTTP/1.1\r\n")), "{head}");
        assert!(head.contains(&format!("host: {host}:{port}\r\n")), "{head}");
        // Without keys, requests are not signed, in particular not with keys of the
        // server itself.
        assert!(!head.to_lowercase().contains("authorization"), "{head}");
    }
}

#[test]
fn settings_that_reach_elsewhere_are_final() {
    let base = json!({"bucket_name": "b", "region": "r", "prefix": "p"});
    for (others, class) in [
        (json!({"bucket_name": "evil.example/"}), "InvalidConfig"),
        (json!({"region": "evil.example/#"}), "InvalidConfig"),
        (json!({"aws_access_key_id": "a"}), "InvalidConfig"),
        (json!({"encryption": "rot13"}), "InvalidConfig"),
        (json!({"prefix": "{closed_address}"}), "InvalidPrefix"),
    ] {
        let config = with(base.clone(), others);
        let failure = opened("S3", &config, &dependencies(None)).err().unwrap();
        assert_eq!((failure.class, failure.is_retryable), (class, false), "{config}");
    }
}

/// Settings that were stored before they were validated.
#[test]
fn addresses_that_cannot_be_used_end_in_a_fault() {
    let s3 = json!({"bucket_name": "b", "region": "r", "prefix": "p"});
    let google = json!({"bucket_name": "b", "service_account_key": "{}"});
    for endpoint in [
        "http://256.0.0.1",
        "http://münchen.example",
        "http://%61.example",
        "http://a.example:99999",
        "http://a.example/\"{x}",
        "http://a.example/ä",
        "http://a.example/?x=<",
    ] {
        for (kind, base) in [("S3", &s3), ("GoogleCloudStorage", &google)] {
            let config = with(base.clone(), json!({ "endpoint_url": endpoint }));
            let failure = opened(kind, &config, &dependencies(None)).err().unwrap();
            assert_eq!(failure.class, "InvalidAddress", "{kind} {endpoint}");
        }
        let connection = format!("AccountName=a;AccountKey=a2V5;BlobEndpoint={endpoint}");
        let azure = json!({"container_name": "c", "connection_string": connection});
        let failure = opened("AzureBlob", &azure, &dependencies(None)).err().unwrap();
        assert_eq!(failure.class, "InvalidAddress", "{endpoint}");
    }
    let named = with(
        s3.clone(),
        json!({"endpoint_url": "http://127.0.0.1:9000", "use_virtual_style_addressing": true}),
    );
    assert_eq!(opened("S3", &named, &dependencies(None)).err().unwrap().class, "InvalidAddress");
    // Settings that become headers.
    for others in [
        json!({"aws_access_key_id": "ä", "aws_secret_access_key": "s"}),
        json!({"aws_access_key_id": "a\nb", "aws_secret_access_key": "s"}),
        json!({"encryption": "aws:kms", "kms_key_id": "ä"}),
    ] {
        let config = with(s3.clone(), others);
        let failure = opened("S3", &config, &dependencies(None)).err().unwrap();
        assert_eq!(failure.class, "InvalidConfig", "{config}");
    }
    let azure = json!({
        "container_name": "c", "connection_string": "AccountName=ä;AccountKey=a2V5;BlobEndpoint=http://a.example",
    });
    let failure = opened("AzureBlob", &azure, &dependencies(None)).err().unwrap();
    assert_eq!(failure.class, "InvalidCredentials");
}
