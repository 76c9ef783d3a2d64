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
pub mod clock;
pub mod ctx;
mod current;
pub mod definitions;
pub mod domains;
pub mod error;
pub mod events;
pub mod exports;
pub mod groups;
pub mod identity;
pub mod imports;
pub mod instance;
pub mod invites;
pub mod keys;
pub mod looking;
pub mod mail;
pub mod members;
pub mod messages;
pub mod organizations;
pub mod persons;
pub mod plugin_configs;
pub mod plugins;
pub mod policy;
pub mod preferences;
pub mod projects;
pub mod roles;
pub mod sealing;
pub mod search;
pub mod secrets;
pub mod sessions;
#[cfg(test)]
mod test_support;
pub mod traffic;
pub mod users;

use std::sync::{Arc, OnceLock, Weak};

use weir_store::Store;

pub use clock::Clock;
pub use ctx::{Actor, Ctx, OrgCtx, ProjectCtx};
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
    /// Reading persons.
    pub persons: persons::Persons,
    /// Reading groups.
    pub groups: groups::Groups,
    /// Sessions of visitors, computed from stored events.
    pub sessions: sessions::Sessions,
    /// Roles of organizations.
    pub roles: roles::Roles,
    /// Counts of traffic.
    pub traffic: traffic::Traffic,
    /// Historical migrations.
    pub imports: imports::Imports,
    /// Names of events and properties in use.
    pub definitions: definitions::Definitions,
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
    /// The clock of all services.
    pub clock: Clock,
}

impl Services {
    /// Services over `store` with the time of `clock`.
    #[must_use]
    pub fn new(store: Store, clock: Clock) -> Self {
        Self::with_hashing(store, clock, identity::HashParameters::default())
    }

    /// Services with another cost of password hashes, for tests.
    #[must_use]
    pub fn with_hashing(store: Store, clock: Clock, parameters: identity::HashParameters) -> Self {
        let sealer = sealing::Sealer::without_key(store.clone());
        Self::with_sealer(store, clock, parameters, sealer)
    }

    /// Services with a key for stored secrets. Without a key every call that needs a
    /// secret fails.
    #[must_use]
    pub fn with_sealer(
        store: Store,
        clock: Clock,
        parameters: identity::HashParameters,
        sealer: sealing::Sealer,
    ) -> Self {
        let mailing = mail::Mailing::default();
        let (plugin_code, hosts) = (OnceLock::new(), OnceLock::new());
        let core =
            Arc::new(Core { store, clock: clock.clone(), mailing, sealer, plugin_code, hosts });
        Self {
            identity: identity::Identity::new(Arc::clone(&core), parameters),
            keys: keys::PersonalKeys::new(Arc::clone(&core)),
            organizations: organizations::Organizations::new(Arc::clone(&core)),
            members: members::Members::new(Arc::clone(&core)),
            invites: invites::Invites::new(Arc::clone(&core)),
            domains: domains::Domains::new(Arc::clone(&core)),
            mails: mail::Mails::new(Arc::clone(&core)),
            projects: projects::Projects::new(Arc::clone(&core)),
            users: users::Users::new(Arc::clone(&core)),
            events: events::Events::new(Arc::clone(&core)),
            exports: exports::Exports::new(Arc::clone(&core)),
            plugins: plugins::Plugins::new(Arc::clone(&core)),
            plugin_configs: plugin_configs::PluginConfigs::new(Arc::clone(&core)),
            persons: persons::Persons::new(Arc::clone(&core)),
            groups: groups::Groups::new(Arc::clone(&core)),
            sessions: sessions::Sessions::new(Arc::clone(&core)),
            roles: roles::Roles::new(Arc::clone(&core)),
            traffic: traffic::Traffic::new(Arc::clone(&core)),
            imports: imports::Imports::new(Arc::clone(&core)),
            definitions: definitions::Definitions::new(Arc::clone(&core)),
            preferences: preferences::Preferences::new(Arc::clone(&core)),
            messages: messages::Messages::new(Arc::clone(&core)),
            search: search::Search::new(Arc::clone(&core)),
            instance: instance::Instance::new(Arc::clone(&core)),
            activity: activity::ActivityLog::new(core),
            clock,
        }
    }
}

/// The dependencies of all services.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) mailing: mail::Mailing,
    pub(crate) sealer: sealing::Sealer,
    /// The implementation that inspects code of plugins. Weak, because it holds the
    /// services.
    pub(crate) plugin_code: OnceLock<Weak<dyn plugins::code::PluginCode>>,
    /// The rules about hosts that exports never connect to.
    pub(crate) hosts: OnceLock<Arc<dyn exports::Hosts>>,
}

impl Core {
    /// The implementation that inspects code of plugins, if there is one.
    pub(crate) fn plugin_code(&self) -> Option<Arc<dyn plugins::code::PluginCode>> {
        self.plugin_code.get().and_then(Weak::upgrade)
    }
}
