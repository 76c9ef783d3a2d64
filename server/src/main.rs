//! The `weir` program: a runtime, then the command line. It also starts itself with
//! another argument as the process that runs scripts of plugins.

use std::process::ExitCode;
use std::time::Duration;

use weir_server::background::STACK;
use weir_server::cli::{Cli, CommandError};
use weir_server::logs;

/// With many threads it is faster than the system's allocator: a fifth of the work of
/// storing events was allocation.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Least number of threads of the runtime. Some wait for the disk.
const THREADS: usize = 4;

fn main() -> ExitCode {
    // Before any other part of the program begins: such a process has one thread, and no
    // resources of the service (ADR 9).
    if std::env::args_os().nth(1).is_some_and(|word| word == weir_plugins::WORKER) {
        return weir_sandbox::worker::main();
    }
    let outcome = run();
    let why = outcome.as_ref().err().map(|error| logs::with_causes(&**error));
    logs::end(why.as_deref());
    match &outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<CommandError>() {
            Some(error) => ExitCode::from(error.exit_code()),
            None => ExitCode::FAILURE,
        },
    }
}

fn run() -> anyhow::Result<()> {
    // Only the owner may read the files that the process creates.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let cli = Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(
            std::thread::available_parallelism().map_or(THREADS, |cores| THREADS.max(cores.get())),
        )
        .thread_stack_size(STACK)
        .build()?;
    // On a thread of the runtime, because the stack of the first thread is small.
    let outcome = runtime.block_on(async { tokio::spawn(cli.run()).await });
    runtime.shutdown_timeout(Duration::from_secs(2));
    outcome??;
    Ok(())
}
