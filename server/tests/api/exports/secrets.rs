//! A secret that comes in through the API is nowhere to be found afterwards:
//! not in an answer, not in the files, not in the log (SECURITY-NOTES 3.9).

use std::path::Path;

use super::*;

/// Something that nothing else contains.
const CANARY: &str = "c4n4ry-8d1f0e-hunter2";

fn every_type() -> Vec<Value> {
    let export = |kind: &str, config: Value| {
        json!({
            "name": kind, "interval": "hour", "destination": {"type": kind, "config": config},
        })
    };
    vec![
        export(
            "S3",
            json!({
                "bucket_name": "b", "region": "r", "prefix": "p",
                "aws_access_key_id": CANARY, "aws_secret_access_key": CANARY,
            }),
        ),
        export("AzureBlob", json!({"container_name": "c", "connection_string": CANARY})),
        export(
            "Postgres",
            json!({"host": "h", "database": "d", "user": CANARY, "password": CANARY}),
        ),
        export(
            "Redshift",
            json!({
                "host": "h", "database": "d", "user": CANARY, "password": CANARY, "mode": "COPY",
                "copy_inputs": {
                    "s3_bucket": "b", "region_name": "r",
                    "authorization": {"aws_access_key_id": CANARY, "aws_secret_access_key": CANARY},
                    "bucket_credentials": {
                        "aws_access_key_id": CANARY, "aws_secret_access_key": CANARY,
                    },
                },
            }),
        ),
        export(
            "Snowflake",
            json!({
                "account": "a", "database": "d", "warehouse": "w", "schema": "s", "user": CANARY,
                "password": CANARY, "private_key": CANARY, "private_key_passphrase": CANARY,
            }),
        ),
        export(
            "BigQuery",
            json!({
                "project_id": "p", "dataset_id": "d", "private_key": CANARY, "private_key_id": CANARY,
                "token_uri": format!("https://example.org/{CANARY}"), "client_email": CANARY,
            }),
        ),
        export(
            "Databricks",
            json!({
                "server_hostname": "h", "http_path": "p", "client_id": "i", "client_secret": CANARY,
                "catalog": "c", "schema": "s", "table_name": "t",
            }),
        ),
        export("HTTP", json!({"url": "https://x.example/batch/", "token": CANARY})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_found_in_no_answer_and_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let at = data.clone();
    let app = TestApp::start(
        move |config| {
            config.store = "rocksdb".parse().unwrap();
            config.data = at;
        },
        |_| {},
    )
    .await
    .set_up()
    .await;
    let owner = owner(&app).await;
    let hide = |answer: &Answer| {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains(CANARY), "{text}");
        assert!(!text.contains("\"password\":") && !text.contains("aws_secret"), "{text}");
    };
    for body in every_type() {
        let answer = owner.post(&path(&app), &body).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        hide(&answer);
        let export = format!("{}{}/", path(&app), answer.json()["id"].as_str().unwrap());
        hide(&owner.get(&export).await);
        hide(&owner.patch(&export, &json!({"name": "x", "destination": {"config": {}}})).await);
        hide(&owner.post(&format!("{export}pause/"), &json!({})).await);
        hide(&owner.post(&format!("{export}unpause/"), &json!({"backfill": true})).await);
    }
    // Secrets in a body that is refused are not repeated either.
    let mut wrong = every_type().remove(2);
    wrong["destination"]["config"]["port"] = json!(CANARY);
    hide(&owner.post(&path(&app), &wrong).await);
    hide(&owner.get(&path(&app)).await);
    hide(&owner.get(&format!("/api/organizations/{}/activity_log/", app.organization())).await);
    app.stop().await;

    let key = directory.path().join("data.key");
    assert!(key.is_file(), "the key is beside the data");
    let written = std::fs::read_to_string(&key).unwrap();
    let mut searched = 0;
    each_file(&data, &mut |file, bytes| {
        searched += 1;
        for secret in [CANARY, written.trim()] {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{}", file.display());
        }
    });
    assert!(searched > 3, "{searched} files");
    // What is searched for can be found: names of exports are not sealed.
    let mut names = 0;
    each_file(&data, &mut |_, bytes| {
        names += usize::from(bytes.windows(9).any(|part| part == b"Snowflake"));
    });
    assert!(names > 0);
}

fn each_file(directory: &Path, look: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, look);
        } else if path.file_name().is_some_and(|name| name != "ballast") {
            look(&path, &std::fs::read(&path).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_without_its_key_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let config = |config: &mut weir_server::Config| {
        config.store = "rocksdb".parse().unwrap();
        config.data = directory.path().join("data");
    };
    let app = TestApp::start(config, |_| {}).await.set_up().await;
    let (_, export) = made(&app, &owner(&app).await, &postgres()).await;
    app.stop().await;

    let key = directory.path().join("data.key");
    let start = async || {
        let mut settings = weir_server::config::Settings {
            listen: Some("127.0.0.1:0".to_owned()),
            metrics_listen: Some("off".parse().unwrap()),
            ..Default::default()
        }
        .over(Default::default());
        config(&mut settings);
        let started = weir_server::serve::Server::start(settings, Default::default()).await;
        match started {
            Ok(server) => {
                server.stop().await.unwrap();
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    };
    let right = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let missing = start().await.unwrap_err();
    assert!(missing.contains("data.key") && missing.contains("put it back"), "{missing}");
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    let open = start().await.unwrap_err();
    assert!(open.contains("chmod 600"), "{open}");
    restrict(&key);
    let wrong = start().await.unwrap_err();
    assert!(wrong.contains("nothing was changed"), "{wrong}");
    std::fs::write(&key, right).unwrap();
    start().await.unwrap();

    // A new key: everything is sealed anew, and opens.
    let mut settings = weir_server::config::Settings::default().over(Default::default());
    config(&mut settings);
    let told = weir_server::master_key::rotate(&settings, None).await.unwrap();
    assert!(told.starts_with("Sealed 1 secrets anew."), "{told}");
    let app = TestApp::start(config, |_| {}).await;
    let services = &app.app().services;
    let peer = weir_service::identity::Peer::default();
    let session = services.identity.sign_in("ada@mail.example", "plum-otter-violin-93", &peer);
    let token = session.await.unwrap().token;
    let ctx = services.identity.session(&token, "test".to_owned()).await.unwrap().unwrap();
    let key = weir_model::keys::PersonalKeyInput {
        label: "test".to_owned(),
        scopes: vec![weir_model::scopes::Scope::All],
        scoped_teams: Vec::new(),
        scoped_organizations: Vec::new(),
        expires_at: None,
    };
    let key = services.keys.create(&ctx, key).await.unwrap().value.unwrap();
    let caller = app.anonymous().with_key(&key);
    // Only what opens can be changed without sending everything again.
    let patch = json!({"destination": {"config": {"table_name": "t"}}});
    assert_eq!(caller.patch(&export, &patch).await.status, 200);
    app.stop().await;
}

fn restrict(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}
