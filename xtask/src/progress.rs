//! How much of a build is done, and how much time is left. Cargo says neither: it counts
//! crates, and one crate takes as long as a hundred others.
//!
//! Cargo lists the units of a build before it, with an option that needs the permission of
//! the compiler, and reports each unit when it is compiled. The weight of a unit is the size
//! of its sources.
//!
//! What belongs here: weights, the estimate and its line. What does not: running the build
//! (`cargo`).

use std::collections::HashMap;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A build that takes less shows no line.
const SHOWN_AFTER: Duration = Duration::from_secs(3);
/// The time left is estimated once one in so many parts of the work is done.
const ESTIMATED_AFTER: u64 = 40;
/// The weight of starting the compiler, in bytes of sources.
const OVERHEAD: u64 = 20_000;
/// How much longer an optimised unit takes.
const OPTIMISED: u64 = 3;
/// Bytes of C that are compiled in the time of one of Rust.
const OF_C: u64 = 4;
/// Directories of a package that a build does not compile.
const SKIPPED: [&str; 6] = ["target", "tests", "benches", "examples", "node_modules", ".git"];
/// Its library is there already: `scripts/setup` compiled it.
const COMPILED_BEFORE: &str = "librocksdb-sys";

/// A build in progress.
pub(crate) struct Progress {
    /// What is built.
    what: &'static str,
    /// The weights of the units that cargo has not reported.
    units: HashMap<Unit, Vec<u64>>,
    /// The weight of the units that are not compiled already.
    to_do: u64,
    done: u64,
    begin: Instant,
    /// Whether the line is replaced, and not repeated.
    is_terminal: bool,
    /// The last tenth that was printed where lines are repeated.
    tenth: u64,
}

#[derive(PartialEq, Eq, Hash)]
enum Unit {
    /// A target is compiled: the path of its first file.
    Compiled(String),
    /// A build script is run: the id of its package.
    Run(String),
}

impl Progress {
    /// The progress of a cargo command with these arguments. `None`: cargo does not list its
    /// units.
    pub(crate) fn of(what: &'static str, command: &mut Command) -> Option<Self> {
        let command = command
            .args(["--unit-graph", "-Zunstable-options"])
            // It compiles nothing, so no compiled crate can depend on this.
            .env("RUSTC_BOOTSTRAP", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // Standard error is that of xtask: cargo shows there what it downloads.
        let listed = command.spawn().ok()?.wait_with_output().ok()?;
        if !listed.status.success() {
            return None;
        }
        let graph: Value = serde_json::from_slice(&listed.stdout).ok()?;
        Self::new(what, &graph, std::io::stderr().is_terminal())
    }

    fn new(what: &'static str, graph: &Value, is_terminal: bool) -> Option<Self> {
        let mut packages = Packages::default();
        let mut units: HashMap<Unit, Vec<u64>> = HashMap::new();
        let mut to_do = 0;
        for unit in graph["units"].as_array()? {
            let source = unit["target"]["src_path"].as_str()?;
            let (key, weight) = match unit["mode"].as_str()? {
                "run-custom-build" => {
                    let package = unit["pkg_id"].as_str()?.to_owned();
                    (Unit::Run(package), packages.size(Path::new(source)).c / OF_C)
                }
                _ if unit["target"]["kind"][0] == "custom-build" => {
                    let size = fs::metadata(source).map_or(0, |file| file.len());
                    (Unit::Compiled(source.to_owned()), size)
                }
                _ => {
                    let is_optimised = unit["profile"]["opt_level"] != "0";
                    let times = if is_optimised { OPTIMISED } else { 1 };
                    let size = packages.size(Path::new(source)).rust;
                    (Unit::Compiled(source.to_owned()), size * times)
                }
            };
            to_do += weight + OVERHEAD;
            units.entry(key).or_default().push(weight + OVERHEAD);
        }
        let begin = Instant::now();
        Some(Self { what, units, to_do, done: 0, begin, is_terminal, tenth: 0 })
    }

    /// Whether the line is on a terminal, where nothing else may write.
    pub(crate) fn is_on_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Counts a message of cargo.
    pub(crate) fn note(&mut self, message: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let unit = match message["reason"].as_str() {
            Some("compiler-artifact") => Unit::Compiled(text(&message["target"]["src_path"])),
            Some("build-script-executed") => Unit::Run(text(&message["package_id"])),
            _ => return,
        };
        let Some(weight) = self.units.get_mut(&unit).and_then(Vec::pop) else { return };
        if message["fresh"] == true {
            self.to_do -= weight;
        } else {
            self.done += weight;
        }
    }

    /// Shows the present state. Called about once a second.
    pub(crate) fn show(&mut self) {
        let elapsed = self.begin.elapsed();
        if elapsed < SHOWN_AFTER || self.done == 0 {
            return;
        }
        let line = line(self.what, self.done, self.to_do, elapsed);
        if self.is_terminal {
            eprint!("\r\x1b[K{line}");
            return;
        }
        let tenth = self.done * 10 / self.to_do.max(1);
        if tenth > self.tenth {
            self.tenth = tenth;
            eprintln!("{line}");
        }
    }

    /// Prints a line of cargo above that of the progress.
    pub(crate) fn print(&mut self, text: &str) {
        self.end();
        eprintln!("{text}");
        self.show();
    }

    /// Removes the line.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

fn line(what: &str, done: u64, to_do: u64, elapsed: Duration) -> String {
    let to_do = to_do.max(1);
    let percent = (done * 100 / to_do).min(99);
    let left = if done.saturating_mul(ESTIMATED_AFTER) < to_do {
        "the time left is not known yet".to_owned()
    } else {
        let seconds = elapsed.as_secs() * to_do.saturating_sub(done) / done.max(1);
        match seconds.div_ceil(60) {
            0 | 1 => "about a minute left".to_owned(),
            minutes => format!("about {minutes} minutes left"),
        }
    };
    format!("xtask: {what}: {percent} % compiled, {left}")
}

/// Bytes of sources.
#[derive(Default, Clone, Copy)]
struct Size {
    rust: u64,
    c: u64,
}

/// The sizes of packages, by their directories.
#[derive(Default)]
struct Packages(HashMap<PathBuf, Size>);

impl Packages {
    /// The size of the package that a source belongs to.
    fn size(&mut self, source: &Path) -> Size {
        let root = source.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").exists());
        let Some(root) = root else { return Size::default() };
        *self.0.entry(root.to_owned()).or_insert_with(|| measured(root))
    }
}

fn measured(root: &Path) -> Size {
    let mut size = Size::default();
    let has_c = !root.to_string_lossy().contains(COMPILED_BEFORE);
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    folders.push(path);
                }
                continue;
            }
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") => size.rust += about.len(),
                Some("c" | "cc" | "cpp" | "S") if has_c => size.c += about.len(),
                _ => {}
            }
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn units_count_by_the_size_of_their_sources() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("Cargo.toml"), "").unwrap();
        fs::create_dir(path("src")).unwrap();
        fs::create_dir(path("tests")).unwrap();
        fs::write(path("src/lib.rs"), "x".repeat(100_000)).unwrap();
        fs::write(path("tests/a.rs"), "x".repeat(900_000)).unwrap();
        fs::write(path("build.rs"), "x".repeat(1_000)).unwrap();
        fs::write(path("a.c"), "x".repeat(40_000)).unwrap();
        let (lib, script) = (path("src/lib.rs"), path("build.rs"));
        let unit = |mode: &str, kind: &str, source: &Path| {
            json!({
                "pkg_id": "a@1", "mode": mode, "profile": {"opt_level": "0"},
                "target": {"kind": [kind], "src_path": source},
            })
        };
        let graph = json!({"units": [
            unit("build", "lib", &lib), unit("build", "lib", &lib),
            unit("build", "custom-build", &script),
            unit("run-custom-build", "custom-build", &script),
        ]});
        let mut progress = Progress::new("a", &graph, false).unwrap();
        // Both `.rs` files of the package.
        let of_lib = 101_000 + OVERHEAD;
        assert_eq!(progress.to_do, 2 * of_lib + (1_000 + OVERHEAD) + (10_000 + OVERHEAD));
        let artifact = |source: &Path, fresh: bool| {
            json!({
                "reason": "compiler-artifact", "fresh": fresh, "target": {"src_path": source},
            })
        };
        progress.note(&artifact(&lib, true));
        assert_eq!((progress.done, progress.to_do), (0, of_lib + 11_000 + 2 * OVERHEAD));
        progress.note(&artifact(&lib, false));
        progress.note(&artifact(&lib, false));
        assert_eq!(progress.done, of_lib, "there are two units");
        progress.note(&artifact(&script, false));
        progress.note(&json!({"reason": "build-script-executed", "package_id": "a@1"}));
        progress.note(&json!({"reason": "build-finished", "success": true}));
        assert_eq!(progress.done, progress.to_do);
    }

    #[test]
    fn optimised_units_count_more() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        let source = folder.path().join("lib.rs");
        fs::write(&source, "x".repeat(1_000)).unwrap();
        for (level, weight) in [("0", 1_000), ("s", 3_000), ("3", 3_000)] {
            let graph = json!({"units": [{
                "pkg_id": "a@1", "mode": "build", "profile": {"opt_level": level},
                "target": {"kind": ["lib"], "src_path": source},
            }]});
            let progress = Progress::new("a", &graph, false).unwrap();
            assert_eq!(progress.to_do, weight + OVERHEAD);
        }
    }

    #[test]
    fn another_form_of_the_list_shows_nothing() {
        for graph in [json!({}), json!({"units": [{"mode": "build"}]}), json!([])] {
            assert!(Progress::new("a", &graph, false).is_none(), "{graph}");
        }
    }

    #[test]
    fn the_line_has_the_part_that_is_done_and_the_time_left() {
        let line = |done, seconds| line("program", done, 1_000, Duration::from_secs(seconds));
        assert_eq!(line(10, 30), "xtask: program: 1 % compiled, the time left is not known yet");
        assert_eq!(line(100, 60), "xtask: program: 10 % compiled, about 9 minutes left");
        assert_eq!(line(990, 600), "xtask: program: 99 % compiled, about a minute left");
        assert_eq!(line(1_000, 600), "xtask: program: 99 % compiled, about a minute left");
    }
}
