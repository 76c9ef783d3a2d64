//! The child alone, for tests and measurements of this crate. The product's own
//! program is its child too, and calls the same function.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_sandbox::worker::main()
}
