//! Reading and changing wasm files: sections, numbers, names of functions.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{KnownCustom, Name, Parser, Payload, TypeRef};

/// Length of the magic number and the version.
pub(crate) const HEAD: usize = 8;

/// Numbers of sections.
pub(crate) mod section {
    pub(crate) const IMPORTS: u8 = 2;
    pub(crate) const FUNCTIONS: u8 = 3;
    pub(crate) const EXPORTS: u8 = 7;
    pub(crate) const START: u8 = 8;
    pub(crate) const CODE: u8 = 10;
    pub(crate) const DATA: u8 = 11;
    pub(crate) const DATA_COUNT: u8 = 12;
}

/// Codes of instructions, and of a function without locals.
pub(crate) mod code {
    pub(crate) const NO_LOCALS: u8 = 0;
    pub(crate) const UNREACHABLE: u8 = 0;
    pub(crate) const NOP: u8 = 1;
    pub(crate) const END: u8 = 0x0b;
    pub(crate) const I32_CONST: u8 = 0x41;
}

/// Kind of an exported or imported function.
pub(crate) const FUNCTION: u8 = 0;

/// The number of functions that a file imports. Their indices come before those it defines.
pub(crate) fn imported_functions(file: &[u8]) -> Result<u32> {
    let mut imported = 0;
    for payload in Parser::new(0).parse_all(file) {
        if let Payload::ImportSection(imports) = payload? {
            for import in imports.into_imports() {
                imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
            }
        }
    }
    Ok(imported)
}

/// The names of the functions that a file defines, by their index.
pub(crate) fn function_names(file: &[u8]) -> Result<BTreeMap<u32, String>> {
    let mut names = BTreeMap::new();
    for payload in Parser::new(0).parse_all(file) {
        let Payload::CustomSection(section) = payload? else { continue };
        let KnownCustom::Name(subsections) = section.as_known() else { continue };
        for subsection in subsections {
            let Name::Function(functions) = subsection? else { continue };
            for function in functions {
                let function = function?;
                names.insert(function.index, function.name.to_owned());
            }
        }
    }
    Ok(names.split_off(&imported_functions(file)?))
}

/// The file with more entries in a section that is a list.
pub(crate) fn with_more(file: &[u8], id: u8, more: usize, entries: &[u8]) -> Result<Vec<u8>> {
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

/// The file with other contents of a section.
pub(crate) fn replaced(file: &[u8], section: &Section, contents: &[u8]) -> Vec<u8> {
    let mut output = file[..section.head].to_vec();
    output.push(section.id);
    write_number(&mut output, contents.len());
    output.extend_from_slice(contents);
    output.extend_from_slice(&file[section.end..]);
    output
}

/// A section of a file: its number, where it begins with its head, and its contents.
pub(crate) struct Section {
    pub(crate) id: u8,
    pub(crate) head: usize,
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

/// The sections, in their order.
pub(crate) fn sections(file: &[u8]) -> Result<Vec<Section>> {
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
pub(crate) fn read_number(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        number |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[at + 1..]));
        }
    }
    bail!("not a number")
}

/// Writes an unsigned number in LEB128.
pub(crate) fn write_number(bytes: &mut Vec<u8>, mut number: usize) {
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
    use super::{read_number, write_number};

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
}
