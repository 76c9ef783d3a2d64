//! The `weir` program: a runtime, then the command line. Started by itself with
//! another word, it is a process that runs scripts of plugins.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use weir_server::background::STACK;
use weir_server::cli::Cli;
use weir_server::logs;

/// Faster than the system's from many threads: a fifth of the work of storing
/// events was allocating.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Threads of the runtime, at least: some wait for the disk.
const THREADS: usize = 4;

fn main() -> ExitCode {
    // Before anything else of the program begins: such a process has one thread, and
    // nothing that the service has (ADR 9).
    if std::env::args_os().nth(1).is_some_and(|word| word == weir_plugins::WORKER) {
        return weir_sandbox::worker::main();
    }
    let outcome = run();
    logs::end(outcome.as_ref().err().map(|error| format!("{error:#}")).as_deref());
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run() -> anyhow::Result<()> {
    // Whatever is created is for the owner only.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(
            std::thread::available_parallelism().map_or(THREADS, |cores| THREADS.max(cores.get())),
        )
        .thread_stack_size(STACK)
        .build()?;
    // On a thread of the runtime, not on the small stack of the first thread.
    let outcome = runtime.block_on(async { tokio::spawn(cli.run()).await });
    runtime.shutdown_timeout(Duration::from_secs(2));
    outcome??;
    Ok(())
}
