//! The files of stored events, compared between two cycles while the service is down: whether
//! merges of segments and of runs have reached the catalog.
//!
//! A file of the catalog is removed after its row. So segments that are gone while another one
//! has their range of arrival numbers were replaced in the catalog. Each merged run has a
//! filter of its own, which is built from the entries of the old ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use weir_bench::weir::Weir;

/// At least so many files go away together when they are merged: eight runs or sixteen
/// segments, most of them known from the last comparison. A repair and what a kill has left
/// are one file each.
const MERGED: usize = 4;

/// The files at the last comparison, and what became of them.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// The segments of each directory.
    segments: BTreeMap<String, BTreeSet<Segment>>,
    runs: BTreeSet<String>,
    /// How many segments took the place of several others.
    pub(crate) merged_segments: u32,
    /// In how many cycles runs were merged.
    pub(crate) merged_runs: u32,
}

/// The name of a segment: its range of arrival numbers, and what makes the name unique.
type Segment = (u64, u64, String);

impl Files {
    /// Compares the files with those of the last call. The service is down.
    pub(crate) fn compare(&mut self, weir: &Weir) {
        let root = weir.data().join("segments");
        let now = segments(&root);
        for (directory, before) in &self.segments {
            let Some(here) = now.get(directory) else { continue };
            let gone: Vec<&Segment> = before.difference(here).collect();
            for (first, last, _) in here {
                let replaced = gone.iter().filter(|old| *first <= old.0 && old.1 <= *last).count();
                self.merged_segments += u32::from(replaced >= MERGED);
            }
        }
        self.segments = now;

        // A damaged run has its new name beside it.
        let runs = names(&root.join("uuids"));
        let gone = self.runs.difference(&runs);
        let merged = gone.filter(|run| !runs.contains(&format!("{run}.damaged"))).count();
        self.merged_runs += u32::from(merged >= MERGED);
        self.runs = runs.into_iter().filter(|name| name.ends_with(".run")).collect();
    }
}

/// Whether there are segments.
pub(crate) fn has_segments(weir: &Weir) -> bool {
    !segments(&weir.data().join("segments")).is_empty()
}

/// The segments of all partitions, by project and partition.
fn segments(root: &Path) -> BTreeMap<String, BTreeSet<Segment>> {
    let mut found = BTreeMap::new();
    for project in names(root) {
        for partition in names(&root.join(&project)) {
            let directory = format!("{project}/{partition}");
            let files = names(&root.join(&directory));
            let segments: BTreeSet<Segment> =
                files.iter().filter_map(|name| segment(name)).collect();
            if !segments.is_empty() {
                found.insert(directory, segments);
            }
        }
    }
    found
}

/// The parts of the name of a segment, such as `1-1500-<random>.parquet`.
fn segment(name: &str) -> Option<Segment> {
    let mut parts = name.strip_suffix(".parquet")?.splitn(3, '-');
    let (first, last, rest) = (parts.next()?, parts.next()?, parts.next()?);
    Some((first.parse().ok()?, last.parse().ok()?, rest.to_owned()))
}

/// The names in a directory; none, if there is no such directory.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
