//! The relocations of the code in a wasm file, as the linker wrote it. The splitter finds by
//! them which functions and data a function needs.

use std::ops::Range;

use anyhow::{Context, Result, bail};
use wasmparser::{KnownCustom, Parser, Payload};

use crate::binary::{replaced, sections, write_number};

/// The section with the relocations of the code.
const CODE: &str = "reloc.CODE";

/// The file without the relocations of parts of its code. The parts rise and are apart.
pub(crate) fn without(file: &[u8], parts: &[Range<usize>]) -> Result<Vec<u8>> {
    let mut code_begin = 0;
    for payload in Parser::new(0).parse_all(file) {
        let payload = payload?;
        if let Payload::CodeSectionStart { range, .. } = &payload {
            code_begin = range.start;
        }
        if let Payload::CustomSection(section) = &payload
            && section.name() == CODE
            && let KnownCustom::Reloc(reader) = section.as_known()
        {
            let entries = reader.entries();
            let end = entries.range().end;
            let mut starts = Vec::new();
            for entry in entries.into_iter_with_offsets() {
                let (start, entry) = entry?;
                starts.push((start, code_begin + usize::try_from(entry.offset)?));
            }
            let mut kept: Vec<Range<usize>> = Vec::new();
            for (index, (start, place)) in starts.iter().enumerate() {
                let next = starts.get(index + 1).map_or(end, |(next, _)| *next);
                let after = parts.partition_point(|part| part.end <= *place);
                if parts.get(after).is_none_or(|part| *place < part.start) {
                    kept.push(*start..next);
                }
            }
            return with(file, reader.section_index(), &kept);
        }
    }
    bail!("the file has no relocations")
}

/// The file with these relocations of a section, which are parts of the file.
fn with(file: &[u8], of: u32, kept: &[Range<usize>]) -> Result<Vec<u8>> {
    let mut contents = Vec::new();
    write_number(&mut contents, CODE.len());
    contents.extend_from_slice(CODE.as_bytes());
    write_number(&mut contents, usize::try_from(of)?);
    write_number(&mut contents, kept.len());
    for range in kept {
        contents.extend_from_slice(&file[range.clone()]);
    }
    let found = sections(file)?;
    let section = found.iter().filter(|section| section.id == 0).find(|section| {
        let contents = &file[section.begin..section.end];
        contents.get(1..).is_some_and(|rest| rest.starts_with(CODE.as_bytes()))
    });
    Ok(replaced(file, section.context("no relocations")?, &contents))
}
