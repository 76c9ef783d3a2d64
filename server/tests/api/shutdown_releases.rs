//! A service that ends within a process releases all its resources. Its parts refer to
//! each other, and none may keep the others alive. The engine's own files are not
//! checked: they are closed with the store, and a service that is only dropped cannot
//! wait for that.

use std::path::Path;

use weir_server::config::{Config, StoreKind};
use weir_testkit::{TestApp, until};

/// The files below a directory that this process has open, including deleted ones.
fn open_files(directory: &Path) -> Vec<String> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let files = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    files
        .filter(|file| file.starts_with(directory))
        .map(|file| file.display().to_string())
        .collect()
}

#[test]
fn what_a_service_held_is_free_after_it() {
    let data = tempfile::tempdir().unwrap();
    // The form in which descriptors name it.
    let directory = data.path().canonicalize().unwrap();
    let settings = |config: &mut Config| {
        config.store = StoreKind::RocksDb;
        config.data.clone_from(&directory);
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let app = runtime.block_on(async { TestApp::start(settings, |_| {}).await.set_up().await });
    let log = directory.join("log");
    assert!(!open_files(&log).is_empty());
    drop(app);
    // The runtime ends together with the connections, which were not asked to stop.
    drop(runtime);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        until(async || {
            let open = open_files(&log);
            if open.is_empty() { Ok(()) } else { Err(open) }
        })
        .await;
    });
}
