//! Code that several areas share, which belongs into the entry.
//!
//! The splitter puts code that two or more areas need into a file for each combination of
//! areas. A page would load a dozen of them. So the file is split twice: the first time
//! shows which functions are shared, and before the second they are exported, which makes
//! them a part of the entry. Shared texts are moved there afterwards.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{KnownCustom, Name, Parser, Payload, TypeRef};

use crate::assets::files_below;
use crate::wasm::Areas;

/// Beginning of the names of files that several areas share.
const CHUNK: &str = "chunk_";
/// Most areas that share a file which stays outside of the entry.
const FEW: usize = 4;
/// Least size of such a file, in bytes before wasm-opt.
const LARGE: usize = 8 << 10;
/// Most such files of an area, so that a page loads few files.
const KEPT: usize = 4;
/// Prefix of the names of these exports.
const EXPORT: &str = "__weir_shared_";
/// Kind of an exported function.
const FUNCTION: u8 = 0;

/// Numbers of sections.
mod section {
    pub(super) const EXPORTS: u8 = 7;
    pub(super) const CODE: u8 = 10;
    pub(super) const DATA: u8 = 11;
    pub(super) const DATA_COUNT: u8 = 12;
}

/// The functions of a file that belong into the entry because several areas share them,
/// from the result of splitting it.
pub(crate) fn functions(file: &[u8], split: &Path, areas: &Areas) -> Result<Vec<u32>> {
    let mut parts = Vec::new();
    for part in files_below(split)? {
        let name = part.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(CHUNK) {
            let bytes = fs::read(&part)?;
            let users = areas.iter().filter(|(_, files)| files.contains(&name));
            parts.push((users.map(|(area, _)| area.as_str()).collect::<Vec<_>>(), bytes));
        }
    }
    // The largest first: they are worth a file of their own.
    parts.sort_by_key(|(_, bytes)| Reverse(bytes.len()));
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for (users, bytes) in parts {
        let has_room = users.iter().all(|area| kept.get(area).is_none_or(|count| *count < KEPT));
        if users.len() <= FEW && bytes.len() >= LARGE && has_room {
            for area in users {
                *kept.entry(area).or_default() += 1;
            }
        } else {
            shared.extend(names(&bytes)?.into_values());
        }
    }
    let all = names(file)?;
    Ok(all.into_iter().filter(|(_, name)| shared.contains(name)).map(|(at, _)| at).collect())
}

/// The names of the functions that a file defines, by their index.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other sections name no functions")]
fn names(file: &[u8]) -> Result<BTreeMap<u32, String>> {
    let mut imported = 0;
    let mut names = BTreeMap::new();
    for payload in Parser::new(0).parse_all(file) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    if matches!(import?.ty, TypeRef::Func(_)) {
                        imported += 1;
                    }
                }
            }
            Payload::CustomSection(section) => {
                let KnownCustom::Name(subsections) = section.as_known() else { continue };
                for subsection in subsections {
                    let Name::Function(functions) = subsection? else { continue };
                    for function in functions {
                        let function = function?;
                        names.insert(function.index, function.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    names.retain(|index, _| *index >= imported);
    Ok(names)
}

/// The file with these functions exported.
pub(crate) fn export(file: &[u8], functions: &[u32]) -> Result<Vec<u8>> {
    let mut exports = Vec::new();
    for function in functions {
        let name = format!("{EXPORT}{function}");
        write_number(&mut exports, name.len());
        exports.extend_from_slice(name.as_bytes());
        exports.push(FUNCTION);
        write_number(&mut exports, usize::try_from(*function)?);
    }
    with_more(file, section::EXPORTS, functions.len(), &exports)
}

/// Moves the parts of the split that have no functions into the entry: texts that several
/// areas share. Returns the entry, and removes the files, also from what areas load.
pub(crate) fn merge_data(
    mut entry: Vec<u8>,
    split: &Path,
    loader: &Path,
    areas: &mut Areas,
) -> Result<Vec<u8>> {
    let mut script = fs::read_to_string(loader)?;
    for part in files_below(split)? {
        let name = part.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with(CHUNK) {
            continue;
        }
        let bytes = fs::read(&part)?;
        let found = sections(&bytes)?;
        let code = found.iter().find(|section| section.id == section::CODE);
        let code = code.map(|code| read_number(&bytes[code.begin..code.end])).transpose()?;
        if code.is_some_and(|(functions, _)| functions > 0) {
            continue;
        }
        if let Some(data) = found.iter().find(|section| section.id == section::DATA) {
            let (count, segments) = read_number(&bytes[data.begin..data.end])?;
            entry = with_more(&entry, section::DATA, count, segments)?;
        }
        fs::remove_file(&part)?;
        // Its own loading function stays unused.
        for list in [format!("__{name}, "), format!(", __{name}]"), format!("[__{name}]")] {
            let rest = if list.ends_with(']') {
                if list.starts_with('[') { "[]" } else { "]" }
            } else {
                ""
            };
            script = script.replace(&list, rest);
        }
        for files in areas.values_mut() {
            files.retain(|file| *file != name);
        }
    }
    fs::write(loader, script)?;
    Ok(entry)
}

/// The file with more entries in a section that is a list.
fn with_more(file: &[u8], id: u8, more: usize, entries: &[u8]) -> Result<Vec<u8>> {
    /// Magic number and version.
    const HEAD: usize = 8;

    let mut output = file.get(..HEAD).context("no head")?.to_vec();
    let mut is_found = false;
    for section in sections(file)? {
        let contents = file.get(section.begin..section.end).context("a section is cut")?;
        let is_count = id == section::DATA && section.id == section::DATA_COUNT;
        if section.id != id && !is_count {
            output.extend_from_slice(&file[section.head..section.end]);
            continue;
        }
        let (count, rest) = read_number(contents)?;
        let mut new = Vec::new();
        write_number(&mut new, count + more);
        new.extend_from_slice(rest);
        if !is_count {
            new.extend_from_slice(entries);
            is_found = true;
        }
        output.push(section.id);
        write_number(&mut output, new.len());
        output.extend(new);
    }
    ensure!(is_found, "the file has no section {id}");
    Ok(output)
}

/// A section of a file: its number, where it begins with its head, and its contents.
struct Section {
    id: u8,
    head: usize,
    begin: usize,
    end: usize,
}

fn sections(file: &[u8]) -> Result<Vec<Section>> {
    /// Magic number and version.
    const HEAD: usize = 8;

    let mut found = Vec::new();
    let mut head = HEAD;
    while let Some(&id) = file.get(head) {
        let (size, rest) = read_number(&file[head + 1..])?;
        let begin = file.len() - rest.len();
        found.push(Section { id, head, begin, end: begin + size });
        head = begin + size;
    }
    Ok(found)
}

/// Reads an unsigned number in LEB128.
fn read_number(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        number |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[at + 1..]));
        }
    }
    bail!("not a number")
}

fn write_number(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::{export, read_number, write_number};

    #[test]
    fn numbers_survive() {
        for number in [0, 1, 127, 128, 624_485, 4_000_000_000] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            bytes.push(7);
            assert_eq!(read_number(&bytes).unwrap(), (number, &[7][..]));
        }
        assert!(read_number(&[0x80; 9]).is_err());
    }

    #[test]
    fn functions_are_exported() {
        // One function without arguments, exported as `a`.
        let file = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x05\x01\x01a\0\0\x0a\x04\x01\x02\0\x0b";
        let exported = export(file, &[0]).unwrap();
        let mut names = Vec::new();
        for payload in wasmparser::Parser::new(0).parse_all(&exported) {
            if let wasmparser::Payload::ExportSection(exports) = payload.unwrap() {
                names.extend(exports.into_iter().map(|export| export.unwrap().name.to_owned()));
            }
        }
        assert_eq!(names, ["a", "__weir_shared_0"]);
    }
}
