//! Creating the objects that an operation needs. A collection that the table does not
//! have fails the tests: add a row.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use weir_model::RunId;
use weir_model::exports::{Run, Status};
use weir_model::organizations::Level;
use weir_server::config::Config;
use weir_server::serve::Options;
use weir_testkit::{Caller, DnsAnswer, TestApp, until};

use super::operations::{Operation, operations};

/// An instance with an owner, and the objects that operations need.
pub(crate) struct World {
    pub(crate) app: TestApp,
    /// A key of the owner with scope `*`.
    pub(crate) owner: Caller,
    /// Number of objects so far, for values that must differ.
    made: AtomicU32,
    /// The path of the last export.
    export: Mutex<Option<String>>,
}

/// The source of an id.
enum Source {
    /// The owner's organization.
    Organization,
    /// Its project; a new one if the operation removes it.
    Project,
    /// A word that the API accepts in place of an id, such as `@me`.
    Word(&'static str),
    /// A new member of the organization.
    Member,
    /// A person created by an event.
    Person,
    /// An object created by sending the example to its collection. The named field must
    /// differ every time.
    Created(Option<&'static str>),
    /// A batch export. The previous one is deleted together with its backfills, because
    /// few of them may run at a time.
    Export,
    /// A run that has not ended, of the export of the path.
    Run,
    /// A backfill of the export of the path.
    Backfill,
    /// A group of the identity provider of the domain of the path.
    ScimGroup,
    /// A question that was answered.
    Question,
}

/// Collections and the source of the ids after them.
const SOURCES: &[(&str, Source)] = &[
    ("organizations", Source::Organization),
    ("projects", Source::Project),
    ("users", Source::Word("@me")),
    ("personal_api_keys", Source::Word("@current")),
    ("members", Source::Member),
    ("persons", Source::Person),
    ("invites", Source::Created(Some("target_email"))),
    ("domains", Source::Created(Some("domain"))),
    ("groups", Source::ScimGroup),
    ("roles", Source::Created(Some("name"))),
    ("role_memberships", Source::Created(None)),
    ("query", Source::Question),
    ("batch_exports", Source::Export),
    ("runs", Source::Run),
    ("backfills", Source::Backfill),
    ("pipeline_destinations", Source::Created(Some("name"))),
    ("pipeline_frontend_apps", Source::Created(Some("name"))),
    ("pipeline_import_apps", Source::Created(Some("name"))),
    ("pipeline_transformation_configs", Source::Created(None)),
    ("insights", Source::Created(None)),
    ("dashboards", Source::Created(None)),
    ("share_links", Source::Created(None)),
    ("annotations", Source::Created(None)),
    ("alerts", Source::Created(None)),
    ("subscriptions", Source::Created(None)),
];

/// Operations that need a second organization of the caller.
const MOVING: [&str; 2] = ["change_project_organization", "move_organization_project"];

impl World {
    pub(crate) async fn new() -> Self {
        let options = |options: &mut Options| options.exports = crate::exports::idle();
        // One key creates all objects for all operations.
        let settings = |config: &mut Config| config.rate_per_minute = 0;
        let app = TestApp::with_settings_and_options(settings, options).await.set_up().await;
        let owner = app.owner().key(&["*"]).await;
        Self { app, owner, made: AtomicU32::new(0), export: Mutex::new(None) }
    }

    /// Ids for the path of an operation. The objects are new if the operation may change
    /// or delete them.
    pub(crate) async fn ids(&self, operation: &Operation) -> Vec<(String, String)> {
        let mut ids = Vec::new();
        for (collection, name) in operation.ids() {
            let id = self.id(operation, &collection, &ids).await;
            ids.push((name, id));
        }
        ids
    }

    async fn id(
        &self,
        operation: &Operation,
        collection: &str,
        outer: &[(String, String)],
    ) -> String {
        let source = SOURCES.iter().find(|(known, _)| *known == collection);
        assert!(
            source.is_some(),
            "{}: server/tests/api/generated/fixtures.rs does not say where an id after \
             `{collection}` comes from",
            operation.path,
        );
        let (_, source) = source.unwrap();
        match source {
            Source::Organization => self.app.organization().to_string(),
            Source::Project if operation.ends(collection) => self.project().await,
            Source::Project => self.app.project().to_string(),
            Source::Word(word) => (*word).to_owned(),
            Source::Member => self.member().await,
            Source::Person => self.person().await,
            Source::Created(differs) => {
                let id = self.created(operation, collection, outer, *differs).await;
                if collection == "domains" && operation.path.contains("/scim/") {
                    self.provision(&id).await;
                }
                id
            }
            Source::Export => self.export(operation, collection, outer).await,
            Source::Run => self.run(outer).await,
            Source::Backfill => self.backfill().await,
            Source::ScimGroup => self.scim_group(outer).await,
            Source::Question => self.question().await,
        }
    }

    async fn export(&self, of: &Operation, collection: &str, outer: &[(String, String)]) -> String {
        let last = self.export.lock().take();
        if let Some(path) = last {
            self.owner.delete(&path).await;
        }
        let id = self.created(of, collection, outer, None).await;
        let path = format!("/api/organizations/{}/batch_exports/{id}/", self.app.organization());
        // Only the test starts and ends its runs.
        let paused = self.owner.post(&format!("{path}pause/"), &json!({})).await;
        assert_eq!(paused.status, 200, "{:?}", paused.body);
        *self.export.lock() = Some(path);
        id
    }

    pub(super) async fn run(&self, outer: &[(String, String)]) -> String {
        let (_, export) = outer.iter().find(|(name, _)| name == "export_id").unwrap();
        let now = self.app.app().services.clock.now();
        let run = Run {
            id: RunId(weir_store::ids::time_ordered(now)),
            status: Status::Starting,
            records_completed: None,
            latest_error: None,
            data_interval_start: Some(now.plus_seconds(-3600)),
            data_interval_end: now,
            cursor: None,
            created_at: now,
            finished_at: None,
            last_updated_at: now,
            records_total_count: None,
            batch_export: export.parse().unwrap(),
            failing_since: None,
            next_try_at: None,
        };
        crate::exports::create_run(self.app.store(), &run).await;
        run.id.to_string()
    }

    pub(super) async fn backfill(&self) -> String {
        let path = self.export.lock().clone().unwrap();
        let made = self.owner.post(&format!("{path}backfills/"), &json!({})).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.json()["backfill_id"].as_str().unwrap().to_owned()
    }

    /// Verifies a domain, and makes a token for its identity provider.
    async fn provision(&self, domain: &str) -> String {
        let path = format!("/api/organizations/{}/domains/{domain}/", self.app.organization());
        let claimed = self.owner.get(&path).await.json();
        let record = format!("_posthog-challenge.{}", claimed["domain"].as_str().unwrap());
        let challenge = claimed["verification_challenge"].as_str().unwrap();
        self.app.dns().set(&record, DnsAnswer::txt(challenge));
        let verified = self.owner.post(&format!("{path}verify/"), &json!({})).await;
        assert!([200, 400].contains(&verified.status), "{:?}", verified.body);
        let made = self.owner.post(&format!("{path}scim/token/"), &json!({})).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.json()["value"].as_str().unwrap().to_owned()
    }

    async fn scim_group(&self, outer: &[(String, String)]) -> String {
        let (_, domain) = outer.iter().find(|(name, _)| name == "domain_id").unwrap();
        let token = self.provision(domain).await;
        let caller = self.app.anonymous().with_key(&token);
        let group = json!({"displayName": format!("n{}", self.number())});
        let made = caller.post(&format!("/scim/v2/{domain}/Groups"), &group).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// A project that no other operation needs.
    pub(super) async fn project(&self) -> String {
        let path = format!("/api/organizations/{}/projects/", self.app.organization());
        let made = self.owner.post(&path, &json!({"name": "For one call"})).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.json()["id"].to_string()
    }

    fn number(&self) -> u32 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) async fn member(&self) -> String {
        let person = self.app.outsider(&format!("member{}", self.number())).await;
        self.app.join(&person, Level::Member).await;
        person.id().to_string()
    }

    /// The person of an event, once the event is stored.
    async fn person(&self) -> String {
        let distinct_id = format!("person{}", self.number());
        let event = json!({
            "api_key": self.app.project_key(), "event": "$identify", "distinct_id": distinct_id,
        });
        let answer = self.app.anonymous().post("/capture/", &event).await;
        assert_eq!(answer.status, 200);
        let path =
            format!("/api/projects/{}/persons/?distinct_id={distinct_id}", self.app.project());
        until(async || {
            let found = self.owner.get(&path).await.json();
            found["results"][0]["id"].as_str().map(str::to_owned)
        })
        .await
    }

    /// A question that was answered, by the id that its client gave it.
    async fn question(&self) -> String {
        let id = format!("question-{}", self.number());
        let body = json!({
            "query": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}]},
            "client_query_id": id,
        });
        let path = format!("/api/projects/{}/query/", self.app.project());
        let answer = self.owner.post(&path, &body).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        id
    }

    /// A new object of the collection that an operation lists.
    pub(super) async fn object(
        &self,
        list: &Operation,
        collection: &str,
        outer: &[(String, String)],
    ) -> String {
        let source = SOURCES.iter().find(|(known, _)| *known == collection);
        let differs = match source {
            Some((_, Source::ScimGroup)) => return self.scim_group(outer).await,
            Some((_, Source::Created(differs))) => Some(*differs),
            Some((_, Source::Export)) => Some(None),
            _ => None,
        };
        assert!(differs.is_some(), "lists.rs does not say what fills {}", list.path);
        self.created(list, collection, outer, differs.unwrap()).await
    }

    async fn created(
        &self,
        of: &Operation,
        collection: &str,
        outer: &[(String, String)],
        differs: Option<&str>,
    ) -> String {
        let (head, _) = of.path.split_once(&format!("/{collection}/")).unwrap();
        let path = format!("{head}/{collection}/");
        let create = operations()
            .into_iter()
            .find(|operation| operation.path == path && operation.method == http::Method::POST);
        assert!(create.is_some(), "{path} has no POST to make an object with");
        let create = create.unwrap();
        let body = self.body(&create, differs).await;
        let answer = create.call_with(&self.owner, outer, Some(body)).send().await;
        assert_eq!(answer.status, 201, "POST {path}: {:?}", answer.body);
        match &answer.json()["id"] {
            Value::String(id) => id.clone(),
            other => other.to_string(),
        }
    }

    /// A plugin with the job of the example.
    async fn plugin(&self) -> Value {
        let path = format!("/api/organizations/{}/pipeline_destinations/", self.app.organization());
        let plugin = json!({"plugin_type": "source", "name": "P", "public_jobs": {"import": {}}});
        let made = self.owner.post(&path, &plugin).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.json()["id"].clone()
    }

    /// A saved insight of the owner's project.
    async fn insight(&self) -> Value {
        let path = format!("/api/projects/{}/insights/", self.app.project());
        let query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
        let made = self.owner.post(&path, &json!({"query": query})).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.json()["id"].clone()
    }

    /// The example of a body, with the field changed that must differ every time.
    pub(crate) async fn body(&self, operation: &Operation, differs: Option<&str>) -> Value {
        let mut body = operation.body().unwrap_or_else(super::operations::nothing);
        if let Some(field) = differs.and_then(|field| body.get_mut(field)) {
            let text = field.as_str().unwrap_or_default();
            *field = json!(format!("n{}{text}", self.number()));
        }
        if let Some(plugin) = body.get_mut("plugin") {
            *plugin = self.plugin().await;
        }
        if let Some(insight) = body.get_mut("insight") {
            *insight = self.insight().await;
        }
        if let Some(user) = body.get_mut("user_uuid") {
            *user = json!(self.member().await);
        }
        body
    }

    /// A valid body for an operation that creates or changes an object, with the field
    /// that its collection requires to differ.
    pub(crate) async fn good_body(&self, operation: &Operation, by: &Caller) -> Option<Value> {
        operation.body()?;
        if MOVING.contains(&operation.id.as_str()) {
            let made = by.post("/api/organizations/", &json!({"name": "Elsewhere"})).await.json();
            return Some(json!({"organization_id": made["id"]}));
        }
        let collection = operation
            .path
            .split('/')
            .rev()
            .find(|part| SOURCES.iter().any(|(known, _)| known == part));
        let source = SOURCES.iter().find(|(known, _)| Some(*known) == collection);
        let differs = match source {
            Some((_, Source::Created(differs))) => *differs,
            _ => None,
        };
        let mut body = self.body(operation, differs).await;
        if let Some(organization) = body.get_mut("organization_id") {
            *organization = json!(self.app.organization());
        }
        Some(body)
    }
}
