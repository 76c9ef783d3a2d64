//! Build tasks that cargo does not do.
//!
//! `site` builds the browser side, `build` builds the product, `dev` rebuilds and
//! restarts after every change, `try` runs a quickly built program, `size` checks the byte
//! budgets, `css` bundles the style sheets. `docs/adr/0004-build-tool.md` says what `xtask`
//! does beside cargo-leptos.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks to its terminal"
)]

mod assets;
mod binary;
mod cargo;
mod compress;
mod conventions;
mod css;
mod dev;
mod imports;
mod layout;
mod order;
mod panics;
mod progress;
mod relocations;
mod sha;
mod shared;
mod site;
mod size;
mod unused;
mod wasm;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::layout::{Layout, Mode};

/// Build tasks of Weir.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the browser side: wasm, its glue, style sheet, static files
    Site {
        /// Small and compressed, as it is shipped
        #[arg(long, conflicts_with = "dev")]
        release: bool,
        /// Quick to build, large, uncompressed (the default)
        #[arg(long)]
        dev: bool,
        /// Build again whenever a source changes
        #[arg(long)]
        watch: bool,
    },
    /// Build the browser side, then the `weir` binary
    Build {
        /// As it is shipped: one file, site embedded
        #[arg(long)]
        release: bool,
    },
    /// Run the server; rebuild, restart and reload the page on every change
    Dev {
        /// Arguments for `weir serve`
        #[arg(last = true)]
        serve: Vec<String>,
    },
    /// Build a debug program as quickly as possible, and run it
    Try {
        /// Build the release afterwards, while the program runs
        #[arg(long)]
        release: bool,
        /// Arguments for `weir`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Check the site's files against their byte budgets
    Size,
    /// Print the style sheet as the browser gets it
    Css,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        // Not the `Debug` format, which would add a useless backtrace.
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let layout = Layout::find()?;
    match task {
        Task::Site { release, dev: _, watch } => {
            let mode = Mode::release_if(release);
            if watch { dev::watch_site(&layout, mode) } else { site::build(&layout, mode) }
        }
        Task::Build { release } => {
            let mode = Mode::release_if(release);
            site::build(&layout, mode)?;
            let binary = cargo::build_server(&layout, mode)?;
            println!("{}", binary.display());
            // At the end, where it is seen.
            if release {
                site::warn_without_library(&layout);
            }
            Ok(())
        }
        Task::Dev { serve } => dev::serve(&layout, &serve),
        Task::Try { release, arguments } => dev::try_out(&layout, &arguments, release),
        Task::Size => size::check(&layout),
        Task::Css => {
            println!("{}", css::bundle(&layout.style_sheet()?)?);
            Ok(())
        }
    }
}
