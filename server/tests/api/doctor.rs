//! `weir doctor`, beside a server and without one.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::backup::state;
use crate::process::{Output, Serving, run, set_up, weir, weir_showing};

const PASSWORD: &str = "plum-otter-violin-93";
/// Texts that nothing else contains.
const OF_DESTINATION: &str = "c4n4ry-destination-hunter2";
const OF_MAIL: &str = "c4n4ry-mail-hunter3";
const OF_PROVIDER: &str = "c4n4ry-provider-hunter4";
const OF_TRACES: &str = "c4n4ry-traces-hunter5";

/// An instance with one secret of each kind.
struct Filled {
    folder: tempfile::TempDir,
    secrets: Vec<String>,
}

impl Filled {
    /// Begins with the settings and the first user.
    async fn new() -> (Self, Value) {
        let folder = tempfile::tempdir().unwrap();
        let settings = format!(
            "smtp_url = 'smtp://weir:{OF_MAIL}@127.0.0.1:9'\n\
             sign_in_providers = ['github client {OF_PROVIDER}']\n\
             traces_headers = 'authorization=Bearer {OF_TRACES}'\n"
        );
        fs::write(folder.path().join("weir.toml"), settings).unwrap();
        let made = set_up(folder.path(), PASSWORD).await;
        assert!(made.ok, "{}", made.err);
        let made: Value = serde_json::from_str(&made.out).unwrap();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let mut secrets: Vec<_> =
            [PASSWORD, OF_DESTINATION, OF_MAIL, OF_PROVIDER, OF_TRACES].map(str::to_owned).into();
        secrets.extend([text("personal_api_key"), text("project_api_key")]);
        (Self { folder, secrets }, made)
    }

    /// Adds an export, an invite and a secret key of the project.
    async fn fill(&mut self, serving: &Serving, made: &Value) {
        let caller = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
        let organization =
            format!("/api/organizations/{}/", made["organization_id"].as_str().unwrap());
        let export = json!({
            "name": "daily", "interval": "day", "paused": true,
            "destination": {"type": "S3", "config": {
                "bucket_name": "b", "region": "r", "prefix": "p",
                "aws_access_key_id": OF_DESTINATION, "aws_secret_access_key": OF_DESTINATION,
            }},
        });
        let answer = caller.post(&format!("{organization}batch_exports/"), &export).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        let invite = json!({"target_email": "ben@mail.example"});
        let invite = caller.post(&format!("{organization}invites/"), &invite).await.json();
        self.secrets.push(invite["token"].as_str().unwrap().to_owned());
        let project = format!("/api/projects/{}/rotate_secret_token/", made["project_id"]);
        let rotated = caller.patch(&project, &json!({})).await.json();
        self.secrets.push(rotated["secret_api_token"].as_str().unwrap().to_owned());
        let key = fs::read_to_string(self.folder.path().join("data.key")).unwrap();
        self.secrets.push(key.trim().to_owned());
        let event = json!({
            "api_key": made["project_api_key"], "event": "opened", "distinct_id": "user-1",
        });
        assert_eq!(caller.post("/capture/", &event).await.status, 200);
        crate::process::events(&serving.caller, made, 1).await;
    }

    /// A log, as one may be that has all of it.
    fn write_log(&self) {
        let mut log = "2026-06-01T10:00:00Z  WARN the mail to ben@mail.example failed\n".to_owned();
        for secret in &self.secrets {
            log += &format!("2026-06-01T10:00:00Z ERROR refused password={secret}\n");
        }
        fs::write(self.folder.path().join("weir.log"), log).unwrap();
    }

    fn assert_hidden(&self, report: &str) {
        for secret in &self.secrets {
            assert!(!report.contains(secret.as_str()), "{secret} is in\n{report}");
        }
        for address in ["ada@mail.example", "ben@mail.example"] {
            assert!(!report.contains(address), "{address} is in\n{report}");
        }
    }
}

/// Runs the command with the addresses of a server.
pub(crate) async fn doctor(
    folder: &Path,
    listen: &str,
    metrics: &str,
    arguments: &[&str],
) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env_clear().current_dir(folder).kill_on_drop(true);
    command.args(["--listen", listen, "--metrics-listen", metrics, "doctor"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    run(command, "").await
}

/// Fails unless the report has all these lines, or parts of lines.
#[track_caller]
fn assert_has(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_filled_instance_is_in_the_report() {
    let (mut filled, made) = Filled::new().await;
    let folder = filled.folder.path().to_owned();
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let serving = Serving::start_with(weir_showing(&[], &folder, &metrics)).await;
    filled.fill(&serving, &made).await;
    filled.write_log();
    let address = serving.address.to_string();
    let found = doctor(&folder, &address, &metrics, &["--log-file", "weir.log"]).await;
    assert!(found.ok, "{}", found.err);
    filled.assert_hidden(&found.out);
    let version = format!("schema version: {}", weir_store::schema_version());
    assert_has(
        &found.out,
        &[
            concat!("weir: ", env!("CARGO_PKG_VERSION")),
            "smtp://weir:***@127.0.0.1:9",
            "traces_headers = \"authorization=***\"",
            "data.key: 0600",
            "disk_high: ",
            "open files of this command: ",
            &version,
            "stored events: 1\n",
            "records of user: 1\n",
            "records of batch_export: 1\n",
            "records of invite: 1\n",
            "/_livez: 200",
            "/_readyz: 200",
            "\nweir_",
            "ERROR refused password=***",
        ],
    );
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    // The same without a server, into a file.
    let before = state(&folder.join("data"));
    let arguments = ["--log-file", "weir.log", "--output", "report.txt"];
    let written = doctor(&folder, &address, &metrics, &arguments).await;
    assert!(written.ok && written.out.contains("report.txt"), "{}{}", written.out, written.err);
    assert_eq!(state(&folder.join("data")), before, "a report changes nothing");
    let report = fs::read_to_string(folder.join("report.txt")).unwrap();
    filled.assert_hidden(&report);
    assert_has(&report, &[&version, "records of user: 1\n", "/_readyz: no answer at "]);
    let mode = fs::metadata(folder.join("report.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = doctor(&folder, &address, &metrics, &arguments).await;
    assert!(!again.ok && again.err.contains("cannot be written"), "{}", again.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_line_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = weir(folder.path());
    command.args(["doctor", "--log-file", "missing.log"]);
    let found = run(command, "").await;
    assert!(found.ok, "{}", found.err);
    assert_has(
        &found.out,
        &[
            "there is no store",
            "/data: is not there",
            "listen has no fixed port",
            "metrics_listen is off",
            "the file cannot be read",
        ],
    );
    assert!(!folder.path().join("data").exists());
}
