//! POST `…/{group}/` of a form with an archive.

use super::hosts::{Files, files, tar_gz, tea, tea_of, zip};
use super::*;

/// Sends an archive, with or without a field.
async fn send(fixture: &GroupFixture, archive: &[u8], field: Option<(&str, &str)>) -> Answer {
    send_to(fixture, &fixture.path(), archive, field).await
}

async fn send_to(
    fixture: &GroupFixture,
    path: &str,
    archive: &[u8],
    field: Option<(&str, &str)>,
) -> Answer {
    let mut body = Vec::new();
    if let Some((name, text)) = field {
        let part =
            format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
        body.extend(part.bytes());
    }
    body.extend(b"--b\r\ncontent-disposition: form-data; name=\"archive\"; ");
    body.extend(b"filename=\"tea.zip\"\r\ncontent-type: application/zip\r\n\r\n");
    body.extend(archive);
    body.extend(b"\r\n--b--\r\n");
    let call = fixture.owner.call(http::Method::POST, path);
    call.header("content-type", "multipart/form-data; boundary=b").body(body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zip_and_a_tar_are_extracted() {
    each_group(async |fixture| {
        let tea = tea_of(fixture.group);
        let in_package =
            |(name, text): (&String, &String)| (format!("package/{name}"), text.clone());
        let in_folder: Files = tea.iter().map(in_package).collect();
        for archive in [zip(&tea), tar_gz(&tea), zip(&in_folder), tar_gz(&in_folder)] {
            let answer = send(fixture, &archive, None).await;
            assert_eq!(answer.status, 201, "{:?}", answer.body);
            let plugin = answer.json();
            assert_eq!(
                (&plugin["name"], &plugin["plugin_type"]),
                (&json!("Tea"), &json!("source"))
            );
            assert_eq!((&plugin["url"], &plugin["tag"]), (&Value::Null, &Value::Null));
            assert!(plugin["capabilities"]["methods"].is_array(), "{plugin}");
            let path = format!("{}{}/", fixture.path(), plugin["id"]);
            let source = fixture.owner.get(&format!("{path}source/?raw=true")).await.json();
            assert_eq!(source["index.js"], tea["index.js"]);
            assert_eq!(source.get("README.md"), None);
        }
        let named = send(fixture, &zip(&tea), Some(("name", "Mint"))).await.json();
        assert_eq!(named["name"], "Mint");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_of_another_group_is_refused_where_it_came_from() {
    let [destinations, frontend, import] = GROUPS;
    let delivers = "export function onEvent() {}";
    let changes = "export function processEvent(event) { return event }";
    let hourly = "export function runEveryHour() {}";
    let both = "export function onEvent() {}\nexport function runEveryDay() {}";
    let fixture = fixture(destinations).await;
    let mut version = 0;
    for (name, text, fits, right) in [
        ("index.js", delivers, vec![destinations], destinations),
        ("index.ts", hourly, vec![import], import),
        ("index.js", "// nothing yet", vec![import], import),
        ("site.ts", "export function inject() {}", vec![frontend], frontend),
        ("index.js", both, vec![destinations, import], " or pipeline_import_apps"),
        // Code that fits no group stays in the group that it is created through.
        ("index.js", changes, GROUPS.to_vec(), ""),
    ] {
        let tea = files(&[("plugin.json", r#"{"name": "Tea"}"#), (name, text)]);
        fixture.host.has(tea.clone());
        for group in GROUPS {
            let path = fixture.beside(group);
            version += 1;
            let url = json!({"url": format!("https://github.com/acme/tea/tree/v{version}")});
            for (attr, answer) in [
                ("url", fixture.owner.post(&path, &url).await),
                ("archive", send_to(&fixture, &path, &zip(&tea), None).await),
            ] {
                if fits.contains(&group) {
                    assert_eq!(answer.status, 201, "{group} {text}: {:?}", answer.body);
                    let own = format!("{path}{}/", answer.json()["id"]);
                    assert_eq!(fixture.owner.get(&own).await.status, 200, "{group} {text}");
                    assert_eq!(fixture.owner.delete(&own).await.status, 204);
                    continue;
                }
                let (status, _, code, detail, at) = answer.error();
                assert_eq!((status, code.as_str()), (400, "invalid_input"), "{group} {text}");
                assert_eq!(at.as_deref(), Some(attr), "{group} {text}");
                assert!(detail.contains(right) && detail.contains(group), "{detail}");
                assert!(name == "site.ts" || detail.contains(name), "{detail}");
            }
        }
    }
    // A refused archive leaves no plugin.
    for group in GROUPS {
        assert_eq!(fixture.owner.get(&fixture.beside(group)).await.json()["count"], 0, "{group}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_at_the_archive() {
    let fixture = fixture(GROUPS[0]).await;
    let manifest = |text: &str| zip(&files(&[("plugin.json", text), ("index.js", "1")]));
    for (archive, detail) in [
        (zip(&files(&[("index.js", "1")])), "The archive has no plugin.json."),
        (manifest("{}"), "plugin.json: name: This field is required."),
        (
            zip(&files(&[("plugin.json", r#"{"name": "Tea"}"#), ("README.md", "1")])),
            "The archive has no index.js, index.ts, frontend.tsx or site.ts.",
        ),
    ] {
        let answer = send(&fixture, &archive, None).await;
        assert_invalid(&answer, Some("archive"), "invalid_input", detail);
    }
    for damaged in [&b"no archive"[..], &zip(&tea())[..40], &tar_gz(&tea())[..40]] {
        let answer = send(&fixture, damaged, None).await;
        let (status, _, code, _, attr) = answer.error();
        assert_eq!(
            (status, code.as_str(), attr.as_deref()),
            (400, "invalid_input", Some("archive"))
        );
    }
    // It is not clear which of both is meant.
    let address = ("url", "https://github.com/acme/tea");
    let both = send(&fixture, &zip(&tea()), Some(address)).await;
    let detail = "Send an address or an archive, not both.";
    assert_invalid(&both, Some("archive"), "invalid_input", detail);
    let large = send(&fixture, &vec![0; (5 << 20) + 1], None).await;
    let detail = "Ensure this file has no more than 5242880 bytes.";
    assert_invalid(&large, Some("archive"), "max_length", detail);
    assert_eq!(send(&fixture, &vec![0; 6 << 20], None).await.status, 413);
    // Bodies of other types have the small limit.
    let long = json!({"name": "x".repeat(2 << 20)});
    assert_eq!(fixture.owner.post(&fixture.path(), &long).await.status, 413);
    assert_eq!(fixture.owner.get(&fixture.path()).await.json()["count"], 0);
}
