//! Replaces calls of panics by traps.
//!
//! A release build has no panic hook, so a panic only stops the code with a trap: its message
//! and its place in the sources are shown nowhere. They are an eighth of the data, and each call
//! that passes them is code. The trap that the compiler puts after such a call stays. The code
//! keeps its length, because relocations refer to positions.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Result, ensure};
use wasmparser::{FunctionBody, Operator, Parser, Payload};

use crate::binary::{code, function_names};
use crate::relocations;

/// What the symbols of functions that panic contain.
const PANICS: [&str; 11] = [
    "4core9panicking",
    "4core4cell22panic_already_borrowed",
    "4core4cell30panic_already_mutably_borrowed",
    "4core6option13expect_failed",
    "4core6option13unwrap_failed",
    "4core6result13unwrap_failed",
    "4core5slice5index16slice_index_fail",
    "4core3str16slice_error_fail",
    "5alloc5alloc18handle_alloc_error",
    "5alloc7raw_vec12handle_error",
    "3std6thread5local18panic_access_error",
];

/// A call in the code, as parts of the file.
struct Call {
    /// The call, with the constants before it.
    whole: Range<usize>,
    /// The call alone.
    instruction: Range<usize>,
}

/// The file, as the linker wrote it, with traps instead of panics.
pub(crate) fn trap(file: &[u8]) -> Result<Vec<u8>> {
    let names = function_names(file)?;
    let is_panic = |name: &str| PANICS.iter().any(|part| name.contains(part));
    let panics: BTreeSet<u32> =
        names.iter().filter(|(_, name)| is_panic(name)).map(|(at, _)| *at).collect();
    let mut output = file.to_vec();
    let mut removed = Vec::new();
    for payload in Parser::new(0).parse_all(file) {
        if let Payload::CodeSectionEntry(body) = payload? {
            for call in calls(&body, &panics)? {
                output[call.instruction.clone()].fill(code::NOP);
                output[call.instruction.start] = code::UNREACHABLE;
                // What the constants refer to is not needed: they are read no more.
                removed.push(call.whole);
            }
        }
    }
    ensure!(!removed.is_empty(), "no function panics: does the library name them otherwise?");
    relocations::without(&output, &removed)
}

/// The calls of these functions that a trap follows: those that do not return.
fn calls(body: &FunctionBody<'_>, functions: &BTreeSet<u32>) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    let mut operators = body.get_operators_reader()?;
    let mut constants = operators.original_position();
    let mut last: Option<Call> = None;
    while !operators.eof() {
        let begin = operators.original_position();
        let operator = operators.read()?;
        let end = operators.original_position();
        if matches!(operator, Operator::Unreachable) {
            calls.extend(last.take());
        }
        last = None;
        if let Operator::Call { function_index } = operator
            && functions.contains(&function_index)
        {
            last = Some(Call { whole: constants..end, instruction: begin..end });
        }
        let is_operand = matches!(
            operator,
            Operator::I32Const { .. } | Operator::I64Const { .. } | Operator::LocalGet { .. }
        );
        if !is_operand {
            constants = end;
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wasmparser::{Parser, Payload};

    use super::calls;

    #[test]
    fn a_call_is_found_with_its_constants() {
        // Of the first function, which takes a number: `nop`, a constant, the call, a trap;
        // and then a constant and the call without a trap.
        let file = b"\0asm\x01\0\0\0\x01\x05\x01\x60\x01\x7f\0\x03\x02\x01\0\x0a\x0f\x01\x0d\0\x01\x41\x07\x10\0\0\x41\x07\x10\0\x01\x0b";
        let mut found = Vec::new();
        for payload in Parser::new(0).parse_all(file) {
            if let Payload::CodeSectionEntry(body) = payload.unwrap() {
                found.extend(calls(&body, &BTreeSet::from([0])).unwrap());
            }
        }
        let [call] = found.as_slice() else { panic!("{} calls", found.len()) };
        assert_eq!(file[call.whole.clone()], *b"\x41\x07\x10\0");
        assert_eq!(file[call.instruction.clone()], *b"\x10\0");
    }
}
