//! `docs/api-coverage.md`: every operation of the protocol, with its handler and its
//! tests. Written from the route table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use weir_server::router::routes;

use crate::snapshot;

/// The operations of the protocol: section, then method and path. Names of parameters are
/// omitted.
const SPECIFICATION: &[(&str, &str)] = &[
    (
        "Organizations",
        "GET    /api/organizations/
         POST   /api/organizations/
         GET    /api/organizations/{}/
         PATCH  /api/organizations/{}/
         DELETE /api/organizations/{}/",
    ),
    (
        "Batch exports",
        "GET    /api/organizations/{}/batch_exports/
         POST   /api/organizations/{}/batch_exports/
         GET    /api/organizations/{}/batch_exports/{}/
         PATCH  /api/organizations/{}/batch_exports/{}/
         DELETE /api/organizations/{}/batch_exports/{}/
         POST   /api/organizations/{}/batch_exports/{}/backfill/
         POST   /api/organizations/{}/batch_exports/{}/pause/
         POST   /api/organizations/{}/batch_exports/{}/unpause/",
    ),
    (
        "Domains",
        "GET    /api/organizations/{}/domains/
         POST   /api/organizations/{}/domains/
         GET    /api/organizations/{}/domains/{}/
         PATCH  /api/organizations/{}/domains/{}/
         DELETE /api/organizations/{}/domains/{}/
         POST   /api/organizations/{}/domains/{}/verify/",
    ),
    (
        "Invites",
        "GET    /api/organizations/{}/invites/
         POST   /api/organizations/{}/invites/
         DELETE /api/organizations/{}/invites/{}/
         POST   /api/organizations/{}/invites/bulk/",
    ),
    (
        "Members",
        "GET    /api/organizations/{}/members/
         PATCH  /api/organizations/{}/members/{}/
         DELETE /api/organizations/{}/members/{}/",
    ),
    ("Pipeline destinations", PLUGINS_WITH_ACTIONS),
    ("Pipeline frontend apps", PLUGINS_WITH_ACTIONS),
    ("Pipeline import apps", PLUGINS),
    (
        "Pipeline transformation configs",
        "GET    /api/projects/{}/pipeline_transformation_configs/
         POST   /api/projects/{}/pipeline_transformation_configs/
         GET    /api/projects/{}/pipeline_transformation_configs/{}/
         PATCH  /api/projects/{}/pipeline_transformation_configs/{}/
         DELETE /api/projects/{}/pipeline_transformation_configs/{}/
         GET    /api/projects/{}/pipeline_transformation_configs/{}/frontend/
         POST   /api/projects/{}/pipeline_transformation_configs/{}/job/
         PATCH  /api/projects/{}/pipeline_transformation_configs/rearrange/",
    ),
    (
        "Query",
        "POST   /api/projects/{}/query/
         GET    /api/projects/{}/query/{}/
         DELETE /api/projects/{}/query/{}/",
    ),
    (
        "Insights",
        "GET    /api/projects/{}/insights/
         POST   /api/projects/{}/insights/
         GET    /api/projects/{}/insights/{}/
         PATCH  /api/projects/{}/insights/{}/
         DELETE /api/projects/{}/insights/{}/",
    ),
    (
        "Dashboards",
        "GET    /api/projects/{}/dashboards/
         POST   /api/projects/{}/dashboards/
         GET    /api/projects/{}/dashboards/{}/
         PATCH  /api/projects/{}/dashboards/{}/
         DELETE /api/projects/{}/dashboards/{}/",
    ),
    (
        "Alerts",
        "GET    /api/projects/{}/alerts/
         POST   /api/projects/{}/alerts/
         GET    /api/projects/{}/alerts/{}/
         PATCH  /api/projects/{}/alerts/{}/
         DELETE /api/projects/{}/alerts/{}/",
    ),
    (
        "Subscriptions",
        "GET    /api/projects/{}/subscriptions/
         POST   /api/projects/{}/subscriptions/
         GET    /api/projects/{}/subscriptions/{}/
         PATCH  /api/projects/{}/subscriptions/{}/
         DELETE /api/projects/{}/subscriptions/{}/
         POST   /api/projects/{}/subscriptions/{}/test-delivery/",
    ),
    (
        "Annotations",
        "GET    /api/projects/{}/annotations/
         POST   /api/projects/{}/annotations/
         GET    /api/projects/{}/annotations/{}/
         PATCH  /api/projects/{}/annotations/{}/
         DELETE /api/projects/{}/annotations/{}/",
    ),
    (
        "Definitions",
        "GET    /api/projects/{}/event_definitions/
         GET    /api/projects/{}/property_definitions/",
    ),
];

/// `GROUP` stands for the section's name in a path.
const PLUGINS: &str = "GET    /api/organizations/{}/GROUP/
     POST   /api/organizations/{}/GROUP/
     GET    /api/organizations/{}/GROUP/{}/
     PATCH  /api/organizations/{}/GROUP/{}/
     DELETE /api/organizations/{}/GROUP/{}/";
const PLUGINS_WITH_ACTIONS: &str = "GET    /api/organizations/{}/GROUP/
     POST   /api/organizations/{}/GROUP/
     GET    /api/organizations/{}/GROUP/{}/
     PATCH  /api/organizations/{}/GROUP/{}/
     DELETE /api/organizations/{}/GROUP/{}/
     GET    /api/organizations/{}/GROUP/{}/check_for_updates/
     GET    /api/organizations/{}/GROUP/{}/source/
     PATCH  /api/organizations/{}/GROUP/{}/update_source/
     POST   /api/organizations/{}/GROUP/{}/upgrade/
     GET    /api/organizations/{}/GROUP/activity/
     GET    /api/organizations/{}/GROUP/exports_unsubscribe_configs/
     GET    /api/organizations/{}/GROUP/repository/
     GET    /api/organizations/{}/GROUP/unused/";

const HEAD: &str = "# Coverage of the management API

Every operation of the protocol, the handler that answers it (`server/src/api/`) and the tests that are about it alone (`server/tests/api/`).
Besides these, what holds for all operations is tested for each one from the API document, in `server/tests/api/generated/`.
Written by a test: `WEIR_WRITE=1 cargo test -p weir-server --test api coverage`.

Capture (`/capture/`, `/batch/`): `server/src/capture/`, `server/tests/api/capture.rs`, `end2end/sdk/`.
";

#[test]
fn the_list_of_covered_operations_is_current() {
    let routes = routes();
    let mut text = HEAD.to_owned();
    let (mut answered, mut of_all) = (0, 0);
    let mut missing = String::new();
    for (section, operations) in SPECIFICATION {
        let group = section.to_lowercase().replace(' ', "_");
        write!(text, "\n## {section}\n\n| operation | handler | tests |\n|---|---|---|\n").unwrap();
        for line in operations.lines() {
            let line = line.replace("GROUP", &group);
            let (method, path) = line.trim().split_once(' ').unwrap();
            let path = path.trim();
            of_all += 1;
            let route = routes
                .iter()
                .find(|route| route.method == method && without_names(route.path) == path);
            let Some(route) = route else {
                writeln!(text, "| {method} `{path}` | missing | |").unwrap();
                writeln!(missing, "- {method} `{path}`").unwrap();
                continue;
            };
            answered += 1;
            let tests: Vec<String> =
                tests_of(route.name, path).iter().map(|file| format!("`{file}`")).collect();
            assert!(!tests.is_empty(), "{} has no test in server/tests/api/", route.name);
            writeln!(text, "| {method} `{path}` | `{}` | {} |", route.name, tests.join(", "))
                .unwrap();
        }
    }
    write!(text, "\n## Missing\n\n{answered} of {of_all} operations are answered.\n{missing}")
        .unwrap();
    snapshot::assert_same("docs/api-coverage.md", &text, "coverage");
}

/// `/a/{id}/` and `/a/{organization_id}/` are the same path.
fn without_names(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// The test files of a handler. In a folder with a file for each operation it is that
/// file, else all files about the resource.
fn tests_of(handler: &str, path: &str) -> BTreeSet<String> {
    let (module, function) = handler.split_once("::").unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api");
    let single = format!("{module}.rs");
    if tests.join(&single).is_file() {
        return BTreeSet::from([single]);
    }
    let Ok(folder) = std::fs::read_dir(tests.join(module)) else { return BTreeSet::new() };
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> =
        names.filter(|name| name.ends_with(".rs") && name != "mod.rs").collect();
    let action = path.trim_end_matches('/').rsplit('/').next().unwrap();
    let named = format!("{action}.rs");
    let about = |file: &&String| match files.contains(&named) {
        true => **file == named,
        false => function.contains(file.trim_end_matches(".rs")),
    };
    let own: BTreeSet<String> = files.iter().filter(about).cloned().collect();
    let chosen = if own.is_empty() { files } else { own };
    chosen.into_iter().map(|file| format!("{module}/{file}")).collect()
}
