//! Plugins and their configs through the web app: its functions, its pages, and forms
//! with files.

use http::Method;
use weir_testkit::Call;

use super::hosts::{tea, tea_of, zip};
use super::*;
use crate::web::{page, session};

/// A browser in which the owner is signed in.
struct Browser<'a> {
    fixture: &'a GroupFixture,
    cookie: String,
}

impl<'a> Browser<'a> {
    async fn of(fixture: &'a GroupFixture) -> Self {
        Self { fixture, cookie: session(&fixture.app).await }
    }

    fn call(&self, path: &str) -> Call {
        let call = self.fixture.app.anonymous().call(Method::POST, path);
        call.header("cookie", &self.cookie).header("sec-fetch-site", "same-origin")
    }

    async fn function(&self, name: &str, body: &str) -> Answer {
        let call = self.call(&format!("/_fn/{name}"));
        let form = "application/x-www-form-urlencoded";
        call.header("content-type", form).body(body.to_owned()).send().await
    }

    /// Sends a form that fails, as a browser without scripts. Returns the target of the
    /// redirect, and the cookie with the entered values.
    async fn fails(&self, name: &str, fields: &[(&str, &str)]) -> (String, String) {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let call = self.call(&format!("/_fn/{name}")).header("accept", "text/html");
        let call = call.header("content-type", "application/x-www-form-urlencoded").body(body);
        let answer = call.send().await;
        let location = answer.header("location").unwrap();
        assert!(location.contains("__err="), "{name} {location}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
        (location.to_owned(), cookie.to_owned())
    }

    /// Sends a form with a file.
    async fn upload(&self, form: &str, fields: &[(&str, &str)], name: &str, file: &[u8]) -> Answer {
        let mut body = Vec::new();
        for (name, text) in fields {
            let part =
                format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
            body.extend(part.bytes());
        }
        let head = format!(
            "--b\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"tea.zip\"\r\n\r\n"
        );
        body.extend(head.bytes());
        body.extend(file);
        body.extend(b"\r\n--b--\r\n");
        let call = self.call(&format!("/_upload/{form}"));
        call.header("content-type", "multipart/form-data; boundary=b").body(body).send().await
    }

    async fn opens(&self, path: &str, expected: u16) -> String {
        let answer = page(&self.fixture.app, path, &self.cookie).await;
        assert_eq!(answer.status, expected, "{path}");
        answer.text()
    }

    fn organization(&self) -> String {
        self.fixture.app.organization().to_string()
    }

    fn project(&self) -> String {
        self.fixture.app.project().to_string()
    }

    /// Adds a plugin of the catalogue to the project, and returns the config's id.
    async fn adds(&self, entry: &str, settings: &str) -> String {
        let (organization, project) = (self.organization(), self.project());
        let body =
            format!("organization={organization}&plugin_list=transformations&url=inline:{entry}");
        let answer = self.function("install_plugin", &body).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let plugin = answer.header("location").unwrap().rsplit('/').next().unwrap();
        let body = format!("project={project}&plugin={plugin}&name=&enabled=on&{settings}");
        let answer = self.function("create_plugin_config", &body).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        answer.header("location").unwrap().rsplit('/').next().unwrap().to_owned()
    }

    async fn configs(&self) -> Vec<Value> {
        let path = format!(
            "/api/projects/{}/pipeline_transformation_configs/?expand=object",
            self.project()
        );
        self.fixture.owner.get(&path).await.json()["results"].as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transformations_are_added_changed_and_put_in_order() {
    let fixture = fixture(GROUPS[0]).await;
    let browser = Browser::of(&fixture).await;
    let project = browser.project();
    let first = browser.adds("bot-filter", "").await;
    let settings = "settings[0][key]=properties&settings[0][value]=card";
    let second = browser.adds("property-filter", settings).await;
    let all = browser.configs().await;
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[1]["config"]["properties"], &all[1]["enabled"]),
        (&json!("card"), &json!(true))
    );
    let policies = all.iter().map(|config| config["on_failure"].as_str().unwrap());
    assert_eq!(policies.collect::<Vec<_>>(), ["store_unchanged", "hold_then_drop"]);
    let root = format!("/projects/{project}/transformations");
    let list = browser.opens(&root, 200).await;
    assert!(list.contains("Bot filter") && list.contains("Property filter"));
    browser.opens(&format!("{root}/{first}"), 200).await;
    let page = browser.opens(&format!("{root}/{second}?sample=newest"), 200).await;
    assert!(page.contains("On failure") && page.contains("hold_then_drop"), "{page}");
    let body = format!("project={project}&config={second}&name=Property+filter&{settings}");
    let body = format!("{body}&on_failure=store_unchanged");
    assert_eq!(browser.function("save_plugin_config", &body).await.status, 200);
    assert_eq!(browser.configs().await[1]["on_failure"], "store_unchanged");
    browser.opens(&format!("{root}/try?sample=newest"), 200).await;

    let body = format!("project={project}&seen={first},{second}&wanted={second},{first}");
    assert_eq!(browser.function("reorder_transformations", &body).await.status, 200);
    let late = browser.function("reorder_transformations", &body).await;
    assert_eq!(late.status, 409, "another change was faster");
    assert_eq!(browser.configs().await[0]["id"].to_string(), second);

    // An error is reported at the form's field for the setting.
    let body = format!("project={project}&config={second}&name=&settings[0][key]=properties");
    let refused =
        browser.function("save_plugin_config", &format!("{body}&settings[0][value]=")).await;
    assert_eq!(refused.status, 400);
    let text = String::from_utf8(refused.body.to_vec()).unwrap();
    assert!(text.contains("settings[0][value]"), "{text}");

    // A deleted config is restored as it was.
    let body = format!("project={project}&config={second}");
    assert_eq!(browser.function("hide_plugin_config", &body).await.status, 200);
    assert_eq!(browser.configs().await.len(), 1);
    assert_eq!(
        browser.function("restore_plugin_config", &format!("{body}&enabled=on")).await.status,
        200
    );
    assert_eq!(browser.configs().await[0]["enabled"], true);
    let untyped = browser.function("delete_plugin_config", &format!("{body}&typed_name=")).await;
    assert_ne!(untyped.status, 200);
    browser.opens(&format!("{root}/{second}"), 200).await;
    let typed = format!("{body}&typed_name=Property+filter");
    assert_eq!(browser.function("delete_plugin_config", &typed).await.status, 200);
    browser.opens(&format!("{root}/{second}"), 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_goes_with_its_name() {
    let fixture = fixture(GROUPS[0]).await;
    let browser = Browser::of(&fixture).await;
    let organization = browser.organization();
    let config = browser.adds("bot-filter", "").await;
    let plugin = browser.configs().await[0]["plugin"].to_string();
    let path = format!("/organizations/{organization}/plugins/transformations/{plugin}");
    let shown = browser.opens(&path, 200).await;
    assert!(shown.contains("The config") && shown.contains("Name of the plugin"));
    // The page can show the matching API request.
    let request = format!("/api/organizations/{organization}/pipeline_destinations/{plugin}/");
    assert!(shown.contains(&request), "{request}");
    assert_eq!(fixture.owner.get(&request).await.status, 200);

    let body = format!("organization={organization}&plugin={plugin}");
    for wrong in ["", "bot+filter", "Bot"] {
        let refused =
            browser.function("remove_plugin", &format!("{body}&typed_name={wrong}")).await;
        assert_ne!(refused.status, 200);
        assert!(String::from_utf8_lossy(&refused.body).contains("typed_name"));
    }
    assert_eq!(browser.configs().await.len(), 1);
    let typed = format!("{body}&typed_name=+Bot+filter+");
    assert_eq!(browser.function("remove_plugin", &typed).await.status, 200);
    browser.opens(&path, 404).await;
    let project = browser.project();
    browser.opens(&format!("/projects/{project}/transformations/{config}"), 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_added_by_a_form() {
    let fixture = fixture(GROUPS[0]).await;
    let browser = Browser::of(&fixture).await;
    let organization = browser.organization();
    let back = format!("/organizations/{organization}/plugins/destinations/add");
    let fields = [
        ("organization", organization.as_str()),
        ("plugin_list", "destinations"),
        ("back", back.as_str()),
    ];
    let added = browser.upload("plugin", &fields, "archive", &zip(&tea())).await;
    assert_eq!(added.status, 303, "{:?}", added.body);
    let root = format!("/organizations/{organization}/plugins/destinations/");
    let path = added.header("location").unwrap();
    assert!(path.starts_with(&root), "{path}");
    assert!(browser.opens(path, 200).await.contains("Tea"));
    assert!(
        browser
            .opens(&format!("{path}/source?file=plugin.json"), 200)
            .await
            .contains("plugin.json")
    );

    // Code of another group is added to its own group.
    let hourly = zip(&tea_of("pipeline_import_apps"));
    let added = browser.upload("plugin", &fields, "archive", &hourly).await;
    let path = added.header("location").unwrap();
    assert!(path.contains("/plugins/import-apps/"), "{path}");
    assert!(browser.opens(path, 200).await.contains("Tea"));

    for file in [&b"no archive"[..], &[]] {
        let refused = browser.upload("plugin", &fields, "archive", file).await;
        assert_eq!(refused.status, 303);
        let location = refused.header("location").unwrap();
        let begins = format!("{back}?__path=/_fn/install_plugin&__err=");
        assert!(location.starts_with(&begins), "{location}");
    }
    let large = browser.upload("plugin", &fields, "archive", &vec![0; 6 << 20]).await;
    assert_eq!(large.status, 413);

    // A request from another site, a client without a session, and a user of another
    // organization.
    let anonymous = Browser { fixture: &fixture, cookie: String::new() };
    let answer = anonymous.upload("plugin", &fields, "archive", &zip(&tea())).await;
    assert_eq!(answer.status, 303);
    assert!(answer.header("location").unwrap().starts_with("/login?next="));
    let foreign = fixture.app.anonymous().call(Method::POST, "/_upload/plugin");
    let foreign = foreign.header("cookie", &browser.cookie).header("sec-fetch-site", "cross-site");
    assert_eq!(foreign.send().await.status, 403);
    assert_eq!(fixture.owner.get(&fixture.path()).await.json()["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_attached_by_a_form() {
    let fixture = fixture(GROUPS[0]).await;
    let browser = Browser::of(&fixture).await;
    let schema = json!([{"key": "table", "type": "attachment", "name": "Table"}]);
    let (plugin, _) = fixture.made(&json!({"name": "Tea", "config_schema": schema})).await;
    let project = json!(fixture.app.project());
    let path = configured(&fixture.owner, &project, &plugin, false).await;
    let config = path.trim_end_matches('/').rsplit('/').next().unwrap();
    let (project, back) = (browser.project(), format!("/projects/{project}/plugins/{config}"));
    let fields = [
        ("project", project.as_str()),
        ("config", config),
        ("key", "table"),
        ("field", "file-0"),
        ("back", back.as_str()),
    ];
    let attached = browser.upload("attachment", &fields, "file", b"a,b").await;
    assert_eq!((attached.status, attached.header("location")), (303, Some(back.as_str())));
    assert!(browser.opens(&back, 200).await.contains("Attached: tea.zip (3 B)."));
    let large = browser.upload("attachment", &fields, "file", &vec![0; (256 << 10) + 1]).await;
    assert!(large.header("location").unwrap().contains("__err="), "{large:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn others_see_and_change_nothing() {
    let fixture = fixture(GROUPS[0]).await;
    let browser = Browser::of(&fixture).await;
    let elsewhere = fixture.elsewhere().await;
    let organization = elsewhere.path.split('/').nth(3).unwrap().to_owned();
    let project = elsewhere.project.to_string();
    for (name, body) in [
        ("list_plugins", format!("organization={organization}&plugin_list=destinations")),
        ("write_plugin", format!("organization={organization}&plugin_list=destinations&name=x")),
        ("get_plugin", format!("organization={organization}&plugin=1")),
        ("list_transformations", format!("project={project}")),
        ("reorder_transformations", format!("project={project}&seen=&wanted=")),
        ("list_plugins", format!("organization={}&plugin_list=nothing", browser.organization())),
        ("get_plugin", format!("organization={}&plugin=4711", browser.organization())),
    ] {
        assert_eq!(browser.function(name, &body).await.status, 404, "{name}");
    }
    browser.opens(&format!("/organizations/{organization}/plugins/destinations"), 404).await;
    browser.opens(&format!("/projects/{project}/transformations"), 404).await;

    // An organization that may only configure plugins sees the reason.
    fixture.allow(PluginsAccess::Config).await;
    let path = format!("/organizations/{}/plugins/destinations", browser.organization());
    let shown = browser.opens(&path, 200).await;
    assert!(shown.contains("What your organization may do with plugins does not include this."));
    let body = format!("organization={}&plugin_list=destinations&name=x", browser.organization());
    assert_eq!(browser.function("write_plugin", &body).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_comes_back_without_secrets_however_long_it_is() {
    let fixture = fixture(GROUPS[0]).await;
    let browser = Browser::of(&fixture).await;
    let organization = browser.organization();
    let back = format!("/organizations/{organization}/plugins/transformations/add");
    let at = [
        ("organization", organization.as_str()),
        ("plugin_list", "transformations"),
        ("back", back.as_str()),
    ];
    for (address, is_kept) in [
        ("https://github.com/acme", true),
        ("https://github.com/acme?private_token=canary-5512", false),
        ("https://github.com/acme?x=1&Private%5FToken=canary-5512#top", false),
        ("https://canary-5512:x@github.com/acme", false),
    ] {
        let mut fields = at.to_vec();
        fields.push(("url", address));
        let (location, kept) = browser.fails("install_plugin", &fields).await;
        assert_eq!(kept.contains("&url="), is_kept, "{kept}");
        assert!(!location.contains("canary") && !kept.contains("canary"), "{location} {kept}");
    }

    let body = format!("organization={organization}&plugin_list=transformations&name=Tea");
    let written = browser.function("write_plugin", &body).await;
    assert_eq!(written.status, 200, "{:?}", written.body);
    let source = written.header("location").unwrap();
    let plugin = source.rsplit('/').nth(1).unwrap();
    let (back, text) = (format!("{source}?file=*"), "// of leaves\n".repeat(1_000));
    let fields = [
        ("organization", organization.as_str()),
        ("plugin", plugin),
        ("back", back.as_str()),
        ("file", "no-ending"),
        ("source", text.as_str()),
    ];
    let (location, kept) = browser.fails("save_plugin_file", &fields).await;
    let with = |session: &str| Browser { fixture: &fixture, cookie: format!("{session}; {kept}") };
    let shown = with(&browser.cookie).opens(&location, 200).await;
    assert!(shown.contains(text.trim_end()), "{shown}");
    assert!(!browser.opens(&location, 200).await.contains("// of leaves"), "its time is over");
    // The same user may have signed in again. No other user sees it.
    let shown = with(&session(&fixture.app).await).opens(&location, 200).await;
    assert!(shown.contains(text.trim_end()), "{shown}");
    let shown = with("session=none").opens("/login?__err=x", 200).await;
    assert!(!shown.contains("// of leaves"), "{shown}");
}
