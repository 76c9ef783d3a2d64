//! From cargo's wasm file to what the browser loads: wasm-bindgen writes the
//! JavaScript glue, wasm-opt makes the result smaller.

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

/// To be raised when this file changes what it makes of the same input.
const RECIPE: &[u8] = b"3";

/// In the cache of a release: the wasm file while its functions have names.
pub(crate) const NAMED: &str = "named.wasm";

/// What the browser loads.
pub(crate) struct Browser {
    pub(crate) wasm: Vec<u8>,
    /// The glue; a module with a default export that takes the wasm's address.
    pub(crate) js: String,
    /// Scripts that the glue imports, by their path below `snippets/`.
    pub(crate) snippets: BTreeMap<String, Vec<u8>>,
}

/// Uses the result of the last run if the input is the same.
pub(crate) fn bind(layout: &Layout, mode: Mode, input: &Path) -> Result<Browser> {
    let bytes = fs::read(input).with_context(|| format!("failed to read `{}`", input.display()))?;
    let optimizer = match mode {
        Mode::Dev => None,
        Mode::Release => Some(wasm_opt()?),
    };
    // The path of wasm-opt carries its version.
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
        // The page names the wasm file, which carries a hash.
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
    // Without -g it leaves out the names.
    let status = Command::new(wasm_opt)
        .args(["-Oz", "--converge"])
        // A function with one caller stays by itself unless it is tiny: what is alike
        // stays alike, and is a tenth smaller once it is compressed.
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
