//! Post-processes cargo's wasm file for the browser: splits it into an entry and the code of
//! areas, writes the JavaScript bindings with wasm-bindgen, and reduces the size with
//! wasm-opt.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use wasm_bindgen_cli_support::Bindgen;

use crate::assets::{files_below, name_below};
use crate::layout::{Layout, Mode};
use crate::{imports, order, panics, sha, shared, unused};

/// Part of the cache key. Increase it when this file produces other output for the same
/// input.
const RECIPE: &[u8] = b"17";

/// File in the cache of a release build: the entry with function names.
pub(crate) const NAMED: &str = "named.wasm";
/// Name of the entry.
pub(crate) const ENTRY: &str = "weir_bg.wasm";
/// Name of the script with the bindings of the entry. It exports the loading function.
pub(crate) const BINDINGS: &str = "weir.js";
/// Name of the script that loads the code of areas.
pub(crate) const LOADER: &str = "__wasm_split.js";
/// File in the cache: the files of each area.
const AREAS: &str = "areas.json";
/// File in the cache: the key of its input.
const INPUT: &str = "input";

/// The names of files by area.
pub(crate) type Areas = BTreeMap<String, Vec<String>>;

/// The files for the browser.
pub(crate) struct Browser {
    /// Contents by name. The files name each other by relative paths.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// The names of the wasm files that an area needs, without ending.
    pub(crate) areas: Areas,
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
    let mark = cache.join(INPUT);
    if fs::read_to_string(&mark).is_ok_and(|last| last == key) {
        return read(&cache);
    }
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    fs::create_dir_all(&cache)?;

    let bytes = match mode {
        Mode::Dev => bytes,
        Mode::Release => panics::trap(&unused::remove(&bytes)?)?,
    };
    let first = cache.join("first");
    fs::create_dir_all(&first)?;
    let (_, areas) = split(&bytes, &first)?;
    let shared = shared::functions(&bytes, &first, &areas)?;
    fs::remove_dir_all(&first)?;
    let (entry, mut areas) = split(&shared::export(&bytes, &shared)?, &cache)?;
    let entry = shared::unexport(&entry)?;
    let entry = shared::merge_data(entry, &cache, &cache.join(LOADER), &mut areas)?;
    fs::write(cache.join(AREAS), serde_json::to_vec(&areas)?)?;
    Bindgen::new()
        .input_bytes("weir", entry)
        .web(true)?
        .typescript(false)
        // The start script names the wasm file.
        .omit_default_module_path(true)
        .remove_producers_section(true)
        // The code of areas imports what the linker exported, under these names.
        .keep_lld_exports(true)
        .demangle(false)
        .generate(&cache)
        .context("wasm-bindgen failed")?;
    if let Some(optimizer) = optimizer {
        let script = fs::read_to_string(cache.join(BINDINGS))?;
        let (entry, script) = imports::shorten(&fs::read(cache.join(ENTRY))?, &script)?;
        fs::write(cache.join(ENTRY), entry)?;
        fs::write(cache.join(BINDINGS), script)?;
        fs::copy(cache.join(ENTRY), cache.join(NAMED))?;
        let mut files = files_below(&cache)?;
        files.retain(|file| {
            file.extension().is_some_and(|extension| extension == "wasm") && !file.ends_with(NAMED)
        });
        optimize_all(&optimizer, files)?;
    }
    fs::write(&mark, key)?;
    read(&cache)
}

/// Splits the code of areas from the entry, before wasm-bindgen. Returns the entry, and the
/// names of the files that each area needs.
fn split(bytes: &[u8], cache: &Path) -> Result<(Vec<u8>, Areas)> {
    let entry = cache.join("entry.wasm");
    let mut options = wasm_split_cli_support::Options::new(bytes);
    options.output_dir = cache;
    options.main_out_path = &entry;
    let (bindings, loader) = (format!("./{BINDINGS}"), format!("./{LOADER}"));
    options.main_module = &bindings;
    options.link_name = &loader;
    let split = wasm_split_cli_support::transform(options)
        .map_err(|error| anyhow!("splitting failed: {error:?}"))?;
    let bytes = fs::read(&entry)?;
    fs::remove_file(entry)?;
    let areas = split.prefetch_map.into_iter().collect();
    Ok((bytes, areas))
}

fn read(cache: &Path) -> Result<Browser> {
    let mut files = BTreeMap::new();
    for file in files_below(cache)? {
        let name = name_below(cache, &file)?;
        if ![AREAS, INPUT, NAMED].contains(&name.as_str()) {
            files.insert(name, fs::read(&file)?);
        }
    }
    let areas = serde_json::from_slice(&fs::read(cache.join(AREAS))?)?;
    Ok(Browser { files, areas })
}

fn wasm_opt() -> Result<PathBuf> {
    let path = env::var_os("WASM_OPT").map(PathBuf::from);
    match path {
        Some(path) if path.exists() => Ok(path),
        Some(path) => bail!("no wasm-opt at `{}`; run scripts/setup", path.display()),
        None => Ok(PathBuf::from("wasm-opt")),
    }
}

/// Optimizes files side by side, the largest first.
fn optimize_all(wasm_opt: &Path, mut files: Vec<PathBuf>) -> Result<()> {
    files.sort_by_key(|file| fs::metadata(file).map_or(0, |found| found.len()));
    let files = Mutex::new(files);
    let next = || files.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        while let Some(file) = next() {
            optimize(wasm_opt, &file)?;
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| bail!("a worker of wasm-opt panicked"))
        })
    })
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
    Ok(fs::write(file, order::similar_together(&fs::read(file)?)?)?)
}
