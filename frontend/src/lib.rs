//! Where the browser enters: takes over the page that the server rendered
//! (`hydrate`), or draws it alone for designing pages (`csr`, see Trunk.toml).
//! Nothing else belongs here; pages are in `weir-app`.

#[cfg(any(feature = "hydrate", feature = "csr"))]
use wasm_bindgen::prelude::wasm_bindgen;

/// Called by the page once this module is loaded.
#[cfg(feature = "hydrate")]
#[wasm_bindgen]
pub fn hydrate() {
    #[cfg(debug_assertions)]
    tell_panics();
    leptos::mount::hydrate_body(weir_app::App);
}

/// Called by the loader as soon as this module is loaded.
#[cfg(all(feature = "csr", not(feature = "hydrate")))]
#[wasm_bindgen(start)]
pub fn start() {
    #[cfg(debug_assertions)]
    tell_panics();
    leptos::mount::mount_to_body(weir_app::App);
}

/// Without this a panic is told as "unreachable executed".
#[cfg(all(debug_assertions, any(feature = "hydrate", feature = "csr")))]
fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| leptos::logging::error!("{panic}")));
}
