//! Cargo metadata of the workspace, for all rules.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand};

/// The platforms of the server, and the browser.
pub(crate) const PLATFORMS: [&str; 3] =
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "wasm32-unknown-unknown"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Packages, and whether they are used on our platforms.
pub(crate) fn metadata() -> Metadata {
    let mut options = vec!["--locked".to_owned()];
    for platform in PLATFORMS {
        options.extend(["--filter-platform".to_owned(), platform.to_owned()]);
    }
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(options)
        .exec()
        .expect("Cargo.lock belongs to the manifests; commit it with them")
}
