//! The entry point of the browser build: hydrates the page that the server rendered
//! (`hydrate`), or renders the app in the browser alone (`csr`, see Trunk.toml).
//!
//! Nothing else belongs here. The app is in `weir-app`.

#[cfg(any(feature = "hydrate", feature = "csr"))]
use wasm_bindgen::prelude::wasm_bindgen;

/// Called by the start script after this module is loaded: that of xtask
/// (`xtask/src/site.rs`), or the one for cargo-leptos (`server/src/web/assets.rs`).
#[cfg(feature = "hydrate")]
#[wasm_bindgen]
pub fn hydrate() {
    #[cfg(debug_assertions)]
    report_panics();
    weir_app::hydrate();
}

/// Called by the loader after this module is loaded.
#[cfg(all(feature = "csr", not(feature = "hydrate")))]
#[wasm_bindgen(start)]
pub fn start() {
    #[cfg(debug_assertions)]
    report_panics();
    weir_app::mount();
}

/// Without this, a panic is reported as "unreachable executed".
#[cfg(all(debug_assertions, any(feature = "hydrate", feature = "csr")))]
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| leptos::logging::error!("{panic}")));
}
