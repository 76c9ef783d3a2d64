//! The rules of management data: one module per resource.
//!
//! What belongs here: who may do what, what a change means, what is stored in one
//! transaction. API handlers and server functions call only these services and nothing
//! below them, so the API and the pages cannot disagree. What does not: headers,
//! cookies, query strings, HTML (the server and the app), SurrealQL (`weir-store`).
//!
//! Every operation has a context as its first argument ([`Ctx`], or [`OrgCtx`] and
//! [`ProjectCtx`] once membership is proved): it says who acts and when.

pub mod activity;
pub mod alerts;
pub mod annotations;
pub mod clock;
pub mod ctx;
mod current;
pub mod dashboards;
pub mod definitions;
pub mod domains;
pub mod error;
pub mod events;
pub mod exports;
pub mod groups;
pub mod identity;
pub mod imports;
pub mod insights;
pub mod instance;
pub mod invites;
pub mod keys;
pub mod limits;
pub mod mail;
pub mod members;
pub mod messages;
pub mod offline;
pub mod organizations;
mod outcome_counts;
pub mod overview;
pub mod persons;
pub mod plugin_configs;
pub mod plugins;
pub mod policy;
pub mod preferences;
pub mod projects;
pub mod questions;
pub mod roles;
pub mod scan;
pub mod scim;
pub mod sealing;
pub mod search;
pub mod secrets;
pub mod sessions;
pub mod sso;
pub mod subscriptions;
#[cfg(test)]
mod test_support;
pub mod traffic;
pub mod unchecked;
mod update;
pub mod users;

use std::sync::Arc;

use weir_store::Store;

pub use clock::Clock;
pub use ctx::{Actor, Ctx, OrgCtx, ProjectCtx, SharedProject};
pub use error::Error;

/// Result of a service call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The services over one store. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    /// Set-up, sign-in, sessions.
    pub identity: identity::Identity,
    /// Personal API keys.
    pub keys: keys::PersonalKeys,
    /// Organizations.
    pub organizations: organizations::Organizations,
    /// Limits of organizations.
    pub limits: limits::Limits,
    /// Members of organizations.
    pub members: members::Members,
    /// Invites to organizations.
    pub invites: invites::Invites,
    /// Domains of organizations.
    pub domains: domains::Domains,
    /// Mails that wait to be sent.
    pub mails: mail::Mails,
    /// Projects.
    pub projects: projects::Projects,
    /// Users.
    pub users: users::Users,
    /// Reading stored events.
    pub events: events::Events,
    /// Batch exports.
    pub exports: exports::Exports,
    /// Plugin records.
    pub plugins: plugins::Plugins,
    /// Transformation configs of projects.
    pub plugin_configs: plugin_configs::PluginConfigs,
    /// Reading, exporting and erasing persons.
    pub persons: persons::Persons,
    /// Reading groups.
    pub groups: groups::Groups,
    /// Sessions of visitors, computed from stored events.
    pub sessions: sessions::Sessions,
    /// Roles of organizations.
    pub roles: roles::Roles,
    /// Users and groups of identity providers.
    pub scim: scim::Scim,
    /// Questions about events.
    pub questions: questions::Questions,
    /// Counts of traffic.
    pub traffic: traffic::Traffic,
    /// How projects are doing.
    pub overview: overview::Overview,
    /// Historical migrations.
    pub imports: imports::Imports,
    /// Names of events and properties in use.
    pub definitions: definitions::Definitions,
    /// Saved insights.
    pub insights: insights::Insights,
    /// Dashboards.
    pub dashboards: dashboards::Dashboards,
    /// Annotations of projects.
    pub annotations: annotations::Annotations,
    /// Alerts of projects.
    pub alerts: alerts::Alerts,
    /// Subscriptions of projects.
    pub subscriptions: subscriptions::Subscriptions,
    /// The activity log.
    pub activity: activity::ActivityLog,
    /// How pages look for each user.
    pub preferences: preferences::Preferences,
    /// Messages that pages showed to users.
    pub messages: messages::Messages,
    /// Finding resources by name.
    pub search: search::Search,
    /// The instance, for staff.
    pub instance: instance::Instance,
    /// The providers of single sign-on.
    pub providers: sso::Providers,
    /// The clock of all services.
    pub clock: Clock,
}

/// What services need in addition to their [`Core`].
pub struct Dependencies {
    /// The cost of password hashes.
    pub hashing: identity::HashParameters,
    /// The name servers that prove domains.
    pub lookup: Arc<dyn domains::TxtLookup>,
    /// The implementation that inspects, fetches and tries code of plugins.
    pub plugin_code: Arc<dyn plugins::code::PluginCode>,
    /// The implementation of the protocols of single sign-on.
    pub protocols: Arc<dyn sso::Protocols>,
    /// What applies events to the store.
    pub applying: Arc<dyn persons::Applying>,
    /// What questions may use.
    pub questions: questions::Settings,
}

impl Services {
    /// Creates the services.
    #[must_use]
    pub fn new(core: Arc<Core>, dependencies: Dependencies) -> Self {
        let Dependencies { hashing, lookup, plugin_code, protocols, applying, questions } =
            dependencies;
        let plugins = plugins::Plugins::new(Arc::clone(&core), Arc::clone(&plugin_code));
        let identity = identity::Identity::new(Arc::clone(&core), hashing, Arc::clone(&protocols));
        let questions = questions::Questions::new(Arc::clone(&core), questions);
        Self {
            scim: scim::Scim::new(Arc::clone(&core), identity.clone()),
            identity,
            keys: keys::PersonalKeys::new(Arc::clone(&core)),
            organizations: organizations::Organizations::new(Arc::clone(&core)),
            limits: limits::Limits::new(Arc::clone(&core)),
            members: members::Members::new(Arc::clone(&core)),
            invites: invites::Invites::new(Arc::clone(&core)),
            domains: domains::Domains::new(Arc::clone(&core), lookup, Arc::clone(&protocols)),
            mails: mail::Mails::new(Arc::clone(&core)),
            projects: projects::Projects::new(Arc::clone(&core)),
            users: users::Users::new(Arc::clone(&core)),
            events: events::Events::new(Arc::clone(&core)),
            exports: exports::Exports::new(Arc::clone(&core)),
            plugin_configs: plugin_configs::PluginConfigs::new(Arc::clone(&core), plugin_code),
            persons: persons::Persons::new(Arc::clone(&core), applying),
            groups: groups::Groups::new(Arc::clone(&core)),
            sessions: sessions::Sessions::new(Arc::clone(&core)),
            roles: roles::Roles::new(Arc::clone(&core)),
            alerts: alerts::Alerts::new(Arc::clone(&core), questions.clone()),
            subscriptions: subscriptions::Subscriptions::new(Arc::clone(&core), questions.clone()),
            questions,
            traffic: traffic::Traffic::new(Arc::clone(&core)),
            overview: overview::Overview::new(Arc::clone(&core)),
            imports: imports::Imports::new(Arc::clone(&core)),
            definitions: definitions::Definitions::new(Arc::clone(&core)),
            insights: insights::Insights::new(Arc::clone(&core)),
            dashboards: dashboards::Dashboards::new(Arc::clone(&core)),
            annotations: annotations::Annotations::new(Arc::clone(&core)),
            preferences: preferences::Preferences::new(Arc::clone(&core)),
            messages: messages::Messages::new(Arc::clone(&core)),
            search: search::Search::new(Arc::clone(&core), plugins.clone()),
            instance: instance::Instance::new(Arc::clone(&core)),
            providers: sso::Providers::new(Arc::clone(&core), protocols),
            plugins,
            clock: core.clock.clone(),
            activity: activity::ActivityLog::new(core),
        }
    }
}

/// What all services share. It is made before them: running plugins need a part of it
/// ([`plugin_configs::RunningConfigs`]), and services need the plugins
/// ([`Dependencies::plugin_code`]).
pub struct Core {
    /// The store.
    pub store: Store,
    /// The clock of all services.
    pub clock: Clock,
    /// Whether mail is sent.
    pub mailing: mail::Mailing,
    /// The encryption of stored secrets.
    pub sealer: sealing::Sealer,
    /// The rules about hosts that are never connected to.
    pub hosts: Arc<dyn exports::HostPolicy>,
    /// The providers of single sign-on in the settings of the server.
    pub providers: Vec<sso::Provider>,
    /// Whether a new user who signs in through one of the providers may create an
    /// organization.
    pub offers_organizations: bool,
    /// Whether events are taken, with the limits in the settings of the server.
    pub limiter: Arc<limits::Limiter>,
}
