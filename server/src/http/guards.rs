//! The scopes that a route requires of a key, as types. A handler takes
//! [`Authorized`](super::extract::Authorized) of one of these types, and the route table
//! names the same type. The compiler checks that they match.

use weir_model::scopes::{Scope, ScopeObject};

/// The scopes of which a key must have one.
pub trait Guard: Send + Sync + 'static {
    /// The scopes. An empty list accepts every valid key.
    const ANY_OF: &'static [Scope];
}

macro_rules! guards {
    ($($(#[$doc:meta])* $name:ident = [$($scope:expr),*];)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl Guard for $name {
            const ANY_OF: &'static [Scope] = &[$($scope),*];
        }
    )+};
}

guards! {
    /// Every valid key, with any scopes.
    AnyKey = [];
    /// `*`: what a key does beyond the organizations of its user.
    EveryScope = [Scope::All];
    /// `organization:read`
    OrganizationRead = [Scope::read(ScopeObject::Organization)];
    /// `organization:write`
    OrganizationWrite = [Scope::write(ScopeObject::Organization)];
    /// `organization_member:read`
    MembersRead = [Scope::read(ScopeObject::OrganizationMember)];
    /// `organization_member:write`
    MembersWrite = [Scope::write(ScopeObject::OrganizationMember)];
    /// `activity_log:read`
    ActivityLogRead = [Scope::read(ScopeObject::ActivityLog)];
    /// `project:read`
    ProjectRead = [Scope::read(ScopeObject::Project)];
    /// `project:write`
    ProjectWrite = [Scope::write(ScopeObject::Project)];
    /// `batch_export:read`
    ExportsRead = [Scope::read(ScopeObject::BatchExport)];
    /// `batch_export:write`
    ExportsWrite = [Scope::write(ScopeObject::BatchExport)];
    /// `plugin:read`
    PluginsRead = [Scope::read(ScopeObject::Plugin)];
    /// `plugin:write`
    PluginsWrite = [Scope::write(ScopeObject::Plugin)];
    /// `user:read`
    UserRead = [Scope::read(ScopeObject::User)];
    /// `user:write`
    UserWrite = [Scope::write(ScopeObject::User)];
    /// `query:read` or `event:read`
    EventsRead = [Scope::read(ScopeObject::Query), Scope::read(ScopeObject::Event)];
    /// `query:read`
    QueryRead = [Scope::read(ScopeObject::Query)];
    /// `person:read`
    PersonsRead = [Scope::read(ScopeObject::Person)];
    /// `person:write`
    PersonsWrite = [Scope::write(ScopeObject::Person)];
    /// `group:read`
    GroupsRead = [Scope::read(ScopeObject::Group)];
    /// `event_definition:read`
    EventDefinitionsRead = [Scope::read(ScopeObject::EventDefinition)];
    /// `property_definition:read`
    PropertyDefinitionsRead = [Scope::read(ScopeObject::PropertyDefinition)];
    /// `insight:read`
    InsightsRead = [Scope::read(ScopeObject::Insight)];
    /// `insight:write`
    InsightsWrite = [Scope::write(ScopeObject::Insight)];
    /// `dashboard:read`
    DashboardsRead = [Scope::read(ScopeObject::Dashboard)];
    /// `dashboard:write`
    DashboardsWrite = [Scope::write(ScopeObject::Dashboard)];
    /// `alert:read`
    AlertsRead = [Scope::read(ScopeObject::Alert)];
    /// `alert:write`
    AlertsWrite = [Scope::write(ScopeObject::Alert)];
    /// `subscription:read`
    SubscriptionsRead = [Scope::read(ScopeObject::Subscription)];
    /// `subscription:write`
    SubscriptionsWrite = [Scope::write(ScopeObject::Subscription)];
    /// `annotation:read`
    AnnotationsRead = [Scope::read(ScopeObject::Annotation)];
    /// `annotation:write`
    AnnotationsWrite = [Scope::write(ScopeObject::Annotation)];
}
