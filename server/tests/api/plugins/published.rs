//! Published third-party plugins run unchanged. They are installed by the address of
//! their package, from archives as npm has them.

use serde_json::{Value, json};
use weir_testkit::servers::Npm;

use super::running::{Instance, Project, event, ok, only};

/// An instance that uses the stand-in as its registry.
async fn start() -> (Instance, Npm) {
    let npm = Npm::start().await;
    let url = npm.url();
    let instance = Instance::with(
        |config| config.geoip_database = places(),
        |options| options.plugins.origins.npm = url,
    )
    .await;
    (instance, npm)
}

/// A location database with invented locations for documentation addresses.
fn places() -> std::path::PathBuf {
    std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crates/ingest/tests/places.mmdb")
}

/// Installs a package and enables it, and returns the record.
async fn installed(instance: &Instance, package: &str, config: &Value) -> Value {
    let group =
        format!("/api/organizations/{}/pipeline_destinations/", instance.app.organization());
    let url = format!("https://www.npmjs.com/package/{package}");
    let record = ok(201, &instance.owner.post(&group, &json!({"url": url})).await);
    assert_eq!(record["tag"], "0.0.7", "{record}");
    instance.enabled(&instance.project(), &record["id"], 1, config).await;
    record
}

/// Sends events through the plugin, again and again until `wanted`, because an enabled
/// config takes effect after a moment.
async fn through(
    instance: &Instance,
    project: &Project,
    name: &str,
    properties: &Value,
    wanted: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    for _ in 0..100 {
        let sent = event(name, properties.clone());
        instance.send(project, std::slice::from_ref(&sent)).await;
        let events = instance.stored(project).await;
        let same = events.into_iter().filter(|event| event["uuid"] == sent["uuid"]);
        let found: Vec<Value> = same.collect();
        if wanted(&found) {
            return found;
        }
    }
    unreachable!("{name} never came out as wanted")
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_flattened() {
    let (instance, _npm) = start().await;
    let record = installed(&instance, "@posthog/property-flattener-plugin", &json!({})).await;
    assert_eq!(record["name"], "Property Flattener Plugin");
    assert_eq!(record["capabilities"]["methods"], json!(["processEvent"]));
    assert_eq!(record["config_schema"]["separator"]["default"], "__");
    let properties = json!({
        "product": {"name": "AZ12", "size": {"number": 12, "gender": "M"}}, "list": ["a", {"b": 1}],
        "$set": {"address": {"city": "Berlin"}},
    });
    let is_flat =
        |found: &[Value]| found.iter().any(|event| event["properties"]["product__name"] == "AZ12");
    let events = through(&instance, &instance.project(), "purchase", &properties, is_flat).await;
    let found = &only(&events, "purchase")["properties"];
    assert_eq!(found["product"], properties["product"]);
    assert_eq!(found["product__size__number"], 12);
    assert_eq!(found["product__size__gender"], "M");
    assert_eq!(found["list__1__b"], 1);
    let person = &only(&events, "purchase")["person"]["properties"];
    assert_eq!(person["address__city"], "Berlin", "{person}");
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_filtered() {
    let (instance, _npm) = start().await;
    let config = json!({"properties": "secret,card.number,$ip"});
    installed(&instance, "@posthog/property-filter-plugin", &config).await;
    let properties = json!({
        "secret": "s", "card": {"number": "4242", "kind": "debit"}, "$ip": "203.0.113.7", "kept": 1,
    });
    let is_filtered =
        |found: &[Value]| found.iter().any(|event| event["properties"].get("secret").is_none());
    let events = through(&instance, &instance.project(), "paid", &properties, is_filtered).await;
    let found = &only(&events, "paid")["properties"];
    assert_eq!(found["card"], json!({"kind": "debit"}));
    assert_eq!(found["kept"], 1);
    for gone in ["$ip", "$geoip_city_name"] {
        assert_eq!(found.get(gone), None, "{gone}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_taken_apart() {
    let (instance, _npm) = start().await;
    let config = json!({"properties": "app_version, other"});
    let record = installed(&instance, "@posthog/semver-flattener-plugin", &config).await;
    assert_eq!(record["config_schema"]["properties"]["required"], true);
    let properties = json!({"app_version": "22.7.1-beta.2+exp.sha"});
    let is_apart =
        |found: &[Value]| found.iter().any(|event| event["properties"]["app_version__major"] == 22);
    let events = through(&instance, &instance.project(), "opened", &properties, is_apart).await;
    let found = &only(&events, "opened")["properties"];
    assert_eq!(
        (&found["app_version__minor"], &found["app_version__patch"]),
        (&json!(7), &json!(1))
    );
    assert_eq!(
        (&found["app_version__preRelease"], &found["app_version__build"]),
        (&json!("beta.2"), &json!("exp.sha"))
    );
    assert_eq!(found["app_version"], "22.7.1-beta.2+exp.sha");
    assert_eq!(found.get("other__major"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_follow_one_pattern() {
    let (instance, _npm) = start().await;
    let config = json!({"defaultNamingConvention": "snake_case"});
    installed(&instance, "@posthog/taxonomy-plugin", &config).await;
    let is_named =
        |found: &[Value]| found.iter().any(|event| event["event"] == "order_placed_today");
    let events =
        through(&instance, &instance.project(), "orderPlacedToday", &json!({}), is_named).await;
    assert_eq!(events.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_located() {
    let (instance, _npm) = start().await;
    let record = installed(&instance, "@posthog/geoip-plugin", &json!({})).await;
    assert_eq!((&record["name"], &record["config_schema"]), (&json!("GeoIP"), &json!({})));
    // Weir also locates addresses. It does not set this property.
    let properties = json!({"$ip": "203.0.113.7"});
    let is_located = |found: &[Value]| {
        let of = |event: &Value| event["person"]["properties"]["$geoip_city_name"].clone();
        found.iter().any(|event| of(event) == "Weirhaven" && is_by_plugin(event))
    };
    let events = through(&instance, &instance.project(), "visited", &properties, is_located).await;
    let found = only(&events, "visited");
    assert_eq!(found["properties"]["$geoip_country_code"], "WR");
    assert_eq!(found["properties"]["$geoip_latitude"], 53.25);
    assert_eq!(found["properties"]["$geoip_subdivision_1_name"], "Upper Weir");
    let first = &found["person"]["properties"]["$initial_geoip_country_code"];
    assert_eq!(first, "WR", "{found}");
}

/// For an unknown address the plugin sets empty person properties. Weir sets none.
fn is_by_plugin(event: &Value) -> bool {
    event["properties"]["$set"].as_object().is_some_and(|set| set.contains_key("$geoip_city_name"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_looked_for_again_and_upgraded() {
    let (instance, _npm) = start().await;
    let record = installed(&instance, "@posthog/taxonomy-plugin", &json!({})).await;
    let path = format!(
        "/api/organizations/{}/pipeline_destinations/{}/",
        instance.app.organization(),
        record["id"]
    );
    let checked = ok(200, &instance.owner.get(&format!("{path}check_for_updates/")).await);
    assert_eq!(checked["latest_tag"], "0.0.7");
    let upgraded = ok(200, &instance.owner.post(&format!("{path}upgrade/"), &json!({})).await);
    assert_eq!((&upgraded["tag"], &upgraded["name"]), (&json!("0.0.7"), &json!("Taxonomy Plugin")));
    let sources = ok(200, &instance.owner.get(&format!("{path}source/?raw=true")).await);
    let text = sources["index.js"].as_str().or_else(|| sources["index.ts"].as_str());
    assert!(text.is_some_and(|text| text.contains("processEventBatch")), "{sources}");
    // A second time it belongs to the organization already. A package that npm lacks is
    // not a plugin.
    let group =
        format!("/api/organizations/{}/pipeline_destinations/", instance.app.organization());
    for package in ["@posthog/taxonomy-plugin", "nobody-has-this"] {
        let url = format!("https://www.npmjs.com/package/{package}");
        let answer = instance.owner.post(&group, &json!({"url": url})).await;
        let (status, _, _, _, attr) = answer.error();
        assert_eq!(status, 400, "{package}: {answer:?}");
        assert!(attr.is_none_or(|attr| attr == "url"));
    }
}
