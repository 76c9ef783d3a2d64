//! Byte budgets of the files that a browser loads before a page is complete.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use wasmparser::{KnownCustom, Name, Parser, Payload};

use crate::compress;
use crate::layout::{Layout, Mode};
use crate::wasm::{BINDINGS, ENTRY, NAMED};

/// A limit in kilobytes after gzip, which every browser supports.
struct Budget {
    logical: &'static str,
    warn: usize,
    fail: usize,
}

// Budgets are lowered where they can be. The entry has what ADR 16 allows.
const BUDGETS: [Budget; 4] = [
    Budget { logical: ENTRY, warn: 380, fail: 385 },
    Budget { logical: BINDINGS, warn: 15, fail: 20 },
    Budget { logical: "weir.css", warn: 18, fail: 25 },
    Budget { logical: "icons.svg", warn: 8, fail: 12 },
];
/// Budget of each file of an area, in kilobytes after gzip.
const FILE_FAIL: usize = 60;
/// Budget of all files of an area, in kilobytes after gzip.
const AREA_FAIL: usize = 90;
/// Most files of code that an area needs.
const AREA_FILES: usize = 6;

pub(crate) fn check(layout: &Layout) -> Result<()> {
    let manifest = fs::read_to_string(layout.site.join("manifest.json")).with_context(|| {
        format!("no site in `{}`; run `scripts/xtask site --release`", layout.site.display())
    })?;
    let manifest: BTreeMap<String, String> = serde_json::from_str(&manifest)?;
    if manifest.contains_key("build.txt") {
        bail!("this is a development site; run `scripts/xtask site --release` first");
    }

    let mut exceeded = Vec::new();
    println!("{:<12}{:>10}{:>10}{:>8}{:>8}", "file", "bytes", "gzip", "warn", "fail");
    for budget in BUDGETS {
        let Some(path) = manifest.get(budget.logical) else {
            println!("{:<12}{:>10}", budget.logical, "none");
            continue;
        };
        let bytes = fs::read(layout.site.join(path))?;
        let small = compress::gzip(&bytes)?.len();
        let verdict = if small > budget.fail * 1000 {
            exceeded.push(budget.logical.to_owned());
            "  exceeds its budget"
        } else if small > budget.warn * 1000 {
            "  close to its budget"
        } else {
            ""
        };
        println!(
            "{:<12}{:>10}{:>10}{:>6} k{:>6} k{verdict}",
            budget.logical,
            bytes.len(),
            small,
            budget.warn,
            budget.fail
        );
    }
    exceeded.extend(check_areas(layout, &manifest)?);
    print_largest_crates(layout)?;
    if !exceeded.is_empty() {
        bail!("over budget: {}", exceeded.join(", "));
    }
    Ok(())
}

/// Prints the size of the code of each area, and returns the areas that are too large.
/// Code that several areas share counts for each of them.
fn check_areas(layout: &Layout, manifest: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let path = manifest.get("areas.json").context("the site has no areas")?;
    let areas = fs::read(layout.site.join(path))?;
    let areas: BTreeMap<String, Vec<String>> = serde_json::from_slice(&areas)?;
    let mut exceeded = Vec::new();
    println!("\n{:<15}{:>7}{:>10}{:>10}", "area", "files", "gzip", "largest");
    for (area, files) in areas {
        let (mut small, mut largest) = (0, 0);
        for file in &files {
            let path = manifest.get(&format!("{file}.wasm")).context("no such file")?;
            let size = compress::gzip(&fs::read(layout.site.join(path))?)?.len();
            small += size;
            largest = largest.max(size);
        }
        let is_over =
            small > AREA_FAIL * 1000 || largest > FILE_FAIL * 1000 || files.len() > AREA_FILES;
        let verdict = if is_over { "  exceeds its budget" } else { "" };
        println!("{area:<15}{:>7}{small:>10}{largest:>10}{verdict}", files.len());
        if is_over {
            exceeded.push(area);
        }
    }
    Ok(exceeded)
}

/// Prints code size by crate, before wasm-opt removes the names. Inlined code counts for
/// the crate that it was inlined into, so this is an estimate and not an exact sum.
fn print_largest_crates(layout: &Layout) -> Result<()> {
    let file = layout.cache(Mode::Release).join(NAMED);
    if !file.exists() {
        return Ok(());
    }
    let mut crates: Vec<(String, usize)> = code_by_crate(&file)?.into_iter().collect();
    crates.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    println!("\nlargest crates, bytes of code before wasm-opt:");
    for (name, bytes) in crates.iter().take(10) {
        println!("{bytes:>10}  {name}");
    }
    Ok(())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other sections hold no code")]
fn code_by_crate(file: &Path) -> Result<BTreeMap<String, usize>> {
    let bytes = fs::read(file)?;
    let mut imported = 0;
    let mut sizes = Vec::new();
    let mut names = BTreeMap::new();
    for payload in Parser::new(0).parse_all(&bytes) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    if matches!(import?.ty, wasmparser::TypeRef::Func(_)) {
                        imported += 1;
                    }
                }
            }
            Payload::CodeSectionEntry(body) => sizes.push(body.range().len()),
            Payload::CustomSection(section) => {
                let KnownCustom::Name(subsections) = section.as_known() else {
                    continue;
                };
                for subsection in subsections {
                    let Name::Function(functions) = subsection? else {
                        continue;
                    };
                    for function in functions {
                        let function = function?;
                        names.insert(function.index as usize, function.name);
                    }
                }
            }
            _ => {}
        }
    }
    let mut crates = BTreeMap::new();
    for (index, size) in sizes.into_iter().enumerate() {
        let name = names.get(&(imported + index)).copied().unwrap_or_default();
        *crates.entry(crate_of(name)).or_default() += size;
    }
    Ok(crates)
}

/// The first path in a symbol begins with the crate: `<app::Page as
/// core::fmt::Debug>::fmt` belongs to `app`, and so does `<T as app::View>::draw`. Newer
/// symbols have ids of crates: `core[12f89f2d8a73214f]::fmt`.
fn crate_of(symbol: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    for (position, _) in name.match_indices("::") {
        let path = name[..position].trim_end_matches(|c| "[]".contains(c));
        let path =
            path.rsplit_once('[').filter(|(_, id)| id.len() == 16).map_or(path, |(head, _)| head);
        let start = path.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        if start < path.len() {
            return path[start..].to_owned();
        }
    }
    "(other)".to_owned()
}

#[cfg(test)]
mod tests {
    use super::crate_of;

    #[test]
    fn a_function_belongs_to_the_crate_its_path_begins_with() {
        for (symbol, expected) in [
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core"),
            ("<weir_app::Page as core::fmt::Debug>::fmt", "weir_app"),
            ("<&mut alloc::vec::Vec<u8> as x::Y>::z", "alloc"),
            ("<T as tachys::View>::build::{{closure}}", "tachys"),
            ("<core[12f89f2d8a73214f]::str::Searcher>::new", "core"),
            ("<char>::escape_debug_ext", "(other)"),
            ("memcpy", "(other)"),
            ("", "(other)"),
        ] {
            assert_eq!(crate_of(symbol), expected, "{symbol}");
        }
    }
}
