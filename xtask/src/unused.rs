//! Removes the code of functions that nothing calls, although tables name them.
//!
//! Leptos keeps two ways to hydrate each type of view in a table: in one step, and
//! asynchronously, which loads code meanwhile. The app loads the code first
//! (`weir_app::hydrate`), so the asynchronous functions are never called. Here their bodies
//! become a trap, and what only they need, a tenth of all code, disappears. Nothing else
//! moves in the code, because relocations refer to positions.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use wasmparser::{Parser, Payload};

use crate::binary::{code, function_names, imported_functions};
use crate::relocations;

/// What the symbols of the functions in the tables contain. Not of functions that those call:
/// the compiler merges equal functions, so one of them can have other callers.
const UNUSED: &str = "8into_any13hydrate_async17h";

/// The file, as the linker wrote it, without the code of these functions.
pub(crate) fn remove(file: &[u8]) -> Result<Vec<u8>> {
    let names = function_names(file)?;
    let unused: BTreeSet<u32> =
        names.iter().filter(|(_, name)| name.contains(UNUSED)).map(|(at, _)| *at).collect();
    ensure!(!unused.is_empty(), "no function is named `{UNUSED}`: does Leptos still have it?");
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
