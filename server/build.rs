//! Tells the server where cargo-leptos puts the site that is embedded. xtask names the
//! directory itself, by `WEIR_SITE`.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LEPTOS_SITE_ROOT");
    if let (Ok(site), Ok(package)) = (env::var("LEPTOS_SITE_ROOT"), env::var("CARGO_MANIFEST_DIR"))
    {
        // Relative to the workspace.
        let site = Path::new(&package).join("..").join(site);
        println!("cargo::rustc-env=WEIR_SITE={}", site.display());
        if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
            // The compiler notices changes of embedded files, but no new ones.
            println!("cargo::rerun-if-changed={}", site.display());
        }
    }
}
