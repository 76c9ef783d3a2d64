//! GET `…/pipeline_transformation_configs/{id}/logs/`.

use super::*;
use weir_model::PluginConfigId;
use weir_model::plugin_configs::{LogLevel, LogSource};
use weir_store::plugin_runtime::logs::{self, Line};

use crate::web::{page, session};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_newest_first() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let path = format!("{one}logs/");
    let answer = owner.get(&path).await;
    let nothing = json!({"count": 0, "next": null, "previous": null, "results": []});
    assert_eq!((answer.status, answer.json()), (200, nothing));

    let line = |message: &str| Line {
        config: PluginConfigId(config["id"].as_i64().unwrap()),
        at: clock.now(),
        source: LogSource::Console,
        level: LogLevel::Warn,
        message: message.to_owned(),
    };
    logs::append(app.store(), &[line("one"), line("two"), line("three")]).await.unwrap();
    let first = owner.get(&format!("{path}?limit=2")).await.json();
    assert_eq!(first["count"], 3);
    let mut newest = first["results"][0].clone();
    let keys = ["id", "instance_id"].map(|key| newest[key].take());
    assert!(keys.iter().all(Value::is_string), "{keys:?}");
    assert_eq!(
        newest,
        json!({
            "id": null, "instance_id": null, "team_id": app.project(), "plugin_id": plugin,
            "plugin_config_id": config["id"], "timestamp": config["created_at"],
            "source": "CONSOLE", "type": "WARN", "message": "three",
        })
    );
    let next = first["next"].as_str().unwrap();
    let next = &next[next.find("/api/").unwrap()..];
    let second = owner.get(next).await.json();
    let messages = |page: &Value| -> Vec<Value> {
        page["results"].as_array().unwrap().iter().map(|line| line["message"].clone()).collect()
    };
    assert_eq!(
        (messages(&first), messages(&second)),
        (vec![json!("three"), json!("two")], vec![json!("one")])
    );
    assert_not_found(&owner.get(&path.replace("/logs/", "9/logs/")).await);

    let cookie = session(&app).await;
    let file = format!("/_csv/projects/{}/plugins/{}/log", app.project(), config["id"]);
    let text = page(&app, &file, &cookie).await.text();
    let lines = text.lines().skip(1);
    let messages: Vec<&str> = lines.filter_map(|line| line.rsplit(',').next()).collect();
    assert_eq!(messages, ["\"three\"", "\"two\"", "\"one\""], "{text}");
    assert_eq!(page(&app, &file.replace("/log", "9/log"), &cookie).await.status, 404);
}
