//! The web app on the server: pages, server functions, the live stream, downloads,
//! assets.
//!
//! What belongs here: mounting, identifying the user, and refusals before a page or a
//! function is reached. What does not: pages (`weir-app`) and rules (`weir-service`).

pub(crate) mod admission;
mod answer_files;
pub(crate) mod assets;
pub(crate) mod cookies;
pub(crate) mod cross_site;
mod csv;
pub(crate) mod forms;
mod functions;
mod held_forms;
mod help;
mod instance;
mod kept_input;
mod lists;
mod live;
mod memory;
mod pages;
mod person_export;
mod refused;
mod sign_on;
mod test_event;
mod visit;

use std::sync::Arc;

use any_spawner::Executor;
use axum::Router;
use axum::routing::{get, post};
use weir_app::context::{Assets, ProjectsChanged, TryDestination, WebContext};

use crate::app::App;
use crate::exports;
use crate::limits::StreamPermits;

/// The parts of the application that the web app needs.
#[derive(Clone)]
struct Web {
    app: App,
    context: WebContext,
    streams: StreamPermits,
    drafts: Arc<kept_input::Drafts>,
    held: Arc<held_forms::Held>,
}

impl Web {
    /// The context of pages. In a debug build the site may be rebuilt while the server
    /// runs.
    fn context(&self) -> WebContext {
        let mut context = self.context.clone();
        if cfg!(debug_assertions) {
            context.assets = assets::page_assets();
        }
        context
    }
}

/// The web app as a service.
pub fn router(app: &App) -> Router {
    // Fails when another router of this process has set it, which is fine.
    let _ = Executor::init_tokio();
    let assets = if cfg!(debug_assertions) { Assets::default() } else { assets::page_assets() };
    let tokens = app.tokens.clone();
    let projects_changed = ProjectsChanged(Arc::new(move || {
        let tokens = tokens.clone();
        Box::pin(async move { tokens.refresh().await })
    }));
    let send_event = test_event::sender(app);
    let trying = app.clone();
    let try_destination = TryDestination(Arc::new(move |trial| {
        let app = trying.clone();
        Box::pin(async move { exports::try_all(&app, &trial).await })
    }));
    let web = Web {
        context: WebContext {
            services: app.services.clone(),
            assets,
            projects_changed,
            capture_prefix: app.config.capture_prefix.to_string(),
            process_facts: instance::facts(app),
            try_destination,
            send_event,
        },
        streams: StreamPermits::new(app.limits.streams, app.limits.streams_per_person),
        drafts: Arc::default(),
        held: Arc::default(),
        app: app.clone(),
    };
    Router::new()
        .route("/_fn/{function}", post(functions::call))
        .route(forms::PLUGIN, post(forms::plugin))
        .route(forms::ATTACHMENT, post(forms::attachment))
        .route("/_live/{project}", get(live::stream))
        .route("/projects/{project}/live", get(live::moved))
        .route("/login/{provider}/", get(sign_on::begin_login))
        .route("/complete/{provider}/", get(sign_on::complete))
        .route("/complete/saml/", post(sign_on::complete_saml))
        .route("/_csv/{*page}", get(lists::download))
        .route("/_person/{project}/{person}", get(person_export::download))
        .route("/_answers/{project}/{file}", get(answer_files::download))
        .route("/_help/img/{name}", get(help::image))
        .fallback(pages::page_or_asset)
        .with_state(web)
}

/// Address of the style sheet; `None` if the site is not built.
pub(crate) fn style_sheet() -> Option<String> {
    assets::page_assets().css
}
