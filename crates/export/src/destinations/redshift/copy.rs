//! The mode COPY: the bucket with the staged files, and the statement with which Redshift
//! reads them.
//!
//! What belongs here: settings, names, the text of the statement, the meaning of its
//! errors. What does not: rows and their files (`staged`).
//!
//! Files are JSON Lines instead of Parquet. From Parquet, COPY accepts only values of
//! exactly the type of their column, does not support REGION, and nests JSON only with
//! SERIALIZETOJSON. From JSON it reads every value as text, as a statement does, so both
//! types of JSON and existing tables are written in the same way. JSON is text in the
//! temporary table, and the statement that copies it into the table parses it
//! (`Plan::merge`).
//!
//! Invariant: the statement may contain a secret. Neither the statement nor the server's
//! text about it is logged.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_model::exports::prefix::join;

use super::push_literal;
use crate::destination::{Failure, Job};
use crate::destinations::files::Storage as _;
use crate::destinations::files::store::Store;
use crate::destinations::postgres::STAGE;
use crate::destinations::{Dependencies, s3};

/// The name of the file that a test writes and removes.
const PROBE: &str = "weir-connection-test.txt";

/// The settings of this mode.
#[derive(Deserialize)]
pub(super) struct Inputs {
    s3_bucket: String,
    region_name: String,
    #[serde(default)]
    s3_key_prefix: String,
    authorization: Authorization,
    bucket_credentials: Keys,
}

/// The credentials with which Redshift reads: a role, or keys.
#[derive(Deserialize)]
#[serde(untagged)]
enum Authorization {
    Role(String),
    Keys(Keys),
}

#[derive(Deserialize)]
struct Keys {
    aws_access_key_id: String,
    aws_secret_access_key: String,
}

/// The bucket, for the service and for Redshift.
pub(super) struct Staging {
    /// The bucket, for the service.
    pub(super) store: Store,
    bucket: String,
    region: String,
    /// The prefix of all names. Empty: no prefix.
    directory: String,
    /// The clause with the credentials for Redshift.
    authorization: String,
}

impl Staging {
    /// The bucket of these settings.
    pub(super) fn new(inputs: Inputs, dependencies: &Dependencies) -> Result<Self, Failure> {
        let Inputs { s3_bucket: bucket, region_name: region, .. } = inputs;
        let Keys { aws_access_key_id: key_id, aws_secret_access_key: secret } =
            &inputs.bucket_credentials;
        let parts: Vec<&str> =
            inputs.s3_key_prefix.split('/').filter(|part| !part.is_empty()).collect();
        Ok(Self {
            store: s3::bucket(&bucket, &region, key_id, secret, dependencies)?,
            bucket,
            region,
            directory: parts.join("/"),
            authorization: clause(&inputs.authorization)?,
        })
    }

    /// The directory of a run's files. It is the same in all attempts.
    pub(super) fn directory_of(&self, job: &Job) -> String {
        join(&self.directory, &format!("{}/{}", job.export, job.run))
    }

    /// The manifest of the files to load.
    pub(super) fn manifest(&self, files: &[String]) -> Bytes {
        let entry = |file: &String| json!({"url": self.url(file), "mandatory": true});
        let entries: Vec<Value> = files.iter().map(entry).collect();
        json!({"entries": entries}).to_string().into()
    }

    /// The statement that copies the rows of the listed files into the temporary table.
    /// `names` are its columns, in SQL.
    pub(super) fn statement(&self, names: &str, manifest: &str) -> String {
        let mut sql = format!("COPY {STAGE} ({names}) FROM ");
        push_literal(&mut sql, &self.url(manifest));
        sql.push(' ');
        sql.push_str(&self.authorization);
        sql.push_str(" REGION ");
        push_literal(&mut sql, &self.region);
        // The temporary table is dropped soon, so compressing its values brings no gain.
        sql.push_str(" MANIFEST FORMAT AS JSON 'auto' GZIP TIMEFORMAT 'auto' COMPUPDATE OFF");
        sql
    }

    /// Checks that the bucket answers.
    pub(super) async fn test_reaching(&self) -> Result<(), Failure> {
        self.store.reach(&self.probe()).await
    }

    /// Writes a file and removes it.
    pub(super) async fn test_writing(&self) -> Result<(), Failure> {
        let name = self.probe();
        self.store.put(&name, vec![Bytes::from_static(b"This file may be removed.\n")]).await?;
        self.store.remove(&name).await
    }

    fn probe(&self) -> String {
        join(&self.directory, PROBE)
    }

    fn url(&self, name: &str) -> String {
        format!("s3://{}/{name}", self.bucket)
    }
}

fn clause(authorization: &Authorization) -> Result<String, Failure> {
    let mut sql = String::new();
    match authorization {
        Authorization::Role(role) if role.starts_with("arn:") => {
            sql.push_str("IAM_ROLE ");
            push_literal(&mut sql, role);
        }
        Authorization::Role(_) => {
            return Err(Failure::permanent(
                "InvalidConfig",
                "The authorization is the ARN of a role (arn:aws:iam::…:role/…), or an access key \
                 with its secret.",
            ));
        }
        Authorization::Keys(keys) => {
            sql.push_str("ACCESS_KEY_ID ");
            push_literal(&mut sql, &keys.aws_access_key_id);
            sql.push_str(" SECRET_ACCESS_KEY ");
            push_literal(&mut sql, &keys.aws_secret_access_key);
        }
    }
    Ok(sql)
}

/// The failure for an error of COPY. Every fault of the bucket has the code of an
/// internal error, which would be retried for hours. The text of the server shows the
/// cause.
pub(super) fn meaning(code: &str, words: &str) -> Option<Failure> {
    // These codes are specific, and their texts may contain values of a row.
    if matches!(code.get(..2), Some("22" | "23" | "42")) {
        return None;
    }
    let words = words.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let (class, message) = if has(&["assume iam role", "assumerole", "credentials of role"]) {
        (
            "WrongRole",
            "Redshift may not take on the role of copy_inputs.authorization. Attach the role to \
             the cluster or the workgroup, and let its trust policy name redshift.amazonaws.com.",
        )
    } else if has(&["invalidaccesskeyid", "signaturedoesnotmatch", "expiredtoken", "invalidtoken"])
    {
        (
            "InvalidCredentials",
            "S3 does not know the access key of copy_inputs.authorization, with which Redshift \
             reads the files.",
        )
    } else if has(&["permanentredirect", "authorizationheadermalformed", "specified endpoint"]) {
        ("WrongRegion", "The bucket is in another region than copy_inputs.region_name says.")
    } else if has(&["nosuchbucket"]) {
        ("NoSuchBucket", "Redshift finds no bucket of this name.")
    } else if has(&["nosuchkey", "mandatory url", "specified s3 prefix"]) {
        return Some(Failure::retryable(
            "FilesGone",
            "Files of the run were gone from the bucket before Redshift had read them.",
        ));
    } else if has(&["accessdenied", "access denied", "not authorized to perform"]) {
        (
            "AccessDenied",
            "Redshift may not read the files. Allow s3:GetObject and s3:ListBucket for the bucket \
             to the role, or to the owner of the access key, of copy_inputs.authorization.",
        )
    } else if has(&["load_error"]) {
        (
            "LoadFailed",
            "Redshift could not load a row. Its view sys_load_error_detail says which value does \
             not fit.",
        )
    } else {
        return None;
    };
    Some(Failure::permanent(class, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(role: &str) -> Authorization {
        Authorization::Role(role.to_owned())
    }

    #[test]
    fn the_reader_is_a_role_or_a_key() {
        let arn = "arn:aws:iam::123456789012:role/it's";
        assert_eq!(
            clause(&role(arn)),
            Ok("IAM_ROLE 'arn:aws:iam::123456789012:role/it''s'".to_owned())
        );
        let keys = Keys {
            aws_access_key_id: "AKIA".to_owned(),
            aws_secret_access_key: "s'; DROP TABLE events; --\\".to_owned(),
        };
        assert_eq!(
            clause(&Authorization::Keys(keys)),
            Ok("ACCESS_KEY_ID 'AKIA' SECRET_ACCESS_KEY 's''; DROP TABLE events; --\\\\'"
                .to_owned())
        );
        assert_eq!(clause(&role("redshift")).unwrap_err().class, "InvalidConfig");
    }

    #[test]
    fn words_of_the_server_become_a_class_and_go_no_further() {
        for (code, words, class, is_retryable) in [
            (
                "XX000",
                "User arn:aws:redshift:r:1:dbuser:c/u is not authorized to assume IAM Role arn:x",
                "WrongRole",
                false,
            ),
            ("30000", "Not authorized to get credentials of role arn:x", "WrongRole", false),
            (
                "XX000",
                "S3ServiceException:The AWS Access Key Id you provided does not exist in our \
                 records.,Status 403,Error InvalidAccessKeyId",
                "InvalidCredentials",
                false,
            ),
            (
                "XX000",
                "S3ServiceException:Access Denied,Status 403,Error AccessDenied",
                "AccessDenied",
                false,
            ),
            (
                "XX000",
                "S3ServiceException:The bucket you are attempting to access must be addressed \
                 using the specified endpoint.,Status 301,Error PermanentRedirect",
                "WrongRegion",
                false,
            ),
            ("XX000", "S3ServiceException:x,Status 404,Error NoSuchBucket", "NoSuchBucket", false),
            ("XX000", "Mandatory url is not present in manifest file.", "FilesGone", true),
            (
                "XX000",
                "Load into table 'weir_rows' failed. Check 'stl_load_errors' system table.",
                "LoadFailed",
                false,
            ),
        ] {
            let failure = meaning(code, words).unwrap();
            assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{words}");
            assert!(!failure.message.contains("arn:x"), "{failure}");
        }
        assert_eq!(meaning("22P02", "invalid value: \"Access Denied\""), None);
        assert_eq!(meaning("XX000", "S3ServiceException:Please reduce your request rate."), None);
    }
}
