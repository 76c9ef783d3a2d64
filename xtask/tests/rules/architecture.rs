//! Checks the dependencies between crates, as `docs/ARCHITECTURE.md` describes them.
//!
//! The tables below are the rules. A failing test names the broken rule and its reason.
//! Changing a rule needs a decision in `docs/adr/`.

use std::collections::BTreeSet;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, Package};
use serde_json::Value;

use crate::support;

/// The workspace crates that a crate may use outside of its tests.
struct Layer {
    of: &'static str,
    uses: &'static [&'static str],
    why: &'static str,
}

const LAYERS: &[Layer] = &[
    Layer {
        of: "weir-json",
        uses: &[],
        why: "how JSON is read and changed follows from the text alone",
    },
    Layer {
        of: "weir-model",
        uses: &["weir-json"],
        why: "the vocabulary stands below everything and also runs in the browser",
    },
    Layer {
        of: "weir-backup",
        uses: &[],
        why: "a backup has files and their checksums, whatever they mean",
    },
    Layer {
        of: "weir-segments",
        uses: &[],
        why: "files of events follow from the events alone, and say nothing about the database",
    },
    Layer {
        of: "weir-store",
        // `weir-objects` is for the bucket of sealed events.
        uses: &["weir-json", "weir-model", "weir-objects", "weir-segments", "weir-store-postgres"],
        why: "the store keeps data and knows no rules",
    },
    Layer {
        of: "weir-store-postgres",
        uses: &["weir-egress"],
        why: "a storage has keys and values, whatever they mean",
    },
    Layer {
        of: "weir-egress",
        uses: &["weir-model"],
        why: "what guards outbound connections serves every caller alike",
    },
    Layer {
        of: "weir-objects",
        uses: &["weir-egress"],
        why: "how an object storage is asked says nothing about what is stored there",
    },
    Layer {
        of: "weir-oidc",
        uses: &["weir-egress"],
        why: "a protocol of others knows no user, no record and no cookie of ours",
    },
    Layer {
        of: "weir-service",
        // `weir-catalogue` defines the settings of its plugins.
        uses: &[
            "weir-answer",
            "weir-catalogue",
            "weir-egress",
            "weir-json",
            "weir-model",
            "weir-query",
            // Saved questions are checked.
            "weir-questions",
            "weir-schedule",
            "weir-scim",
            // The columns that questions read.
            "weir-segments",
            "weir-store",
            // Passkeys are checked without any request, so the service needs no stand-in.
            "weir-webauthn",
        ],
        why: "the rules of management stand on the store alone",
    },
    Layer {
        of: "weir-capture",
        uses: &["weir-json", "weir-model"],
        why: "what a request means follows from the request alone",
    },
    Layer {
        of: "weir-ingest",
        uses: &["weir-capture", "weir-json", "weir-model", "weir-store"],
        why: "capture never waits for management work",
    },
    Layer {
        of: "weir-query",
        uses: &["weir-json", "weir-model"],
        why: "a query is checked when it is saved and worked out when it runs",
    },
    Layer {
        of: "weir-questions",
        uses: &["weir-model"],
        why: "an answer follows from the question and sorted events, whatever engine finds them",
    },
    Layer {
        of: "weir-answer",
        uses: &["weir-json", "weir-model", "weir-query", "weir-questions", "weir-segments"],
        why: "an answer follows from columns and the question, whatever store has the events",
    },
    Layer {
        of: "weir-schedule",
        uses: &["weir-model"],
        why: "a calendar asks neither the clock nor the store",
    },
    Layer {
        of: "weir-export",
        uses: &[
            "weir-egress",
            "weir-json",
            "weir-model",
            "weir-objects",
            "weir-query",
            "weir-schedule",
            "weir-store",
        ],
        why: "exports read the store in the background, not through capture or management",
    },
    Layer {
        of: "weir-saml",
        uses: &[],
        why: "whether a response is accepted follows from the response and the connection alone",
    },
    Layer {
        of: "weir-scim",
        uses: &[],
        why: "what a request of the protocol means follows from the request alone",
    },
    Layer {
        of: "weir-sandbox",
        uses: &["weir-json", "weir-transpile"],
        why: "a process that runs or compiles foreign code has no access to data",
    },
    Layer {
        of: "weir-tls",
        uses: &["weir-model"],
        why: "certificates and handshakes know connections, not requests",
    },
    Layer {
        of: "weir-transpile",
        uses: &[],
        why: "what a source text is turned into follows from the text alone",
    },
    Layer {
        of: "weir-webauthn",
        uses: &[],
        why: "whether an answer is accepted follows from the answer, the challenge and the key",
    },
    Layer {
        of: "weir-catalogue",
        uses: &["weir-json", "weir-model"],
        why: "what Weir ships works on an event alone",
    },
    Layer {
        of: "weir-plugins",
        uses: &[
            // For the rules that the result of a transformation must obey.
            "weir-capture",
            "weir-catalogue",
            "weir-egress",
            // For the interface of transformations, and for locations.
            "weir-ingest",
            "weir-json",
            "weir-model",
            "weir-sandbox",
            // For the interface through which management inspects code.
            "weir-service",
            "weir-store",
            "weir-transpile",
        ],
        why: "what is called when is decided in one place, outside of the wall and above it",
    },
    Layer {
        of: "weir-mail",
        uses: &["weir-model"],
        why: "words and delivery know what happened, not who may know it",
    },
    Layer {
        of: "weir-demo",
        uses: &["weir-model"],
        why: "what the made-up shop does follows from the number of days and the time alone",
    },
    Layer {
        of: "weir-dns",
        uses: &["weir-service"],
        why: "asking name servers knows what is asked for, not what it means",
    },
    Layer {
        of: "weir-import",
        uses: &["weir-json", "weir-model"],
        why: "an import knows a host by its address only",
    },
    Layer {
        of: "weir-mcp",
        uses: &["weir-model"],
        why: "a message means the same to the host and to the bridge, which knows a host by its \
              address only",
    },
    Layer {
        of: "weir-app",
        uses: &["weir-json", "weir-model", "weir-questions", "weir-service"],
        why: "a server function calls the service, so that pages and API cannot disagree",
    },
    Layer {
        of: "weir-frontend",
        uses: &["weir-app", "weir-model"],
        why: "the browser's entry point only starts the app",
    },
    Layer {
        of: "weir-server",
        uses: &[
            "weir-app",
            "weir-backup",
            "weir-capture",
            "weir-demo",
            "weir-dns",
            "weir-egress",
            "weir-export",
            "weir-import",
            "weir-ingest",
            "weir-mail",
            "weir-mcp",
            "weir-model",
            // For backups in a bucket, which are none of the store.
            "weir-objects",
            "weir-oidc",
            "weir-plugins",
            "weir-questions",
            "weir-saml",
            // To run as the sandbox child process.
            "weir-sandbox",
            "weir-scim",
            "weir-service",
            // To open the store and pass it on. Handlers call the service.
            "weir-store",
            "weir-tls",
        ],
        why: "the binary wires everything; tools and test support stay out of it",
    },
    Layer { of: "weir-xtask", uses: &[], why: "tools must build when the product does not" },
];

/// This crate has no code. It unifies the features of external crates, so it may name all
/// of them, and every crate may name it.
const FEATURES_ONLY: &str = "weir-workspace-hack";

/// Crates that may use all others, because they are not part of the product.
const OUTSIDE: &[(&str, &str)] = &[
    ("weir-bench", "benchmarks are never part of the product"),
    ("weir-testkit", "test support is never part of the product: a dev-dependency only"),
    ("weir-testservers", "so are other people's servers"),
];

/// External crates that only some workspace crates may name. `*` at the end matches any
/// suffix. The first row that matches a crate decides.
struct Reserved {
    names: &'static [&'static str],
    to: &'static [&'static str],
    why: &'static str,
}

const RESERVED: &[Reserved] = &[
    Reserved {
        names: &["surrealdb-types"],
        to: &["weir-model", "weir-store"],
        why: "resources derive how they are stored, under a feature that the store enables; the \
              crate has values and no engine",
    },
    Reserved {
        names: &["surrealdb*"],
        to: &["weir-store", "weir-store-postgres", "weir-bench"],
        why: "one crate knows the database: others need not wait for its compilation, and a \
              change of engine stays in one place (another one implements the interface of its \
              storages, and the benchmark measures the bare engine)",
    },
    Reserved {
        names: &["landlock", "rquickjs*", "seccompiler"],
        to: &["weir-sandbox"],
        why: "foreign code runs behind one wall",
    },
    Reserved { names: &["lettre"], to: &["weir-mail"], why: "one crate talks to mail servers" },
    Reserved {
        names: &["rustls*", "tokio-rustls"],
        to: &["weir-egress", "weir-mail", "weir-tls"],
        why: "TLS is set up where connections are made: to what members enter, to the mail \
              server, and to this server",
    },
    Reserved {
        names: &["instant-acme", "rcgen"],
        to: &["weir-tls"],
        why: "one crate obtains certificates, and makes keys for them",
    },
    Reserved {
        names: &["reqwest"],
        to: &["weir-egress", "weir-import", "weir-mcp", "weir-tls"],
        why: "what members enter is dialled by one crate, which judges every address (the \
              operator sets where the import and ACME connect to, and the user of the bridge \
              for models its host)",
    },
    Reserved {
        names: &["parquet", "arrow*"],
        to: &["weir-export", "weir-segments", "weir-testkit"],
        why: "one crate knows the files of destinations, one the files of the store, and one \
              reads files back in tests",
    },
    Reserved {
        names: &["object_store"],
        to: &["weir-export", "weir-objects"],
        why: "one crate knows the storages of destinations, and one sends requests to storages",
    },
    Reserved {
        names: &["xorf"],
        to: &["weir-segments"],
        why: "one crate reads and writes filters, whose form is part of a file format",
    },
    Reserved {
        names: &["ring"],
        to: &["weir-export", "weir-saml", "weir-testservers", "weir-webauthn"],
        why: "keys of other people's services sign where those are spoken to, and the signatures \
              of identity providers and of authenticators are checked in one crate each",
    },
    Reserved {
        names: &["rsa"],
        to: &["weir-saml"],
        why: "it makes keys, and ring signs with them in constant time",
    },
    Reserved {
        names: &["aes", "cbc", "des"],
        to: &["weir-export"],
        why: "keys of other people's services sign and encrypt where those are spoken to; our own \
              secrets are sealed by the service",
    },
    Reserved {
        names: &["oauth2", "openidconnect"],
        to: &["weir-oidc"],
        why: "one crate checks the tokens of providers",
    },
    Reserved {
        names: &["oxc*"],
        to: &["weir-transpile"],
        why: "its interface changes with every version",
    },
    Reserved {
        names: &["tar", "zip"],
        to: &["weir-plugins"],
        why: "one crate reads archives, within bounds",
    },
    Reserved {
        names: &["jiff*"],
        to: &["weir-questions", "weir-schedule"],
        why: "calendars in time zones are computed where boundaries of time are; all other code \
              has instants",
    },
    Reserved { names: &["hickory-*"], to: &["weir-dns"], why: "one crate asks name servers" },
    Reserved {
        names: &["tokio-postgres", "postgres*"],
        to: &["weir-export", "weir-store-postgres"],
        why: "one crate talks to databases of others, and one to the operator's",
    },
    Reserved {
        names: &["leptos*", "server_fn*", "reactive_*"],
        to: &["weir-app", "weir-frontend", "weir-server"],
        why: "views belong to the app; the frontend starts it and the server wires it up",
    },
    Reserved {
        names: &["axum*", "tower-http"],
        to: &["weir-app", "weir-bench", "weir-server", "weir-testkit"],
        why: "only the server speaks HTTP (and the app's pages answer through it)",
    },
    Reserved {
        names: &["wasm-bindgen*", "web-sys", "js-sys", "gloo-*"],
        to: &["weir-app", "weir-frontend", "weir-xtask"],
        why: "only these run in the browser, or build what does",
    },
];

/// External crates that a crate must not name.
struct Forbidden {
    to: &'static str,
    names: &'static [&'static str],
    why: &'static str,
}

const PROTOCOL: &[&str] = &["axum*", "http", "http-body*", "hyper*", "leptos*", "tower*"];

const FORBIDDEN: &[Forbidden] = &[
    Forbidden {
        to: "weir-service",
        names: PROTOCOL,
        why: "the service never sees a header, cookie, query string or view",
    },
    Forbidden { to: "weir-store", names: PROTOCOL, why: "the store knows no protocol" },
    Forbidden {
        to: "weir-capture",
        names: PROTOCOL,
        why: "it is told of a request, not given one",
    },
];

/// All direct and indirect dependencies that `weir-model` may have. This is a list of
/// allowed crates, because every addition reaches the browser.
const BELOW_MODEL: &[&str] = &[
    "autocfg",
    "chrono",
    "itoa",
    "memchr",
    "num-traits",
    "proc-macro2",
    "quote",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "syn",
    "unicode-ident",
    "uuid",
    "weir-json",
    "zmij",
];

/// Crates that must not reach the browser, directly or indirectly.
const NOT_IN_BROWSER: &[&str] = &[
    "axum*",
    "chrono-tz",
    "hyper*",
    "jiff*",
    "leptos_axum",
    "surrealdb*",
    "tokio",
    "weir-capture",
    "weir-import",
    "weir-ingest",
    "weir-server",
    "weir-service",
    "weir-store",
];

#[test]
fn our_crates_depend_in_one_direction() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if name == FEATURES_ONLY || OUTSIDE.iter().any(|(outside, _)| *outside == name) {
            continue;
        }
        let Some(layer) = LAYERS.iter().find(|layer| layer.of == name) else {
            broken.push(format!("{name} is in no layer; add it to the table with a reason"));
            continue;
        };
        let ours = named_in_code(package).filter(|used| used.starts_with("weir-"));
        for used in ours.filter(|used| *used != FEATURES_ONLY) {
            if !layer.uses.contains(&used) {
                broken.push(format!("{name} must not use {used}: {}", layer.why));
            }
            if let Some((_, why)) = OUTSIDE.iter().find(|(outside, _)| *outside == used) {
                broken.push(format!("{name} must not use {used}: {why}"));
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn foreign_crates_are_named_where_they_belong() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if name == FEATURES_ONLY {
            continue;
        }
        for used in named_in_code(package) {
            if let Some(why) = reserved_for_others(name, used) {
                broken.push(format!("{name} must not use {used}: {why}"));
            }
            for rule in FORBIDDEN {
                if rule.to == name && matches_any(used, rule.names) {
                    broken.push(format!("{name} must not use {used}: {}", rule.why));
                }
            }
        }
    }
    assert_kept(&broken);
}

#[test]
fn the_first_row_that_matches_a_foreign_crate_decides() {
    for (name, used, is_allowed) in [
        ("weir-model", "surrealdb-types", true),
        ("weir-store", "surrealdb-types", true),
        ("weir-service", "surrealdb-types", false),
        ("weir-model", "surrealdb", false),
        ("weir-model", "surrealdb-core", false),
        ("weir-store", "surrealdb-core", true),
        ("weir-model", "serde", true),
    ] {
        assert_eq!(reserved_for_others(name, used).is_none(), is_allowed, "{name} {used}");
    }
}

/// Why this workspace crate must not name this external crate, if it must not.
fn reserved_for_others(name: &str, used: &str) -> Option<&'static str> {
    let row = RESERVED.iter().find(|row| matches_any(used, row.names))?;
    (!row.to.contains(&name)).then_some(row.why)
}

#[test]
fn the_model_brings_nothing_but_data_types() {
    let below = tree("{p}", &["--package=weir-model", "--edges=normal,build", "--target=all"]);
    let broken: Vec<String> = below
        .iter()
        .map(|line| name_in(line))
        .filter(|name| *name != "weir-model" && !BELOW_MODEL.contains(name))
        .map(|name| {
            format!(
                "weir-model brings {name}: it depends on no runtime, database or web framework, \
                 and all of it reaches the browser"
            )
        })
        .collect();
    assert_kept(&broken);
}

#[test]
fn the_browser_side_brings_nothing_of_the_server() {
    let below = tree(
        "{p}",
        &[
            "--package=weir-frontend",
            "--features=hydrate",
            "--target=wasm32-unknown-unknown",
            "--edges=normal",
        ],
    );
    let broken: Vec<String> = below
        .iter()
        .map(|line| name_in(line))
        .filter(|name| matches_any(name, NOT_IN_BROWSER))
        .map(|name| format!("the browser side brings {name}, which belongs to the server"))
        .collect();
    assert_kept(&broken);
}

/// SurrealKV loses acknowledged commits when the process is killed.
#[test]
fn the_storage_engine_that_loses_commits_is_off() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for node in &metadata.resolve.as_ref().unwrap().nodes {
        let package = &metadata[&node.id];
        if package.name.as_str() == "surrealkv" {
            broken.push("surrealkv is compiled in".to_owned());
        }
        if package.name.starts_with("surrealdb")
            && node.features.iter().any(|feature| feature.as_str() == "kv-surrealkv")
        {
            broken.push(format!("{} has the feature kv-surrealkv", package.name));
        }
    }
    assert_kept(&broken);
}

/// Two versions of these crates in one program are incompatible.
#[test]
fn there_is_one_version_of_what_must_agree() {
    let metadata = support::metadata();
    let mut broken = Vec::new();
    for (name, why) in [
        ("leptos", "signals of one are unknown to the other"),
        ("leptos-use", "its companions pin old versions, and each would reach the browser"),
        ("surrealdb-core", "two engines cannot share a data directory"),
        ("wasm-bindgen", "the glue is made for one version"),
    ] {
        let versions = versions(&metadata, name);
        if versions.len() > 1 {
            broken.push(format!("Cargo.lock has {name} {versions:?}: {why}"));
        }
    }
    if versions(&metadata, "wasm-bindgen") != versions(&metadata, "wasm-bindgen-cli-support") {
        broken.push(
            "wasm-bindgen and wasm-bindgen-cli-support differ: the glue is made for one version"
                .to_owned(),
        );
    }
    assert_kept(&broken);
}

/// `-p weir-store`, `-p weir-server` and the whole workspace must request the same
/// features of the dependencies of the store. Otherwise the engine is compiled again for
/// each, which takes minutes. `weir-workspace-hack` unifies the features.
#[test]
fn the_storage_engine_is_compiled_once() {
    let below_the_engine = |selection: &[&str]| compiled_for("surrealdb-core@", selection);
    let store = below_the_engine(&["build", "--package=weir-store"]);
    let mut broken = Vec::new();
    for selection in [
        &["build", "--package=weir-server"][..],
        &["build", "--workspace"],
        &["test", "--no-run", "--package=weir-store"],
        &["test", "--no-run", "--package=weir-ingest"],
        &["test", "--no-run", "--workspace"],
    ] {
        let others = below_the_engine(selection);
        for more in others.difference(&store) {
            let (package, features) = more;
            broken.push(format!(
                "`cargo {}` compiles {package} with {features:?}, `-p weir-store` does not: add \
                 that to the dependencies or build-dependencies of crates/workspace-hack",
                selection.join(" ")
            ));
        }
    }
    assert_kept(&broken);
}

/// `scripts/test` compiles the tests first and the server after them. Another set of features
/// would compile the server twice, which takes minutes.
#[test]
fn the_server_is_compiled_once() {
    let tests =
        compiled_for("weir-server@", &["test", "--no-run", "--workspace", "--exclude=weir-xtask"]);
    let server = compiled_for("weir-server@", &["build", "--workspace", "--bin=weir"]);
    let broken: Vec<_> = server
        .difference(&tests)
        .map(|(package, features)| {
            format!(
                "the server is compiled with {package} with {features:?}, the tests are not: add \
                 that to the dependencies of crates/workspace-hack"
            )
        })
        .collect();
    assert_kept(&broken);
}

/// Packages and features that a cargo command compiles for one package. `root` is part of
/// the identifier of that package. This uses the unit graph of cargo, which is unstable: `cargo tree`
/// does not say whether a package is compiled for the product or for a build script.
fn compiled_for(root: &str, arguments: &[&str]) -> BTreeSet<(String, Vec<String>)> {
    let output = Command::new(env!("CARGO"))
        .current_dir(support::root())
        .args(arguments)
        .args(["--locked", "--unit-graph", "-Zunstable-options"])
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {}: {errors}", arguments.join(" "));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let units = plan["units"].as_array().unwrap();
    let is_root = |unit: &Value| unit["pkg_id"].as_str().unwrap().contains(root);
    let mut waiting: Vec<usize> = (0..units.len()).filter(|at| is_root(&units[*at])).collect();
    assert!(!waiting.is_empty(), "{root} is part of every plan");
    let mut seen = BTreeSet::new();
    let mut compiled = BTreeSet::new();
    while let Some(at) = waiting.pop() {
        if !seen.insert(at) {
            continue;
        }
        let unit = &units[at];
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().unwrap().iter();
            items.map(|item| item.as_str().unwrap().to_owned()).collect()
        };
        compiled.insert((unit["pkg_id"].as_str().unwrap().to_owned(), texts(&unit["features"])));
        let next = unit["dependencies"].as_array().unwrap().iter();
        waiting.extend(
            next.map(|dependency| usize::try_from(dependency["index"].as_u64().unwrap()).unwrap()),
        );
    }
    compiled
}

/// The lines of `cargo tree`, one package each, in the given format.
fn tree(format: &str, arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(support::root())
        .args(["tree", "--locked", "--prefix=none", "--format", format])
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree {}: {errors}", arguments.join(" "));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.trim().trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Crate names in a manifest, without dev-dependencies.
fn named_in_code(package: &Package) -> impl Iterator<Item = &str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .map(|dependency| dependency.name.as_str())
}

fn matches_any(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// The name in a line: `chrono` in `chrono v0.4.45 (proc-macro)`.
fn name_in(line: &str) -> &str {
    line.split(' ').next().unwrap()
}

fn versions(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let packages = metadata.packages.iter().filter(|package| package.name.as_str() == name);
    packages.map(|package| package.version.to_string()).collect()
}

#[track_caller]
fn assert_kept(broken: &[String]) {
    assert!(broken.is_empty(), "broken rules:\n- {}", broken.join("\n- "));
}
