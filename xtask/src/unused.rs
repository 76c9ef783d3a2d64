//! Removes the code of functions that nothing calls, although tables name them.
//!
//! Leptos keeps two ways to hydrate each type of view in a table: in one step, and
//! asynchronously, which loads code meanwhile. The app loads the code first
//! (`weir_app::hydrate`), so the asynchronous functions are never called. Here their bodies
//! become a trap, and what only they need, a tenth of all code, disappears. Nothing else
//! moves in the code, because relocations refer to positions.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use wasmparser::{KnownCustom, Parser, Payload};

use crate::binary::{function_names, imported_functions, replaced, sections, write_number};

/// What the symbols of the functions in the tables contain. Not of functions that those call:
/// the compiler merges equal functions, so one of them can have other callers.
const UNUSED: &str = "8into_any13hydrate_async17h";
/// The section with the relocations of the code.
const RELOCATIONS: &str = "reloc.CODE";

/// Codes of instructions.
mod code {
    pub(super) const NO_LOCALS: u8 = 0;
    pub(super) const UNREACHABLE: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const END: u8 = 0x0b;
}

/// The file, as the linker wrote it, without the code of these functions.
pub(crate) fn remove(file: &[u8]) -> Result<Vec<u8>> {
    let names = function_names(file)?;
    let unused: BTreeSet<u32> =
        names.iter().filter(|(_, name)| name.contains(UNUSED)).map(|(at, _)| *at).collect();
    ensure!(!unused.is_empty(), "no function is named `{UNUSED}`: does Leptos still have it?");
    let mut at = imported_functions(file)?;
    let mut output = file.to_vec();
    let mut code_begin = 0;
    // Relative to the section, in rising order.
    let mut removed: Vec<Range<usize>> = Vec::new();
    let mut relocations = Vec::new();
    for payload in Parser::new(0).parse_all(file) {
        let payload = payload?;
        if let Payload::CodeSectionStart { range, .. } = &payload {
            code_begin = range.start;
        }
        if let Payload::CodeSectionEntry(body) = &payload {
            if unused.contains(&at) {
                let range = body.range();
                empty(&mut output[range.clone()]);
                removed.push(range.start - code_begin..range.end - code_begin);
            }
            at += 1;
        }
        if let Payload::CustomSection(section) = &payload
            && section.name() == RELOCATIONS
            && let KnownCustom::Reloc(reader) = section.as_known()
        {
            let entries = reader.entries();
            let end = entries.range().end;
            let mut kept: Vec<Range<usize>> = Vec::new();
            let mut starts = Vec::new();
            for entry in entries.into_iter_with_offsets() {
                let (start, entry) = entry?;
                starts.push((start, usize::try_from(entry.offset)?));
            }
            for (index, (start, offset)) in starts.iter().enumerate() {
                let next = starts.get(index + 1).map_or(end, |(next, _)| *next);
                let after = removed.partition_point(|range| range.end <= *offset);
                if removed.get(after).is_none_or(|range| *offset < range.start) {
                    kept.push(*start..next);
                }
            }
            relocations = without(file, section.name(), reader.section_index(), &kept);
        }
    }
    ensure!(!relocations.is_empty(), "the file has no relocations");
    let section = sections(&output)?;
    let section = section.iter().filter(|section| section.id == 0).find(|section| {
        let contents = &output[section.begin..section.end];
        contents.get(1..).is_some_and(|rest| rest.starts_with(RELOCATIONS.as_bytes()))
    });
    Ok(replaced(&output, section.context("no relocations")?, &relocations))
}

/// The contents of the section of relocations with these entries.
fn without(file: &[u8], name: &str, of: u32, kept: &[Range<usize>]) -> Vec<u8> {
    let mut contents = Vec::new();
    write_number(&mut contents, name.len());
    contents.extend_from_slice(name.as_bytes());
    write_number(&mut contents, usize::try_from(of).unwrap_or_default());
    write_number(&mut contents, kept.len());
    for range in kept {
        contents.extend_from_slice(&file[range.clone()]);
    }
    contents
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
