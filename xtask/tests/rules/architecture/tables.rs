//! Which crates may use which, and why.
//!
//! Changing a rule needs a decision in `docs/adr/`.

/// The workspace crates that a crate may use outside of its tests.
pub(super) struct Layer {
    pub(super) of: &'static str,
    pub(super) uses: &'static [&'static str],
    pub(super) why: &'static str,
}

pub(super) const LAYERS: &[Layer] = &[
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
        of: "weir-charts",
        uses: &["weir-model"],
        why: "an image follows from the chart alone",
    },
    Layer {
        of: "weir-mail",
        // An image is drawn when its mail is sent: the outbox has the numbers.
        uses: &["weir-charts", "weir-model"],
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
pub(super) const FEATURES_ONLY: &str = "weir-workspace-hack";

/// Crates that may use all others, because they are not part of the product.
pub(super) const OUTSIDE: &[(&str, &str)] = &[
    ("weir-bench", "benchmarks are never part of the product"),
    ("weir-testkit", "test support is never part of the product: a dev-dependency only"),
    ("weir-testservers", "so are other people's servers"),
];

/// External crates that only some workspace crates may name. `*` at the end matches any
/// suffix. The first row that matches a crate decides.
pub(super) struct Reserved {
    pub(super) names: &'static [&'static str],
    pub(super) to: &'static [&'static str],
    pub(super) why: &'static str,
}

pub(super) const RESERVED: &[Reserved] = &[
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
    Reserved {
        names: &["ab_glyph*", "epaint*", "ttf-parser"],
        to: &["weir-charts"],
        why: "one crate draws images",
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
pub(super) struct Forbidden {
    pub(super) to: &'static str,
    pub(super) names: &'static [&'static str],
    pub(super) why: &'static str,
}

const PROTOCOL: &[&str] = &["axum*", "http", "http-body*", "hyper*", "leptos*", "tower*"];

pub(super) const FORBIDDEN: &[Forbidden] = &[
    Forbidden {
        to: "weir-service",
        names: PROTOCOL,
        why: "the service never sees a header, cookie, query string or view",
    },
    Forbidden { to: "weir-store", names: PROTOCOL, why: "the store knows no protocol" },
    Forbidden {
        to: "weir-capture",
        names: PROTOCOL,
        why: "it reads the parts of a request that the server passes on",
    },
];

/// All direct and indirect dependencies that `weir-model` may have. This is a list of
/// allowed crates, because every addition reaches the browser.
pub(super) const BELOW_MODEL: &[&str] = &[
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
pub(super) const NOT_IN_BROWSER: &[&str] = &[
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
