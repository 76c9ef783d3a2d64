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

use anyhow::{Context, Result};

use crate::assets::files_below;
use crate::binary::{
    FUNCTION, function_names, read_number, replaced, section, sections, with_more, write_number,
};
use crate::wasm::Areas;

/// Beginning of the names of files that several areas share.
const CHUNK: &str = "chunk_";
/// Most areas that share a file which stays outside of the entry.
const FEW: usize = 12;
/// Least size of such a file, in bytes before wasm-opt.
const LARGE: usize = 8 << 10;
/// Most such files of an area, so that a page loads few files.
const KEPT: usize = 4;
/// Prefix of the names of these exports.
const EXPORT: &str = "__weir_shared_";

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
            shared.extend(function_names(&bytes)?.into_values());
        }
    }
    let all = function_names(file)?;
    Ok(all.into_iter().filter(|(_, name)| shared.contains(name)).map(|(at, _)| at).collect())
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

/// The file without those exports. After the split they are not needed: areas call the
/// functions of the entry through its table.
pub(crate) fn unexport(file: &[u8]) -> Result<Vec<u8>> {
    let exports = sections(file)?.into_iter().find(|section| section.id == section::EXPORTS);
    let exports = exports.context("no exports")?;
    let (count, mut rest) = read_number(&file[exports.begin..exports.end])?;
    let (mut kept, mut entries) = (0, Vec::new());
    for _ in 0..count {
        let whole = rest;
        let (length, after) = read_number(rest)?;
        let (name, after) = after.split_at_checked(length).context("a name is cut")?;
        let (_, after) = after.split_first().context("an export is cut")?;
        (_, rest) = read_number(after)?;
        if !name.starts_with(EXPORT.as_bytes()) {
            kept += 1;
            entries.extend_from_slice(&whole[..whole.len() - rest.len()]);
        }
    }
    let mut contents = Vec::new();
    write_number(&mut contents, kept);
    contents.extend(entries);
    Ok(replaced(file, &exports, &contents))
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

#[cfg(test)]
mod tests {
    use super::{export, unexport};

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
        assert_eq!(unexport(&exported).unwrap(), file);
    }
}
