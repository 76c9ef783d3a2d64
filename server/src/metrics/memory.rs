//! The memory of this process, as the kernel counts it.

use std::fs;

/// Bytes of memory that the process has; `None` where the kernel does not say.
pub(crate) fn resident_bytes() -> Option<i64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

/// The value of `VmRSS`, which the kernel writes in kilobytes of 1024 bytes.
fn resident(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{resident, resident_bytes};

    #[test]
    fn the_resident_memory_is_read() {
        let status = "Name:\tweir\nVmHWM:\t    9000 kB\nVmRSS:\t    8124 kB\nThreads:\t9\n";
        assert_eq!(resident(status), Some(8124 * 1024));
        for other in ["", "VmRSS:\t 12\n", "VmRSS:\t x kB\n", "VmRSS:\t9223372036854775807 kB\n"] {
            assert_eq!(resident(other), None, "{other:?}");
        }
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
