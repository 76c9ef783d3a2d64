//! Signatures of requests to S3 (AWS Signature Version 4), for the only kind of request
//! that is made here: writing an object.
//!
//! What belongs here: the signature. What does not: the address of the object (`stage`).

use chrono::{DateTime, Utc};
use ring::hmac;
use sha2::{Digest as _, Sha256};

/// The credentials of a signature.
pub(super) struct Signer<'a> {
    /// Id of the access key.
    pub(super) key_id: &'a str,
    /// Secret of the access key.
    pub(super) secret: &'a str,
    /// Region of the bucket.
    pub(super) region: &'a str,
}

impl Signer<'_> {
    /// The value of `authorization` for a `PUT` with these headers. They must contain
    /// `host`, `x-amz-content-sha256` and `x-amz-date`, with names in lower case, sorted.
    pub(super) fn put(
        &self,
        path: &str,
        headers: &[(String, String)],
        content: &str,
        now: DateTime<Utc>,
    ) -> String {
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let request = format!("PUT\n{path}\n\n{lines}\n{names}\n{content}");
        let day = now.format("%Y%m%d").to_string();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let signed = format!(
            "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
            time(now),
            hex(&Sha256::digest(request.as_bytes()))
        );
        let first = format!("AWS4{}", self.secret).into_bytes();
        let key = [day.as_str(), self.region, "s3", "aws4_request"]
            .into_iter()
            .fold(first, |key, part| hash(&key, part));
        let signature = hex(&hash(&key, &signed));
        let id = self.key_id;
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
    }
}

/// A time in the format of `x-amz-date`.
pub(super) fn time(now: DateTime<Utc>) -> String {
    now.format("%Y%m%dT%H%M%SZ").to_string()
}

fn hash(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    /// The example in the documentation of S3.
    #[test]
    fn the_documented_example_is_signed_alike() {
        let content = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
        let headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("host", "examplebucket.s3.amazonaws.com"),
            ("x-amz-content-sha256", content),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let signer = Signer {
            key_id: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
        };
        let now = DateTime::from_timestamp(1_369_353_600, 0).unwrap();
        let signed = signer.put("/test%24file.text", &headers, content, now);
        let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        assert_eq!(signed.rsplit_once('=').unwrap().1, signature);
    }
}
