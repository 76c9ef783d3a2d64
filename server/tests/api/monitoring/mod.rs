//! The dashboard and the alerting rules of `docs/monitoring` against the metrics of a
//! running server.

mod promql;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use weir_model::exports::Status;
use weir_testkit::{TestApp, until};

use promql::{reads, selector};
use rules::{Alert, alerts};

const DASHBOARD: &str = include_str!("../../../../docs/monitoring/grafana.json");
const ALERTS: &str = include_str!("../../../../docs/monitoring/alerts.yml");
const GUIDE: &str = include_str!("../../../../docs/guide/monitoring.md");

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];
/// The metric that Prometheus makes for each scrape.
const UP: &str = "up";
/// Where an alert leads to. Operators replace the address of the instance.
const RUNBOOK: &str = "https://weir.example.org/help/monitoring#";

/// The values of each label of each metric.
type Exported = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn exported(page: &str) -> Exported {
    let mut exported = Exported::from([(UP.to_owned(), BTreeMap::new())]);
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (found, _value) = selector(line).unwrap();
        let labels = exported.entry(found.name).or_default();
        for condition in found.conditions {
            labels.entry(condition.label).or_default().insert(condition.value);
        }
    }
    exported
}

/// What is wrong with an expression, and with the labels that texts about it name.
fn faults(text: &str, named: &[&str], exported: &Exported) -> Vec<String> {
    let reads = match reads(text) {
        Ok(reads) => reads,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    let mut known: BTreeSet<&str> = ADDED.into();
    if reads.selectors.is_empty() {
        faults.push(format!("no metric in `{text}`"));
    }
    for selector in &reads.selectors {
        let name = &selector.name;
        let Some(labels) = exported.get(name) else {
            faults.push(format!("`{name}` is not exported"));
            continue;
        };
        known.extend(labels.keys().map(String::as_str));
        for condition in &selector.conditions {
            let label = &condition.label;
            match labels.get(label) {
                _ if ADDED.contains(&label.as_str()) => {}
                None => faults.push(format!("`{name}` has no label `{label}`")),
                // A pattern such as `5..` stands for values that are not known before.
                Some(_) if condition.value.contains('.') => {}
                Some(values) => {
                    let missing = condition.value.split('|').filter(|one| !values.contains(*one));
                    faults.extend(missing.map(|one| format!("`{name}` has no {label} `{one}`")));
                }
            }
        }
    }
    let grouped = reads.groups.iter().map(String::as_str);
    let unknown = grouped.chain(named.iter().copied()).filter(|label| !known.contains(label));
    faults.extend(unknown.map(|label| format!("no metric of `{text}` has a label `{label}`")));
    faults
}

/// Every query of the dashboard with the labels that its legend names.
fn queries(value: &Value, found: &mut Vec<(String, Vec<String>)>) {
    match value {
        Value::Object(fields) => {
            if let Some(query) = fields.get("expr").and_then(Value::as_str) {
                let legend = fields["legendFormat"].as_str().unwrap();
                let labels = legend.split("{{").skip(1);
                let labels = labels.map(|text| text.split("}}").next().unwrap().to_owned());
                found.push((query.to_owned(), labels.collect()));
            }
            fields.values().for_each(|value| queries(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

async fn started() -> TestApp {
    let listening = |config: &mut weir_server::config::Config| {
        config.metrics_listen = "127.0.0.1:0".parse().unwrap();
    };
    TestApp::start(listening, |_| {}).await.set_up().await
}

/// What a server exports after one request with an event. Only the statuses of requests are
/// not known before.
async fn exported_by_a_server() -> Exported {
    let app = started().await;
    let event = json!({"api_key": app.project_key(), "event": "seen", "distinct_id": "u"});
    assert_eq!(app.anonymous().post("/capture/", &event).await.status, 200);
    exported(&app.metrics().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_and_the_alerts_read_what_a_server_exports() {
    let exported = exported_by_a_server().await;
    let mut broken = Vec::new();
    let alerts = alerts(ALERTS).unwrap();
    assert!(alerts.len() >= 12, "the rules were found");
    for alert in &alerts {
        let faults = faults(&alert.fields["expr"], &[], &exported);
        broken.extend(faults.into_iter().map(|fault| format!("{}: {fault}", alert.name)));
    }
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    assert!(found.len() >= 30, "the queries were found");
    for (query, labels) in &found {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        broken.extend(faults(query, &labels, &exported));
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!(variables[0]["type"], "datasource");
    let instances = variables[1]["query"]["query"].as_str().unwrap();
    let instances = instances.strip_prefix("label_values(").unwrap();
    let (metric, label) = instances.trim_end_matches(')').split_once(", ").unwrap();
    broken.extend(faults(metric, &[label], &exported));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_alert_says_what_it_means_and_leads_to_its_part_of_the_guide() {
    let alerts = alerts(ALERTS).unwrap();
    for alert in &alerts {
        let Alert { name, fields } = alert;
        assert!(!fields["summary"].is_empty(), "{name}");
        for field in ["description", "action"] {
            assert!(fields[field].ends_with('.'), "{name}: {field}");
        }
        assert!(["critical", "warning"].contains(&fields["severity"].as_str()), "{name}");
        let anchor = fields["runbook_url"].strip_prefix(RUNBOOK).unwrap();
        assert_eq!(anchor, name.to_lowercase());
    }
    let named: BTreeSet<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(named.len(), alerts.len(), "two alerts have one name");
    let explained = GUIDE.lines().filter_map(|line| line.strip_prefix("### "));
    assert_eq!(named, explained.collect::<BTreeSet<_>>());
}

#[test]
fn every_failure_of_an_export_counts() {
    let failures = Status::ALL.into_iter().filter(|status| status.is_failure());
    let failures: BTreeSet<&str> = failures.map(Status::text).collect();
    let mut found = Vec::new();
    queries(&serde_json::from_str(DASHBOARD).unwrap(), &mut found);
    let alerts = alerts(ALERTS).unwrap();
    let expressions = alerts.iter().map(|alert| alert.fields["expr"].as_str());
    let expressions = expressions.chain(found.iter().map(|(query, _)| query.as_str()));
    let selectors = expressions.flat_map(|text| reads(text).unwrap().selectors);
    let runs = selectors.filter(|selector| selector.name == "weir_export_runs_total");
    let conditions = runs.flat_map(|selector| selector.conditions);
    let named: Vec<String> = conditions
        .filter(|condition| condition.label == "status")
        .map(|condition| condition.value)
        .collect();
    assert_eq!(named.len(), 2, "one alert and one panel");
    for value in &named {
        assert_eq!(value.split('|').collect::<BTreeSet<_>>(), failures);
    }
}

#[test]
fn names_and_labels_that_are_not_exported_are_found() {
    let exported = exported("# HELP a A\na_total{x=\"1\",y=\"2\"} 3\nb 4.5\n# EOF\n");
    for sound in
        ["a_total", "rate(a_total{x=\"1\",job=\"j\"}[5m]) > b", "a_total{x=~\"3..\"} or up"]
    {
        assert_eq!(faults(sound, &["x", "instance"], &exported), [""; 0], "{sound}");
    }
    for (text, fault) in [
        ("a", "`a` is not exported"),
        ("rates(b)", "`rates` is not exported"),
        ("b{x=\"1\"}", "`b` has no label `x`"),
        ("a_total{x=~\"1|2\"}", "`a_total` has no x `2`"),
        ("sum by (z) (b)", "no metric of `sum by (z) (b)` has a label `z`"),
        ("1 > 0", "no metric in `1 > 0`"),
    ] {
        assert_eq!(faults(text, &[], &exported), [fault]);
    }
    assert_eq!(faults("b", &["x"], &exported), ["no metric of `b` has a label `x`"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_sign_ins_limits_of_the_disk_and_memory_are_exported() {
    let app = started().await;
    let wrong = json!({"email": "ada@mail.example", "password": "plum-otter-violin-94"});
    assert_eq!(app.anonymous().post("/api/login/", &wrong).await.status, 400);
    until(async || {
        let page = app.metrics().await;
        let value = |name: &str| -> f64 {
            let line = page.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse().unwrap()
        };
        let limits = (value("weir_disk_high_bytes"), value("weir_disk_low_bytes"));
        let is_counted = value("weir_sign_ins_refused_total") == 1.0;
        let has_memory = value("process_resident_memory_bytes") > 1_000_000.0;
        let has_begun = value("process_start_time_seconds") > 1_700_000_000.0;
        let is_shown = is_counted && has_memory && has_begun;
        if is_shown && limits == (1024.0 * 1_048_576.0, 256.0 * 1_048_576.0) {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;
}
