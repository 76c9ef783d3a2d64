//! Facts about the machine, for judging the figures.

use std::fs;
use std::path::Path;

/// The machine of the measurement.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Processors that this process may use.
    pub cores: usize,
    /// Name of the processor.
    pub processor: String,
    /// Memory in MB.
    pub memory: u64,
    /// Version of the kernel.
    pub kernel: String,
    /// File system of the working directory.
    pub file_system: String,
}

impl Machine {
    /// Reads the facts of this machine and the file system of `directory`.
    pub fn look(directory: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let after_colon = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let kilobytes = after_colon(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        // Only the version number: the rest can contain the name of a machine or its
        // owner.
        let kernel = read("/proc/sys/kernel/osrelease");
        let kernel = kernel.split(|c: char| c != '.' && !c.is_ascii_digit()).next();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: after_colon(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            memory: kilobytes.unwrap_or(0) / 1000,
            kernel: kernel.unwrap_or_default().to_owned(),
            file_system: file_system(&read("/proc/self/mounts"), directory),
        }
    }
}

/// Removes files from the memory of the system, after writing what is not written yet. Returns
/// whether that is permitted.
pub fn drop_file_cache() -> bool {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// Type of the file system with the longest mount point above `directory`.
fn file_system(mounts: &str, directory: &Path) -> String {
    let directory = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (point, kind) = (fields.next()?, fields.next()?);
            directory.starts_with(point).then_some((point.len(), kind))
        })
        .max_by_key(|(length, _)| *length)
        .map_or_else(String::new, |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::file_system;

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /nowhere/b tmpfs rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/nowhere/b/c")), "tmpfs");
        assert_eq!(file_system(mounts, Path::new("/nowhere/bc")), "ext4");
    }
}
