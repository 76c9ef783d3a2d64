//! GET `…/invites/`.

use serde_json::json;
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::TestApp;

use super::{id, invite, member, owner, path};

#[tokio::test(flavor = "multi_thread")]
async fn newest_first_with_pages_and_expired_ones() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    for name in ["a", "b", "c"] {
        invite(&app, &format!("{name}@mail.example")).await;
        clock.advance(24 * 60 * 60);
    }
    let caller = app.owner().key(&["organization_member:read"]).await;
    let shown = async |query: &str| {
        let list = caller.get(&format!("{}{query}", path(&app))).await.json();
        let results = list["results"].as_array().unwrap().clone();
        let shown = results.iter().map(|one| {
            let email = one["target_email"].as_str().unwrap();
            (email.chars().next().unwrap(), one["is_expired"].as_bool().unwrap())
        });
        (list["count"].as_u64().unwrap(), shown.collect::<Vec<_>>())
    };
    // The first was created three days ago to the second.
    assert_eq!(shown("").await, (3, vec![('c', false), ('b', false), ('a', false)]));
    clock.advance(1);
    assert_eq!(shown("").await, (3, vec![('c', false), ('b', false), ('a', true)]));
    assert_eq!(shown("?limit=1&offset=1").await, (3, vec![('b', false)]));
    assert_eq!(shown("?offset=3").await, (3, vec![]));
    let next = caller.get(&format!("{}?limit=2", path(&app))).await.json()["next"].clone();
    let expected = format!("http://{}{}?limit=2&offset=2", app.address(), path(&app));
    assert_eq!(next, json!(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace@mail.example").await;
    let lacking = app.owner().key(&["organization:read"]).await;
    lacking.get(&path(&app)).await.assert_error(
        403,
        "authentication_error",
        "permission_denied",
        "API key missing required scope 'organization_member:read'",
    );
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    let answer = outsider.get(&path(&app)).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    // A single invite can be neither read nor changed.
    let owner = owner(&app).await;
    let one = format!("{}{}/", path(&app), super::id(&made));
    let answer = owner.get(&one).await;
    answer.assert_error(
        405,
        "invalid_request",
        "method_not_allowed",
        "Method \"GET\" not allowed.",
    );
    for answer in [owner.patch(&one, &json!({})).await, owner.put(&one, &json!({})).await] {
        assert_eq!((answer.status, answer.header("allow")), (405, Some("DELETE, OPTIONS")));
    }
}

/// Ids are only shown to callers who may delete the invite.
#[tokio::test(flavor = "multi_thread")]
async fn ids_are_for_keys_that_write_and_members_of_the_level() {
    let app = TestApp::with_owner().await;
    let body = json!({"target_email": "grace@mail.example", "level": 15});
    let above = owner(&app).await.post(&path(&app), &body).await.json();
    let equal = invite(&app, "barbara@mail.example").await;
    let plain = member(&app, "linus", Level::Member).await;
    let listed = plain.get(&path(&app)).await.json();
    assert_eq!((&listed["count"], &listed["results"][0]["id"]), (&json!(2), &equal["id"]));
    let shown = &listed["results"][1];
    assert_eq!(
        (&shown["target_email"], &shown["level"]),
        (&json!("grace@mail.example"), &json!(15))
    );
    assert_ne!(shown["id"], above["id"]);
    // The id is the same each time, and no operation accepts it.
    assert_eq!(plain.get(&path(&app)).await.json(), listed);
    for hidden in [id(shown), id(&above)] {
        let answer = plain.delete(&format!("{}{hidden}/", path(&app))).await;
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    let ids = |list: serde_json::Value| {
        let results = list["results"].as_array().unwrap().clone();
        results.iter().map(|one| id(one).to_owned()).collect::<Vec<_>>()
    };
    let all = ids(owner(&app).await.get(&path(&app)).await.json());
    assert_eq!(all, [id(&equal), id(&above)]);
    let reader = app.owner().key(&["organization_member:read"]).await;
    let hidden = ids(reader.get(&path(&app)).await.json());
    assert!(hidden.iter().all(|id| !all.contains(id)), "{hidden:?}");
    assert_eq!(ids(reader.get(&path(&app)).await.json()), hidden);
}
