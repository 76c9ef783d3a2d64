//! GET `…/batch_exports/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn newest_first_in_pages() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    for number in 0..5 {
        made(&app, &owner, &with(s3(), "name", json!(format!("n{number}")))).await;
        clock.advance(1);
    }
    let names = |list: &Value| {
        let results = list["results"].as_array().unwrap();
        results.iter().map(|export| export["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = owner.get(&format!("{}?limit=2&offset=1", path(&app))).await.json();
    assert_eq!((&list["count"], names(&list)), (&json!(5), vec!["n3".to_owned(), "n2".to_owned()]));
    let next = list["next"].as_str().unwrap();
    assert!(next.ends_with("/batch_exports/?limit=2&offset=3"), "{next}");
    assert!(list["previous"].as_str().unwrap().ends_with("/batch_exports/?limit=2"));
    let end = owner.get(&format!("{}?limit=2&offset=4", path(&app))).await.json();
    assert_eq!((names(&end), &end["next"]), (vec!["n0".to_owned()], &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_its_own() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let other = owner.post("/api/projects/", &json!({"name": "Other"})).await.json()["id"].clone();
    made(&app, &owner, &with(s3(), "team_id", other.clone())).await;
    let (here, _) = made(&app, &owner, &with(s3(), "team_id", json!(app.project()))).await;
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 2);
    let list = owner.get(&project_path(&app)).await.json();
    assert_eq!((&list["count"], &list["results"][0]["id"]), (&json!(1), &here["id"]));
    let elsewhere =
        format!("/api/projects/{other}/batch_exports/{}/", here["id"].as_str().unwrap());
    assert_not_found(&owner.get(&elsewhere).await);
    assert_not_found(&owner.delete(&elsewhere).await);
}
