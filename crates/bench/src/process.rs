//! Processes under test: started, observed, and ended by their id in all cases.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock;
use crate::random::Random;

/// A running child process; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, if it was piped and not taken yet.
    pub fn take_output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Kills it and waits until it has ended.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to stop, and waits.
    ///
    /// # Errors
    /// If it does not stop in time.
    pub async fn stop(&mut self, patience: Duration) -> Result<ExitStatus> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).context("no process id")?;
        kill_process(id, Signal::TERM)?;
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if tokio::time::Instant::now() > deadline {
                bail!("process {} did not stop within {patience:?}", self.id());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The exit status, if it has ended.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process; `"self"` is this one.
///
/// # Errors
/// If there is no such process.
pub fn cpu(process: &str) -> Result<Duration> {
    ticks(Path::new(&format!("/proc/{process}/stat"))).map(|(_, time)| time)
}

/// Processor time of a process by names of threads, without trailing digits. Threads that
/// have ended are missing.
///
/// # Errors
/// If there is no such process.
pub fn cpu_by_thread(process: u32) -> Result<BTreeMap<String, Duration>> {
    let mut threads: BTreeMap<String, Duration> = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may have ended.
        if let Ok((name, time)) = ticks(&entry?.path().join("stat")) {
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-:_ ".contains(c));
            *threads.entry(name.to_owned()).or_default() += time;
        }
    }
    Ok(threads)
}

/// Name and processor time of a process or thread.
fn ticks(stat: &Path) -> Result<(String, Duration)> {
    // Linux reports hundredths of a second here, on every architecture.
    const TICK: Duration = Duration::from_millis(10);
    let text = fs::read_to_string(stat)?;
    let (before, after) = text.rsplit_once(')').context("unexpected form of stat")?;
    let name = before.split_once('(').map_or("", |(_, name)| name);
    // The state is field 3; user and system time are 14 and 15.
    let times: u32 = after
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u32>().unwrap_or(0))
        .sum();
    Ok((name.to_owned(), TICK * times))
}

/// Memory of a process in bytes, with shared pages divided among their processes (PSS).
///
/// # Errors
/// If there is no such process or it belongs to another user.
pub fn memory(process: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    bytes_of_line(&text, "Pss:")
}

/// The highest resident memory of a process in bytes, since its start or the last
/// [`forget_peak`].
///
/// # Errors
/// If there is no such process.
pub fn peak(process: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    bytes_of_line(&text, "VmHWM:")
}

/// Makes the current resident memory of a process its highest one.
///
/// # Errors
/// If there is no such process or it belongs to another user.
pub fn forget_peak(process: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{process}/clear_refs"), "5")?)
}

/// The bytes in a line such as `Pss:    1234 kB`.
fn bytes_of_line(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.with_context(|| format!("no line {name}"))?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}

/// The child processes of a process that have not ended.
///
/// # Errors
/// If there is no such process.
pub fn children(process: u32) -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may have ended.
        let Ok(list) = fs::read_to_string(entry?.path().join("children")) else { continue };
        children.extend(list.split_ascii_whitespace().filter_map(|id| id.parse::<u32>().ok()));
    }
    Ok(children)
}

/// Bytes that the files below a directory occupy.
///
/// # Errors
/// If the directory cannot be read.
pub fn disk_usage(directory: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A running store creates and deletes files.
        let Ok(meta) = entry.metadata() else { continue };
        sum += if meta.is_dir() { disk_usage(&entry.path())? } else { meta.blocks() * 512 };
    }
    Ok(sum)
}

/// A free address on this host.
///
/// Its port is below those that the system assigns to clients: a client that repeatedly
/// connects to such a port before the service listens may get it as its local port.
///
/// # Errors
/// If none was found.
pub fn free_address() -> Result<SocketAddr> {
    const TRIES: usize = 200;
    let mut random = Random::new(clock::micros().unsigned_abs() ^ u64::from(std::process::id()));
    for _ in 0..TRIES {
        let port = u16::try_from(15_000 + random.below(15_000))?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener.local_addr()?);
        }
    }
    bail!("found no free port")
}

#[cfg(test)]
mod tests {
    use super::{bytes_of_line, forget_peak, memory, peak};

    #[test]
    fn a_process_has_a_highest_memory() {
        let own = std::process::id();
        forget_peak(own).unwrap();
        assert!(peak(own).unwrap() >= 1 << 20);
        assert!(memory(own).unwrap() >= 1 << 20);
        assert_eq!(
            bytes_of_line("VmPeak:\t 9 kB\nVmHWM:\t    12 kB\n", "VmHWM:").unwrap(),
            12 << 10
        );
        assert!(bytes_of_line("VmPeak:\t 9 kB\n", "VmHWM:").is_err());
    }
}
