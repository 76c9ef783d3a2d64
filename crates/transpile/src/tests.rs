//! Tests of compiled sources. No code is run.

mod bounds;
mod browser;
mod faults;
mod generated;
mod server;

use crate::{Page, STACK, Script, SourceError};

/// The process that compiles JSX has its own bound, which this one does not have.
const STACK_OF_JSX: usize = 1 << 30;

fn on_stack<T: Send>(size: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(size).spawn_scoped(scope, work);
        thread.unwrap().join().unwrap()
    })
}

fn server(file_name: &str, text: &str) -> Result<Script, SourceError> {
    on_stack(STACK, || crate::server(file_name, text))
}

fn site(text: &str) -> Result<Page, SourceError> {
    on_stack(STACK, || crate::site(text))
}

fn frontend(text: &str) -> Result<Page, SourceError> {
    on_stack(STACK_OF_JSX, || crate::frontend(text))
}
