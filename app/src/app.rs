//! The routes of the app: which address shows which page.

use leptos::prelude::*;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::path;

use crate::frame::Frame;
use crate::pages;

/// Everything in `<body>`.
#[component]
pub(crate) fn App() -> impl IntoView {
    leptos_meta::provide_meta_context();
    view! {
        <Router>
            <a class="skip" href="#main">"Skip to content"</a>
            <Routes fallback=|| view! { <pages::not_found::NotFound /> }>
                <Route path=path!("/setup") view=pages::setup::Setup />
                <Route path=path!("/signup/:id") view=pages::signup::SignUpPage />
                <Route path=path!("/verify_email/:id") view=pages::confirm::ConfirmAddressPage />
                <Route path=path!("/reset") view=pages::reset::ForgotPassword />
                <Route path=path!("/reset/:id") view=pages::reset::NewPassword />
                <Route path=path!("/login") view=pages::login::Login />
                <Route path=path!("/login/2fa") view=pages::login_code::LoginCode />
                <Route path=path!("/login/again") view=pages::login_again::LoginAgain />
                <Route path=path!("/") view=pages::home::Home />
                <ParentRoute path=path!("") view=Frame>
                    <Route path=path!("/projects/:id/start") view=pages::start::Start />
                    <Route path=path!("/projects/:id/live") view=pages::live::Live />
                    <Route path=path!("/projects/:id/health") view=pages::health::Health />
                    <Route path=path!("/projects/:id/health/events") view=pages::health::affected::AffectedEvents />
                    <Route path=path!("/projects/:id/transformations") view=pages::pipeline::Transformations />
                    <Route path=path!("/projects/:id/transformations/new") view=pages::pipeline::new::NewConfig />
                    <Route path=path!("/projects/:id/transformations/try") view=pages::pipeline::trial::TryAll />
                    <Route path=path!("/projects/:id/transformations/:config") view=pages::pipeline::config::ConfigPage />
                    <Route path=path!("/projects/:id/plugins/new") view=pages::pipeline::new::NewConfig />
                    <Route path=path!("/projects/:id/plugins/:config") view=pages::pipeline::config::ConfigPage />
                    <Route path=path!("/projects/:id/persons") view=pages::persons::Persons />
                    <Route path=path!("/projects/:id/persons/:person") view=pages::person::Person />
                    <Route path=path!("/projects/:id/groups") view=pages::groups::Groups />
                    <Route path=path!("/projects/:id/groups/:type") view=pages::groups::Groups />
                    <Route path=path!("/projects/:id/groups/:type/:key") view=pages::group::Group />
                    <Route path=path!("/projects/:id/migrations") view=pages::migrations::Migrations />
                    <Route path=path!("/projects/:id/settings") view=pages::project_settings::ProjectSettings />
                    <Route path=path!("/projects/:id/settings/keys") view=pages::project_keys::ProjectKeys />
                    <Route path=path!("/organizations") view=pages::organizations::Organizations />
                    <Route path=path!("/organizations/new") view=pages::organization_new::OrganizationNew />
                    <Route path=path!("/organizations/:id/exports") view=pages::exports::Exports />
                    <Route path=path!("/organizations/:id/exports/new") view=pages::exports::new::ExportNew />
                    <Route path=path!("/organizations/:id/exports/:export") view=pages::exports::runs::ExportRuns />
                    <Route path=path!("/organizations/:id/exports/:export/backfill") view=pages::exports::backfill::ExportBackfill />
                    <Route path=path!("/organizations/:id/exports/:export/settings") view=pages::exports::settings::ExportSettings />
                    <Route path=path!("/organizations/:id/exports/:export/logs") view=pages::exports::logs::ExportLogs />
                    <Route path=path!("/organizations/:id") view=pages::organization::Organization />
                    <Route path=path!("/organizations/:id/members") view=pages::organization::members::Members />
                    <Route path=path!("/organizations/:id/invites") view=pages::organization::invites::Invites />
                    <Route path=path!("/organizations/:id/domains") view=pages::organization::domains::Domains />
                    <Route path=path!("/organizations/:id/domains/:domain") view=pages::organization::domain::Domain />
                    <Route path=path!("/organizations/:id/activity") view=pages::organization::activity::Activity />
                    <Route path=path!("/organizations/:id/plugins/:group") view=pages::plugins::PluginList />
                    <Route path=path!("/organizations/:id/plugins/:group/add") view=pages::plugins::add::PluginAdd />
                    <Route path=path!("/organizations/:id/plugins/:group/:plugin") view=pages::plugins::detail::PluginDetail />
                    <Route path=path!("/organizations/:id/plugins/:group/:plugin/source") view=pages::plugins::source::PluginSource />
                    <Route path=path!("/search") view=pages::search::Search />
                    <Route path=path!("/help") view=pages::help::HelpIndex />
                    <Route path=path!("/help/:page") view=pages::help::HelpPage />
                    <Route path=path!("/instance") view=pages::instance::Instance />
                    <Route path=path!("/organizations/:id/projects/new") view=pages::project_new::ProjectNew />
                    <Route path=path!("/account") view=pages::account::Account />
                    <Route path=path!("/account/preferences") view=pages::preferences::PreferencesPage />
                    <Route path=path!("/account/messages") view=pages::messages::Messages />
                    <Route path=path!("/account/security") view=pages::security::Security />
                    <Route path=path!("/account/security/two-step") view=pages::two_step::TwoStep />
                    <Route path=path!("/account/security/codes") view=pages::recovery_codes::RecoveryCodes />
                    <Route path=path!("/account/keys") view=pages::keys::Keys />
                    <Route path=path!("/account/keys/new") view=pages::key_new::KeyNew />
                    <Route path=path!("/account/keys/reveal") view=pages::key_reveal::KeyReveal />
                    <Route path=path!("/gallery") view=pages::gallery::Gallery />
                    <Route path=path!("/account/keys/:id") view=pages::key::Key />
                </ParentRoute>
            </Routes>
        </Router>
    }
}
