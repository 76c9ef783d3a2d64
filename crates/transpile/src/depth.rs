//! Keeps the compiler's recursion within its stack.
//!
//! The compiler calls itself for everything that stands within something else: for
//! brackets, and for chains such as `a + b + c`, `if … else if …` or `a => b => c`.
//! [`scan`](crate::scan) bounds both before anything is parsed; what it cannot tell
//! apart, it refuses. JSX it follows less exactly, so there the stack is large enough
//! for any text, and the text is shorter.

use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::SOURCE_MAX;
use crate::error::{Fault, SourceError};
use crate::scan::{self, Grammar};

/// The longest `frontend.tsx` that is read, in bytes.
pub const FRONTEND_MAX: usize = 128 * 1024;

/// Of what the scan lets through, the compiler takes less than a tenth of this: a level
/// takes up to 8 KiB, there are at most [`scan::NESTING_MAX`] of brackets and
/// [`scan::CHAIN_MAX`] of chains. The rest is for chains that are longer than they
/// look. Memory is used only as far as the stack is.
const STACK: usize = 256 * 1024 * 1024;

/// What the compiler takes for one byte of a text at most: 3.7 KiB were measured.
const STACK_PER_BYTE: usize = 8 * 1024;

/// One text at a time, so that stacks do not add up.
static TURN: Mutex<()> = Mutex::new(());

/// Measures a text and, if it is within the bounds, works on it on a large stack.
pub(crate) fn guarded<T: Send>(
    file: &str,
    text: &str,
    grammar: Grammar,
    work: impl FnOnce(&str) -> Result<T, Fault> + Send,
) -> Result<T, SourceError> {
    let (longest, stack) = match grammar {
        Grammar::Script => (SOURCE_MAX, STACK),
        Grammar::Jsx => (FRONTEND_MAX, STACK.max(text.len().saturating_mul(STACK_PER_BYTE))),
    };
    let done = if text.len() > longest {
        Err(Fault::new(format!("the source is longer than {} KiB", longest / 1024), longest))
    } else {
        scan::check(text, grammar).and_then(|()| on_stack(stack, || work(text)))
    };
    done.map_err(|fault| fault.in_file(file, text))
}

fn on_stack<T: Send>(
    size: usize,
    work: impl FnOnce() -> Result<T, Fault> + Send,
) -> Result<T, Fault> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("transpile".to_owned()).stack_size(size);
        match builder.spawn_scoped(scope, work) {
            // A panic of the compiler is a fault of this text, not of the process.
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(Fault::new("the compiler fails on this source", 0))),
            Err(_) => Err(Fault::new("there is no memory to compile the source", 0)),
        }
    })
}
