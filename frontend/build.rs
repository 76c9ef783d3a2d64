//! Keeps relocations in the wasm file, by which xtask splits it into the code of areas. An
//! argument of this crate's linker, so dependencies are not compiled again for it. Without
//! the feature `split` they would only make the file larger.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_wasm = env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm");
    if is_wasm && env::var_os("CARGO_FEATURE_SPLIT").is_some() {
        println!("cargo::rustc-link-arg-cdylib=--emit-relocs");
    }
}
