//! The rights of an organization on plugins decide its rights on configs (PLG-17).

use super::*;
use weir_model::plugins::PluginsAccess;

async fn set(app: &TestApp, access: PluginsAccess) {
    let organizations = &app.app().services.organizations;
    let now = app.app().services.clock.now();
    assert!(organizations.set_plugins_access(app.organization(), access, now).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_configure_access_nothing_is_visible_or_changeable() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (_, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    set(&app, PluginsAccess::None).await;
    let list = owner.get(&path(&app)).await;
    let nothing = json!({"count": 0, "next": null, "previous": null, "results": []});
    assert_eq!((list.status, list.json()), (200, nothing));
    for read in [one.clone(), format!("{one}frontend/"), format!("{one}logs/")] {
        assert_not_found(&owner.get(&read).await);
    }
    let body = json!({"plugin": plugin, "order": 1});
    for answer in [
        owner.post(&path(&app), &body).await,
        owner.patch(&one, &body).await,
        owner.delete(&one).await,
        owner.post(&format!("{one}job/"), &json!({})).await,
        owner.patch(&format!("{}rearrange/", path(&app)), &json!({"orders": {}})).await,
    ] {
        let detail = "This organization may not configure plugins.";
        assert_invalid(&answer, None, "invalid_input", detail);
    }

    // The right to configure is enough, without the right to install.
    set(&app, PluginsAccess::Config).await;
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 1);
    made(&app, &owner, &body).await;
    assert_eq!(owner.patch(&one, &json!({"enabled": true})).await.status, 200);
    assert_eq!(owner.delete(&one).await.status, 204);
}
