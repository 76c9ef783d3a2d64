//! The entry point of the browser build: starts the islands of a page that the server
//! drew (`hydrate`), or draws them without a server for design work (`csr`, see
//! Trunk.toml).
//!
//! Nothing else belongs here. Islands are in `weir-app`.

#[cfg(any(feature = "hydrate", feature = "csr"))]
use wasm_bindgen::prelude::wasm_bindgen;

/// Called by the page after this module is loaded and before its islands are hydrated one
/// by one (`xtask/src/site.rs`).
#[cfg(feature = "hydrate")]
#[wasm_bindgen]
pub fn hydrate() {
    #[cfg(debug_assertions)]
    report_panics();
    leptos::mount::hydrate_islands();
    weir_app::start_behaviours();
}

/// Called by the loader after this module is loaded.
#[cfg(all(feature = "csr", not(feature = "hydrate")))]
#[wasm_bindgen(start)]
pub fn start() {
    #[cfg(debug_assertions)]
    report_panics();
    weir_app::start_behaviours();
    leptos::mount::mount_to_body(weir_app::Gallery);
}

/// Without this, a panic is reported as "unreachable executed".
#[cfg(all(debug_assertions, any(feature = "hydrate", feature = "csr")))]
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| leptos::logging::error!("{panic}")));
}
