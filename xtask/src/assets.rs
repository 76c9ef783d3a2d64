//! The directory of the built site: files with hashed names, their compressed variants,
//! and a manifest that maps names to paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::compress;
use crate::sha;

/// Files in this directory have a hash in their path and never change, so the server
/// allows browsers to cache them forever.
pub(crate) const HASHED: &str = "pkg";

pub(crate) struct Site {
    root: PathBuf,
    compressed: bool,
    /// Relative paths of all files of this build. Other files are removed at the end.
    files: BTreeSet<PathBuf>,
    /// The path of each file, by the name that pages use.
    manifest: BTreeMap<String, String>,
}

impl Site {
    pub(crate) fn open(root: &Path, compressed: bool) -> Result<Site> {
        fs::create_dir_all(root.join(HASHED))
            .with_context(|| format!("failed to create `{}`", root.display()))?;
        Ok(Site {
            root: root.to_path_buf(),
            compressed,
            files: BTreeSet::new(),
            manifest: BTreeMap::new(),
        })
    }

    /// Adds `weir.js` as `pkg/weir.0123456789abcdef.js`; returns the new file name.
    pub(crate) fn add_hashed(
        &mut self,
        stem: &str,
        extension: &str,
        bytes: &[u8],
    ) -> Result<String> {
        let name = format!("{stem}.{}.{extension}", sha::short(bytes));
        self.add(&format!("{stem}.{extension}"), &format!("{HASHED}/{name}"), bytes)?;
        Ok(name)
    }

    /// Adds a file at a fixed path.
    pub(crate) fn add(&mut self, logical: &str, path: &str, bytes: &[u8]) -> Result<()> {
        self.manifest.insert(logical.to_owned(), path.to_owned());
        let path = PathBuf::from(path);
        let unchanged = self.write(&path, bytes)?;
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if !self.compressed || !compress::pays_off(&extension) {
            return Ok(());
        }
        for (suffix, encode) in
            [("br", compress::brotli as fn(&[u8]) -> Result<Vec<u8>>), ("gz", compress::gzip)]
        {
            let variant = PathBuf::from(format!("{}.{suffix}", path.display()));
            if unchanged && self.root.join(&variant).exists() {
                self.files.insert(variant);
                continue;
            }
            let small = encode(bytes)?;
            // Store a variant only if it is smaller.
            if small.len() < bytes.len() {
                self.write(&variant, &small)?;
            }
        }
        Ok(())
    }

    /// Writes the manifest and removes files of earlier builds.
    pub(crate) fn finish(mut self) -> Result<()> {
        let manifest = serde_json::to_vec_pretty(&self.manifest)?;
        self.write(Path::new("manifest.json"), &manifest)?;
        for file in files_below(&self.root)? {
            if !self.files.contains(file.strip_prefix(&self.root)?) {
                fs::remove_file(&file)?;
            }
        }
        Ok(())
    }

    /// Writes a file and returns whether it was unchanged. The replacement is atomic,
    /// because a server may be reading the file.
    fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<bool> {
        self.files.insert(path.to_path_buf());
        let full = self.root.join(path);
        if fs::read(&full).is_ok_and(|present| present == bytes) {
            return Ok(true);
        }
        if let Some(parent) = full.parent() {
            fs::create_dir_all(parent)?;
        }
        let partial = self.root.join("partial.tmp");
        fs::write(&partial, bytes)?;
        fs::rename(&partial, &full)
            .with_context(|| format!("failed to write `{}`", full.display()))?;
        Ok(false)
    }
}

/// The name of a file in a directory, in the form that pages use.
pub(crate) fn name_below(folder: &Path, file: &Path) -> Result<String> {
    Ok(file.strip_prefix(folder)?.to_string_lossy().into_owned())
}

/// All files below a directory, sorted.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("failed to read `{}`", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Site, files_below};

    #[test]
    fn a_site_holds_the_last_build_only_with_its_variants() {
        let root = tempfile::tempdir().unwrap();
        let text = "a { color: red }".repeat(100);

        let mut first = Site::open(root.path(), true).unwrap();
        first.add_hashed("weir", "css", b"a{}").unwrap();
        first.finish().unwrap();
        let mut second = Site::open(root.path(), true).unwrap();
        let name = second.add_hashed("weir", "css", text.as_bytes()).unwrap();
        second.add("robots.txt", "robots.txt", b"x").unwrap();
        second.finish().unwrap();

        let found: Vec<String> = files_below(root.path())
            .unwrap()
            .iter()
            .map(|file| file.strip_prefix(root.path()).unwrap().display().to_string())
            .collect();
        let expected = [
            "manifest.json".to_owned(),
            format!("pkg/{name}"),
            format!("pkg/{name}.br"),
            format!("pkg/{name}.gz"),
            "robots.txt".to_owned(),
        ];
        assert_eq!(found, expected);
        let manifest = fs::read_to_string(root.path().join("manifest.json")).unwrap();
        assert!(manifest.contains(&format!("\"weir.css\": \"pkg/{name}\"")), "{manifest}");
    }
}
