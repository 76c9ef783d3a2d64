//! Runs cargo and finds its output files.

use std::env;
use std::io::{BufRead, BufReader, Result as IoResult};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::layout::{Layout, Mode};
use crate::progress::Progress;

/// Feature of the code that is loaded by area.
const SPLIT: &str = "split";
/// Time between two updates of the progress.
const TICK: Duration = Duration::from_secs(1);

/// Builds the browser side and returns the wasm file before wasm-bindgen.
pub(crate) fn build_frontend(layout: &Layout, mode: Mode) -> Result<PathBuf> {
    let conventions = &layout.conventions;
    let profile = match mode {
        Mode::Dev => conventions.text("lib-profile-dev")?,
        Mode::Release => conventions.text("lib-profile-release")?,
    };
    let features = [conventions.list("lib-features")?, vec![SPLIT]].concat().join(",");
    let arguments = [
        "--package",
        conventions.text("lib-package")?,
        "--lib",
        "--features",
        &features,
        "--target=wasm32-unknown-unknown",
        "--profile",
        profile,
    ];
    let is_wasm = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "wasm");
    build(layout, "code for the browser", &arguments, is_wasm)
}

/// Builds the `weir` binary with the current site.
pub(crate) fn build_server(layout: &Layout, mode: Mode) -> Result<PathBuf> {
    let profile = match mode {
        Mode::Dev => "dev",
        Mode::Release => "release",
    };
    // Build the whole workspace, so that shared dependencies get the same features as in
    // all other commands. `--bin` selects the target.
    let name = layout.conventions.text("bin-target")?;
    let arguments = ["--workspace", "--bin", name, "--profile", profile];
    build(layout, "program", &arguments, |file| file.file_stem().is_some_and(|stem| stem == name))
}

/// What cargo prints.
enum Line {
    /// A message in JSON, on standard output.
    Message(IoResult<String>),
    /// A text for people, on standard error.
    Text(String),
}

/// Runs `cargo build`, shows its progress, and returns the file that `wanted` accepts.
fn build(
    layout: &Layout,
    what: &'static str,
    arguments: &[&str],
    wanted: impl Fn(&PathBuf) -> bool,
) -> Result<PathBuf> {
    let shows_progress = layout.shows_progress.get();
    let mut progress =
        if shows_progress { Progress::of(what, &mut cargo(layout, arguments)) } else { None };
    let mut command = cargo(layout, arguments);
    command
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    // On a terminal cargo would write over the line of the progress.
    if progress.as_ref().is_some_and(Progress::is_on_terminal) {
        command.arg("--quiet").env("CARGO_TERM_COLOR", "always").stderr(Stdio::piped());
    }
    let mut child = command.spawn().context("failed to start cargo")?;

    let (sender, lines) = mpsc::channel();
    let output = child.stdout.take().context("cargo has an output")?;
    if let Some(texts) = child.stderr.take() {
        let sender = sender.clone();
        thread::spawn(move || pass_on(texts, &sender, |line| line.ok().map(Line::Text)));
    }
    thread::spawn(move || pass_on(output, &sender, |line| Some(Line::Message(line))));

    let mut found = None;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(Line::Message(line)) => {
                let message: Value = serde_json::from_str(&line?)?;
                let files = message["filenames"].as_array().map(Vec::as_slice).unwrap_or_default();
                let files = files.iter().filter_map(Value::as_str).map(PathBuf::from);
                // Cargo reports dependencies first, so the last match is the target.
                found = files.filter(&wanted).last().or(found);
                if let Some(progress) = &mut progress {
                    progress.note(&message);
                }
            }
            Ok(Line::Text(text)) => match &mut progress {
                Some(progress) => progress.print(&text),
                None => eprintln!("{text}"),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(progress) = &mut progress {
            progress.show();
        }
    }
    if let Some(progress) = &progress {
        progress.end();
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("cargo build {}: {status}", arguments.join(" "));
    }
    found.with_context(|| format!("cargo build {} made no such file", arguments.join(" ")))
}

/// A `cargo build` with the paths of the layout.
fn cargo(layout: &Layout, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .arg("build")
        .args(arguments)
        .current_dir(&layout.root)
        .env("CARGO_TARGET_DIR", &layout.target)
        .env("WEIR_SITE", &layout.site);
    command
}

/// Sends the lines of an output until it ends.
fn pass_on(
    output: impl std::io::Read,
    sender: &Sender<Line>,
    line: impl Fn(IoResult<String>) -> Option<Line>,
) {
    for text in BufReader::new(output).lines() {
        let is_last = text.is_err();
        let Some(line) = line(text) else { return };
        if sender.send(line).is_err() || is_last {
            return;
        }
    }
}
