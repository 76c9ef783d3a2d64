//! Against a real server of S3 (moto).

use std::collections::BTreeSet;
use std::path::Path as FilePath;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{Bucket, Error};
use crate::location::{Access, BucketLocation};
use weir_testservers::{Moto, free_address};

fn access(endpoint: String) -> Access {
    Access {
        endpoint: Some(endpoint),
        region: "us-east-1".to_owned(),
        key: "key".to_owned(),
        secret: "secret".parse().unwrap(),
    }
}

fn open(endpoint: String, location: &str) -> Bucket {
    Bucket::new(&location.parse::<BucketLocation>().unwrap(), &access(endpoint)).unwrap()
}

async fn all(bucket: &Bucket, most: usize) -> Result<BTreeSet<String>, Error> {
    bucket.list(most, 1 << 10, |_| true).await
}

#[tokio::test]
async fn objects_come_back_as_they_were_written() {
    if std::env::var_os("WEIR_QUICK").is_some() {
        return;
    }
    let moto = Moto::start().await;
    moto.create_bucket("events").await;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for location in ["s3://events", "s3://events/weir/1"] {
        let bucket = open(moto.url(), location);
        assert!(all(&bucket, 10).await.unwrap().is_empty());
        // One part, several parts and an empty one.
        for (name, bytes) in [("7/0/small", 1_000), ("7/0/large", 17 << 20), ("7/empty", 0)] {
            let content: Vec<u8> = (0..bytes).map(|at: u32| (at / 7).to_le_bytes()[0]).collect();
            std::fs::write(path("from"), &content).unwrap();
            bucket.upload(name, &path("from")).await.unwrap();
            bucket.download(name, content.len() as u64, &path("to")).await.unwrap();
            assert!(std::fs::read(path("to")).unwrap() == content, "{name}");
            assert!(bucket.get(name, 1 << 30).await.unwrap().unwrap() == content, "{name}");
        }
        assert!(matches!(bucket.get("7/0/small", 10).await, Err(Error::TooLarge(_))));
        assert_eq!(bucket.get("7/absent", 10).await.unwrap(), None);
        let absent = bucket.download("7/absent", 10, &path("to")).await;
        assert!(matches!(absent, Err(Error::Missing(_))));
        for (name, has) in [("7/0/small", 1_000), ("7/empty", 0)] {
            let other = bucket.download(name, 10, &path("to")).await.unwrap_err();
            let Error::Length { expected: 10, found, .. } = other else { panic!("{other:?}") };
            assert_eq!(found, has, "{name}");
        }
        assert!(bucket.create("one", b"first".to_vec()).await.unwrap());
        assert!(!bucket.create("one", b"second".to_vec()).await.unwrap());
        assert_eq!(bucket.get("one", 10).await.unwrap().unwrap(), b"first");
        bucket.put("one", b"third".to_vec()).await.unwrap();
        assert_eq!(bucket.get("one", 10).await.unwrap().unwrap(), b"third");
        let names = all(&bucket, 4).await.unwrap();
        let expected = ["7/0/large", "7/0/small", "7/empty", "one"].map(str::to_owned);
        assert_eq!(names, expected.into());
        assert!(matches!(all(&bucket, 3).await, Err(Error::TooLarge(_))));
        let wanted = |bytes| bucket.list(4, bytes, |name| name.starts_with("7/0/"));
        assert_eq!(wanted(18).await.unwrap().len(), 2);
        assert!(matches!(wanted(17).await, Err(Error::TooLarge(_))));
        for _ in 0..2 {
            for name in &names {
                bucket.remove(name).await.unwrap();
            }
        }
        assert!(all(&bucket, 1).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn errors_say_what_an_operator_can_change() {
    if std::env::var_os("WEIR_QUICK").is_some() {
        return;
    }
    let moto = Moto::start().await;
    let no_bucket = open(moto.url(), "s3://events");
    assert!(matches!(no_bucket.put("a", Vec::new()).await, Err(Error::NoBucket)));
    assert!(matches!(all(&no_bucket, 1).await, Err(Error::NoBucket)));
    moto.create_bucket("events").await;
    moto.check_credentials().await;
    let denied = all(&open(moto.url(), "s3://events"), 1).await.unwrap_err();
    assert!(matches!(denied, Error::Denied(Some("InvalidAccessKeyId"))), "{denied:?}");
    let absent = open(format!("http://{}", free_address()), "s3://events");
    let error = absent.upload("a", FilePath::new("/proc/self/comm")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert_eq!(error.to_string(), "the object storage does not answer (connection refused)");
}

#[tokio::test]
async fn a_storage_without_conditional_writes_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4 << 10];
            let _ = stream.read(&mut request).await;
            let answer = "HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\n\
                          connection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let bucket = open(format!("http://{address}"), "s3://events");
    let error = bucket.create("one", b"first".to_vec()).await.unwrap_err();
    assert!(error.to_string().contains("If-None-Match"), "{error}");
    server.abort();
}

#[test]
fn unusable_settings_are_refused() {
    let location: BucketLocation = "s3://events".parse().unwrap();
    for endpoint in ["", "ftp://a.example", "http://a b", "a.example", "http://"] {
        let new = Bucket::new(&location, &access(endpoint.to_owned()));
        assert!(matches!(new, Err(Error::Settings(_))), "{endpoint}");
    }
    let mut without_key = access("http://127.0.0.1:1".to_owned());
    without_key.key.clear();
    assert!(Bucket::new(&location, &without_key).is_err());
}
