//! The routes of the app: which address shows which page.

use leptos::prelude::*;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::{Lazy, SsrMode, path};

use crate::areas::{
    account, activity, configs, domains, entrance, export_forms, exports, gallery, health, help,
    keys, live, migrations, organization, persons, plugins, project, start, transformations,
};
use crate::frame::Frame;
use crate::pages;

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
                <Route path=path!("/setup") view={Lazy::<entrance::Setup>::new()} ssr=SsrMode::Async />
                <Route path=path!("/signup/:id") view={Lazy::<entrance::SignUp>::new()} ssr=SsrMode::Async />
                <Route path=path!("/verify_email/:id") view={Lazy::<entrance::ConfirmAddress>::new()} ssr=SsrMode::Async />
                <Route path=path!("/reset") view={Lazy::<entrance::ForgotPassword>::new()} ssr=SsrMode::Async />
                <Route path=path!("/reset/:id") view={Lazy::<entrance::NewPassword>::new()} ssr=SsrMode::Async />
                <Route path=path!("/login") view={Lazy::<entrance::Login>::new()} ssr=SsrMode::Async />
                <Route path=path!("/login/2fa") view={Lazy::<entrance::LoginCode>::new()} ssr=SsrMode::Async />
                <Route path=path!("/login/again") view={Lazy::<entrance::LoginAgain>::new()} ssr=SsrMode::Async />
                <Route path=path!("/") view={Lazy::<entrance::Home>::new()} ssr=SsrMode::Async />
                <ParentRoute path=path!("") view=Frame>
                    <Route path=path!("/projects/:id/start") view={Lazy::<start::Start>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/live") view={Lazy::<live::Live>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/health") view={Lazy::<health::Health>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/health/events") view={Lazy::<health::AffectedEvents>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations") view={Lazy::<transformations::Transformations>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations/new") view={Lazy::<configs::NewConfig>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations/try") view={Lazy::<transformations::TryAll>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/transformations/:config") view={Lazy::<configs::Config>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/plugins/new") view={Lazy::<configs::NewConfig>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/plugins/:config") view={Lazy::<configs::Config>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/persons") view={Lazy::<persons::Persons>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/persons/:person") view={Lazy::<persons::Person>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/groups") view={Lazy::<persons::Groups>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/groups/:type") view={Lazy::<persons::Groups>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/groups/:type/:key") view={Lazy::<persons::Group>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/migrations") view={Lazy::<migrations::Migrations>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/settings") view={Lazy::<project::ProjectSettings>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/projects/:id/settings/keys") view={Lazy::<project::ProjectKeys>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations") view={Lazy::<organization::Organizations>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/new") view={Lazy::<organization::OrganizationNew>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports") view={Lazy::<exports::Exports>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/new") view={Lazy::<export_forms::ExportNew>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export") view={Lazy::<exports::ExportRuns>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export/backfill") view={Lazy::<exports::ExportBackfill>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export/settings") view={Lazy::<export_forms::ExportSettings>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/exports/:export/logs") view={Lazy::<exports::ExportLogs>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id") view={Lazy::<organization::Organization>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/members") view={Lazy::<organization::Members>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/invites") view={Lazy::<organization::Invites>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/domains") view={Lazy::<domains::Domains>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/domains/:domain") view={Lazy::<domains::Domain>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/activity") view={Lazy::<activity::Activity>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:group") view={Lazy::<plugins::PluginList>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:group/add") view={Lazy::<plugins::PluginAdd>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:group/:plugin") view={Lazy::<plugins::PluginDetail>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/plugins/:group/:plugin/source") view={Lazy::<plugins::PluginSource>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/search") view={Lazy::<help::Search>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/help") view={Lazy::<help::HelpIndex>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/help/:page") view={Lazy::<help::HelpPage>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/instance") view={Lazy::<help::Instance>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/organizations/:id/projects/new") view={Lazy::<project::ProjectNew>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account") view={Lazy::<account::Account>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/preferences") view={Lazy::<account::Preferences>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/messages") view={Lazy::<account::Messages>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/security") view={Lazy::<account::Security>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/security/two-step") view={Lazy::<account::TwoStep>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/security/codes") view={Lazy::<account::RecoveryCodes>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/keys") view={Lazy::<keys::Keys>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/keys/new") view={Lazy::<keys::KeyNew>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/keys/reveal") view={Lazy::<keys::KeyReveal>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/gallery") view={Lazy::<gallery::Gallery>::new()} ssr=SsrMode::Async />
                    <Route path=path!("/account/keys/:id") view={Lazy::<keys::Key>::new()} ssr=SsrMode::Async />
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
