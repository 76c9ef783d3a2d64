//! The program on a small machine: two processors, and a gigabyte of memory as a hard
//! limit of the kernel.
//!
//! The limit is `RLIMIT_DATA`, which needs no rights. It counts all private writable
//! memory of the process, used or not, including the stacks of its threads. So it is
//! stricter than a machine with that much memory. An allocation beyond it ends the
//! process. The sandbox processes have lower limits.
//!
//! What belongs here: starting the program with the limit, checking that it survives, and
//! measuring its memory. What does not: attacks (`memory`, `plugins::running::hostile`).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::process::Command;

use crate::process::{Serving, weir_through};

const MIB: u64 = 1 << 20;
/// Bytes that the program may have.
const MEMORY: u64 = 1 << 30;

/// The program with the limit. It ends with the test.
pub(crate) fn weir(data: &Path) -> Command {
    let [data_limit, processors] = [format!("--data={MEMORY}"), two_processors()];
    let launcher = [
        &["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"][..],
        &["/usr/bin/prlimit", &data_limit, "--"],
        // Each further processor has threads, whose stacks count.
        &["/usr/bin/taskset", "--cpu-list", &processors],
    ];
    let launcher: Vec<String> = launcher.concat().into_iter().map(str::to_owned).collect();
    let mut command = weir_through(&launcher, data);
    // Address space that the allocator keeps for later is not memory, but would count.
    command.env("MALLOC_CONF", "retain:false");
    command
}

/// Two of the processors that this process may use, as a list.
fn two_processors() -> String {
    let allowed = status("self", "Cpus_allowed_list:").unwrap();
    let all = allowed.split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    });
    all.take(2).map(|processor| processor.to_string()).collect::<Vec<_>>().join(",")
}

/// A field of the status of a process that has not ended.
fn status(process: &str, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(value.trim().to_owned())
}

/// MiB that the program may touch under most attacks.
pub(crate) const SMALL: u64 = 680;

/// Measures the memory of a limited process.
pub(crate) struct Watch {
    process: u32,
    /// Peak of the bytes that count, and of those that are in use.
    most: Arc<[AtomicU64; 2]>,
    watching: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Watch {
    pub(crate) fn on(serving: &Serving) -> Self {
        let process = serving.id();
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max data size")).unwrap();
        assert!(limit.trim().starts_with(&MEMORY.to_string()), "it is not limited: {limit}");
        let most = Arc::new([0, 0].map(AtomicU64::new));
        let seen = Arc::clone(&most);
        let watching = tokio::spawn(async move {
            let mut interval = tokio::time::interval(Duration::from_millis(10));
            loop {
                interval.tick().await;
                for (field, most) in ["VmData:", "RssAnon:"].into_iter().zip(seen.iter()) {
                    let Some(now) = status(&process.to_string(), field) else { return };
                    let now = now.strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10;
                    most.fetch_max(now, Ordering::Relaxed);
                }
            }
        });
        Self { process, most, watching }
    }

    /// MiB that the process touches now.
    pub(crate) fn touched(&self) -> u64 {
        let now = status(&self.process.to_string(), "RssAnon:").unwrap();
        now.strip_suffix(" kB").unwrap().parse::<u64>().unwrap() >> 10
    }

    /// Asserts that the process lives, and that it touched no more memory than this, in
    /// MiB. Prints the memory that an attack took (docs/benchmarks.md).
    #[expect(clippy::print_stdout, reason = "shown with --nocapture")]
    pub(crate) fn survived(&self, attack: &str, bound: u64) {
        let lives = status(&self.process.to_string(), "VmData:").is_some();
        let [counted, touched] = [0, 1].map(|n| self.most[n].load(Ordering::Relaxed) / MIB);
        println!("{attack}: {touched} MiB of memory, {counted} MiB with what is not touched");
        assert!(lives, "it has ended after {touched} and {counted} MiB: {attack}");
        assert!(touched < bound, "{touched} MiB, at most {bound}: {attack}");
    }
}
