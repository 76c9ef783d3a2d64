//! Keeps the compiler's recursion within its stack.
//!
//! The compiler calls itself for everything that stands within something else: for
//! brackets, and for chains such as `a + b + c`, `if … else if …` or `a => b => c`.
//! [`scan`](crate::scan) bounds both before anything is parsed; what it cannot tell
//! apart, it refuses. JSX it follows less exactly, so there the text is shorter, and one
//! that is nested too deep ends the process that compiles it.

use crate::SOURCE_MAX;
use crate::error::{Fault, SourceError};
use crate::scan::{self, Grammar};

/// The longest `frontend.tsx` that is read, in bytes.
pub const FRONTEND_MAX: usize = 128 * 1024;

/// The stack that the compiler needs, in bytes. Of what the scan lets through it takes
/// less than a fifth of this: a level takes up to 8 KiB, there are at most
/// [`scan::NESTING_MAX`] of brackets and [`scan::CHAIN_MAX`] of chains. The rest is for
/// chains that are longer than they look.
pub const STACK: usize = 112 * 1024 * 1024;

/// Measures a text and, if it is within the bounds, works on it.
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
