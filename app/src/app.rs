//! The routes of the app: which address shows which page.

use leptos::prelude::*;
use leptos_router::SsrMode;
use leptos_router::components::{ParentRoute, Route, Router, Routes};

use crate::areas::{
    account, activity, alerts, configs, dashboards, definitions, domains, entrance, events,
    explore, export_forms, exports, gallery, health, help, insights, keys, migrations, numbers,
    organization, overview, people, persons, plugins, project, start, subscriptions,
    transformations, web,
};
use crate::frame::Frame;
use crate::pages;
use crate::pattern::Pattern;

/// The pattern of a route.
macro_rules! path {
    ($pattern:literal) => {
        Pattern($pattern)
    };
}

/// Everything in `<body>`.
#[component]
pub fn App() -> impl IntoView {
    #[cfg(feature = "ssr")]
    leptos_meta::provide_meta_context();
    crate::page_facts::provide();
    view! {
        <Router>
            <Navigation />
            <a class="skip" href="#main">"Skip to content"</a>
            <Routes fallback=|| view! { <pages::not_found::NotFound /> }>
                <Route path=path!("/setup") view=entrance::Setup ssr=SsrMode::Async />
                <Route path=path!("/signup/:id") view=entrance::SignUp ssr=SsrMode::Async />
                <Route path=path!("/verify_email/:id") view=entrance::ConfirmAddress ssr=SsrMode::Async />
                <Route path=path!("/reset") view=entrance::ForgotPassword ssr=SsrMode::Async />
                <Route path=path!("/reset/:id") view=entrance::NewPassword ssr=SsrMode::Async />
                <Route path=path!("/login") view=entrance::Login ssr=SsrMode::Async />
                <Route path=path!("/login/2fa") view=entrance::LoginCode ssr=SsrMode::Async />
                <Route path=path!("/login/again") view=entrance::LoginAgain ssr=SsrMode::Async />
                <Route path=path!("/login/link/:id") view=entrance::LoginLink ssr=SsrMode::Async />
                <Route path=path!("/") view=entrance::Home ssr=SsrMode::Async />
                <Route path=path!("/shared/:token") view=dashboards::SharedDashboard ssr=SsrMode::Async />
                <ParentRoute path=path!("") view=Frame>
                    <Route path=path!("/projects/:id") view=overview::Overview ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/start") view=start::Start ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/events") view=events::Events ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/events/explore") view=explore::Explore ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/web") view=web::Web ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/insights") view=dashboards::Insights ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/insights/new") view=insights::NewInsight ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/insights/persons") view=numbers::PersonsOfNumber ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/insights/:insight") view=insights::Insight ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/insights/:insight/dashboards") view=dashboards::DashboardsOfInsight ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/insights/:insight/alerts") view=alerts::Alerts ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/insights/:insight/subscriptions") view=subscriptions::InsightSubscriptions ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/sql") view=explore::Sql ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/dashboards") view=dashboards::Dashboards ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/dashboards/new") view=dashboards::NewDashboard ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/dashboards/:dashboard") view=dashboards::Dashboard ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/dashboards/:dashboard/subscriptions") view=subscriptions::DashboardSubscriptions ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/dashboards/:dashboard/settings") view=dashboards::DashboardSettings ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/dashboards/:dashboard/sharing") view=dashboards::DashboardSharing ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/dashboards/:dashboard/sharing/link") view=dashboards::NewShareLink ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/definitions") view=definitions::EventDefinitions ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/definitions/:event") view=definitions::EventDefinition ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/health") view=health::Health ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/health/events") view=health::AffectedEvents ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations") view=transformations::Transformations ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations/new") view=configs::NewConfig ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations/try") view=transformations::TryAll ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations/:config") view=configs::Config ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/plugins/new") view=configs::NewConfig ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/plugins/:config") view=configs::Config ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/persons") view=persons::Persons ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/persons/:person") view=persons::Person ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/groups") view=persons::Groups ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/groups/:type") view=persons::Groups ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/groups/:type/:key") view=persons::Group ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/migrations") view=migrations::Migrations ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/settings") view=project::ProjectSettings ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/settings/keys") view=project::ProjectKeys ssr=SsrMode::Async />
                    <Route path=path!("/organizations") view=organization::Organizations ssr=SsrMode::Async />
                    <Route path=path!("/organizations/new") view=organization::OrganizationNew ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports") view=exports::Exports ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/new") view=export_forms::ExportNew ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export") view=exports::ExportRuns ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export/backfill") view=exports::ExportBackfill ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export/settings") view=export_forms::ExportSettings ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export/logs") view=exports::ExportLogs ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id") view=organization::Organization ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/members") view=people::Members ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/invites") view=people::Invites ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/domains") view=domains::Domains ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/domains/:domain") view=domains::Domain ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/domains/:domain/token") view=domains::DomainToken ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/activity") view=activity::Activity ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:list") view=plugins::PluginList ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:list/add") view=plugins::PluginAdd ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:list/:plugin") view=plugins::PluginDetail ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:list/:plugin/source") view=plugins::PluginSource ssr=SsrMode::Async />
                    <Route path=path!("/search") view=help::Search ssr=SsrMode::Async />
                    <Route path=path!("/help") view=help::HelpIndex ssr=SsrMode::Async />
                    <Route path=path!("/help/:page") view=help::HelpPage ssr=SsrMode::Async />
                    <Route path=path!("/instance") view=help::Instance ssr=SsrMode::Async />
                    <Route path=path!("/instance/organizations") view=help::InstanceOrganizations ssr=SsrMode::Async />
                    <Route path=path!("/instance/organizations/:organization") view=help::InstanceOrganization ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/projects/new") view=project::ProjectNew ssr=SsrMode::Async />
                    <Route path=path!("/account") view=account::Account ssr=SsrMode::Async />
                    <Route path=path!("/account/preferences") view=account::Preferences ssr=SsrMode::Async />
                    <Route path=path!("/account/messages") view=account::Messages ssr=SsrMode::Async />
                    <Route path=path!("/account/security") view=account::Security ssr=SsrMode::Async />
                    <Route path=path!("/account/security/two-step") view=account::TwoStep ssr=SsrMode::Async />
                    <Route path=path!("/account/security/codes") view=account::RecoveryCodes ssr=SsrMode::Async />
                    <Route path=path!("/account/keys") view=keys::Keys ssr=SsrMode::Async />
                    <Route path=path!("/account/keys/new") view=keys::KeyNew ssr=SsrMode::Async />
                    <Route path=path!("/account/keys/reveal") view=keys::KeyReveal ssr=SsrMode::Async />
                    <Route path=path!("/gallery") view=gallery::Gallery ssr=SsrMode::Async />
                    <Route path=path!("/account/keys/:id") view=keys::Key ssr=SsrMode::Async />
                </ParentRoute>
            </Routes>
        </Router>
    }
}

/// Connects the router with the rest of the app in the browser.
#[component]
fn Navigation() -> impl IntoView {
    #[cfg(not(feature = "ssr"))]
    {
        crate::client::navigation::connect();
        crate::client::when_hydrated(|| {
            // For style sheets and tests: from now on the page is interactive.
            if let Some(root) = document().document_element() {
                let _ = root.set_attribute("data-alive", "");
            }
            crate::behaviours::outcome::clean();
        });
    }
}
