//! GET `…/batch_exports/`.

use std::time::Instant;

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

/// The bound holds for the release binary; here it is only to grow no faster.
#[tokio::test(flavor = "multi_thread")]
async fn the_tenth_page_costs_what_the_first_does() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let org = app.app().services.organizations.enter(&app.owner().ctx(), "@current").await.unwrap();
    for number in 0..1000 {
        let row = weir_store::exports::ExportRow {
            id: weir_model::BatchExportId(uuid::Uuid::from_u128(number)),
            organization: org.organization,
            project: app.project(),
            name: format!("n{number}"),
            kind: "NoOp".to_owned(),
            config: r#"{"arg":""}"#.to_owned(),
            secrets: None,
            interval: "hour".to_owned(),
            paused: false,
            created_at: Timestamp::from_micros(NOW),
            updated_at: Timestamp::from_micros(NOW),
            last_paused_at: None,
            start_at: None,
            end_at: None,
            query: None,
            schema: None,
        };
        assert!(weir_store::exports::create(app.store(), &row, &[]).await.unwrap());
    }
    let cost = async |offset: usize| {
        let path = format!("{}?limit=100&offset={offset}", path(&app));
        let mut best = u128::MAX;
        for _ in 0..10 {
            let begun = Instant::now();
            let answer = owner.get(&path).await;
            best = best.min(begun.elapsed().as_micros());
            assert_eq!(answer.json()["results"].as_array().unwrap().len(), 100);
        }
        best
    };
    let (first, tenth) = (cost(0).await, cost(900).await);
    assert!(tenth < 2 * first + 2_000, "first page {first} µs, tenth {tenth} µs");
}
