//! Keeps relocations in the wasm file, by which xtask splits it into the code of areas. An
//! argument of this crate's linker, so dependencies are not compiled again for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=--emit-relocs");
    }
}
