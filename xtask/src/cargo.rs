//! Runs cargo and finds its output files.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::layout::{Layout, Mode};

/// Feature of the code that is loaded by area.
const SPLIT: &str = "split";

/// Builds the browser side and returns the wasm file before wasm-bindgen.
pub(crate) fn build_frontend(layout: &Layout, mode: Mode) -> Result<PathBuf> {
    let conventions = &layout.conventions;
    let profile = match mode {
        Mode::Dev => conventions.text("lib-profile-dev")?,
        Mode::Release => conventions.text("lib-profile-release")?,
    };
    let features = [conventions.list("lib-features")?, vec![SPLIT]].concat().join(",");
    let arguments = [
        "--package",
        conventions.text("lib-package")?,
        "--lib",
        "--features",
        &features,
        "--target=wasm32-unknown-unknown",
        "--profile",
        profile,
    ];
    build(layout, &arguments, |file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// Builds the `weir` binary with the current site.
pub(crate) fn build_server(layout: &Layout, mode: Mode) -> Result<PathBuf> {
    let profile = match mode {
        Mode::Dev => "dev",
        Mode::Release => "release",
    };
    // Build the whole workspace, so that shared dependencies get the same features as in
    // all other commands. `--bin` selects the target.
    let name = layout.conventions.text("bin-target")?;
    let arguments = ["--workspace", "--bin", name, "--profile", profile];
    build(layout, &arguments, |file| file.file_stem().is_some_and(|stem| stem == name))
}

/// Runs `cargo build` and returns the file that `wanted` accepts.
fn build(
    layout: &Layout,
    arguments: &[&str],
    wanted: impl Fn(&PathBuf) -> bool,
) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .arg("build")
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(&layout.root)
        .env("CARGO_TARGET_DIR", &layout.target)
        .env("WEIR_SITE", &layout.site)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start cargo")?;

    let mut found = None;
    let output = child.stdout.take().context("cargo has an output")?;
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let files = message["filenames"].as_array().map(Vec::as_slice).unwrap_or_default();
        let files = files.iter().filter_map(Value::as_str).map(PathBuf::from);
        // Cargo reports dependencies first, so the last match is the target.
        found = files.filter(&wanted).last().or(found);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("cargo build {}: {status}", arguments.join(" "));
    }
    found.with_context(|| format!("cargo build {} made no such file", arguments.join(" ")))
}
