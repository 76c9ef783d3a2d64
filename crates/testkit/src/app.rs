//! The server under test. Requests to it are in `caller`, users and their keys in
//! `people`.

use std::net::SocketAddr;
use std::path::PathBuf;

use weir_model::{OrganizationId, ProjectId, Timestamp};
use weir_server::App;
use weir_server::config::{Config, Settings};
use weir_server::limits::Limits;
use weir_server::serve::{Options, Server};
use weir_service::Clock;
use weir_service::identity::{HashParameters, Peer, SetupInput};
use weir_store::Store;

use crate::caller::{Caller, Client};
use crate::dns_server::DnsServer;
use crate::people::{self, Person};

/// Bytes of a segment of the ingest log.
const SEGMENT: u64 = 1 << 20;

/// A running server with the organization, project and user of the test. It needs a
/// runtime with several threads, as the program itself does.
pub struct TestApp {
    server: Server,
    client: Client,
    dns: DnsServer,
    owned: Option<Owned>,
}

/// The owner, organization and project that [`TestApp::with_owner`] creates.
struct Owned {
    owner: Person,
    organization: OrganizationId,
    project: ProjectId,
    project_key: String,
}

impl TestApp {
    /// Starts an instance without users and organizations.
    pub async fn empty() -> Self {
        Self::start(|_| {}, |_| {}).await
    }

    /// Starts an instance with the owner Ada, the organization `Acme Tea` and the project
    /// `Shop`.
    pub async fn with_owner() -> Self {
        Self::empty().await.set_up().await
    }

    /// Starts an empty instance with other settings or limits.
    pub async fn start(
        settings: impl FnOnce(&mut Config),
        limits: impl FnOnce(&mut Limits),
    ) -> Self {
        Self::launch(settings, limits, |_| {}).await
    }

    /// Starts an empty instance with other limits, log options or numbers of threads.
    pub async fn with_options(
        limits: impl FnOnce(&mut Limits),
        options: impl FnOnce(&mut Options),
    ) -> Self {
        Self::launch(|_| {}, limits, options).await
    }

    /// Starts an empty instance with other settings and options.
    pub async fn with_settings_and_options(
        settings: impl FnOnce(&mut Config),
        options: impl FnOnce(&mut Options),
    ) -> Self {
        Self::launch(settings, |_| {}, options).await
    }

    /// Starts an empty instance whose clock stops until the test moves it.
    pub async fn at(clock: Clock) -> Self {
        Self::launch(|_| {}, |_| {}, |options| options.clock = clock).await
    }

    /// Starts an empty instance with a stopped clock and other settings.
    pub async fn with_settings_at(clock: Clock, settings: impl FnOnce(&mut Config)) -> Self {
        Self::launch(settings, |_| {}, |options| options.clock = clock).await
    }

    async fn launch(
        settings: impl FnOnce(&mut Config),
        limits: impl FnOnce(&mut Limits),
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let dns = DnsServer::start().await;
        let mut config = Settings {
            listen: Some("127.0.0.1:0".to_owned()),
            store: Some("mem://".parse().unwrap()),
            metrics_listen: Some("off".parse().unwrap()),
            dns_servers: Some(dns.address().to_string().parse().unwrap()),
            ..Settings::default()
        }
        .over(Settings::default());
        settings(&mut config);
        let mut chosen = Limits::from_config(&config);
        limits(&mut chosen);
        let mut options = Options {
            hashing: HashParameters::cheapest(),
            limits: Some(chosen),
            ..Options::default()
        };
        // Segments are allocated before use, and stay for a moment after the server has
        // ended. Hundreds of segments of the default size would fill the disk.
        options.log.segment_size = SEGMENT;
        if let Some(program) = program() {
            options.plugins.program = program;
        }
        change(&mut options);
        let server = Server::start(config, options).await.expect("the server starts");
        Self { server, client: Client::new(), dns, owned: None }
    }

    /// Creates the owner, the organization and the project.
    pub async fn set_up(mut self) -> Self {
        let input = SetupInput {
            first_name: "Ada".to_owned(),
            email: "ada@mail.example".to_owned(),
            password: "plum-otter-violin-93".to_owned(),
            organization: "Acme Tea".to_owned(),
            project: "Shop".to_owned(),
        };
        let services = &self.app().services;
        let made = services.identity.setup(None, input, &Peer::default()).await.unwrap();
        self.owned = Some(Owned {
            owner: Person::new(self.app().clone(), self.anonymous(), made.user.uuid),
            organization: made.organization,
            project: made.project,
            project_key: made.project_api_key,
        });
        self
    }

    /// The dependencies of the request handlers.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.server.app
    }

    /// The name server that the server under test asks.
    #[must_use]
    pub fn dns(&self) -> &DnsServer {
        &self.dns
    }

    /// The store of the server, for reads that no endpoint offers.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.server.store
    }

    /// The events of the owner's project that its destinations have not received yet.
    pub async fn undelivered(&self) -> Vec<weir_store::events::EventBounds> {
        self.server.plugins.undelivered(self.project()).await.unwrap()
    }

    /// The address that the server listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// The address whose requests over plain http are redirected. The settings must contain
    /// it.
    #[must_use]
    pub fn redirect_address(&self) -> SocketAddr {
        self.server.redirect_address.expect("redirects have an address")
    }

    /// Reads the page of metrics from its own listener. The settings must contain an
    /// address for that listener.
    pub async fn metrics(&self) -> String {
        let address = self.server.metrics_address.expect("metrics have an address");
        let answer = Caller::new(self.client.clone(), address).get("/metrics").await;
        assert_eq!(answer.status, 200);
        String::from_utf8(answer.body.to_vec()).expect("the page is a text")
    }

    /// Waits until the store has the result of this many attempts to send a mail that is
    /// not sent yet.
    ///
    /// # Panics
    /// When there is no such mail in time.
    pub async fn until_mail_tried(&self, attempts: u32) {
        // In the year 2096.
        let later = Timestamp::from_micros(4_000_000_000_000_000);
        crate::until(async || {
            let mails = weir_store::mail::due(self.store(), later).await.unwrap();
            mails.iter().any(|mail| mail.tries == attempts)
        })
        .await;
    }

    /// A caller without a credential.
    #[must_use]
    pub fn anonymous(&self) -> Caller {
        Caller::new(self.client.clone(), self.address())
    }

    /// Creates another user, who belongs to no organization.
    pub async fn outsider(&self, name: &str) -> Person {
        self.outsider_with_address(name, &format!("{name}@mail.example")).await
    }

    /// Creates another user with the given address, who belongs to no organization.
    pub async fn outsider_with_address(&self, name: &str, address: &str) -> Person {
        let user = people::create(&self.server.store, self.app(), name, address).await;
        Person::new(self.app().clone(), self.anonymous(), user)
    }

    /// Creates another user and makes the user a member of the owner's organization.
    pub async fn member(&self, name: &str, level: weir_model::organizations::Level) -> Person {
        let person = self.outsider(name).await;
        self.join(&person, level).await;
        person
    }

    /// Makes a user a member of the owner's organization.
    pub async fn join(&self, person: &Person, level: weir_model::organizations::Level) {
        let organization = self.owned().organization;
        people::join(&self.server.store, organization, person, level).await;
    }

    /// The owner.
    #[must_use]
    pub fn owner(&self) -> &Person {
        &self.owned().owner
    }

    /// The owner's organization.
    #[must_use]
    pub fn organization(&self) -> OrganizationId {
        self.owned().organization
    }

    /// The owner's project.
    #[must_use]
    pub fn project(&self) -> ProjectId {
        self.owned().project
    }

    /// The key of the owner's project.
    #[must_use]
    pub fn project_key(&self) -> &str {
        &self.owned().project_key
    }

    /// Stops the server as a stop signal does.
    pub async fn stop(self) {
        self.server.stop().await.expect("the server stops in order");
    }

    fn owned(&self) -> &Owned {
        self.owned.as_ref().expect("the instance is set up")
    }
}

/// The `weir` program that was built with the tests. The sandbox starts it as the process
/// of a plugin. A test program cannot do that.
fn program() -> Option<PathBuf> {
    let tests = std::env::current_exe().ok()?;
    let program = tests.parent()?.parent()?.join("weir");
    program.is_file().then_some(program)
}
