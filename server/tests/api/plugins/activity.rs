//! GET `…/{group}/activity/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_newest_first() {
    each_group(async |fixture| {
        let path = format!("{}activity/", fixture.path());
        let empty = fixture.owner.get(&path).await.json();
        let none = json!({
            "results": [], "next": null, "previous": null, "count": 0, "total_count": 0,
        });
        assert_eq!(rest(&empty, &nothing()), none);
        let (plugin, one) = fixture.made(&json!({"name": "Tea"})).await;
        fixture.owner.patch(&one, &json!({"name": "Green tea"})).await;
        // Plugins of other organizations and other objects have no entries here.
        let elsewhere = fixture.elsewhere().await;
        made(&elsewhere.caller, &elsewhere.path, &json!({"name": "Theirs"})).await;

        let answer = fixture.owner.get(&path).await.json();
        assert_eq!(answer["id"], plugin["id"]);
        assert_eq!((&answer["count"], &answer["total_count"]), (&json!(2), &json!(2)));
        let mut newest = answer["results"][0].clone();
        let keys = ["id", "created_at"].map(|key| newest[key].take());
        assert!(keys.iter().all(Value::is_string), "{keys:?}");
        assert_eq!(
            newest,
            json!({
                "id": null, "created_at": null,
                "user": {"first_name": "Ada", "email": "ada@mail.example", "is_system": false},
                "activity": "updated", "scope": "Plugin", "item_id": plugin["id"].to_string(),
                "detail": {
                    "name": "Green tea", "merge": null, "trigger": null, "type": null,
                    "short_id": null,
                    "changes": [{
                        "type": "Plugin", "action": "changed", "field": "name",
                        "before": "Tea", "after": "Green tea",
                    }],
                },
            })
        );
        assert_eq!(answer["results"][1]["activity"], "installed");
        let raw = fixture.owner.get(&format!("{path}?raw=true")).await.json();
        let keys: Vec<&String> = raw.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 4, "{keys:?}");
        assert_eq!(raw["results"], answer["results"]);
        assert_eq!(raw["total_count"], 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_values_by_their_hash() {
    each_group(async |fixture| {
        let (_, one) = fixture.made(&json!({"metrics": {"cups": "sum"}})).await;
        let metrics = json!({"cups": "x".repeat(5000)});
        assert_eq!(fixture.owner.patch(&one, &json!({"metrics": metrics})).await.status, 200);
        let answer = fixture.owner.get(&format!("{}activity/", fixture.path())).await.json();
        let change = &answer["results"][0]["detail"]["changes"][0];
        assert_eq!(change["before"], json!({"cups": "sum"}));
        let hash = change["after"].as_str().unwrap();
        assert_eq!((hash.len(), &hash[..7]), (71, "sha256:"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_at_a_time() {
    each_group(async |fixture| {
        let path = format!("{}activity/", fixture.path());
        for _ in 0..12 {
            fixture.made(&json!({})).await;
        }
        let page = async |query: &str| fixture.owner.get(&format!("{path}{query}")).await.json();
        let shown = |answer: &Value| answer["results"].as_array().unwrap().len();
        let first = page("").await;
        assert_eq!((shown(&first), &first["count"]), (10, &json!(12)));
        let next = first["next"].as_str().unwrap();
        assert!(next.starts_with("http://") && next.ends_with(&format!("{path}?page=2")), "{next}");
        assert_eq!(first["previous"], Value::Null);
        let second = page("?page=2").await;
        assert_eq!((shown(&second), &second["next"]), (2, &Value::Null));
        assert!(second["previous"].as_str().unwrap().ends_with("?page=1"));
        assert_eq!(shown(&page("?limit=5&page=3").await), 2);
        assert_eq!(shown(&page("?page=9").await), 0);
        // Invalid numbers are ignored.
        assert_eq!(page("?limit=0&page=-1").await["results"], first["results"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configs_of_the_current_project_too() {
    each_group(async |fixture| {
        let path = format!("{}activity/", fixture.path());
        let (plugin, _) = fixture.made(&json!({"name": "Tea"})).await;
        configured(&fixture.owner, &json!(fixture.app.project()), &plugin, false).await;
        let scopes = async || -> Vec<Value> {
            let answer = fixture.owner.get(&path).await.json();
            let results = answer["results"].as_array().unwrap().iter();
            results.map(|entry| entry["scope"].clone()).collect()
        };
        assert!(scopes().await.contains(&json!("PluginConfig")));
        // The new project becomes the current one.
        let made = fixture.owner.post("/api/projects/", &json!({"name": "Other"})).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        assert_eq!(scopes().await, [json!("Plugin")]);
    })
    .await;
}
