//! The rights on plugins: the rows of PLG-4 and PLG-5.

use super::*;
use http::Method;
use weir_model::organizations::Level;
use weir_service::plugins::{
    MAY_NOT_OFFER, NO_ACCESS, OF_OTHER_ORGANIZATION, STILL_OFFERED, URL_TAKEN,
};

/// Reads about all plugins.
const READS: [&str; 4] = ["activity/", "exports_unsubscribe_configs/", "repository/", "unused/"];

/// The four actions on one plugin, with a body if they have one.
fn actions() -> Vec<(Method, &'static str, Option<Value>)> {
    vec![
        (Method::GET, "check_for_updates/", None),
        (Method::GET, "source/", None),
        (Method::PATCH, "update_source/", Some(json!({"a.js": "1"}))),
        (Method::POST, "upgrade/", None),
    ]
}

async fn act(caller: &Caller, plugin: &str, action: &(Method, &str, Option<Value>)) -> Answer {
    let call = caller.call(action.0.clone(), &format!("{plugin}{}", action.1));
    match &action.2 {
        Some(body) => call.json(body).send().await,
        None => call.send().await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_level_0_not_even_lists() {
    each_group(async |fixture| {
        let (_, one) = fixture.made(&json!({"name": "Tea"})).await;
        fixture.allow(PluginsAccess::None).await;
        let path = fixture.path();
        assert_forbidden(&fixture.owner.get(&path).await, NO_ACCESS);
        assert_forbidden(&fixture.owner.get(&one).await, NO_ACCESS);
        for read in READS {
            assert_forbidden(&fixture.owner.get(&format!("{path}{read}")).await, NO_ACCESS);
        }
        assert_forbidden(&fixture.owner.post(&path, &json!({"name": []})).await, NO_ACCESS);
        assert_forbidden(&fixture.owner.patch(&one, &json!({"name": []})).await, NO_ACCESS);
        assert_forbidden(&fixture.owner.delete(&one).await, NO_ACCESS);
        for action in actions() {
            assert_forbidden(&act(&fixture.owner, &one, &action).await, NO_ACCESS);
        }
        let organization = format!("/api/organizations/{}/", fixture.app.organization());
        let shown = fixture.owner.get(&organization).await.json();
        assert_eq!(shown["plugins_access_level"], 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_level_3_plugins_are_seen_and_not_changed() {
    each_group(async |fixture| {
        let (_, one) = fixture.made(&json!({"name": "Tea"})).await;
        fixture.allow(PluginsAccess::Config).await;
        let path = fixture.path();
        assert_eq!(fixture.owner.get(&path).await.status, 200);
        assert_eq!(fixture.owner.get(&one).await.status, 200);
        for read in READS {
            assert_eq!(fixture.owner.get(&format!("{path}{read}")).await.status, 200);
        }
        assert_forbidden(&fixture.owner.post(&path, &json!({"name": []})).await, NO_ACCESS);
        assert_forbidden(&fixture.owner.patch(&one, &json!({"name": []})).await, NO_ACCESS);
        assert_forbidden(&fixture.owner.delete(&one).await, NO_ACCESS);
        // Only users who may change the source can read it.
        for action in actions() {
            assert_forbidden(&act(&fixture.owner, &one, &action).await, NO_ACCESS);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_level_6_own_plugins_are_changed_and_not_offered() {
    each_group(async |fixture| {
        fixture.allow(PluginsAccess::Install).await;
        let (_, one) = fixture.made(&json!({"name": "Tea", "is_global": false})).await;
        assert_eq!(fixture.owner.patch(&one, &json!({"name": "x"})).await.status, 200);
        for action in actions() {
            assert_eq!(act(&fixture.owner, &one, &action).await.status, 200);
        }
        let global = |is_global: bool| json!({"is_global": is_global});
        assert_forbidden(&fixture.owner.post(&fixture.path(), &global(true)).await, MAY_NOT_OFFER);
        // Any use of the field, before fields are validated.
        for is_global in [true, false] {
            assert_forbidden(&fixture.owner.patch(&one, &global(is_global)).await, MAY_NOT_OFFER);
        }
        let body = json!({"is_global": "perhaps", "name": []});
        assert_forbidden(&fixture.owner.patch(&one, &body).await, MAY_NOT_OFFER);
        assert_eq!(fixture.owner.get(&one).await.json()["is_global"], false);
        assert_eq!(fixture.owner.delete(&one).await.status, 204);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_level_9_staff_offers_plugins_to_all() {
    each_group(async |fixture| {
        let (plugin, one) = fixture.made(&json!({"name": "Tea", "is_global": true})).await;
        assert_eq!(plugin["is_global"], true);
        let answer = fixture.owner.patch(&one, &json!({"is_global": false})).await;
        assert_eq!((answer.status, &answer.json()["is_global"]), (200, &json!(false)));
        // Every user can create an organization, and each begins with level 9. That alone
        // does not give its code access to the events of others.
        let elsewhere = fixture.elsewhere().await;
        let (_, theirs) = made(&elsewhere.caller, &elsewhere.path, &json!({"name": "x"})).await;
        let offered = json!({"is_global": true});
        assert_forbidden(&elsewhere.caller.post(&elsewhere.path, &offered).await, MAY_NOT_OFFER);
        assert_forbidden(&elsewhere.caller.patch(&theirs, &offered).await, MAY_NOT_OFFER);
        let same = json!({"name": "y", "is_global": false});
        assert_eq!(elsewhere.caller.patch(&theirs, &same).await.status, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_offered_is_changed_by_staff_only() {
    each_group(async |fixture| {
        let (plugin, one) = fixture.made(&json!({"name": "Tea", "is_global": true})).await;
        let update = format!("{one}update_source/");
        let member = fixture.app.member("grace", Level::Owner).await.key(&["*"]).await;
        for body in [json!({"name": "x"}), json!({"name": []}), json!({"is_global": false})] {
            assert_forbidden(&member.patch(&one, &body).await, MAY_NOT_OFFER);
        }
        assert_forbidden(&member.patch(&update, &json!({"tea.txt": "1"})).await, MAY_NOT_OFFER);
        assert_forbidden(&member.delete(&one).await, MAY_NOT_OFFER);
        assert_eq!(fixture.owner.get(&one).await.json(), plugin);
        assert_eq!(member.get(&format!("{one}source/?raw=true")).await.json(), json!({}));
        // Staff may do it, and then every user there may.
        let source = fixture.owner.patch(&update, &json!({"tea.txt": "1"})).await;
        assert_eq!(source.status, 200, "{:?}", source.body);
        let local = fixture.owner.patch(&one, &json!({"is_global": false})).await;
        assert_eq!(local.status, 200, "{:?}", local.body);
        assert_eq!(member.patch(&one, &json!({"name": "x"})).await.status, 200);
        assert_eq!(member.patch(&update, &json!({"tea.txt": "2"})).await.status, 200);
        assert_eq!(member.delete(&one).await.status, 204);
    })
    .await;
}

/// The code runs on their events, with their secrets.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_still_use_is_changed_by_staff_only() {
    each_group(async |fixture| {
        let (plugin, one) = fixture.made(&json!({"name": "Tea", "is_global": true})).await;
        let elsewhere = fixture.elsewhere().await;
        let configs =
            format!("/api/projects/{}/pipeline_transformation_configs/", elsewhere.project);
        let body = json!({"plugin": plugin["id"], "order": 1});
        let config = elsewhere.caller.post(&configs, &body).await;
        assert_eq!(config.status, 201, "{:?}", config.body);
        let local = fixture.owner.patch(&one, &json!({"is_global": false})).await;
        assert_eq!(local.status, 200, "{:?}", local.body);

        let update = format!("{one}update_source/");
        let member = fixture.app.member("grace", Level::Owner).await.key(&["*"]).await;
        assert_forbidden(&member.patch(&one, &json!({"name": "x"})).await, MAY_NOT_OFFER);
        assert_forbidden(&member.patch(&update, &json!({"tea.txt": "1"})).await, MAY_NOT_OFFER);
        assert_forbidden(&member.delete(&one).await, MAY_NOT_OFFER);
        assert_eq!(fixture.owner.patch(&update, &json!({"tea.txt": "1"})).await.status, 200);

        let theirs = format!("{configs}{}/", config.json()["id"]);
        assert_eq!(elsewhere.caller.delete(&theirs).await.status, 204);
        assert_eq!(member.patch(&update, &json!({"tea.txt": "2"})).await.status, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_offered_is_read_by_all_and_changed_by_its_owner() {
    each_group(async |fixture| {
        let (plugin, one) = fixture.made(&json!({"name": "Tea", "is_global": true})).await;
        let elsewhere = fixture.elsewhere().await;
        let theirs = elsewhere.of(&plugin);
        assert_eq!(elsewhere.caller.get(&theirs).await.json(), plugin);
        assert_forbidden(
            &elsewhere.caller.patch(&theirs, &json!({"name": []})).await,
            OF_OTHER_ORGANIZATION,
        );
        assert_forbidden(&elsewhere.caller.delete(&theirs).await, OF_OTHER_ORGANIZATION);
        // For actions it does not exist.
        for action in actions() {
            assert_not_found(&act(&elsewhere.caller, &theirs, &action).await);
        }
        assert_eq!(fixture.owner.get(&one).await.json(), plugin);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_offered_is_not_deleted() {
    each_group(async |fixture| {
        let (_, one) = fixture.made(&json!({"name": "Tea", "is_global": true})).await;
        assert_invalid(&fixture.owner.delete(&one).await, None, "invalid_input", STILL_OFFERED);
        assert_eq!(fixture.owner.get(&one).await.status, 200);
        fixture.owner.patch(&one, &json!({"is_global": false})).await;
        assert_eq!(fixture.owner.delete(&one).await.status, 204);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_twice_and_one_that_names_nothing() {
    each_group(async |fixture| {
        let url = |url: &str| json!({"url": url});
        fixture.made(&url("https://github.com/acme/tea?private_token=t")).await;
        let again = url("https://github.com/acme/tea");
        let answer = fixture.owner.post(&fixture.path(), &again).await;
        assert_invalid(&answer, None, "invalid_input", URL_TAKEN);
        let answer = fixture.owner.post(&fixture.path(), &url("https://tea.example/")).await;
        let (status, _, code, _, attr) = answer.error();
        assert_eq!((status, code.as_str(), attr.as_deref()), (400, "invalid_input", Some("url")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn getting_needs_read_and_everything_else_write() {
    each_group(async |fixture| {
        let (_, one) = fixture.made(&json!({"name": "Tea"})).await;
        let reader = fixture.app.owner().key(&["plugin:read"]).await;
        let writer = fixture.app.owner().key(&["plugin:write"]).await;
        let lacking = "API key missing required scope 'plugin:write'";
        for action in actions() {
            let answer = act(&reader, &one, &action).await;
            if action.0 == Method::GET {
                assert_eq!(answer.status, 200);
            } else {
                assert_forbidden(&answer, lacking);
            }
            assert_eq!(act(&writer, &one, &action).await.status, 200);
        }
        for read in READS {
            assert_eq!(reader.get(&format!("{}{read}", fixture.path())).await.status, 200);
        }
        assert_forbidden(&reader.delete(&one).await, lacking);
    })
    .await;
}
