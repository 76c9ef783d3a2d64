//! Code that runs in visited pages: in the settings of browser libraries, and at
//! `/site_app/<config>/<token>/<hash>/`.

use super::*;
use weir_model::plugins::PluginsAccess;

const SITE: &str = "export function inject({ config, posthog }) { document.title = config.title }";

/// The apps in the settings of the project.
async fn listed(app: &TestApp) -> Value {
    let settings = app.anonymous().get(&format!("/array/{}/config", app.project_key())).await;
    assert_eq!(settings.status, 200, "{:?}", settings.body);
    settings.json()["siteApps"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enabled_app_is_listed_and_served() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    assert_eq!(listed(&app).await, Value::Null);
    let plugin = written(&app, &owner, &json!({"site.ts": SITE})).await;
    let schema = json!({"config_schema": [
        {"key": "title", "type": "string"}, {"key": "token", "type": "string", "secret": true},
    ]});
    let record =
        format!("/api/organizations/{}/pipeline_frontend_apps/{plugin}/", app.organization());
    assert_eq!(owner.patch(&record, &schema).await.status, 200);
    // A setting that the plugin does not declare may be a secret, such as a key.
    let config = json!({"title": "Fresh </script> tea", "token": "canary", "own": "canary"});
    let body = json!({"plugin": plugin, "order": 1, "enabled": true, "config": config});
    let (config, one) = made(&app, &owner, &body).await;

    let apps = listed(&app).await;
    let [named] = apps.as_array().unwrap().as_slice() else { panic!("{apps}") };
    assert_eq!(
        (&named["type"], &named["id"]),
        (&json!("site_app"), &json!(config["id"].to_string()))
    );
    let url = named["url"].as_str().unwrap();
    assert!(
        url.starts_with(&format!("/site_app/{}/", config["id"])) && url.ends_with('/'),
        "{url}"
    );
    let get = app.anonymous().call(Method::GET, url).header("origin", "https://shop.example");
    let script = get.send().await;
    assert_eq!(
        (script.status, script.header("content-type")),
        (200, Some("application/javascript"))
    );
    assert_eq!(script.header("access-control-allow-origin"), Some("https://shop.example"));
    assert_eq!(script.header("cache-control"), Some("public, max-age=31536000, immutable"));
    let text = String::from_utf8_lossy(&script.body).into_owned();
    assert!(text.contains("Fresh \\u003c/script> tea") && text.contains("inject"), "{text}");
    assert!(text.contains(&format!("__$$ph_site_app_{}", config["id"])), "{text}");
    assert!(!text.contains("canary"), "{text}");

    // Older libraries use another path, and the script has the same settings.
    let question = json!({"token": app.project_key(), "distinct_id": "ada"});
    for path in ["/decide/?v=3", "/flags/?v=2&config=true"] {
        let answer = app.anonymous().post(path, &question).await;
        assert_eq!(answer.json()["siteApps"], apps, "{path}");
    }

    // A change creates a new address. The old one returns the newest text.
    let changed = owner.patch(&one, &json!({"config": {"title": "Mint", "token": "canary"}})).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let newer = listed(&app).await;
    assert_ne!(newer[0]["url"], apps[0]["url"]);
    let script = app.anonymous().get(url).await;
    assert_eq!(script.header("cache-control"), Some("public, max-age=60"));
    assert!(String::from_utf8_lossy(&script.body).contains("Mint"));

    // A disabled app is gone.
    owner.patch(&one, &json!({"enabled": false})).await;
    assert_eq!(listed(&app).await, Value::Null);
    assert_eq!(app.anonymous().get(url).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_where_the_organization_may_not_configure_plugins() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let plugin = written(&app, &owner, &json!({"site.ts": SITE})).await;
    made(&app, &owner, &json!({"plugin": plugin, "order": 1, "enabled": true})).await;
    let url = listed(&app).await[0]["url"].as_str().unwrap().to_owned();
    assert_eq!(app.anonymous().get(&url).await.status, 200);
    let organizations = &app.app().services.organizations;
    let (home, none) = (app.organization(), PluginsAccess::None);
    assert!(organizations.set_plugins_access(home, none, clock.now()).await.unwrap());
    assert_eq!(app.anonymous().get(&url).await.status, 404);
    assert_eq!(listed(&app).await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_cannot_be_made_up() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = written(&app, &owner, &json!({"site.ts": SITE})).await;
    made(&app, &owner, &json!({"plugin": plugin, "order": 1, "enabled": true})).await;
    let url = listed(&app).await[0]["url"].as_str().unwrap().to_owned();
    let mut words: Vec<&str> = url.split('/').collect();
    words[3] = "token";
    for bad in [words.join("/"), "/site_app/999/token/hash/".to_owned(), "/site_app/1".to_owned()] {
        assert_eq!(app.anonymous().get(&bad).await.status, 404, "{bad}");
    }
    let posted = app.anonymous().post(&url, &json!({})).await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
}
