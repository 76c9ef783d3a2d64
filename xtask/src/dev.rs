//! The loop of `make dev`: after every change it builds, restarts the server and reloads
//! the page.
//!
//! Sources are polled a few times a second. There are only some hundred files, and
//! polling works the same on every file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::assets::files_below;
use crate::layout::{Layout, Mode};
use crate::{cargo, sha, site};

const SOURCES: [&str; 8] =
    ["Cargo.lock", "Cargo.toml", "app", "crates", "frontend", "public", "server", "style"];

/// Rebuilds the site after every change, for a server that was started separately.
pub(crate) fn watch_site(layout: &Layout, mode: Mode) -> Result<()> {
    on_every_change(layout, |change| {
        site::build(layout, mode)?;
        layout.shows_progress.set(false);
        if mode == Mode::Dev { site::mark_changed(layout, change.number) } else { Ok(()) }
    })
}

/// Runs the server, and keeps it and the site up to date.
pub(crate) fn serve(layout: &Layout, arguments: &[String]) -> Result<()> {
    let mut running = None;
    on_every_change(layout, |change| {
        site::build(layout, Mode::Dev)?;
        // A debug build of the server reads the files of the site at each request, so
        // changes of other files need no restart.
        if change.is_in_code {
            refresh(layout, arguments, &mut running)?;
        }
        layout.shows_progress.set(false);
        site::mark_changed(layout, change.number)
    })
}

struct Change {
    number: u64,
    /// Whether other files than style sheets and static files changed.
    is_in_code: bool,
}

/// A failed build is reported, and repeated after the next change.
fn on_every_change(layout: &Layout, mut build: impl FnMut(Change) -> Result<()>) -> Result<()> {
    let mut is_in_code = true;
    // Read before each build, so that a change during the build causes the next one.
    let mut seen = Sources::read(layout)?;
    for number in 0.. {
        match build(Change { number, is_in_code }) {
            Ok(()) => {
                is_in_code = false;
                eprintln!("xtask: up to date, waiting for changes");
            }
            Err(error) => eprintln!("xtask: {error:#}; waiting for changes"),
        }
        let now = seen.wait_for_change(layout)?;
        // After a failed build, its changes still have to be built.
        is_in_code |= now.differs_in_code(&seen, layout);
        seen = now;
    }
    Ok(())
}

fn refresh(layout: &Layout, arguments: &[String], running: &mut Option<Server>) -> Result<()> {
    let binary = cargo::build_server(layout, Mode::Dev)?;
    let version = sha::of(&[&fs::read(&binary)?]);
    if running.as_mut().is_some_and(|server| server.version == version && server.is_alive()) {
        return Ok(());
    }
    // Stop the old server first, because it holds the data directory and the port.
    drop(running.take());
    let mut whole = vec!["serve".to_owned()];
    whole.extend_from_slice(arguments);
    *running = Some(Server::start(layout, &binary, version, &whole)?);
    Ok(())
}

/// Runs a program that is built quickly, as early as possible: first style sheet and static
/// files, then the server, whose pages work without scripts, and while it runs the code for
/// the browser. Then the release, if the caller asks for it.
pub(crate) fn try_out(layout: &Layout, arguments: &[String], with_release: bool) -> Result<()> {
    site::build_without_code(layout)?;
    let binary = cargo::build_server(layout, Mode::Dev)?;
    let version = sha::of(&[&fs::read(&binary)?]);
    let mut server = Server::start(layout, &binary, version, arguments)?;
    // Its lines would be mixed with those of the server.
    layout.shows_progress.set(false);
    eprintln!("xtask: the program runs; its pages have no scripts yet");
    site::build(layout, Mode::Dev)?;
    eprintln!("xtask: the pages have scripts now: reload them");
    if with_release {
        eprintln!("xtask: building the release, which takes much longer");
        let setup = layout.root.join("scripts/setup");
        let status = Command::new(setup).arg("build").current_dir(&layout.root).status()?;
        ensure!(status.success(), "scripts/setup build failed");
        site::build(layout, Mode::Release)?;
        let release = cargo::build_server(layout, Mode::Release)?;
        eprintln!("xtask: the release is built: {}", release.display());
    }
    let status = server.child.wait()?;
    ensure!(status.success(), "the program ended: {status}");
    Ok(())
}

/// A running server. Dropping it stops the process and waits until it has ended.
struct Server {
    child: Child,
    version: String,
}

impl Server {
    fn start(
        layout: &Layout,
        binary: &Path,
        version: String,
        arguments: &[String],
    ) -> Result<Server> {
        let child = Command::new(binary)
            .args(arguments)
            .current_dir(&layout.root)
            // These variables are for scripts and builds. The server has no such
            // settings.
            .env_remove("WEIR_PYTHON")
            .env_remove("WEIR_SITE")
            .env_remove("WEIR_TOOLS")
            .spawn()
            .with_context(|| format!("failed to start `{}`", binary.display()))?;
        Ok(Server { child, version })
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_alive() {
            return;
        }
        if let Some(id) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // The process may have ended already.
            let _ = kill_process(id, Signal::TERM);
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.is_alive() && Instant::now() < deadline {
            pause(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Modification time and size of every source.
#[derive(PartialEq)]
struct Sources(BTreeMap<PathBuf, (SystemTime, u64)>);

impl Sources {
    fn read(layout: &Layout) -> Result<Sources> {
        let mut states = BTreeMap::new();
        for source in SOURCES {
            let path = layout.root.join(source);
            let files = if path.is_dir() { files_below(&path)? } else { vec![path] };
            for file in files {
                // Editors replace files, so a file can disappear in the meantime.
                if let Ok(state) = fs::metadata(&file) {
                    states.insert(file, (state.modified()?, state.len()));
                }
            }
        }
        Ok(Sources(states))
    }

    fn wait_for_change(&self, layout: &Layout) -> Result<Sources> {
        while Sources::read(layout)? == *self {
            pause(Duration::from_millis(300));
        }
        // Wait, so that several files saved together cause one build.
        pause(Duration::from_millis(100));
        Sources::read(layout)
    }

    fn differs_in_code(&self, other: &Sources, layout: &Layout) -> bool {
        let assets = [layout.root.join("public"), layout.root.join("style")];
        let code = |sources: &Sources| -> BTreeMap<PathBuf, (SystemTime, u64)> {
            let mut files = sources.0.clone();
            files.retain(|path, _| !assets.iter().any(|folder| path.starts_with(folder)));
            files
        };
        code(self) != code(other)
    }
}

#[expect(clippy::disallowed_methods, reason = "a loop for people, not a test or a server")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
