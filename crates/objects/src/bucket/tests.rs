//! Against a real server of S3 (moto).

use std::path::Path as FilePath;

use super::{Bucket, Error, Listed};
use crate::place::{Access, Place};
use weir_testservers::{Moto, free_address};

fn access(endpoint: String) -> Access {
    Access {
        endpoint: Some(endpoint),
        region: "us-east-1".to_owned(),
        key: "key".to_owned(),
        secret: "secret".parse().unwrap(),
    }
}

fn open(endpoint: String, place: &str) -> Bucket {
    Bucket::new(&place.parse::<Place>().unwrap(), &access(endpoint)).unwrap()
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
    for place in ["s3://events", "s3://events/weir/1"] {
        let bucket = open(moto.url(), place);
        assert!(bucket.list(10).await.unwrap().is_empty());
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
        assert!(bucket.create("one", b"first".to_vec()).await.unwrap());
        assert!(!bucket.create("one", b"second".to_vec()).await.unwrap());
        assert_eq!(bucket.get("one", 10).await.unwrap().unwrap(), b"first");
        bucket.put("one", b"third".to_vec()).await.unwrap();
        assert_eq!(bucket.get("one", 10).await.unwrap().unwrap(), b"third");
        let mut all = bucket.list(4).await.unwrap();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let names: Vec<&str> = all.iter().map(|listed| listed.name.as_str()).collect();
        assert_eq!(names, ["7/0/large", "7/0/small", "7/empty", "one"]);
        assert_eq!(all[1], Listed { name: "7/0/small".to_owned(), bytes: 1_000 });
        assert!(matches!(bucket.list(3).await, Err(Error::TooLarge(_))));
        for _ in 0..2 {
            for listed in &all {
                bucket.remove(&listed.name).await.unwrap();
            }
        }
        assert!(bucket.list(1).await.unwrap().is_empty());
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
    assert!(matches!(no_bucket.list(1).await, Err(Error::NoBucket)));
    moto.create_bucket("events").await;
    moto.check_credentials().await;
    let denied = open(moto.url(), "s3://events").list(1).await.unwrap_err();
    assert!(matches!(denied, Error::Denied(Some("InvalidAccessKeyId"))), "{denied:?}");
    let absent = open(format!("http://{}", free_address()), "s3://events");
    let error = absent.upload("a", FilePath::new("/proc/self/comm")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert_eq!(error.to_string(), "the object storage does not answer (connection refused)");
}

#[test]
fn unusable_settings_are_refused() {
    let place: Place = "s3://events".parse().unwrap();
    for endpoint in ["", "ftp://a.example", "http://a b", "a.example", "http://"] {
        let new = Bucket::new(&place, &access(endpoint.to_owned()));
        assert!(matches!(new, Err(Error::Settings(_))), "{endpoint}");
    }
    let mut without_key = access("http://127.0.0.1:1".to_owned());
    without_key.key.clear();
    assert!(Bucket::new(&place, &without_key).is_err());
}
