//! The pages and their addresses.

use leptos::prelude::*;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::path;

use crate::frame::Frame;
use crate::pages;

/// Everything below `<body>`.
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
                <Route path=path!("/login/again") view=pages::login_again::LoginAgain />
                <Route path=path!("/") view=pages::home::Home />
                <ParentRoute path=path!("") view=Frame>
                    <Route path=path!("/projects/:id/start") view=pages::start::Start />
                    <Route path=path!("/projects/:id/live") view=pages::live::Live />
                    <Route path=path!("/projects/:id/health") view=pages::health::Health />
                    <Route path=path!("/projects/:id/settings") view=pages::project_settings::ProjectSettings />
                    <Route path=path!("/projects/:id/settings/keys") view=pages::project_keys::ProjectKeys />
                    <Route path=path!("/organizations") view=pages::organizations::Organizations />
                    <Route path=path!("/organizations/new") view=pages::organization_new::OrganizationNew />
                    <Route path=path!("/organizations/:id") view=pages::organization::Organization />
                    <Route path=path!("/organizations/:id/projects/new") view=pages::project_new::ProjectNew />
                    <Route path=path!("/account") view=pages::account::Account />
                    <Route path=path!("/account/keys") view=pages::keys::Keys />
                    <Route path=path!("/account/keys/new") view=pages::key_new::KeyNew />
                    <Route path=path!("/account/keys/reveal") view=pages::key_reveal::KeyReveal />
                    <Route path=path!("/account/keys/:id") view=pages::key::Key />
                </ParentRoute>
            </Routes>
        </Router>
    }
}
