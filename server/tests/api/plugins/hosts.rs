//! A stand-in for the hosts of plugin code, and archives in their format.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use parking_lot::Mutex;
use serde_json::json;
use weir_testkit::servers::{Stub, StubAnswer, StubRequest};

/// The newest commit of every repository.
pub(super) const NEWEST: &str = "5e1f0c2d7a9b4e3f8c6d1a0b2e4f6a8c0d1e2f3a";

/// Files of an archive, from name to text.
pub(super) type Files = BTreeMap<String, String>;

/// A host where every repository has the same files. Ends when dropped.
pub(super) struct Host {
    stub: Stub,
    state: Arc<Mutex<State>>,
}

struct State {
    files: Files,
    is_down: bool,
}

impl Host {
    /// Starts the host with a plugin that delivers events.
    pub(super) async fn start() -> Self {
        let state = Arc::new(Mutex::new(State { files: tea(), is_down: false }));
        let answering = Arc::clone(&state);
        Self {
            stub: Stub::start(move |request| Some(answer(&answering.lock(), request))).await,
            state,
        }
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    pub(super) fn url(&self) -> String {
        self.stub.url()
    }

    /// Sets the files of every repository from now on.
    pub(super) fn has(&self, files: Files) {
        self.state.lock().files = files;
    }

    /// Answers with errors from now on.
    pub(super) fn goes_down(&self) {
        self.state.lock().is_down = true;
    }
}

fn answer(state: &State, request: &StubRequest) -> StubAnswer {
    if state.is_down {
        return StubAnswer::empty(503);
    }
    if request.path.contains("/commits") {
        return StubAnswer::json(200, &json!([{"sha": NEWEST, "id": NEWEST}]));
    }
    StubAnswer { body: zip(&in_folder(&state.files)), ..StubAnswer::empty(200) }
}

/// A plugin that delivers events.
pub(super) fn tea() -> Files {
    let manifest = json!({
        "name": "Tea", "description": "Counts cups.", "posthogVersion": ">= 1.0.0",
        "config": [{"key": "cups", "type": "string", "default": "1"}],
        "publicJobs": {"brew": {"payload": {}}},
    });
    files(&[
        ("plugin.json", &manifest.to_string()),
        ("index.js", "export function onEvent(event) {}"),
        ("README.md", "# Tea"),
    ])
}

/// The same plugin with code that belongs to this group.
pub(super) fn tea_of(group: &str) -> Files {
    let code = match group {
        "pipeline_frontend_apps" => "export function processEvent(event) { return event }",
        "pipeline_import_apps" => "export function runEveryHour() {}",
        _ => return tea(),
    };
    let mut tea = tea();
    tea.insert("index.js".to_owned(), code.to_owned());
    tea
}

pub(super) fn files(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// The archive format of hosts: all files in one folder.
fn in_folder(files: &Files) -> Files {
    files.iter().map(|(name, text)| (format!("tea-main/{name}"), text.clone())).collect()
}

/// A zip of files that are not compressed.
pub(super) fn zip(files: &Files) -> Vec<u8> {
    let (mut all, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let mut crc = Crc::new();
        crc.update(text.as_bytes());
        let size = u32::try_from(text.len()).unwrap().to_le_bytes();
        let name_size = u16::try_from(name.len()).unwrap().to_le_bytes();
        // Version, flags, method, time and date.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend(size);
        common.extend(size);
        common.extend(name_size);
        common.extend([0, 0]);
        let offset = u32::try_from(all.len()).unwrap().to_le_bytes();
        all.extend(b"PK\x03\x04");
        all.extend(&common);
        all.extend(name.bytes());
        all.extend(text.bytes());
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        // Comment, disk, attributes.
        directory.extend([0; 10]);
        directory.extend(offset);
        directory.extend(name.bytes());
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let offset = u32::try_from(all.len()).unwrap().to_le_bytes();
    let size = u32::try_from(directory.len()).unwrap().to_le_bytes();
    all.extend(directory);
    all.extend(b"PK\x05\x06\0\0\0\0");
    all.extend(count);
    all.extend(count);
    all.extend(size);
    all.extend(offset);
    all.extend([0, 0]);
    all
}

/// A tar, compressed with gzip.
pub(super) fn tar_gz(files: &Files) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, text) in files {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
        put(0, name.as_bytes());
        put(100, b"0000644\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", text.len()).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, b"0");
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend(header);
        tar.extend(text.bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    compressed.write_all(&tar).unwrap();
    compressed.finish().unwrap()
}
