//! GET `…/domains/{id}/`.

use weir_model::organizations::Level;
use weir_testkit::TestApp;

use super::{claim, member, one, outsider, path};

#[tokio::test(flavor = "multi_thread")]
async fn one_domain() {
    let app = TestApp::with_owner().await;
    let made = claim(&app, "tea.example.com").await;
    let caller = member(&app, "grace", Level::Member).await;
    let answer = caller.get(&one(&app, &made)).await;
    assert_eq!((answer.status, answer.json()), (200, made.clone()));
    let bare = one(&app, &made);
    assert_eq!(caller.get(bare.trim_end_matches('/')).await.json(), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_malformed_and_foreign_ids_are_alike() {
    let app = TestApp::with_owner().await;
    let made = claim(&app, "tea.example.com").await;
    let caller = super::owner(&app).await;
    let outsider = outsider(&app).await;
    let foreign = format!("/api/organizations/@current/domains/{}/", made["id"].as_str().unwrap());
    let missing = format!("{}{}/", path(&app), uuid::Uuid::new_v4());
    let malformed = format!("{}tea.example.com/", path(&app));
    for (caller, path) in [(&caller, missing), (&caller, malformed), (&outsider, foreign)] {
        let answer = caller.get(&path).await;
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    let answer = outsider.get(&one(&app, &made)).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
}
