//! The areas of the app. The pages of an area are compiled into one file of code, which the
//! browser loads with the first of them.
//!
//! What belongs here: which page is in which area. What does not: which address shows which
//! page (`app`).

use leptos::prelude::*;
use leptos::wasm_split::SplitLoaderError;

use crate::ui::page::PageHead;

/// Declares an area: its name, and its pages.
macro_rules! area {
    ($area:ident { $($page:ident => $component:path),+ $(,)? }) => {
        pub(crate) mod $area {
            use leptos::prelude::*;
            use leptos::wasm_split::SplitLoaderError;
            use leptos_router::LazyRoute;

            use crate::pages;

            /// The pages of the area.
            #[allow(clippy::enum_variant_names, reason = "some are named like their area")]
            enum Page {
                $($page),+
            }

            fn view(page: Page) -> AnyView {
                match page {
                    $(Page::$page => $component().into_any()),+
                }
            }

            /// Draws a page, once its code is loaded.
            #[cfg(not(feature = "csr"))]
            #[leptos::wasm_split::wasm_split(
                $area,
                wasm_split_path = ::leptos::wasm_split,
                fallible,
                preload(load)
            )]
            fn draw(page: Page) -> Result<AnyView, SplitLoaderError> {
                Ok(view(page))
            }

            /// Without a server's document the code is one file: Trunk does not split it.
            #[cfg(feature = "csr")]
            async fn draw(page: Page) -> Result<AnyView, SplitLoaderError> {
                Ok(view(page))
            }

            #[cfg(feature = "csr")]
            async fn load() -> Result<(), SplitLoaderError> {
                Ok(())
            }

            /// Loads the code of the area, unless it is loaded already. A failure shows when
            /// a page is opened.
            pub(crate) async fn preload() {
                let _ = load().await;
            }

            $(
                pub(crate) struct $page;

                impl LazyRoute for $page {
                    fn data() -> Self {
                        Self
                    }

                    async fn view(_: Self) -> AnyView {
                        // The page of the server names the code, so that it loads at once.
                        #[cfg(feature = "ssr")]
                        leptos::prefetch_lazy_fn_on_server(stringify!($area));
                        super::drawn(draw(Page::$page).await)
                    }

                    async fn preload() {
                        preload().await;
                    }
                }
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
    Home => pages::home::Home,
});

area!(start {
    Start => pages::start::Start,
});

area!(live {
    Live => pages::live::Live,
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
    Members => pages::organization::members::Members,
    Invites => pages::organization::invites::Invites,
});

area!(domains {
    Domains => pages::organization::domains::Domains,
    Domain => pages::organization::domain::Domain,
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
});

area!(gallery {
    Gallery => pages::gallery::Gallery,
});

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

/// Loads the code of the page at a path in advance, for example when the pointer is on its
/// link.
#[cfg(not(feature = "ssr"))]
pub(crate) fn preload(path: &str) {
    use leptos::task::spawn_local;

    let mut parts = path.split(['/', '?']).filter(|part| !part.is_empty());
    let root = parts.next().unwrap_or_default();
    let second = parts.next().unwrap_or_default();
    let third = parts.next().unwrap_or_default();
    let last = parts.last().unwrap_or_default();
    match (root, second, third, last) {
        ("setup" | "signup" | "verify_email" | "reset" | "login" | "", ..) => {
            spawn_local(entrance::preload());
        }
        ("projects", _, "start", _) => spawn_local(start::preload()),
        ("projects", _, "live", _) => spawn_local(live::preload()),
        ("projects", _, "health", _) => spawn_local(health::preload()),
        ("projects", _, "persons" | "groups", _) => spawn_local(persons::preload()),
        ("projects", _, "migrations", _) => spawn_local(migrations::preload()),
        ("projects", _, "transformations", "" | "try") => spawn_local(transformations::preload()),
        ("projects", _, "transformations" | "plugins", _) => spawn_local(configs::preload()),
        ("organizations", _, "exports", "settings" | "new") => {
            spawn_local(export_forms::preload());
        }
        ("organizations", _, "exports", _) => spawn_local(exports::preload()),
        ("organizations", _, "domains", _) => spawn_local(domains::preload()),
        ("organizations", _, "activity", _) => spawn_local(activity::preload()),
        ("organizations", _, "plugins", _) => spawn_local(plugins::preload()),
        ("projects", ..) | ("organizations", _, "projects", _) => spawn_local(project::preload()),
        ("organizations", ..) => spawn_local(organization::preload()),
        ("account", "keys", ..) => spawn_local(keys::preload()),
        ("account", ..) => spawn_local(account::preload()),
        ("search" | "help" | "instance", ..) => spawn_local(help::preload()),
        ("gallery", ..) => spawn_local(gallery::preload()),
        _ => {}
    }
}
