//! Writes files to the storage behind a table's stage: S3, Azure or Google. The answer to
//! `PUT` names it. Files are encrypted if the answer contains a key.
//!
//! What belongs here: one request to that storage. What does not: the protocol of that
//! answer (`session`).

use aes::cipher::{Block, BlockEncrypt, BlockEncryptMut, BlockSizeUser, KeyInit, KeyIvInit};
use aes::{Aes128, Aes256};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use weir_egress::{Method, RequestBuilder};
use zeroize::Zeroizing;

use super::sign::{Signer, time};
use crate::destination::Failure;
use crate::destinations::clock;
use crate::destinations::warehouse::rest::Service;

/// The timeout for the upload of one file.
const UPLOAD: Duration = Duration::from_secs(600);
/// Characters that paths contain without an escape.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The value that replaces the hash of the body. TLS protects the body.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Writes a file. `put` is the answer to `PUT`.
pub(super) async fn upload(
    service: &Service,
    put: &Value,
    name: &str,
    file: Bytes,
) -> Result<(), Failure> {
    let digest = BASE64_STANDARD.encode(Sha256::digest(&file));
    let (file, seal) = match Material::of(put) {
        Some(material) => {
            let (file, seal) = material.seal(&file).ok_or_else(unknown)?;
            (Bytes::from(file), Some(seal))
        }
        None => (file, None),
    };
    let (url, headers) = target(put, name, &digest, seal.as_ref()).ok_or_else(unknown)?;
    let request = service.request(Method::PUT, &url)?.timeout(UPLOAD);
    let answer = service.send(with(request, headers).body(file)).await?;
    match answer.status {
        200..=299 => Ok(()),
        status => Err(Failure {
            wait: answer.wait,
            ..Failure::retryable(
                "UploadFailed",
                format!("The storage of Snowflake's stage did not take a file (HTTP {status})."),
            )
        }),
    }
}

fn with(request: RequestBuilder, headers: Vec<(String, String)>) -> RequestBuilder {
    headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
}

fn unknown() -> Failure {
    Failure::permanent("UnknownStage", "The table's stage is kept in a way that is not known here.")
}

/// URL and headers of the request that writes an object.
fn target(
    put: &Value,
    name: &str,
    digest: &str,
    seal: Option<&Seal>,
) -> Option<(String, Vec<(String, String)>)> {
    let info = put.get("stageInfo")?;
    let text = |name: &str| info.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let secret = |name: &str| info.get("creds")?.get(name)?.as_str();
    let path = |location: &str| {
        let slash = if location.is_empty() || location.ends_with('/') { "" } else { "/" };
        utf8_percent_encode(&format!("{location}{slash}{name}"), PATH).to_string()
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut head = |name: &str, value: String| headers.push((name.to_owned(), value));
    let url = match text("locationType")? {
        "S3" => {
            let (bucket, location) = text("location")?.split_once('/')?;
            let region = text("region")?;
            let host = match text("endPoint") {
                Some(end) => format!("{bucket}.{end}"),
                None if region.starts_with("cn-") => {
                    format!("{bucket}.s3.{region}.amazonaws.com.cn")
                }
                None => format!("{bucket}.s3.{region}.amazonaws.com"),
            };
            let path = format!("/{}", path(location));
            let now = clock::now();
            head("host", host.clone());
            head("x-amz-content-sha256", UNSIGNED.to_owned());
            head("x-amz-date", time(now));
            if let Some(seal) = seal {
                head("x-amz-meta-x-amz-iv", seal.start.clone());
                head("x-amz-meta-x-amz-key", seal.key.clone());
                head("x-amz-meta-x-amz-matdesc", seal.material.clone());
            }
            head("x-amz-meta-sfc-digest", digest.to_owned());
            head("x-amz-security-token", secret("AWS_TOKEN")?.to_owned());
            headers.sort();
            let signer =
                Signer { key_id: secret("AWS_KEY_ID")?, secret: secret("AWS_SECRET_KEY")?, region };
            let signed = signer.put(&path, &headers, UNSIGNED, now);
            headers.push(("authorization".to_owned(), signed));
            format!("https://{host}{path}")
        }
        "AZURE" => {
            let account = text("storageAccount")?;
            let end = text("endPoint")?;
            let end = end.strip_prefix("blob.").unwrap_or(end);
            let (container, location) = text("location")?.split_once('/')?;
            let token = secret("AZURE_SAS_TOKEN")?.trim_start_matches('?');
            head("x-ms-blob-type", "BlockBlob".to_owned());
            head("x-ms-meta-sfcdigest", digest.to_owned());
            if let Some(seal) = seal {
                head("x-ms-meta-encryptiondata", seal.described("AES_CBC_128"));
                head("x-ms-meta-matdesc", seal.material.clone());
            }
            format!("https://{account}.blob.{end}/{container}/{}?{token}", path(location))
        }
        "GCS" => {
            head("x-goog-meta-sfc-digest", digest.to_owned());
            if let Some(seal) = seal {
                head("x-goog-meta-encryptiondata", seal.described("AES_CBC_256"));
                head("x-goog-meta-matdesc", seal.material.clone());
            }
            match text("presignedUrl") {
                Some(url) => url.to_owned(),
                None => {
                    head("authorization", format!("Bearer {}", secret("GCS_ACCESS_TOKEN")?));
                    let (bucket, location) = text("location")?.split_once('/')?;
                    format!("https://storage.googleapis.com/{bucket}/{}", path(location))
                }
            }
        }
        _ => return None,
    };
    Some((url, headers))
}

/// The key with which files of a stage are encrypted.
struct Material<'a> {
    master: Zeroizing<Vec<u8>>,
    query: &'a str,
    id: String,
}

/// How a file was encrypted, for its headers.
struct Seal {
    /// The key of the file, encrypted with the key of the stage.
    key: String,
    /// The initialization vector.
    start: String,
    /// Id of the stage's key.
    material: String,
}

impl<'a> Material<'a> {
    fn of(put: &'a Value) -> Option<Self> {
        let material = put.get("encryptionMaterial")?;
        let master = material.get("queryStageMasterKey")?.as_str()?;
        let id = material.get("smkId")?;
        Some(Self {
            // An invalid key has a wrong length. `seal` returns `None` for it.
            master: Zeroizing::new(BASE64_STANDARD.decode(master).unwrap_or_default()),
            query: material.get("queryId")?.as_str()?,
            id: id.as_str().map_or_else(|| id.to_string(), str::to_owned),
        })
    }

    /// Encrypts the file with a new key, and that key with the key of the stage.
    fn seal(&self, file: &[u8]) -> Option<(Vec<u8>, Seal)> {
        let random = SystemRandom::new();
        let mut key = Zeroizing::new(vec![0; self.master.len()]);
        let mut start = [0; 16];
        random.fill(&mut key).ok()?;
        random.fill(&mut start).ok()?;
        let sealed = match self.master.len() {
            16 => chained::<cbc::Encryptor<Aes128>>(&key, &start, file)?,
            32 => chained::<cbc::Encryptor<Aes256>>(&key, &start, file)?,
            _ => return None,
        };
        let wrapped = match self.master.len() {
            16 => alone::<Aes128>(&self.master, &key)?,
            _ => alone::<Aes256>(&self.master, &key)?,
        };
        let material = json!({
            "queryId": self.query,
            "smkId": self.id,
            "keySize": (self.master.len() * 8).to_string(),
        });
        let seal = Seal {
            key: BASE64_STANDARD.encode(wrapped),
            start: BASE64_STANDARD.encode(start),
            material: material.to_string(),
        };
        Some((sealed, seal))
    }
}

impl Seal {
    fn described(&self, algorithm: &str) -> String {
        json!({
            "EncryptionMode": "FullBlob",
            "WrappedContentKey": {
                "KeyId": "symmKey1",
                "EncryptedKey": self.key,
                "Algorithm": "AES_CBC_256",
            },
            "EncryptionAgent": { "Protocol": "1.0", "EncryptionAlgorithm": algorithm },
            "ContentEncryptionIV": self.start,
            "KeyWrappingMetadata": { "EncryptionLibrary": "Java 5.3.0" },
        })
        .to_string()
    }
}

const BLOCK: usize = 16;

/// Pads to full blocks: each added byte has the number of added bytes as its value.
fn padded(data: &[u8]) -> Vec<u8> {
    let missing = BLOCK - data.len() % BLOCK;
    let mut padded = Vec::with_capacity(data.len() + missing);
    padded.extend_from_slice(data);
    padded.resize(data.len() + missing, u8::try_from(missing).unwrap_or_default());
    padded
}

fn chained<C: BlockEncryptMut + BlockSizeUser + KeyIvInit>(
    key: &[u8],
    start: &[u8],
    data: &[u8],
) -> Option<Vec<u8>> {
    let mut cipher = C::new_from_slices(key, start).ok()?;
    let mut data = padded(data);
    for block in data.chunks_exact_mut(BLOCK) {
        cipher.encrypt_block_mut(Block::<C>::from_mut_slice(block));
    }
    Some(data)
}

/// Encrypts every block separately (ECB). Only for keys, which are random.
fn alone<C: BlockEncrypt + BlockSizeUser + KeyInit>(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let cipher = C::new_from_slice(key).ok()?;
    let mut data = padded(data);
    for block in data.chunks_exact_mut(BLOCK) {
        cipher.encrypt_block(Block::<C>::from_mut_slice(block));
    }
    Some(data)
}

#[cfg(test)]
mod tests {

    use aes::cipher::{BlockDecrypt, BlockDecryptMut};

    use super::*;

    fn head<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
        let found = headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    #[test]
    fn a_sealed_file_opens_with_the_key_in_its_headers() {
        let master = [7; 32];
        let put = json!({ "encryptionMaterial": {
            "queryStageMasterKey": BASE64_STANDARD.encode(master), "queryId": "q", "smkId": 12
        }});
        let file = b"exactly one block and a bit more";
        let (mut sealed, seal) = Material::of(&put).unwrap().seal(file).unwrap();
        assert_eq!(seal.material, r#"{"keySize":"256","queryId":"q","smkId":"12"}"#);

        let mut key = BASE64_STANDARD.decode(&seal.key).unwrap();
        let cipher = Aes256::new_from_slice(&master).unwrap();
        for block in key.chunks_exact_mut(BLOCK) {
            cipher.decrypt_block(Block::<Aes256>::from_mut_slice(block));
        }
        assert_eq!(key.len(), 48);
        assert!(key[32..].iter().all(|byte| *byte == 16));
        let start = BASE64_STANDARD.decode(&seal.start).unwrap();
        let mut cipher = cbc::Decryptor::<Aes256>::new_from_slices(&key[..32], &start).unwrap();
        for block in sealed.chunks_exact_mut(BLOCK) {
            cipher.decrypt_block_mut(Block::<Aes256>::from_mut_slice(block));
        }
        assert_eq!(sealed[..file.len()], file[..]);
        assert!(sealed[file.len()..].iter().all(|byte| *byte == 16));
    }

    #[test]
    fn each_storage_has_its_address_and_headers() {
        let seal = Seal { key: "k".to_owned(), start: "s".to_owned(), material: "m".to_owned() };
        let s3 = json!({ "stageInfo": {
            "locationType": "S3", "location": "bucket/a/b/", "region": "eu-central-1",
            "endPoint": null,
            "creds": { "AWS_KEY_ID": "id", "AWS_SECRET_KEY": "secret", "AWS_TOKEN": "token" }
        }});
        let (url, headers) = target(&s3, "0 1.parquet", "d", Some(&seal)).unwrap();
        assert_eq!(url, "https://bucket.s3.eu-central-1.amazonaws.com/a/b/0%201.parquet");
        assert_eq!(head(&headers, "x-amz-security-token"), "token");
        assert_eq!(head(&headers, "x-amz-meta-x-amz-key"), "k");
        assert!(
            head(&headers, "authorization").contains("x-amz-meta-sfc-digest;x-amz-meta-x-amz-iv")
        );

        let azure = json!({ "stageInfo": {
            "locationType": "AZURE", "location": "container/a/", "storageAccount": "account",
            "endPoint": "blob.core.windows.net", "creds": { "AZURE_SAS_TOKEN": "?sig=x" }
        }});
        let (url, headers) = target(&azure, "0.parquet", "d", None).unwrap();
        assert_eq!(url, "https://account.blob.core.windows.net/container/a/0.parquet?sig=x");
        assert_eq!(head(&headers, "x-ms-blob-type"), "BlockBlob");

        let mut google = json!({ "stageInfo": {
            "locationType": "GCS", "location": "bucket/a", "creds": { "GCS_ACCESS_TOKEN": "t" }
        }});
        let (url, headers) = target(&google, "0.parquet", "d", Some(&seal)).unwrap();
        assert_eq!(url, "https://storage.googleapis.com/bucket/a/0.parquet");
        assert_eq!(head(&headers, "authorization"), "Bearer t");
        google["stageInfo"]["presignedUrl"] = Value::from("https://signed");
        let (url, headers) = target(&google, "0.parquet", "d", None).unwrap();
        assert_eq!(url, "https://signed");
        assert_eq!(head(&headers, "authorization"), "");

        let local = json!({ "stageInfo": { "locationType": "LOCAL_FS", "location": "/tmp" } });
        assert!(target(&local, "0.parquet", "d", None).is_none());
    }
}
