//! Post-processes cargo's wasm file for the browser: wasm-bindgen writes the JavaScript
//! bindings, and wasm-opt reduces the size.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

use crate::assets::{files_below, name_below};
use crate::layout::{Layout, Mode};
use crate::sha;

/// Part of the cache key. Increase it when this file produces other output for the same
/// input.
const RECIPE: &[u8] = b"3";

/// File in the cache of a release build: the wasm file with function names.
pub(crate) const NAMED: &str = "named.wasm";

/// The files for the browser.
pub(crate) struct Browser {
    pub(crate) wasm: Vec<u8>,
    /// The JavaScript bindings: a module with a default export that takes the address of
    /// the wasm file.
    pub(crate) js: String,
    /// Scripts that the bindings import, by their path below `snippets/`.
    pub(crate) snippets: BTreeMap<String, Vec<u8>>,
}

/// Runs the tools, or returns the result of the last run for the same input.
pub(crate) fn bind(layout: &Layout, mode: Mode, input: &Path) -> Result<Browser> {
    let bytes = fs::read(input).with_context(|| format!("failed to read `{}`", input.display()))?;
    let optimizer = match mode {
        Mode::Dev => None,
        Mode::Release => Some(wasm_opt()?),
    };
    // The path of wasm-opt contains its version.
    let optimizer_name = optimizer.as_deref().map(Path::as_os_str).unwrap_or_default();
    let key = sha::of(&[RECIPE, &bytes, optimizer_name.as_encoded_bytes()]);

    let cache = layout.cache(mode);
    let mark = cache.join("input");
    if fs::read_to_string(&mark).is_ok_and(|last| last == key) {
        return read(&cache);
    }
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    fs::create_dir_all(&cache)?;

    Bindgen::new()
        .input_bytes("weir", bytes)
        .web(true)?
        .typescript(false)
        // The page names the wasm file, whose name contains a hash.
        .omit_default_module_path(true)
        .remove_producers_section(true)
        .generate(&cache)
        .context("wasm-bindgen failed")?;
    if let Some(optimizer) = optimizer {
        let wasm = cache.join("weir_bg.wasm");
        fs::copy(&wasm, cache.join(NAMED))?;
        optimize(&optimizer, &wasm)?;
    }
    fs::write(&mark, key)?;
    read(&cache)
}

fn read(cache: &Path) -> Result<Browser> {
    let mut snippets = BTreeMap::new();
    let folder = cache.join("snippets");
    if folder.exists() {
        for file in files_below(&folder)? {
            let name = name_below(&folder, &file)?;
            snippets.insert(name, fs::read(&file)?);
        }
    }
    Ok(Browser {
        wasm: fs::read(cache.join("weir_bg.wasm"))?,
        js: fs::read_to_string(cache.join("weir.js"))?,
        snippets,
    })
}

fn wasm_opt() -> Result<PathBuf> {
    let path = env::var_os("WASM_OPT").map(PathBuf::from);
    match path {
        Some(path) if path.exists() => Ok(path),
        Some(path) => bail!("no wasm-opt at `{}`; run scripts/setup", path.display()),
        None => Ok(PathBuf::from("wasm-opt")),
    }
}

fn optimize(wasm_opt: &Path, file: &Path) -> Result<()> {
    // Without `-g`, wasm-opt removes the function names.
    let status = Command::new(wasm_opt)
        .args(["-Oz", "--converge"])
        // Functions with one caller are inlined only if they are tiny. Similar functions
        // then stay similar, which makes the compressed file a tenth smaller.
        .args(["--one-caller-inline-max-function-size", "10"])
        .arg("--output")
        .args([file, file])
        .status()
        .with_context(|| format!("failed to start `{}`; run scripts/setup", wasm_opt.display()))?;
    if !status.success() {
        bail!("wasm-opt failed on `{}`", file.display());
    }
    Ok(())
}
