//! Services on a store in memory, for the tests of this crate.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};
use weir_model::keys::PersonalKeyInput;
use weir_model::organizations::{Level, OrganizationInput};
use weir_model::plugin_configs::{DryOutcome, DryStep};
use weir_model::plugins::address::Address;
use weir_model::plugins::{FRONTEND, SITE};
use weir_model::scopes::Scope;
use weir_model::{MembershipId, OrganizationId, Timestamp, UserId};
use weir_store::plugin_runtime::registry::Enabled;
use weir_store::users::{self, UserRow};
use weir_store::{Location, Settings, Store, organizations};

use crate::ctx::{Actor, Ctx};
use crate::identity::{HashParameters, Peer, SetupInput};
use crate::plugins::code::{CodeFault, DryTrial, Fetched, Looked, PluginCode};
use crate::sealing::{EphemeralKey, Sealer};
use crate::{Clock, Services};

/// The password of every user.
pub(crate) const PASSWORD: &str = "plum-otter-violin-93";

/// The input of Ada at the set-up.
pub(crate) fn setup_input() -> SetupInput {
    SetupInput {
        first_name: "Ada".to_owned(),
        email: "Ada.L@Mail.example".to_owned(),
        password: PASSWORD.to_owned(),
        organization: "Acme Tea".to_owned(),
        project: "Shop".to_owned(),
    }
}

/// An instance before the set-up.
pub(crate) async fn empty() -> Services {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let clock = Clock::fixed(Timestamp::from_micros(1_760_000_000_123_456));
    let sealer = Sealer::start(store.clone(), Box::new(EphemeralKey)).await.unwrap();
    let services = Services::with_sealer(store, clock, HashParameters::cheapest(), sealer);
    // It lives for the whole test run, because services hold only a weak reference.
    static CODE: LazyLock<Arc<dyn PluginCode>> = LazyLock::new(|| Arc::new(StandIn));
    services.plugins.ask(&CODE);
    services
}

/// Inspects code without running it: a line `export name` is a method, and a line
/// `fault` is a fault. Other hosts have one plugin.
struct StandIn;

#[async_trait]
impl PluginCode for StandIn {
    async fn inspect(&self, _: OrganizationId, files: &BTreeMap<String, String>) -> Looked {
        let page = |name: &str| files.get(name).map(|text| format!("made of {text}"));
        let mut looked = Looked { frontend: page(FRONTEND), site: page(SITE), ..Looked::default() };
        for (name, text) in files {
            if let Some(line) = text.lines().position(|line| line == "fault") {
                looked.faults.insert(name.clone(), format!("{}:1: fault", line + 1));
            }
        }
        let server = files.get("index.js").filter(|_| !looked.faults.contains_key("index.js"));
        looked.capabilities = server.map(|text| {
            let methods = text.lines().filter_map(|line| line.strip_prefix("export "));
            let methods: Vec<Value> = methods.map(Value::from).collect();
            let mut found = Map::new();
            found.insert("methods".to_owned(), Value::from(methods));
            found.insert("jobs".to_owned(), Value::from(vec!["brew"]));
            found
        });
        looked
    }

    async fn fetch(&self, address: &Address, token: Option<&str>) -> Result<Fetched, CodeFault> {
        if address.url.ends_with("/gone") {
            return Err(CodeFault::Unreachable("HTTP 404".to_owned()));
        }
        let named = token.unwrap_or("Tea");
        let manifest = format!(r#"{{"name": "{named}", "publicJobs": {{"stir": {{}}}}}}"#);
        let files = [("plugin.json", manifest), ("index.js", "export onEvent".to_owned())];
        Ok(Fetched {
            files: files.map(|(name, text)| (name.to_owned(), text)).into(),
            tag: Some("1".to_owned()),
        })
    }

    async fn latest(
        &self,
        address: &Address,
        _token: Option<&str>,
    ) -> Result<Option<String>, CodeFault> {
        if address.url.ends_with("/silent") {
            return Err(CodeFault::Unreachable("timed out".to_owned()));
        }
        Ok(Some("2".to_owned()))
    }

    async fn extract(&self, archive: Bytes) -> Result<Fetched, CodeFault> {
        let text = String::from_utf8_lossy(&archive);
        let files = text.split(';').filter_map(|file| file.split_once('='));
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        Ok(Fetched { files, tag: None })
    }

    async fn dry_run(&self, run: DryTrial) -> Vec<DryStep> {
        let step = |one: &Enabled| DryStep {
            config: one.config.id,
            name: one.plugin.name.clone().unwrap_or_default(),
            outcome: DryOutcome::Unchanged,
            event: Some(run.event.clone()),
            error: None,
            duration_ms: 0.0,
            logs: Vec::new(),
        };
        run.configs.iter().map(step).collect()
    }
}

/// An instance that Ada has set up: organization `Acme Tea`, project `Shop`.
pub(crate) async fn set_up() -> Services {
    let services = empty().await;
    services.identity.setup(None, setup_input(), &Peer::default()).await.unwrap();
    services
}

/// The same data in services with empty memory.
pub(crate) fn restarted(services: &Services) -> Services {
    let store = services.organizations.store().clone();
    Services::with_hashing(store, services.clock.clone(), HashParameters::cheapest())
}

/// Ada, signed in just now.
pub(crate) async fn ada(services: &Services) -> Ctx {
    let session =
        services.identity.sign_in("ada.l@mail.example", PASSWORD, &Peer::default()).await.unwrap();
    services.identity.session(&session.token, "request".to_owned()).await.unwrap().unwrap()
}

/// Another user, without an organization.
pub(crate) async fn outsider(services: &Services, name: &str) -> Ctx {
    let store = services.organizations.store();
    let now = services.clock.now();
    let row = UserRow {
        id: UserId(weir_store::ids::time_ordered(now)),
        number: users::next_number(store).await.unwrap(),
        distinct_id: name.to_owned(),
        first_name: name.to_owned(),
        last_name: String::new(),
        email: format!("{name}@mail.example"),
        pending_email: None,
        is_email_verified: false,
        must_confirm: false,
        password: None,
        second_factor: None,
        is_staff: false,
        is_active: true,
        theme_mode: None,
        current_organization: None,
        current_project: None,
        created_at: now,
        updated_at: now,
    };
    let created = users::create(store, &row, &row.email).await.unwrap();
    assert_eq!(created, users::Created::Yes);
    person(services, row.id)
}

/// A user whose session was opened just now.
pub(crate) fn person(services: &Services, user: UserId) -> Ctx {
    let now = services.clock.now();
    let actor = Actor::Session { user, session: "test".to_owned(), signed_in_at: now };
    Ctx { actor, now, request_id: "request".to_owned() }
}

/// Makes a user a member.
pub(crate) async fn join(
    services: &Services,
    organization: OrganizationId,
    ctx: &Ctx,
    level: Level,
) {
    let store = services.organizations.store();
    let membership = MembershipId(weir_store::ids::time_ordered(ctx.now));
    organizations::add_member(store, organization, ctx.user(), membership, level, ctx.now)
        .await
        .unwrap();
}

/// A new organization of this user.
pub(crate) async fn organization(services: &Services, ctx: &Ctx, name: &str) -> OrganizationId {
    let input = OrganizationInput::named("name", name).unwrap();
    services.organizations.create(ctx, input).await.unwrap().id
}

/// The input of a key with all scopes.
pub(crate) fn key_input() -> PersonalKeyInput {
    PersonalKeyInput {
        label: "test".to_owned(),
        scopes: vec![Scope::All],
        scoped_teams: Vec::new(),
        scoped_organizations: Vec::new(),
        expires_at: None,
    }
}

/// The context of a new key of this user.
pub(crate) async fn key(services: &Services, ctx: &Ctx, input: PersonalKeyInput) -> Ctx {
    let value = services.keys.create(ctx, input).await.unwrap().value.unwrap();
    services.keys.authenticate(&value, "Authorization header", "request".to_owned()).await.unwrap()
}
