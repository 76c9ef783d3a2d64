//! Removes the code of functions that nothing calls, although tables name them.
//!
//! Leptos keeps two ways to hydrate each type of view in a table: in one step, and
//! asynchronously, which loads code meanwhile. The app loads the code first
//! (`weir_app::hydrate`), so the asynchronous functions are never called. The same holds for
//! attributes in a document of the server and in a template, which the app does not use. Here
//! the bodies of such functions become a trap, and what only they need, a tenth of all code,
//! disappears. Nothing else moves in the code, because relocations refer to positions.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use wasmparser::{Parser, Payload};

use crate::binary::{code, function_names, imported_functions};
use crate::relocations;

/// What the symbols of the functions in the tables contain. Not of functions that those call:
/// the compiler merges equal functions, so one of them can have other callers.
const UNUSED: [&str; 2] =
    ["8into_any13hydrate_async17h", "13into_any_attr21hydrate_from_template17h"];

/// The file, as the linker wrote it, without the code of these functions.
pub(crate) fn remove(file: &[u8]) -> Result<Vec<u8>> {
    let names = function_names(file)?;
    let mut unused = BTreeSet::new();
    for part in UNUSED {
        let before = unused.len();
        unused.extend(names.iter().filter(|(_, name)| name.contains(part)).map(|(at, _)| *at));
        ensure!(unused.len() > before, "no function is named `{part}`: does Leptos still have it?");
    }
    let mut at = imported_functions(file)?;
    let mut output = file.to_vec();
    let mut removed = Vec::new();
    for payload in Parser::new(0).parse_all(file) {
        if let Payload::CodeSectionEntry(body) = payload? {
            if unused.contains(&at) {
                empty(&mut output[body.range()]);
                removed.push(body.range());
            }
            at += 1;
        }
    }
    relocations::without(&output, &removed)
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
