//! Keeps the recursion of the compiler within its stack.
//!
//! The compiler recurses for every nested construct: for brackets, and for chains such as
//! `a + b + c`, `if … else if …` or `a => b => c`. [`scan`](crate::scan) bounds both
//! before parsing, and refuses ambiguous text. JSX is scanned less exactly, so its text
//! must be shorter; JSX that is nested too deep ends the process that compiles it.

use crate::SOURCE_MAX;
use crate::error::{Fault, SourceError};
use crate::scan::{self, Grammar};

/// Maximum bytes of a `frontend.tsx`.
pub const FRONTEND_MAX: usize = 128 * 1024;

/// The stack that the compiler needs, in bytes. Text that passes the scan uses less than
/// a fifth of it: a level needs at most 8 KiB, and there are at most [`scan::NESTING_MAX`]
/// levels of brackets and [`scan::CHAIN_MAX`] of chains. The rest is for chains that are
/// longer than they appear.
pub const STACK: usize = 112 * 1024 * 1024;

/// Checks a text and, if it is within the bounds, passes it to the closure.
pub(crate) fn guarded<T>(
    file: &str,
    text: &str,
    grammar: Grammar,
    work: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, SourceError> {
    let longest = match grammar {
        Grammar::Script => SOURCE_MAX,
        Grammar::Jsx => FRONTEND_MAX,
    };
    let done = if text.len() > longest {
        Err(Fault::new(format!("the source is longer than {} KiB", longest / 1024), longest))
    } else {
        scan::check(text, grammar).and_then(|()| work(text))
    };
    done.map_err(|fault| fault.in_file(file, text))
}
