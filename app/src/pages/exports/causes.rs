//! Advice for failed runs: the cause and the checks for every class of failure.
//!
//! Error messages begin with their class, such as `ForbiddenAddress: The address ...`
//! (`weir_export::destination::Failure`). Classes of several destinations with the same
//! name mean the same. Where the advice differs, it names the destination.

use leptos::prelude::*;

/// Advice about a class of failure.
struct Cause {
    /// The classes it applies to.
    classes: &'static [&'static str],
    /// Checks, the most frequent cause first.
    checks: &'static [&'static str],
}

const CAUSES: &[Cause] = &[
    Cause {
        classes: &["ForbiddenAddress"],
        checks: &[
            "Is the host the one you mean? Weir connects to public addresses only.",
            "For a machine in your own network, ask the operator of this instance to add its address to the setting egress_allow.",
        ],
    },
    Cause {
        classes: &["InvalidAddress"],
        checks: &[
            "Correct the address in the settings: scheme, host and port, and nothing before the host.",
        ],
    },
    Cause {
        classes: &["NameNotFound"],
        checks: &[
            "Is the name of the host spelled right?",
            "Does the name exist for the machine that Weir runs on? A name of your own network may not.",
        ],
    },
    Cause {
        classes: &["ConnectionRefused", "ConnectionBroken"],
        checks: &[
            "Does the server run, and does it listen at this port?",
            "Does a firewall or an allow-list block the machine of Weir?",
        ],
    },
    Cause {
        classes: &["TimedOut", "Silent"],
        checks: &[
            "Is the server busy, or does something drop the packets on the way?",
            "For a run that is too long: choose a shorter interval, or fewer columns by a query.",
        ],
    },
    Cause {
        classes: &["Tls", "TlsNeeded"],
        checks: &[
            "Has the certificate expired, or is it for another name?",
            "For PostgreSQL with a certificate of its own, tick Take any certificate.",
            "Does the server speak TLS at this port at all? At public addresses it must.",
        ],
    },
    Cause {
        classes: &["HttpStatus"],
        checks: &[
            "The text says the status. From 500 on it is the destination's own fault: Weir tries again.",
            "Below 500, compare address and credentials with those of the destination.",
        ],
    },
    Cause {
        classes: &["AnswerTooLarge", "UnexpectedAnswer"],
        checks: &[
            "Is the address that of the service itself, and not of a proxy or a page for people?",
        ],
    },
    Cause {
        classes: &["Redirected", "NoReceiver"],
        checks: &["Enter the capture address, such as https://other.example.org/batch/."],
    },
    Cause {
        classes: &["TokenRefused"],
        checks: &[
            "Enter the project key of the receiving project. A personal API key is another one.",
        ],
    },
    Cause {
        classes: &["OverQuota"],
        checks: &["The receiver accepts no more events. Raise its quota, then run this again."],
    },
    Cause {
        classes: &["InvalidRequest", "DataRefused", "StatementRefused", "Refused"],
        checks: &[
            "Has the table other columns or types than the export? Let Weir create a new table with another name, or change the query.",
            "The code in the text is the destination's own; its manual explains it.",
        ],
    },
    Cause {
        classes: &["Throttled", "Unavailable", "StorageUnavailable", "DatabaseUnavailable"],
        checks: &[
            "The destination is busy or down. Weir tries again for six hours after the first failed attempt.",
            "If that continues, check its quotas, or choose a longer interval.",
        ],
    },
    Cause {
        classes: &["InvalidCredentials", "WrongPassword", "AuthenticationFailed"],
        checks: &[
            "Enter the credentials again in the settings, and test the connection.",
            "Were they revoked, or have they expired?",
            "For a database: may this user sign in from the machine of Weir?",
        ],
    },
    Cause {
        classes: &["InvalidPrivateKey"],
        checks: &[
            "Enter the whole key, with its first and its last line.",
            "Is the passphrase that of this key?",
        ],
    },
    Cause {
        classes: &["AccessDenied", "PermissionDenied", "MissingPrivilege", "WrongRole"],
        checks: &[
            "Give user, role or key the rights that the page of the destination lists.",
            "Is the bucket, the schema or the warehouse the one that the rights are for?",
        ],
    },
    Cause {
        classes: &["NoSuchBucket", "WrongRegion"],
        checks: &[
            "Does the bucket or container exist, and is its name spelled right?",
            "Is the region that of the bucket, and the endpoint that of the storage?",
        ],
    },
    Cause {
        classes: &["InvalidKey"],
        checks: &["Is the key for encryption there, switched on, and in the region of the bucket?"],
    },
    Cause {
        classes: &["InvalidPrefix"],
        checks: &[
            "Correct the prefix: only known variables in braces, no single brace, no part that is . or .. or too long.",
        ],
    },
    Cause {
        classes: &["FileTooLarge"],
        checks: &["Set the largest file in MiB, or choose a shorter interval."],
    },
    Cause {
        classes: &["WrongClock"],
        checks: &[
            "Set the clock of the machine that Weir runs on, or of the storage: they differ by minutes.",
        ],
    },
    Cause {
        classes: &["MissingDatabase", "MissingSchema", "MissingTable", "NotFound"],
        checks: &[
            "Does everything exist that the settings name: database, catalog, dataset, schema, warehouse?",
            "Can this user see it? Objects that a user may not see look like missing objects.",
        ],
    },
    Cause {
        classes: &["NoWarehouse", "WarehouseSuspended"],
        checks: &[
            "Is the name of the warehouse right, and may the role use it?",
            "Let it resume automatically, or start it.",
        ],
    },
    Cause {
        classes: &["NoDatabase"],
        checks: &[
            "Something else answers at this host and port: compare them with those of the database.",
        ],
    },
    Cause {
        classes: &["MissingColumn", "WrongColumns", "SameColumnTwice"],
        checks: &[
            "Compare the columns of the table with those of the export.",
            "Give each column of the query a name of its own, or let Weir create a new table with another name.",
        ],
    },
    Cause {
        classes: &["NotNull", "Constraint", "TooLong", "WrongType", "SameIdTwice"],
        checks: &[
            "The table refuses a row: loosen the rule that the text names, or widen the column.",
            "Or let Weir create a new table with another name.",
        ],
    },
    Cause {
        classes: &["NoPersonsTable"],
        checks: &[
            "Name another table: a table of events cannot hold persons. Weir creates it if it does not exist.",
        ],
    },
    Cause {
        classes: &["LoadFailed", "JobFailed", "StatementFailed"],
        checks: &[
            "Read the load errors that the destination keeps. For Redshift they are in sys_load_error_detail.",
            "Does the table have the columns and types that Weir creates?",
        ],
    },
    Cause {
        classes: &[
            "StatementStopped",
            "StillLoading",
            "Locked",
            "SessionExpired",
            "FilesGone",
            "UploadFailed",
            "UploadGone",
        ],
        checks: &[
            "Usually temporary: Weir tries again.",
            "If it happens again, check whether another user stops statements, locks the table or clears the stage.",
        ],
    },
    Cause {
        classes: &["UnknownStage"],
        checks: &[
            "The account keeps its stages in a way that Weir does not know. Use a destination of files and load from there.",
        ],
    },
    Cause {
        classes: &["DiskFull", "WriteFailed"],
        checks: &[
            "Free space on the disk of the destination. For a directory on the server that is the disk of Weir.",
        ],
    },
    Cause {
        classes: &["DirectoryTaken"],
        checks: &["Enter another path in the settings: organizations share no directory."],
    },
    Cause {
        classes: &["LocalExportsOff"],
        checks: &[
            "Ask the operator of this instance to name a directory with the setting local_exports.",
        ],
    },
    Cause {
        classes: &["NotADirectory", "NotAFile", "NoDirectory"],
        checks: &[
            "Check the directory on the server: a part of the path is missing, or is a file or a link.",
        ],
    },
    Cause {
        classes: &[
            "InvalidConfig",
            "UnreadableSettings",
            "UnknownDestination",
            "UnknownModel",
            "EncryptionMode",
        ],
        checks: &["Open the settings, enter what is missing, secrets too, and save."],
    },
    Cause {
        classes: &["InvalidQuery"],
        checks: &["Open the settings and correct the query; the text says where it goes wrong."],
    },
    Cause {
        classes: &[
            "EndedEarly",
            "CutShort",
            "Interrupted",
            "Internal",
            "SendingFailed",
            "EncodingFailed",
            "StoreUnavailable",
            "DamagedData",
        ],
        checks: &[
            "Weir itself stopped or failed in the middle. Run it again.",
            "If it happens again, search the log of Weir for the id of the run.",
        ],
    },
];

/// The class at the beginning of an error message.
pub(super) fn class(error: &str) -> &str {
    let class = error.split(':').next().unwrap_or_default();
    let is_word = !class.is_empty() && class.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_word { class } else { "" }
}

/// Checks for an error message. Empty when its class is unknown.
fn checks(error: &str) -> &'static [&'static str] {
    let class = class(error);
    let known = CAUSES.iter().find(|cause| cause.classes.contains(&class));
    known.map_or(&[], |cause| cause.checks)
}

/// "What to check" for an error message.
pub(super) fn advice(error: &str) -> Option<AnyView> {
    let checks = checks(error);
    (!checks.is_empty()).then(|| {
        let items = checks.iter().map(|check| view! { <li>{*check}</li> }).collect_view();
        view! {
            <div class="advice">
                <p><strong>"What to check"</strong></p>
                <ul>{items}</ul>
            </div>
        }
        .into_any()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn faults_begin_with_their_class() {
        assert_eq!(class("TimedOut: There was no answer."), "TimedOut");
        assert_eq!(class("Something else happened: x"), "");
        assert_eq!(class(""), "");
        assert!(!checks("ForbiddenAddress: The address is not public.").is_empty());
        assert!(checks("Unknown fault").is_empty());
    }

    #[test]
    fn a_class_has_one_cause() {
        let all: Vec<&str> = CAUSES.iter().flat_map(|cause| cause.classes).copied().collect();
        let different: HashSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), different.len());
    }

    /// Every class in the documents of the destinations is known here.
    #[test]
    fn every_class_of_the_documents_has_a_cause() {
        let pages = [
            include_str!("../../../../docs/destinations/README.md"),
            include_str!("../../../../docs/destinations/s3.md"),
            include_str!("../../../../docs/destinations/azure-blob.md"),
            include_str!("../../../../docs/destinations/local-directory.md"),
            include_str!("../../../../docs/destinations/postgres.md"),
            include_str!("../../../../docs/destinations/redshift.md"),
            include_str!("../../../../docs/destinations/snowflake.md"),
            include_str!("../../../../docs/destinations/bigquery.md"),
            include_str!("../../../../docs/destinations/databricks.md"),
        ];
        for page in pages {
            // Only tables of failures end with a column about retries.
            let lines = page.lines().skip_while(|line| !line.contains("is it tried again"));
            for line in lines.take_while(|line| line.starts_with('|')).skip(2) {
                let first = line.split('|').nth(1).unwrap_or_default();
                for word in first.split(',').map(|word| word.trim().trim_matches('`')) {
                    assert!(!checks(&format!("{word}: x")).is_empty(), "{word}");
                }
            }
        }
    }
}
