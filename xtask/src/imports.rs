//! Shortens the names under which the entry imports functions from its bindings.
//!
//! wasm-bindgen ends each name with a hash of 16 digits, which cannot be compressed. The names
//! are in two files only, which are made together.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{Parser, Payload, TypeRef};

use crate::binary::{FUNCTION, replaced, section, sections, write_number};

/// The name that the entry has for its bindings.
const BINDINGS: &str = "./weir_bg.js";

/// The entry and the script of its bindings, with short names.
pub(crate) fn shorten(entry: &[u8], script: &str) -> Result<(Vec<u8>, String)> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let (mut count, mut imports) = (0, Vec::new());
    for payload in Parser::new(0).parse_all(entry) {
        let Payload::ImportSection(list) = payload? else { continue };
        for import in list.into_imports() {
            let import = import?;
            let TypeRef::Func(kind) = import.ty else {
                bail!("the entry imports `{}`, which is not a function", import.name);
            };
            let mut name = import.name;
            if import.module == BINDINGS {
                let next = short(names.len());
                name = names.entry(import.name).or_insert(next);
            }
            for text in [import.module, name] {
                write_number(&mut imports, text.len());
                imports.extend_from_slice(text.as_bytes());
            }
            imports.push(FUNCTION);
            write_number(&mut imports, usize::try_from(kind)?);
            count += 1;
        }
    }
    let mut contents = Vec::new();
    write_number(&mut contents, count);
    contents.extend(imports);
    let found = sections(entry)?.into_iter().find(|part| part.id == section::IMPORTS);
    let entry = replaced(entry, &found.context("the entry imports nothing")?, &contents);

    let mut script = script.to_owned();
    for (long, short) in names {
        let key = format!(" {long}: ");
        ensure!(script.contains(&key), "the bindings have no `{long}`");
        script = script.replacen(&key, &format!(" {short}: "), 1);
    }
    Ok((entry, script))
}

/// The name with this number: letters, the last one first.
fn short(number: usize) -> String {
    let mut name = String::new();
    let mut rest = number;
    loop {
        name.extend(u8::try_from(rest % 26).map(|letter| char::from(b'a' + letter)));
        rest /= 26;
        if rest == 0 {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{short, shorten};

    #[test]
    fn both_files_have_the_short_names() {
        // One type, and a function from the bindings and one from elsewhere.
        let head = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0".as_slice();
        let entry =
            [head, b"\x02\x24\x02\x0c./weir_bg.js\x07__wbg_c\0\0\x04./ab\x04load\0\0"].concat();
        let (entry, script) = shorten(&entry, "const a = { __wbg_c: function() {} };").unwrap();
        let expected =
            [head, b"\x02\x1e\x02\x0c./weir_bg.js\x01a\0\0\x04./ab\x04load\0\0"].concat();
        assert_eq!(entry, expected);
        assert_eq!(script, "const a = { a: function() {} };");
    }

    #[test]
    fn short_names_differ() {
        let names: BTreeSet<String> = (0..2000).map(short).collect();
        assert_eq!(names.len(), 2000);
        assert!(names.iter().all(|name| name.len() <= 3));
    }
}
