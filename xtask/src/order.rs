//! Orders the functions of a wasm file so that similar ones are neighbours.
//!
//! Generic code becomes many functions that differ in a few bytes, and gzip finds repetitions
//! only within 32 KiB. The order of functions has no meaning, but it gives them their numbers:
//! in calls, exports and tables. The files that are split from the entry call its functions
//! through its table, so each file is ordered without the others.

use std::ops::Range;

use anyhow::{Context, Result};
use wasmparser::{ConstExpr, ElementItems, FunctionBody, Operator, Parser, Payload};

use crate::binary::{
    FUNCTION, HEAD, Section, imported_functions, read_number, section, sections, write_number,
};

/// A function that the file defines.
struct Function {
    /// Its position among the functions that the file defines.
    at: usize,
    /// The number of its type.
    kind: usize,
    body: Range<usize>,
    /// Where the body names functions.
    places: Vec<usize>,
    /// The body without the numbers of other functions.
    text: Vec<u8>,
}

impl Function {
    /// Functions are similar if they have one type and about the same length, and begin
    /// alike. Of several simple orders, this one made the compressed entry smallest.
    fn key(&self) -> (usize, Option<u32>, &[u8]) {
        (self.kind, self.text.len().checked_ilog2(), &self.text)
    }
}

/// The file in that order.
pub(crate) fn similar_together(file: &[u8]) -> Result<Vec<u8>> {
    let imported = usize::try_from(imported_functions(file)?)?;
    let found = sections(file)?;
    let functions = defined(file)?;
    let places = named(file, &found)?;
    let mut order: Vec<&Function> = functions.iter().collect();
    order.sort_by(|one, other| one.key().cmp(&other.key()));
    let mut numbers: Vec<usize> = (0..imported + functions.len()).collect();
    for (at, function) in order.iter().enumerate() {
        numbers[imported + function.at] = imported + at;
    }

    let mut output = file[..HEAD].to_vec();
    for part in found {
        let mut contents = Vec::new();
        match part.id {
            section::FUNCTIONS => {
                write_number(&mut contents, order.len());
                for function in &order {
                    write_number(&mut contents, function.kind);
                }
            }
            section::CODE => {
                write_number(&mut contents, order.len());
                for function in &order {
                    let body = renumbered(file, &function.body, &function.places, &numbers)?;
                    write_number(&mut contents, body.len());
                    contents.extend(body);
                }
            }
            _ => {
                let range = part.begin..part.end;
                let inside = places.iter().copied().filter(|place| range.contains(place));
                contents = renumbered(file, &range, &inside.collect::<Vec<_>>(), &numbers)?;
            }
        }
        output.push(part.id);
        write_number(&mut output, contents.len());
        output.extend(contents);
    }
    Ok(output)
}

/// The functions that the file defines.
fn defined(file: &[u8]) -> Result<Vec<Function>> {
    let mut kinds = Vec::new();
    let mut functions = Vec::new();
    for payload in Parser::new(0).parse_all(file) {
        let payload = payload?;
        if let Payload::FunctionSection(list) = &payload {
            for kind in list.clone() {
                kinds.push(usize::try_from(kind?)?);
            }
        }
        if let Payload::CodeSectionEntry(body) = &payload {
            let at = functions.len();
            let kind = *kinds.get(at).context("a function has no type")?;
            functions.push(function(file, at, kind, body)?);
        }
    }
    Ok(functions)
}

fn function(file: &[u8], at: usize, kind: usize, body: &FunctionBody<'_>) -> Result<Function> {
    let range = body.range();
    let (mut places, mut text) = (Vec::new(), Vec::new());
    let mut copied = range.start;
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        // The code of these instructions is one byte.
        let place = operators.original_position() + 1;
        if names_function(&operators.read()?) {
            text.extend_from_slice(&file[copied..place]);
            copied = operators.original_position();
            places.push(place);
        }
    }
    text.extend_from_slice(&file[copied..range.end]);
    Ok(Function { at, kind, body: range, places, text })
}

fn names_function(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::Call { .. } | Operator::ReturnCall { .. } | Operator::RefFunc { .. }
    )
}

/// Where the file names functions outside of their bodies, in rising order within a section.
fn named(file: &[u8], found: &[Section]) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    for part in found {
        if part.id == section::EXPORTS {
            places.extend(exported(&file[..part.end], part.begin)?);
        }
        if part.id == section::START {
            places.push(part.begin);
        }
    }
    for payload in Parser::new(0).parse_all(file) {
        let payload = payload?;
        if let Payload::GlobalSection(globals) = &payload {
            for global in globals.clone() {
                places.extend(in_expression(&global?.init_expr)?);
            }
        }
        if let Payload::ElementSection(elements) = &payload {
            for element in elements.clone() {
                match element?.items {
                    ElementItems::Functions(functions) => {
                        for item in functions.into_iter_with_offsets() {
                            let (place, _) = item?;
                            places.push(place);
                        }
                    }
                    ElementItems::Expressions(_, expressions) => {
                        for expression in expressions {
                            places.extend(in_expression(&expression?)?);
                        }
                    }
                }
            }
        }
    }
    Ok(places)
}

/// Where an expression names functions.
fn in_expression(expression: &ConstExpr<'_>) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    let mut operators = expression.get_operators_reader();
    while !operators.eof() {
        let place = operators.original_position() + 1;
        if names_function(&operators.read()?) {
            places.push(place);
        }
    }
    Ok(places)
}

/// Where the exports name functions. The file is given up to their end.
fn exported(file: &[u8], begin: usize) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    let (count, mut rest) = read_number(&file[begin..])?;
    for _ in 0..count {
        let (length, after) = read_number(rest)?;
        let (_, after) = after.split_at_checked(length).context("a name is cut")?;
        let (kind, after) = after.split_first().context("an export is cut")?;
        if *kind == FUNCTION {
            places.push(file.len() - after.len());
        }
        (_, rest) = read_number(after)?;
    }
    Ok(places)
}

/// A part of the file with the new numbers of functions at these places.
fn renumbered(
    file: &[u8],
    part: &Range<usize>,
    places: &[usize],
    numbers: &[usize],
) -> Result<Vec<u8>> {
    let mut output = Vec::new();
    let mut copied = part.start;
    for place in places {
        output.extend_from_slice(&file[copied..*place]);
        let (number, rest) = read_number(&file[*place..])?;
        write_number(&mut output, *numbers.get(number).context("no such function")?);
        copied = file.len() - rest.len();
    }
    output.extend_from_slice(&file[copied..part.end]);
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::similar_together;

    const HEAD: &[u8] =
        b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x04\x03\0\0\0\x04\x04\x01\x70\0\x01";

    #[test]
    fn functions_keep_their_callers() {
        // The first calls the second and is exported as `a`, the table names the second, and
        // the third calls the first.
        let file = [
            HEAD,
            b"\x07\x05\x01\x01a\0\0",
            b"\x09\x07\x01\0\x41\0\x0b\x01\x01",
            b"\x0a\x0f\x03\x04\0\x10\x01\x0b\x03\0\x01\x0b\x04\0\x10\0\x0b",
        ]
        .concat();
        let ordered = [
            HEAD,
            b"\x07\x05\x01\x01a\0\x01",
            b"\x09\x07\x01\0\x41\0\x0b\x01\0",
            b"\x0a\x0f\x03\x03\0\x01\x0b\x04\0\x10\0\x0b\x04\0\x10\x01\x0b",
        ]
        .concat();
        assert_eq!(similar_together(&file).unwrap(), ordered);
        assert_eq!(similar_together(&ordered).unwrap(), ordered);
    }
}
