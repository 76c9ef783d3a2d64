//! The bucket of tests, on moto.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_testkit::servers::{Moto, python};

use super::support::with;

/// A bucket of moto, checked with the client of Amazon.
pub(crate) struct Bucket {
    moto: Moto,
    directory: TempDir,
}

const PRELUDE: &str = "
import json, os, sys, boto3
given = json.load(sys.stdin)
s3 = boto3.client('s3', endpoint_url=given['url'], region_name='eu-west-1',
                  aws_access_key_id='a', aws_secret_access_key='b')
";

impl Bucket {
    /// An empty bucket of the name `events`.
    pub(crate) async fn start() -> Self {
        let bucket = Self { moto: Moto::start().await, directory: TempDir::new().unwrap() };
        bucket
            .boto(
                "s3.create_bucket(Bucket='events', CreateBucketConfiguration={
                    'LocationConstraint': 'eu-west-1'})
print('{}')",
                json!({}),
            )
            .await;
        bucket
    }

    /// The output of a script. In the script, `s3` is the client and `given` is the
    /// argument.
    pub(crate) async fn boto(&self, script: &str, given: Value) -> Value {
        let given = with(given, json!({"url": self.moto.url()}));
        python(&format!("{PRELUDE}{script}"), &given).await
    }

    /// Settings of the destination S3. `others` replace some of them.
    pub(crate) fn config(&self, others: Value) -> Value {
        let config = json!({
            "bucket_name": "events", "region": "eu-west-1", "prefix": "out",
            "aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret",
            "endpoint_url": self.moto.url(), "file_format": "JSONLines", "compression": null,
            "encryption": null, "kms_key_id": null, "max_file_size_mb": null,
            "use_virtual_style_addressing": false, "include_events": null,
        });
        with(config, others)
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        self.moto.url()
    }

    /// The keys in the bucket.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let keys = self
            .boto(
                "print(json.dumps([o['Key'] for o in
                    s3.list_objects_v2(Bucket='events').get('Contents', [])]))",
                json!({}),
            )
            .await;
        keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect()
    }

    /// The number of uploads that are neither complete nor aborted.
    pub(crate) async fn uploads(&self) -> Value {
        let script = "print(len(s3.list_multipart_uploads(Bucket='events').get('Uploads', [])))";
        self.boto(script, json!({})).await
    }

    /// Downloads a file of the bucket.
    pub(crate) async fn fetch(&self, key: &str) -> PathBuf {
        let path = self.directory.path().join(Path::new(key).file_name().unwrap());
        let given = json!({"key": key, "path": path.to_str().unwrap()});
        self.boto("s3.download_file('events', given['key'], given['path'])\nprint('{}')", given)
            .await;
        path
    }
}
