//! Only the child process, for tests and measurements of this crate. The program of the
//! product can also be the child process; it calls the same function.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_sandbox::worker::main()
}
