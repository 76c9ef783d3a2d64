//! Services on a store in memory, for the tests of this crate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use weir_model::activity::{ActivityQuery, AuditAction};
use weir_model::errors::FieldError;
use weir_model::keys::PersonalKeyInput;
use weir_model::limits::LimitSet;
use weir_model::organizations::{Level, OrganizationPatch};
use weir_model::pagination::Page;
use weir_model::plugin_configs::{DryOutcome, DryStep};
use weir_model::plugins::address::Address;
use weir_model::plugins::{FRONTEND, SITE};
use weir_model::scopes::Scope;
use weir_model::sso::{ProviderName, SamlCheck};
use weir_model::{MembershipId, OrganizationId, Timestamp, UserId};
use weir_store::plugin_runtime::registry::ConfigWithSource;
use weir_store::users::{self, UserRow};
use weir_store::{Location, Settings, Store, organizations};

use crate::ctx::{Actor, Ctx, OrgCtx};
use crate::domains::{LookupError, Pending, TxtLookup};
use crate::exports::HostPolicy;
use crate::identity::{HashParameters, Peer, SetupInput};
use crate::limits::Limiter;
use crate::mail::Mailing;
use crate::offline::Offline;
use crate::plugins::code::{Busy, CodeFault, DryTrial, Fetched, Inspected, PluginCode};
use crate::questions::{self, Asker, Ended, QuestionHost, QuestionPermit};
use crate::sealing::{EphemeralKey, Sealer};
use crate::sso::{
    Asking, Begun, Examined, Protocols, Provider, Refusal, SamlIdentityProvider, SamlKey,
    SamlServiceProvider, UsedAssertions, Verified,
};
use crate::{Clock, Core, Dependencies, Services};

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

/// An instance before the set-up, without mail and name servers.
pub(crate) async fn empty() -> Services {
    empty_with(false, Arc::new(NoNameServers)).await
}

async fn empty_with(sends_mail: bool, lookup: Arc<dyn TxtLookup>) -> Services {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let clock = Clock::fixed(Timestamp::from_micros(1_760_000_000_123_456));
    let sealer = Sealer::start(store.clone(), Box::new(EphemeralKey)).await.unwrap();
    services(store, clock, sealer, sends_mail, HashParameters::cheapest(), lookup)
}

/// The same data in services without the key of secrets.
fn reopened(services: &Services, sends_mail: bool, hashing: HashParameters) -> Services {
    let store = services.organizations.store().clone();
    let sealer = Sealer::without_key(store.clone());
    let clock = services.clock.clone();
    self::services(store, clock, sealer, sends_mail, hashing, Arc::new(NoNameServers))
}

fn services(
    store: Store,
    clock: Clock,
    sealer: Sealer,
    sends_mail: bool,
    hashing: HashParameters,
    lookup: Arc<dyn TxtLookup>,
) -> Services {
    let mailing = Mailing::new(sends_mail);
    let hosts = Arc::new(AnyHost);
    let limiter = Arc::new(Limiter::new(LimitSet::default(), clock.clone()));
    let core = Core {
        store,
        clock,
        mailing,
        sealer,
        hosts,
        providers: providers(),
        offers_organizations: false,
        limiter,
    };
    let (plugin_code, protocols) = (Arc::new(StandIn), Arc::new(Scripted));
    let applying = Arc::new(Offline);
    let questions = questions::Settings {
        threads: Handle::current(),
        host: Arc::new(NoQueue),
        memory: 64 << 20,
        kept: 1 << 20,
        time: Duration::from_secs(60),
    };
    let dependencies =
        Dependencies { hashing, lookup, plugin_code, protocols, applying, questions };
    Services::new(Arc::new(core), dependencies)
}

/// No question waits.
struct NoQueue;

#[async_trait]
impl QuestionHost for NoQueue {
    async fn permit(&self, _asker: Asker) -> Option<QuestionPermit> {
        Some(Box::new(()))
    }

    fn lag_bytes(&self) -> u64 {
        0
    }

    fn ended(&self, _ended: Ended) {}
}

/// The providers in the settings: Google, GitHub and an issuer of the operator.
fn providers() -> Vec<Provider> {
    let provider = |name: &str, issuer: &str| Provider {
        name: ProviderName::parse(name).unwrap(),
        label: name.to_owned(),
        issuer: issuer.to_owned(),
        client_id: "weir".to_owned(),
        client_secret: "secret".to_owned().into(),
    };
    let issuer = "https://issuer.example";
    vec![provider("google-oauth2", ""), provider("github", ""), provider("issuer", issuer)]
}

/// Providers whose answers are scripts of the tests: the JSON text of the user, or
/// anything else for a refusal. A SAML answer that begins with `unsigned` is refused before
/// its signature is checked. The member `at` is when the user signed in there.
struct Scripted;

fn scripted(text: &str) -> Result<Verified, Refusal> {
    let value: Value = serde_json::from_str(text).map_err(|_| Refusal("scripted".to_owned()))?;
    let member = |name: &str| value[name].as_str().map(str::to_owned);
    Ok(Verified {
        issuer: member("issuer").unwrap_or_default(),
        subject: member("subject").unwrap(),
        email: member("email"),
        email_verified: value["verified"] == Value::Bool(true),
        name: member("name"),
        signed_in_at: value["at"].as_i64().map(Timestamp::from_micros),
    })
}

#[async_trait]
impl Protocols for Scripted {
    fn check(&self, provider: &Provider) -> Result<(), FieldError> {
        if provider.issuer == "wrong" {
            return Err(FieldError::new("issuer", "invalid_input", "wrong"));
        }
        Ok(())
    }

    async fn begin(
        &self,
        provider: &Provider,
        redirect_uri: &str,
        asking: Asking,
    ) -> Result<Begun, Refusal> {
        let kept = provider.client_secret.clone();
        let again = if asking == Asking::Again { "&again" } else { "" };
        Ok(Begun { url: format!("https://provider.example/?back={redirect_uri}{again}"), kept })
    }

    async fn finish(
        &self,
        provider: &Provider,
        kept: &str,
        query: &str,
    ) -> Result<Verified, Refusal> {
        assert_eq!(kept, provider.client_secret.as_str());
        scripted(query)
    }

    fn saml_metadata(&self, site: &SamlServiceProvider, certificate: Option<&str>) -> String {
        format!("{} {}", site.entity_id, certificate.unwrap_or("unsigned"))
    }

    fn new_saml_key(&self) -> Result<SamlKey, Refusal> {
        let random = crate::secrets::token().unwrap().reveal();
        Ok(SamlKey { certificate: format!("certificate of {random}"), key: random.into() })
    }

    fn begin_saml(
        &self,
        peer: &SamlIdentityProvider,
        _: &SamlServiceProvider,
        relay_state: &str,
        key: Option<&SamlKey>,
        asking: Asking,
    ) -> Result<Begun, Refusal> {
        if peer.sign_in_url == "wrong" {
            return Err(Refusal("Enter a complete URL.".to_owned()));
        }
        let signed = key.map(|key| format!("&Signature={}", key.key.as_str()));
        let signed = signed.unwrap_or_default();
        let again = if asking == Asking::Again { "&again" } else { "" };
        let url = format!("{}?RelayState={relay_state}{signed}{again}", peer.sign_in_url);
        Ok(Begun { url, kept: "request".to_owned().into() })
    }

    async fn finish_saml(
        &self,
        peer: &SamlIdentityProvider,
        _: &SamlServiceProvider,
        kept: &str,
        answer: &str,
        used: &dyn UsedAssertions,
    ) -> Examined {
        assert_eq!(kept, "request");
        let mut outcome = scripted(answer);
        if let Ok(verified) = &mut outcome {
            verified.issuer.clone_from(&peer.entity_id);
            let until = Timestamp::from_micros(i64::MAX / 2);
            if !used.use_once(answer, until).await.unwrap() {
                outcome = Err(Refusal("The assertion was used before.".to_owned()));
            }
        }
        let check = SamlCheck {
            name: "Signature".to_owned(),
            passed: Some(outcome.is_ok()),
            detail: String::new(),
        };
        let is_signed = !answer.starts_with("unsigned");
        Examined { outcome, is_signed, checks: vec![check], attributes: Vec::new() }
    }
}

/// Answers no lookup.
struct NoNameServers;

impl TxtLookup for NoNameServers {
    fn txt<'a>(&'a self, _name: &'a str) -> Pending<'a> {
        Box::pin(async { Err(LookupError("no name servers".to_owned())) })
    }
}

/// Accepts every host.
struct AnyHost;

impl HostPolicy for AnyHost {
    fn refuses(&self, _host: &str) -> bool {
        false
    }
}

/// Inspects code without running it: a line `export name` is a method, and a line
/// `fault` is a fault. Other hosts have one plugin.
struct StandIn;

#[async_trait]
impl PluginCode for StandIn {
    async fn inspect(
        &self,
        _: UserId,
        _: OrganizationId,
        files: &BTreeMap<String, String>,
    ) -> Result<Inspected, Busy> {
        let page = |name: &str| files.get(name).map(|text| format!("made of {text}"));
        let mut inspected =
            Inspected { frontend: page(FRONTEND), site: page(SITE), ..Inspected::default() };
        for (name, text) in files {
            if let Some(line) = text.lines().position(|line| line == "fault") {
                inspected.faults.insert(name.clone(), format!("{}:1: fault", line + 1));
            }
        }
        let server = files.get("index.js").filter(|_| !inspected.faults.contains_key("index.js"));
        inspected.capabilities = server.map(|text| {
            let methods = text.lines().filter_map(|line| line.strip_prefix("export "));
            let methods: Vec<Value> = methods.map(Value::from).collect();
            let mut found = Map::new();
            found.insert("methods".to_owned(), Value::from(methods));
            found.insert("jobs".to_owned(), Value::from(vec!["brew"]));
            found
        });
        Ok(inspected)
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

    async fn dry_run(&self, run: DryTrial) -> Result<Vec<DryStep>, Busy> {
        let step = |one: &ConfigWithSource| DryStep {
            config: one.config.id,
            name: one.plugin.name.clone().unwrap_or_default(),
            outcome: DryOutcome::Unchanged,
            event: Some(run.event.clone()),
            error: None,
            duration_ms: 0.0,
            logs: Vec::new(),
        };
        Ok(run.configs.iter().map(step).collect())
    }
}

/// An instance that Ada has set up: organization `Acme Tea`, project `Shop`.
pub(crate) async fn set_up() -> Services {
    after_setup(empty().await).await
}

/// As [`set_up`], with mail.
pub(crate) async fn set_up_with_mail() -> Services {
    after_setup(empty_with(true, Arc::new(NoNameServers)).await).await
}

/// As [`set_up`], with these name servers.
pub(crate) async fn set_up_with_lookup(lookup: Arc<dyn TxtLookup>) -> Services {
    after_setup(empty_with(false, lookup).await).await
}

async fn after_setup(services: Services) -> Services {
    services.identity.setup(None, setup_input(), &Peer::default()).await.unwrap();
    services
}

/// The same data in services with empty memory.
pub(crate) fn restarted(services: &Services) -> Services {
    reopened(services, false, HashParameters::cheapest())
}

/// As [`restarted`], with mail.
pub(crate) fn restarted_with_mail(services: &Services) -> Services {
    reopened(services, true, HashParameters::cheapest())
}

/// As [`restarted`], with another cost of password hashes.
pub(crate) fn restarted_with_hashing(services: &Services, hashing: HashParameters) -> Services {
    reopened(services, false, hashing)
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
        distinct_id: name.to_owned(),
        first_name: name.to_owned(),
        email: format!("{name}@mail.example"),
        ..UserRow::new(
            UserId(weir_store::ids::time_ordered(now)),
            users::next_number(store).await.unwrap(),
            now,
        )
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
    let input = OrganizationPatch::named("name", name).unwrap();
    services.organizations.create(ctx, input).await.unwrap().row.id
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

/// Asserts that the recorded changes of a field lead from `first` to `last`, each one from
/// the value that the change before it left.
pub(crate) async fn assert_chain(
    services: &Services,
    org: &OrgCtx,
    field: &str,
    first: &str,
    last: &str,
    count: usize,
) {
    let all = ActivityQuery::default();
    let log = services.activity.of_organization(org, &all, Page::default()).await.unwrap();
    let mut entries = log.results;
    entries.reverse();
    let changes: Vec<(Value, Value)> = entries
        .into_iter()
        .filter(|entry| entry.activity == AuditAction::Updated)
        .flat_map(|entry| entry.detail.changes)
        .filter(|change| change.field == field)
        .map(|change| (change.before, change.after))
        .collect();
    assert_eq!(changes.len(), count);
    let mut value = Value::from(first);
    for (before, after) in changes {
        assert_eq!(before, value, "the entry names the value that it replaced");
        value = after;
    }
    assert_eq!(value, last);
}
