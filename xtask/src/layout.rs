//! Paths: the checkout, the target directory, the built site.

use std::cell::Cell;
use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::conventions::Conventions;

/// The build mode of the browser side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Fast to build, large, uncompressed, with automatic reload.
    Dev,
    /// Small and compressed, for releases.
    Release,
}

impl Mode {
    pub(crate) fn release_if(release: bool) -> Mode {
        if release { Mode::Release } else { Mode::Dev }
    }

    /// The name of the mode, also of the directory for its intermediate files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Dev => "dev",
            Mode::Release => "release",
        }
    }
}

pub(crate) struct Layout {
    /// The root of the checkout.
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// The built site, which the server embeds or reads.
    pub(crate) site: PathBuf,
    /// The scripts of the browser library, where `scripts/setup` puts them. `None` without
    /// `scripts/env`.
    pub(crate) browser_library: Option<PathBuf>,
    pub(crate) conventions: Conventions,
    /// Whether builds show how much is done. The estimate takes a second, which a build after
    /// a change does not have.
    pub(crate) shows_progress: Cell<bool>,
}

impl Layout {
    pub(crate) fn find() -> Result<Layout> {
        // Not the directory at compile time, because checkouts share compiled code.
        let here = env::current_dir()?;
        let root = here
            .ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").exists())
            .context("not in a checkout of Weir")?
            .to_path_buf();
        let from_env = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let target = match from_env("CARGO_TARGET_DIR") {
            Some(path) => std::path::absolute(path)?,
            None => root.join("target"),
        };
        let site = match from_env("WEIR_SITE") {
            Some(path) => std::path::absolute(path)?,
            None => target.join("site"),
        };
        let tools = from_env("WEIR_TOOLS").map(PathBuf::from);
        let browser_library = tools.map(|tools| tools.join("posthog-js/dist"));
        let conventions = Conventions::read(&root)?;
        let shows_progress = Cell::new(true);
        Ok(Layout { root, target, site, browser_library, conventions, shows_progress })
    }

    pub(crate) fn style_sheet(&self) -> Result<PathBuf> {
        Ok(self.root.join(self.conventions.text("style-file")?))
    }

    /// Static files, which keep their names.
    pub(crate) fn assets(&self) -> Result<PathBuf> {
        Ok(self.root.join(self.conventions.text("assets-dir")?))
    }

    /// The directory for intermediate results that are kept between runs.
    pub(crate) fn cache(&self, mode: Mode) -> PathBuf {
        self.target.join("xtask").join(mode.name())
    }
}
