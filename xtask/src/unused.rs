//! Removes the code of functions that nothing calls, although tables name them.
//!
//! Leptos keeps two ways to hydrate each type of view in a table: in one step, and
//! asynchronously, which loads code meanwhile. The app loads the code first
//! (`weir_app::hydrate`), so the asynchronous functions are never called. The same holds for
//! attributes in a document of the server and in a template, which the app does not use. Here
//! the bodies of such functions become a trap, and what only they need, a tenth of all code,
//! disappears. Nothing else moves in the code, because relocations refer to positions.
//!
//! The same is done with exported functions that no script can call.
//!
//! A function that describes an error, and whose text is shown nowhere, writes none.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use wasmparser::{Parser, Payload};

use crate::binary::{code, function_names, imported_functions};
use crate::relocations;

/// What the symbols of the functions in the tables contain. Not of functions that those call:
/// the compiler merges equal functions, so one of them can have other callers.
const UNUSED: [&str; 2] =
    ["8into_any13hydrate_async17h", "13into_any_attr21hydrate_from_template17h"];

/// The beginning of the symbols of functions by which scripts read and write streams of the app.
/// The HTTP client of Leptos exports them, and the app makes no stream.
const STREAMS: [&str; 2] = ["intounderlying", "__wbg_intounderlying"];

/// Describes JSON of an unexpected type, which needs the code that formats fractions. An
/// answer that cannot be read has a message of its own (`UiError::NoAnswer`).
const DESCRIPTION: &str = "serde_json..error..JsonUnexpected$u20$as$u20$core..fmt..Display";

/// The file, as the linker wrote it, without the code of these functions.
pub(crate) fn remove(file: &[u8]) -> Result<Vec<u8>> {
    let names = function_names(file)?;
    let mut unused = named(&names, &UNUSED)?;
    let is_stream = |name: &str| STREAMS.iter().any(|begin| name.starts_with(begin));
    unused.extend(names.iter().filter(|(_, name)| is_stream(name)).map(|(at, _)| *at));
    let silent = named(&names, &[DESCRIPTION])?;
    let mut at = imported_functions(file)?;
    let mut output = file.to_vec();
    let mut removed = Vec::new();
    for payload in Parser::new(0).parse_all(file) {
        if let Payload::CodeSectionEntry(body) = payload? {
            if unused.contains(&at) {
                empty(&mut output[body.range()]);
                removed.push(body.range());
            }
            if silent.contains(&at) {
                return_zero(&mut output[body.range()])?;
                removed.push(body.range());
            }
            at += 1;
        }
    }
    relocations::without(&output, &removed)
}

/// The functions whose symbols contain one of these parts.
fn named(names: &BTreeMap<u32, String>, parts: &[&str]) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for part in parts {
        let before = found.len();
        found.extend(names.iter().filter(|(_, name)| name.contains(part)).map(|(at, _)| *at));
        ensure!(found.len() > before, "no function is named `{part}`: is there a new version?");
    }
    Ok(found)
}

/// Makes a function do nothing but return zero: that it succeeded.
fn return_zero(body: &mut [u8]) -> Result<()> {
    let [locals, first, second, rest @ .., last] = body else { bail!("a function is too short") };
    *locals = code::NO_LOCALS;
    *first = code::I32_CONST;
    *second = 0;
    rest.fill(code::NOP);
    *last = code::END;
    Ok(())
}

/// Turns the body of a function into a trap of the same length.
fn empty(body: &mut [u8]) {
    let [locals, first, rest @ .., last] = body else {
        // The shortest body has no locals and only an end.
        return;
    };
    *locals = code::NO_LOCALS;
    *first = code::UNREACHABLE;
    rest.fill(code::NOP);
    *last = code::END;
}
