//! Facts about the program, the machine, files and limits.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::Report;
use crate::files::shown;

/// Longest text of the system that is read, bytes.
const LONGEST: u64 = 1 << 20;

pub(super) fn about_program(report: &mut Report) {
    report.section("Program and machine");
    report.fact("weir", env!("CARGO_PKG_VERSION"));
    report.fact("built for", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    if let Ok(path) = std::env::current_exe() {
        report.fact("program", path.display());
    }
    let system = text(Path::new("/etc/os-release"));
    let name = system
        .as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")));
    report.fact("system", name.unwrap_or("unknown").trim_matches('"'));
    let kernel = text(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    report.fact("kernel", kernel.trim());
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    report.fact("processors", processors);
    let memory = text(Path::new("/proc/meminfo")).unwrap_or_default();
    for name in ["MemTotal", "MemAvailable", "SwapTotal"] {
        let value = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        report.fact(name, value.unwrap_or("unknown").trim());
    }
}

/// The open files that this command and a server of the data directory may have.
pub(super) fn about_limits(report: &mut Report, data: &Path) {
    report.section("Limits");
    let limit = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |most| most.to_string());
    report.fact(
        "open files of this command",
        format!("{}, at most {}", number(limit.current), number(limit.maximum)),
    );
    let user = rustix::process::geteuid().as_raw();
    report.fact("user of this command", user);
    let Some(server) = holder(data) else {
        return report.line("no process of this machine has the data directory open");
    };
    report.fact("process that has the data directory open", server);
    let limits = text(&Path::new("/proc").join(server.to_string()).join("limits"));
    let open_files = limits
        .as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("Max open files")));
    let open_files = open_files.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
    match open_files {
        Some(limits) => report.fact("open files of that process", limits.join(", at most ")),
        None => report.line("its limits cannot be read"),
    }
}

/// The process that holds the lock of a data directory, if the system says which.
fn holder(data: &Path) -> Option<u32> {
    let inode = fs::metadata(data.join("LOCK")).ok()?.ino();
    holder_in(&text(Path::new("/proc/locks"))?, inode)
}

/// The process that holds the lock of the file with this inode, in a list of the system.
fn holder_in(locks: &str, inode: u64) -> Option<u32> {
    let inode = inode.to_string();
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = words.as_slice() else { return None };
        let is_same = file.rsplit(':').next() == Some(inode.as_str());
        process.parse().ok().filter(|process| is_same && *process > 0)
    })
}

/// A file or directory in one line.
pub(super) fn described(path: &Path) -> String {
    let shown_path = path.display();
    match fs::symlink_metadata(path) {
        Ok(about) => {
            let kind = match about.file_type() {
                kind if kind.is_dir() => "directory".to_owned(),
                kind if kind.is_symlink() => "symbolic link".to_owned(),
                _ => shown(about.len()),
            };
            let mode = about.permissions().mode() & 0o7777;
            format!("{shown_path}: {mode:04o}, {}:{}, {kind}", about.uid(), about.gid())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("{shown_path}: is not there")
        }
        Err(error) => format!("{shown_path}: {error}"),
    }
}

/// A text of the system.
fn text(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{described, holder_in};

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fd:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 fd:01:7 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 13 fd:01:7 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE -1 fd:01:8 0 EOF\n";
        assert_eq!(holder_in(locks, 7), Some(12));
        assert_eq!(holder_in(locks, 77), None, "another kind of lock");
        assert_eq!(holder_in(locks, 8), None, "a process of another machine");
        assert_eq!(holder_in("", 7), None);
    }

    #[test]
    fn files_have_mode_and_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        assert!(described(&path).ends_with(", 3 bytes"), "{}", described(&path));
        assert!(described(folder.path()).ends_with(", directory"), "{}", described(folder.path()));
        assert!(described(&folder.path().join("gone")).ends_with(": is not there"));
    }
}
