//! The areas of the app. The pages of an area are compiled into one file of code, which the
//! browser loads with the first of them.
//!
//! What belongs here: which page is in which area. What does not: which address shows which
//! page (`app`).

use std::pin::Pin;

use leptos::prelude::*;
use leptos::wasm_split::SplitLoaderError;
use leptos_router::ChooseView;

use crate::ui::page::PageHead;

/// What ends when the code of an area is loaded.
type Loading<T> = Pin<Box<dyn Future<Output = T>>>;

/// The code of an area.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    /// The server names the code in a page, so that it loads beside the entry.
    pub(crate) name: &'static str,
    #[cfg(not(feature = "ssr"))]
    preload: fn() -> Loading<bool>,
}

/// The page of a route, in the code of its area. One type for all pages, so that the router
/// is compiled once.
#[derive(Clone, Copy)]
pub(crate) struct AreaPage {
    area: Area,
    run: fn(Purpose) -> Loading<Result<AnyView, SplitLoaderError>>,
}

/// What the code of a page is run for.
#[derive(Clone, Copy)]
enum Purpose {
    Draw,
    /// To send the requests for its data, see `client::ahead`.
    Request,
}

impl AreaPage {
    /// Loads the code, and starts to load the data. A failure shows when the page is drawn.
    async fn request(self) {
        let _ = (self.run)(Purpose::Request).await;
    }
}

impl ChooseView for AreaPage {
    async fn choose(self) -> AnyView {
        drawn((self.run)(Purpose::Draw).await)
    }

    // The previous page is still there. The server draws without this step.
    async fn preload(&self) {
        self.request().await;
    }
}

/// Declares an area: its name, and its pages.
macro_rules! area {
    ($area:ident { $($page:ident => $component:path),+ $(,)? }) => {
        pub(crate) mod $area {
            use leptos::prelude::*;
            use leptos::wasm_split::SplitLoaderError;

            use super::{AreaPage, Loading, Purpose};
            use crate::pages;

            /// The pages of the area.
            #[allow(clippy::enum_variant_names, reason = "some are named like their area")]
            #[derive(Clone, Copy)]
            enum Page {
                $($page),+
            }

            fn view(page: Page, purpose: Purpose) -> AnyView {
                super::run(purpose, || match page {
                    $(Page::$page => $component().into_any()),+
                })
            }

            /// Draws a page, once its code is loaded.
            #[cfg(feature = "split")]
            #[leptos::wasm_split::wasm_split(
                $area,
                wasm_split_path = ::leptos::wasm_split,
                fallible,
                preload(load)
            )]
            fn draw(page: Page, purpose: Purpose) -> Result<AnyView, SplitLoaderError> {
                Ok(view(page, purpose))
            }

            /// The server, Trunk and cargo-leptos have the code in one file.
            #[cfg(not(feature = "split"))]
            async fn draw(page: Page, purpose: Purpose) -> Result<AnyView, SplitLoaderError> {
                Ok(view(page, purpose))
            }

            #[cfg(not(any(feature = "split", feature = "ssr")))]
            async fn load() -> Result<(), SplitLoaderError> {
                Ok(())
            }

            /// Loads the code of the area, unless it is loaded already. `false` if that failed.
            #[cfg(not(feature = "ssr"))]
            fn preload() -> Loading<bool> {
                Box::pin(async { load().await.is_ok() })
            }

            pub(super) const AREA: super::Area = super::Area {
                name: stringify!($area),
                #[cfg(not(feature = "ssr"))]
                preload,
            };

            fn start(page: Page, purpose: Purpose) -> Loading<Result<AnyView, SplitLoaderError>> {
                Box::pin(draw(page, purpose))
            }

            $(
                #[allow(non_upper_case_globals, reason = "named like the component")]
                pub(crate) const $page: AreaPage =
                    AreaPage { area: AREA, run: |purpose| start(Page::$page, purpose) };
            )+
        }
    };
}

area!(entrance {
    Setup => pages::setup::Setup,
    SignUp => pages::signup::SignUpPage,
    ConfirmAddress => pages::confirm::ConfirmAddressPage,
    ForgotPassword => pages::reset::ForgotPassword,
    NewPassword => pages::reset::NewPassword,
    Login => pages::login::Login,
    LoginCode => pages::login_code::LoginCode,
    LoginAgain => pages::login_again::LoginAgain,
    LoginLink => pages::login_link::LoginLink,
    Home => pages::home::Home,
});

area!(overview {
    Overview => pages::overview::Overview,
});

area!(start {
    Start => pages::start::Start,
});

area!(events {
    Events => pages::events::Events,
});

area!(web {
    Web => pages::web::Web,
});

area!(insights {
    NewInsight => pages::insights::question::NewInsight,
    Insight => pages::insights::question::Insight,
});

area!(numbers {
    PersonsOfNumber => pages::insights::persons::PersonsOfNumber,
});

// With the list of insights: the code of the questions is as large as an area may be.
area!(dashboards {
    Insights => pages::insights::Insights,
    Dashboards => pages::dashboards::Dashboards,
    NewDashboard => pages::dashboards::new::NewDashboard,
    Dashboard => pages::dashboards::one::Dashboard,
    DashboardSettings => pages::dashboards::settings::DashboardSettings,
    DashboardSharing => pages::dashboards::sharing::DashboardSharing,
    NewShareLink => pages::dashboards::sharing::NewShareLink,
    DashboardsOfInsight => pages::dashboards::of_insight::DashboardsOfInsight,
    SharedDashboard => pages::dashboards::shared::SharedDashboard,
});

area!(explore {
    Explore => pages::explore::Explore,
    Sql => pages::sql::Sql,
});

area!(alerts {
    Alerts => pages::alerts::Alerts,
});

area!(subscriptions {
    InsightSubscriptions => pages::subscriptions::InsightSubscriptions,
    DashboardSubscriptions => pages::subscriptions::DashboardSubscriptions,
});

area!(definitions {
    EventDefinitions => pages::event_definitions::EventDefinitions,
    EventDefinition => pages::event_definition::EventDefinition,
});

area!(health {
    Health => pages::health::Health,
    AffectedEvents => pages::health::affected::AffectedEvents,
});

area!(persons {
    Persons => pages::persons::Persons,
    Person => pages::person::Person,
    Groups => pages::groups::Groups,
    Group => pages::group::Group,
});

area!(transformations {
    Transformations => pages::pipeline::Transformations,
    TryAll => pages::pipeline::trial::TryAll,
});

area!(configs {
    NewConfig => pages::pipeline::new::NewConfig,
    Config => pages::pipeline::config::ConfigPage,
});

area!(migrations {
    Migrations => pages::migrations::Migrations,
});

area!(exports {
    Exports => pages::exports::Exports,
    ExportRuns => pages::exports::runs::ExportRuns,
    ExportBackfill => pages::exports::backfill::ExportBackfill,
    ExportLogs => pages::exports::logs::ExportLogs,
});

area!(export_forms {
    ExportNew => pages::exports::new::ExportNew,
    ExportSettings => pages::exports::settings::ExportSettings,
});

area!(plugins {
    PluginList => pages::plugins::PluginList,
    PluginAdd => pages::plugins::add::PluginAdd,
    PluginDetail => pages::plugins::detail::PluginDetail,
    PluginSource => pages::plugins::source::PluginSource,
});

area!(project {
    ProjectSettings => pages::project_settings::ProjectSettings,
    ProjectKeys => pages::project_keys::ProjectKeys,
    ProjectNew => pages::project_new::ProjectNew,
});

area!(organization {
    Organizations => pages::organizations::Organizations,
    OrganizationNew => pages::organization_new::OrganizationNew,
    Organization => pages::organization::Organization,
});

area!(people {
    Members => pages::organization::members::Members,
    Invites => pages::organization::invites::Invites,
});

area!(domains {
    Domains => pages::organization::domains::Domains,
    Domain => pages::organization::domain::Domain,
    DomainToken => pages::organization::domain_scim::DomainToken,
});

area!(activity {
    Activity => pages::organization::activity::Activity,
});

area!(account {
    Account => pages::account::Account,
    Preferences => pages::preferences::PreferencesPage,
    Messages => pages::messages::Messages,
    Security => pages::security::Security,
    TwoStep => pages::two_step::TwoStep,
    RecoveryCodes => pages::recovery_codes::RecoveryCodes,
});

area!(keys {
    Keys => pages::keys::Keys,
    KeyNew => pages::key_new::KeyNew,
    KeyReveal => pages::key_reveal::KeyReveal,
    Key => pages::key::Key,
});

area!(help {
    Search => pages::search::Search,
    HelpIndex => pages::help::HelpIndex,
    HelpPage => pages::help::HelpPage,
    Instance => pages::instance::Instance,
    InstanceOrganizations => pages::instance::organizations::InstanceOrganizations,
    InstanceOrganization => pages::instance::limits::InstanceOrganization,
});

area!(gallery {
    Gallery => pages::gallery::Gallery,
});

fn run(purpose: Purpose, page: impl FnOnce() -> AnyView) -> AnyView {
    match purpose {
        Purpose::Draw => page(),
        #[cfg(not(feature = "ssr"))]
        Purpose::Request => crate::client::ahead::request(page),
        #[cfg(feature = "ssr")]
        Purpose::Request => ().into_any(),
    }
}

/// The page, or what is shown when its code cannot be loaded.
fn drawn(page: Result<AnyView, SplitLoaderError>) -> AnyView {
    page.unwrap_or_else(|_| {
        view! {
            <PageHead title="Not loaded" />
            <div class="failed" role="alert">
                <p>
                    "The code of this page could not be loaded. The connection was interrupted, or the server has been updated."
                </p>
                <p><a class="button" href="" rel="external">"Load the page again"</a></p>
            </div>
        }
        .into_any()
    })
}

/// The pages by the pattern of their path, in the order of the routes.
const PAGES: [(&str, AreaPage); 86] = [
    ("/setup", entrance::Setup),
    ("/signup/:id", entrance::SignUp),
    ("/verify_email/:id", entrance::ConfirmAddress),
    ("/reset", entrance::ForgotPassword),
    ("/reset/:id", entrance::NewPassword),
    ("/login", entrance::Login),
    ("/login/2fa", entrance::LoginCode),
    ("/login/again", entrance::LoginAgain),
    ("/login/link/:id", entrance::LoginLink),
    ("/", entrance::Home),
    ("/shared/:token", dashboards::SharedDashboard),
    ("/projects/:id", overview::Overview),
    ("/projects/:id/start", start::Start),
    ("/projects/:id/events", events::Events),
    ("/projects/:id/events/explore", explore::Explore),
    ("/projects/:id/web", web::Web),
    ("/projects/:id/insights", dashboards::Insights),
    ("/projects/:id/insights/new", insights::NewInsight),
    ("/projects/:id/insights/persons", numbers::PersonsOfNumber),
    ("/projects/:id/insights/:insight", insights::Insight),
    ("/projects/:id/insights/:insight/dashboards", dashboards::DashboardsOfInsight),
    ("/projects/:id/insights/:insight/alerts", alerts::Alerts),
    ("/projects/:id/insights/:insight/subscriptions", subscriptions::InsightSubscriptions),
    ("/projects/:id/sql", explore::Sql),
    ("/projects/:id/dashboards", dashboards::Dashboards),
    ("/projects/:id/dashboards/new", dashboards::NewDashboard),
    ("/projects/:id/dashboards/:dashboard", dashboards::Dashboard),
    ("/projects/:id/dashboards/:dashboard/subscriptions", subscriptions::DashboardSubscriptions),
    ("/projects/:id/dashboards/:dashboard/settings", dashboards::DashboardSettings),
    ("/projects/:id/dashboards/:dashboard/sharing", dashboards::DashboardSharing),
    ("/projects/:id/dashboards/:dashboard/sharing/link", dashboards::NewShareLink),
    ("/projects/:id/definitions", definitions::EventDefinitions),
    ("/projects/:id/definitions/:event", definitions::EventDefinition),
    ("/projects/:id/health", health::Health),
    ("/projects/:id/health/events", health::AffectedEvents),
    ("/projects/:id/transformations", transformations::Transformations),
    ("/projects/:id/transformations/new", configs::NewConfig),
    ("/projects/:id/transformations/try", transformations::TryAll),
    ("/projects/:id/transformations/:config", configs::Config),
    ("/projects/:id/plugins/new", configs::NewConfig),
    ("/projects/:id/plugins/:config", configs::Config),
    ("/projects/:id/persons", persons::Persons),
    ("/projects/:id/persons/:person", persons::Person),
    ("/projects/:id/groups", persons::Groups),
    ("/projects/:id/groups/:type", persons::Groups),
    ("/projects/:id/groups/:type/:key", persons::Group),
    ("/projects/:id/migrations", migrations::Migrations),
    ("/projects/:id/settings", project::ProjectSettings),
    ("/projects/:id/settings/keys", project::ProjectKeys),
    ("/organizations", organization::Organizations),
    ("/organizations/new", organization::OrganizationNew),
    ("/organizations/:id/exports", exports::Exports),
    ("/organizations/:id/exports/new", export_forms::ExportNew),
    ("/organizations/:id/exports/:export", exports::ExportRuns),
    ("/organizations/:id/exports/:export/backfill", exports::ExportBackfill),
    ("/organizations/:id/exports/:export/settings", export_forms::ExportSettings),
    ("/organizations/:id/exports/:export/logs", exports::ExportLogs),
    ("/organizations/:id", organization::Organization),
    ("/organizations/:id/members", people::Members),
    ("/organizations/:id/invites", people::Invites),
    ("/organizations/:id/domains", domains::Domains),
    ("/organizations/:id/domains/:domain", domains::Domain),
    ("/organizations/:id/domains/:domain/token", domains::DomainToken),
    ("/organizations/:id/activity", activity::Activity),
    ("/organizations/:id/plugins/:list", plugins::PluginList),
    ("/organizations/:id/plugins/:list/add", plugins::PluginAdd),
    ("/organizations/:id/plugins/:list/:plugin", plugins::PluginDetail),
    ("/organizations/:id/plugins/:list/:plugin/source", plugins::PluginSource),
    ("/search", help::Search),
    ("/help", help::HelpIndex),
    ("/help/:page", help::HelpPage),
    ("/instance", help::Instance),
    ("/instance/organizations", help::InstanceOrganizations),
    ("/instance/organizations/:organization", help::InstanceOrganization),
    ("/organizations/:id/projects/new", project::ProjectNew),
    ("/account", account::Account),
    ("/account/preferences", account::Preferences),
    ("/account/messages", account::Messages),
    ("/account/security", account::Security),
    ("/account/security/two-step", account::TwoStep),
    ("/account/security/codes", account::RecoveryCodes),
    ("/account/keys", keys::Keys),
    ("/account/keys/new", keys::KeyNew),
    ("/account/keys/reveal", keys::KeyReveal),
    ("/gallery", gallery::Gallery),
    ("/account/keys/:id", keys::Key),
];

/// The page at a path, with the names and values of its parameters. `None` if there is none.
fn page_of(path: &str) -> Option<(AreaPage, Vec<(&'static str, String)>)> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    PAGES.iter().find_map(|(pattern, page)| Some((*page, parameters(pattern, path)?)))
}

/// The parameters of a path. `None` if it has another pattern.
fn parameters(pattern: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    fn parts(path: &str) -> impl Iterator<Item = &str> {
        path.split('/').filter(|part| !part.is_empty())
    }
    let (mut wanted, mut found) = (parts(pattern), parts(path));
    let mut parameters = Vec::new();
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return Some(parameters),
            (Some(wanted), Some(found)) => match wanted.strip_prefix(':') {
                Some(name) => parameters.push((name, found.to_owned())),
                None if wanted == found => {}
                None => return None,
            },
            _ => return None,
        }
    }
}

/// The area of the page at a path. `None` if there is no page.
#[cfg(feature = "ssr")]
pub(crate) fn area_of(path: &str) -> Option<Area> {
    page_of(path).map(|(page, _)| page.area)
}

/// Loads the code of the page at a path in advance, for example when the pointer is on its
/// link. `false` if that failed.
#[cfg(not(feature = "ssr"))]
pub(crate) async fn preload(path: &str) -> bool {
    match page_of(path) {
        Some((page, _)) => (page.area.preload)().await,
        None => true,
    }
}

/// Loads code and data of the page at an address in advance, when its link is pressed. Of the
/// entrance only the code: its answers can redirect, which a press must not do.
#[cfg(not(feature = "ssr"))]
pub(crate) async fn preload_with_data(address: &str) {
    if let Some((page, parameters)) = page_of(address)
        && (page.area.preload)().await
        && page.area.name != entrance::AREA.name
    {
        let request = move || page.request();
        crate::client::ahead::at(address, parameters.into_iter().collect(), request).await;
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::{PAGES, area_of, page_of};

    /// The routes of the app, each with the area of its page.
    const ROUTES: &str = include_str!("app.rs");

    #[test]
    fn pages_have_the_addresses_of_their_routes() {
        let routes = ROUTES.lines().filter_map(|line| {
            let (path, rest) =
                line.trim().strip_prefix("<Route path=path!(\"")?.split_once("\")")?;
            Some((path, rest.split_once("view=")?.1.split_once("::")?.0))
        });
        let routes: Vec<(&str, &str)> = routes.collect();
        let pages = PAGES.iter().map(|(path, page)| (*path, page.area.name));
        assert_eq!(pages.collect::<Vec<_>>(), routes);
        // No pattern hides a later one.
        for (path, area) in routes {
            assert_eq!(area_of(path).map(|found| found.name), Some(area), "{path}");
        }
        assert!(area_of("/nowhere").is_none());
    }

    #[test]
    fn a_path_has_the_parameters_of_its_pattern() {
        let of = |path| page_of(path).map(|(_, parameters)| parameters).unwrap_or_default();
        let group = of("/projects/7/groups/company/a%20b?q=1#part");
        let expected = [("id", "7"), ("type", "company"), ("key", "a%20b")];
        assert_eq!(group, expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(of("/account"), []);
    }
}
