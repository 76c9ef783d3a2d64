//! DELETE `…/pipeline_transformation_configs/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_config_is_gone() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "enabled": true, "config": {"token": "t"}});
    let (config, one) = made(&app, &owner, &body).await;
    let (other, _) = made(&app, &owner, &json!({"plugin": plugin, "order": 2})).await;
    let file = Part("add_attachment[table]", Some(("f", "text/plain")), b"x");
    let attached = [file, Part("config", None, br#"{"token": "t", "host": "h"}"#)];
    let answer = send_form(&owner, Method::PATCH, &one, &attached).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let job = json!({"job": {"type": "import"}});
    assert_eq!(owner.post(&format!("{one}job/"), &job).await.status, 200);

    let answer = owner.delete(&one).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_not_found(&owner.get(&one).await);
    assert_not_found(&owner.patch(&one, &json!({"deleted": false})).await);
    assert_not_found(&owner.delete(&one).await);
    for action in ["frontend/", "logs/"] {
        assert_not_found(&owner.get(&format!("{one}{action}")).await);
    }
    assert_not_found(&owner.post(&format!("{one}job/"), &json!({})).await);
    let list = owner.get(&path(&app)).await.json();
    assert_eq!((&list["count"], &list["results"][0]["id"]), (&json!(1), &other["id"]));
    let expected = [
        ("disabled".to_owned(), json!({"enabled": [true, false]})),
        ("deleted".to_owned(), json!({"name": ["Sampler", null]})),
    ];
    let entries = audit_entries(&app, &owner, &config).await;
    assert_eq!(entries[entries.len() - 2..], expected);
    // Its id is not used again.
    let (next, _) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    assert!(next["id"].as_i64() > other["id"].as_i64());
}
