use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::*;

mod damage;
mod fetched;
mod remote;

/// The id of the instance.
const INSTANCE: &str = "8c1f0f3e-4f53-4c0e-9a43-5d5b1a52e1d7";

/// Nothing ends a command.
static GOING: AtomicBool = AtomicBool::new(false);

/// Nothing ends a backup.
fn going() -> Limits<'static> {
    Limits { is_stopped: &GOING, least_free: 0 }
}

/// A snapshot, a repository and a place for restored data.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        for part in ["store", "segments/7/0", "log"] {
            fs::create_dir_all(place.snapshot().join(part)).unwrap();
        }
        place.write("store/000012.sst", "table");
        place.write("store/CURRENT", "MANIFEST-000005\n");
        place.write("segments/7/0/1-2-a.parquet", "events");
        place.write("log/00000000000000000000.log", "records\0\0\0");
        place
    }

    fn snapshot(&self) -> PathBuf {
        self.directory.path().join("snapshot")
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("backups")
    }

    fn target(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn write(&self, path: &str, content: &str) {
        fs::write(self.snapshot().join(path), content).unwrap();
    }

    fn repository(&self) -> Repository {
        Repository::create(&self.root(), INSTANCE).unwrap()
    }

    fn store(&self, created_at: i64) -> Stored {
        self.try_store(created_at).unwrap()
    }

    fn try_store(&self, created_at: i64) -> Result<Stored> {
        let partial = Partial { path: "log/00000000000000000000.log".to_owned(), bytes: 7 };
        let about = About { schema: 25, program: "1.0.0".to_owned(), created_at };
        let taken = self.take();
        let stored = self.repository().store(&taken, Some(&partial), about, going())?;
        assert!(below(&taken).is_empty(), "each link was removed after it was stored");
        Ok(stored)
    }

    /// Links to the files of the snapshot, which a backup removes.
    fn take(&self) -> PathBuf {
        let taken = self.directory.path().join("taken");
        let _ = fs::remove_dir_all(&taken);
        for path in below(&self.snapshot()) {
            let link = taken.join(path.strip_prefix(self.snapshot()).unwrap());
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            fs::hard_link(&path, link).unwrap();
        }
        taken
    }

    fn restore(&self, name: &str) -> Result<Restored> {
        let repository = Repository::open(&self.root())?;
        let manifest = repository.manifest(name)?;
        restore(&repository, &manifest, &self.target(), 0)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.target().join(path)).unwrap()
    }
}

/// All files below a directory.
fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Writes a manifest whose name has the right checksum, as an attacker would.
fn forge(root: &Path, text: &str) -> String {
    let hash = crate::copy::sha256(text.as_bytes());
    let name = format!("20990101T000000.000Z-{}", &hash[..16]);
    fs::write(root.join("backups").join(format!("{name}.json")), text).unwrap();
    name
}

#[test]
fn a_backup_is_restored_as_it_was() {
    let place = Place::new();
    let stored = place.store(1_000_000);
    assert!(stored.name.starts_with("19700101T000001.000Z-"), "{}", stored.name);
    assert_eq!((stored.files, stored.new_files), (4, 4));
    let restored = place.restore(&stored.name).unwrap();
    assert_eq!(restored.files, 4);
    assert_eq!(place.read("store/CURRENT"), "MANIFEST-000005\n");
    assert_eq!(place.read("segments/7/0/1-2-a.parquet"), "events");
    // What comes after the bytes of a partial file is zero, and its length stays.
    assert_eq!(place.read("log/00000000000000000000.log"), "records\0\0\0");
    let again = place.restore(&stored.name).unwrap_err();
    assert!(matches!(again, Error::NotEmpty { .. }), "{again}");
    assert_eq!(
        below(place.directory.path()).iter().filter(|it| it.ends_with("CURRENT")).count(),
        2
    );
}

#[test]
fn a_second_backup_stores_what_is_new_and_the_first_stays() {
    let place = Place::new();
    let first = place.store(1_000_000);
    place.write("store/000013.sst", "another table");
    place.write("store/CURRENT", "MANIFEST-000007\n");
    let second = place.store(2_000_000);
    assert_eq!((second.files, second.new_files), (5, 2));
    let repository = place.repository();
    assert_eq!(repository.names().unwrap(), [first.name.clone(), second.name.clone()]);
    assert_eq!(repository.find(None).unwrap().name, second.name);
    drop(repository);
    place.restore(&first.name).unwrap();
    assert_eq!(place.read("store/CURRENT"), "MANIFEST-000005\n");
    assert!(!place.target().join("store/000013.sst").exists());
    fs::remove_dir_all(place.target()).unwrap();
    place.restore(&second.name).unwrap();
    assert_eq!(place.read("store/000013.sst"), "another table");
}

/// A file with another content and the same length and time would not be noticed, so a file
/// that is being written has no time.
#[test]
fn a_file_that_is_being_written_is_read_again() {
    let place = Place::new();
    place.store(1_000_000);
    let log = place.snapshot().join("log/00000000000000000000.log");
    let time = fs::metadata(&log).unwrap().modified().unwrap();
    fs::write(&log, "RECORDS\0\0\0").unwrap();
    fs::File::options().write(true).open(&log).unwrap().set_modified(time).unwrap();
    let second = place.store(2_000_000);
    place.restore(&second.name).unwrap();
    assert_eq!(place.read("log/00000000000000000000.log"), "RECORDS\0\0\0");
}

#[test]
fn the_rest_of_an_interrupted_backup_is_removed_by_the_next_one() {
    let place = Place::new();
    let first = place.store(1_000_000);
    let kept = below(&place.root()).len();
    // What a killed command leaves: content without a manifest, and a file that is not whole.
    let content = place.root().join("files/00").join("0".repeat(64));
    fs::create_dir_all(content.parent().unwrap()).unwrap();
    fs::write(&content, "orphan").unwrap();
    fs::write(place.root().join("files/unfinished"), "half").unwrap();
    place.restore(&first.name).unwrap();
    let second = place.store(2_000_000);
    assert_eq!(second.new_files, 0);
    assert!(!content.exists());
    assert_eq!(below(&place.root()).len(), kept + 1, "one more manifest and nothing else");
}

#[test]
fn a_flipped_bit_is_found_and_not_restored() {
    let place = Place::new();
    let stored = place.store(1_000_000);
    let parts = ["backups", "files"].map(|part| below(&place.root().join(part)));
    for path in parts.concat() {
        let sound = fs::read(&path).unwrap();
        let mut bytes = sound.clone();
        bytes[0] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let refused = place.restore(&stored.name).unwrap_err();
        match path.extension() {
            Some(_) => assert!(matches!(refused, Error::Manifest { .. }), "{refused}"),
            None => {
                assert!(matches!(refused, Error::Damaged { fault: FileFault::Bytes, .. }));
                let repository = Repository::open(&place.root()).unwrap();
                let manifest = repository.manifest(&stored.name).unwrap();
                let damage = verify(&repository, &manifest, &mut HashSet::new(), &GOING).unwrap();
                assert_eq!(damage.len(), 1, "{damage:?}");
            }
        }
        assert!(!place.target().exists());
        fs::write(&path, &sound).unwrap();
    }
    let content = below(&place.root().join("files")).pop().unwrap();
    fs::remove_file(content).unwrap();
    let refused = place.restore(&stored.name).unwrap_err();
    assert!(matches!(refused, Error::Damaged { fault: FileFault::Missing, .. }), "{refused}");
}

/// While it is not known what a backup has, nothing of it may be removed.
#[test]
fn a_damaged_manifest_keeps_all_content() {
    let place = Place::new();
    let first = place.store(1_000_000);
    let manifest = place.root().join("backups").join(format!("{}.json", first.name));
    let sound = fs::read(&manifest).unwrap();
    fs::write(&manifest, "{}").unwrap();
    place.write("store/CURRENT", "MANIFEST-000007\n");
    let second = place.store(2_000_000);
    assert_eq!(second.kept_for, std::slice::from_ref(&first.name));
    assert_eq!(place.repository().find(None).unwrap().name, second.name);
    fs::write(&manifest, &sound).unwrap();
    place.restore(&first.name).unwrap();
    fs::remove_dir_all(place.target()).unwrap();

    // So is one that was renamed, or is no manifest.
    let renamed = manifest.with_file_name("before the update.json");
    fs::rename(&manifest, &renamed).unwrap();
    fs::write(manifest.with_file_name("notes.json"), "{}").unwrap();
    let third = place.store(3_000_000);
    assert_eq!(third.kept_for, ["before the update", "notes"]);
    fs::rename(&renamed, &manifest).unwrap();
    place.restore(&first.name).unwrap();
}

/// What is restored without a name is the newest that can be.
#[test]
fn the_newest_backup_is_the_newest_with_a_sound_manifest() {
    let place = Place::new();
    let first = place.store(1_000_000);
    let second = place.store(2_000_000);
    let manifest = |name: &str| place.root().join("backups").join(format!("{name}.json"));
    fs::write(manifest(&second.name), "{}").unwrap();
    let found = place.repository().find(None).unwrap();
    assert_eq!((found.name, found.passed_over), (first.name.clone(), vec![second.name.clone()]));
    assert_eq!(place.repository().find(Some(&second.name)).unwrap().name, second.name);
    fs::write(manifest(&first.name), "{}").unwrap();
    assert_eq!(place.repository().find(None).unwrap().name, second.name);
    // A name that this program does not write sorts last and is not used.
    fs::write(manifest("z"), "{}").unwrap();
    let third = place.store(3_000_000);
    assert_eq!(place.repository().find(None).unwrap().name, third.name);
    // One that cannot be read now may be sound: an older one is not taken for the newest.
    fs::remove_file(manifest(&third.name)).unwrap();
    fs::create_dir(manifest(&third.name)).unwrap();
    let refused = place.repository().find(None).unwrap_err();
    assert!(matches!(refused, Error::Io { .. }), "{refused}");
}

#[test]
fn a_time_has_the_newest_backup_that_began_before_it() {
    let place = Place::new();
    let [first, second, third] = [1_000_100, 1_002_900, 9_000_000].map(|at| place.store(at).name);
    let repository = place.repository();
    for (at, expected) in [
        (1_000_100, &first),
        (1_002_899, &first),
        (1_002_900, &second),
        (8_999_999, &second),
        (9_000_000, &third),
        (4_102_444_800_000_000, &third),
    ] {
        let found = repository.find_at(at).unwrap();
        assert_eq!((&found.name, found.passed_over.len()), (expected, 0), "{at}");
    }
    let refused = repository.find_at(1_000_099).unwrap_err();
    assert!(matches!(refused, Error::NoneBefore { .. }), "{refused}");
    // One that is damaged is passed over, and later ones are not named.
    fs::write(place.root().join("backups").join(format!("{second}.json")), "{}").unwrap();
    fs::write(place.root().join("backups").join(format!("{third}.json")), "{}").unwrap();
    let found = repository.find_at(5_000_000).unwrap();
    assert_eq!((found.name, found.passed_over), (first, vec![second]));
}

#[test]
fn old_backups_are_removed_and_the_others_can_be_restored() {
    let place = Place::new();
    let mut names = Vec::new();
    for at in 1..=4 {
        // Each has another length: the clock of the file system may be coarse.
        place.write("store/000012.sst", &"t".repeat(at));
        names.push(place.store(i64::try_from(at).unwrap() * 1_000_000).name);
    }
    let two = NonZeroUsize::new(2).unwrap();
    let content = below(&place.root().join("files")).len();
    let repository = place.repository();
    let removed = repository.remove_old(two, &names[3]).unwrap();
    assert_eq!(removed, names[..2]);
    assert_eq!(repository.names().unwrap(), names[2..]);
    assert_eq!(below(&place.root().join("files")).len(), content - 2, "two tables");
    assert!(repository.remove_old(two, &names[3]).unwrap().is_empty());
    // The clock was set back: what was just made stays, although its name sorts first.
    drop(repository);
    let early = place.store(500_000).name;
    let removed = place.repository().remove_old(two, &early).unwrap();
    assert_eq!(removed, names[2..3]);
    for name in [&early, &names[3]] {
        place.restore(name).unwrap();
        assert_eq!(place.read("store/000012.sst"), "tttt");
        fs::remove_dir_all(place.target()).unwrap();
    }
}

/// It may have content that others have too, and may be repaired.
#[test]
fn no_backup_is_removed_while_a_manifest_cannot_be_read() {
    let place = Place::new();
    let [first, second, third] = [1, 2, 3].map(|at| place.store(at * 1_000_000).name);
    let manifest = place.root().join("backups").join(format!("{second}.json"));
    let sound = fs::read(&manifest).unwrap();
    fs::write(&manifest, "{}").unwrap();
    assert!(place.repository().remove_old(NonZeroUsize::MIN, &third).unwrap().is_empty());
    assert_eq!(place.repository().names().unwrap().len(), 3);
    fs::write(&manifest, sound).unwrap();
    let removed = place.repository().remove_old(NonZeroUsize::MIN, &third).unwrap();
    assert_eq!(removed, [first, second]);
    place.restore(&third).unwrap();
}

#[test]
fn a_manifest_cannot_lead_to_other_directories() {
    let place = Place::new();
    place.store(1_000_000);
    let entry = |path: &str| {
        let hash = "0".repeat(64);
        format!(r#"{{"path":{path:?},"bytes":1,"sha256":"{hash}"}}"#)
    };
    let manifest = |version: u32, files: &str| {
        format!(
            r#"{{"version":{version},"instance":"{INSTANCE}","schema":1,"program":"x","created_at":1,"files":[{files}]}}"#
        )
    };
    let deep = format!("store/{}", "a/".repeat(20));
    let long = format!("store/{}", "a".repeat(600));
    for path in [
        "../escaped",
        "store/../../escaped",
        "/etc/passwd",
        "store",
        "store/",
        "store//a",
        "store/./a",
        "other/a",
        "",
        "store/a\0b",
        "store/a\nb",
        deep.as_str(),
        long.as_str(),
    ] {
        let name = forge(&place.root(), &manifest(1, &entry(path)));
        let refused = place.restore(&name).unwrap_err();
        assert!(matches!(refused, Error::Manifest { .. }), "{path}: {refused}");
    }
    let twice = format!("{},{}", entry("store/a"), entry("store/a"));
    let zeros = entry("store/a").replace("\"bytes\"", "\"zeros\":18446744073709551615,\"bytes\"");
    let traversal = entry("store/a").replace(&"0".repeat(64), "../../../etc/passwd");
    for text in [
        manifest(1, &twice),
        manifest(1, &zeros),
        manifest(1, &traversal),
        manifest(2, ""),
        "[".repeat(100_000),
        String::new(),
    ] {
        let name = forge(&place.root(), &text);
        let refused = place.restore(&name).unwrap_err();
        assert!(matches!(refused, Error::Manifest { .. }), "{refused}");
    }
    assert!(!place.target().exists());
    let refused = place.repository().find(Some("../backups/x")).unwrap_err();
    assert!(matches!(refused, Error::Unknown { .. }), "{refused}");
}

#[test]
fn a_file_of_the_data_directory_itself_is_restored() {
    let place = Place::new();
    place.write("erasures.jsonl", "{}\n");
    let stored = place.store(1_000_000);
    assert_eq!(place.restore(&stored.name).unwrap().files, 5);
    assert_eq!(place.read("erasures.jsonl"), "{}\n");
    place.write("other.jsonl", "{}\n");
    let refused = place.try_store(2_000_000).unwrap_err();
    assert!(matches!(refused, Error::Manifest { .. }), "{refused}");
}

#[test]
fn a_directory_with_other_files_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter"), "").unwrap();
    let refused = Repository::create(directory.path(), INSTANCE).unwrap_err();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
    let refused = Repository::open(directory.path()).unwrap_err();
    assert!(matches!(refused, Error::Empty { .. }), "{refused}");
}

#[test]
fn a_repository_has_the_backups_of_one_instance() {
    let place = Place::new();
    let stored = place.store(1_000_000);
    let refused = Repository::create(&place.root(), "another").unwrap_err();
    assert!(matches!(refused, Error::OtherInstance { .. }), "{refused}");
    // A restored instance is the same.
    place.restore(&stored.name).unwrap();
    let id = instance_id(&place.target(), || "new".to_owned()).unwrap();
    assert_eq!(id, INSTANCE);
    assert_eq!(instance_id(&place.snapshot(), || "new".to_owned()).unwrap(), "new");
    assert_eq!(instance_id(&place.snapshot(), || "newer".to_owned()).unwrap(), "new");
    fs::write(place.snapshot().join("instance-id"), "../other\n").unwrap();
    let refused = instance_id(&place.snapshot(), || "newer".to_owned()).unwrap_err();
    assert!(matches!(refused, Error::NoId { .. }), "{refused}");
    // A manifest that was copied from another repository.
    let path = place.root().join("backups").join(format!("{}.json", stored.name));
    let text = fs::read_to_string(path).unwrap().replace(INSTANCE, "another");
    let name = forge(&place.root(), &text);
    fs::remove_dir_all(place.target()).unwrap();
    let refused = place.restore(&name).unwrap_err();
    assert!(refused.to_string().contains("of another instance"), "{refused}");
    // Without the marker it is a directory of others.
    fs::remove_file(place.root().join("weir-repository")).unwrap();
    let refused = Repository::create(&place.root(), INSTANCE).unwrap_err();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
}

#[test]
fn one_command_at_a_time_uses_a_repository() {
    let place = Place::new();
    let first = place.repository();
    let refused = Repository::create(&place.root(), INSTANCE).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    drop(first);
    place.repository();
}

#[test]
fn files_that_never_change_are_linked_for_reading() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    let stored = place.store(1_000_000);
    let repository = place.repository();
    let manifest = repository.manifest(&stored.name).unwrap();
    let staging = Staging::create(&repository.root().join("check")).unwrap();
    link(&repository, &manifest, staging.path(), &GOING).unwrap();
    let links = |path: &str| fs::metadata(staging.path().join(path)).unwrap().nlink();
    assert_eq!((links("store/000012.sst"), links("segments/7/0/1-2-a.parquet")), (2, 2));
    // What the engine appends to is a copy.
    assert_eq!((links("store/CURRENT"), links("log/00000000000000000000.log")), (1, 1));
    staging.remove().unwrap();
    assert!(!repository.root().join("check").exists());
    // A command that is asked to end can remove what it has linked.
    let stopped = AtomicBool::new(true);
    let refused = verify(&repository, &manifest, &mut HashSet::new(), &stopped).unwrap_err();
    assert!(matches!(refused, Error::Interrupted), "{refused}");
    let staging = Staging::create(&repository.root().join("check")).unwrap();
    let refused = link(&repository, &manifest, staging.path(), &stopped).unwrap_err();
    assert!(matches!(refused, Error::Interrupted), "{refused}");
}

#[test]
fn a_backup_that_is_asked_to_end_leaves_the_earlier_ones() {
    let place = Place::new();
    let first = place.store(1_000_000);
    let about = About { schema: 25, program: "1.0.0".to_owned(), created_at: 2_000_000 };
    let stopped = Limits { is_stopped: &AtomicBool::new(true), ..going() };
    let refused = place.repository().store(&place.take(), None, about, stopped).unwrap_err();
    assert!(matches!(refused, Error::Interrupted), "{refused}");
    assert_eq!(place.repository().names().unwrap(), std::slice::from_ref(&first.name));
    place.restore(&first.name).unwrap();
}

#[test]
fn a_backup_whose_rest_cannot_be_removed_is_stored() {
    let place = Place::new();
    // A directory with the name of content that no backup has cannot be removed. While there
    // is no manifest, it stays.
    let content = place.root().join("files/00").join("0".repeat(64));
    fs::create_dir_all(content.join("full")).unwrap();
    fs::write(place.root().join("weir-repository"), "").unwrap();
    let stored = place.store(1_000_000);
    assert!(matches!(stored.unremoved, Some(Error::Io { .. })), "{stored:?}");
    place.restore(&stored.name).unwrap();
}

/// Otherwise a full repository stays full.
#[test]
fn content_of_removed_backups_goes_before_a_backup_and_that_of_an_interrupted_one_stays() {
    let place = Place::new();
    let first = place.store(1_000_000);
    place.write("store/000012.sst", "another table");
    let second = place.store(2_000_000);
    let at = |text: &str| {
        let hash = crate::copy::sha256(text.as_bytes());
        place.root().join("files").join(&hash[..2]).join(hash)
    };
    let manifest = |name: &str| place.root().join("backups").join(format!("{name}.json"));
    // The clock of the file system may be coarse.
    let now = fs::metadata(manifest(&second.name)).unwrap().modified().unwrap();
    let interrupted = at("interrupted");
    fs::create_dir_all(interrupted.parent().unwrap()).unwrap();
    fs::write(&interrupted, "interrupted").unwrap();
    let file = fs::File::options().write(true).open(&interrupted).unwrap();
    file.set_modified(now + std::time::Duration::from_secs(1)).unwrap();
    assert!(at("table").exists());
    fs::remove_file(manifest(&first.name)).unwrap();
    let about = About { schema: 25, program: "1.0.0".to_owned(), created_at: 3_000_000 };
    let stopped = Limits { is_stopped: &AtomicBool::new(true), ..going() };
    place.repository().store(&place.take(), None, about, stopped).unwrap_err();
    assert!(!at("table").exists(), "space was freed although this backup failed");
    assert!(interrupted.exists(), "the next backup may need it");
    place.store(4_000_000);
    assert!(!interrupted.exists() && at("another table").exists());
}

/// The repository of the test is on the disk of the snapshot.
#[test]
fn a_backup_leaves_the_disk_space_that_the_service_needs() {
    let place = Place::new();
    let first = place.store(1_000_000);
    let about = About { schema: 25, program: "1.0.0".to_owned(), created_at: 2_000_000 };
    let limits = Limits { least_free: u64::MAX, ..going() };
    let refused = place.repository().store(&place.take(), None, about, limits).unwrap_err();
    assert!(matches!(refused, Error::LowDisk { .. }), "{refused}");
    assert_eq!(place.repository().names().unwrap(), [first.name]);
}

#[test]
fn a_restore_leaves_the_disk_space_that_the_service_needs() {
    let place = Place::new();
    let stored = place.store(1_000_000);
    let repository = place.repository();
    let manifest = repository.manifest(&stored.name).unwrap();
    let refused = restore(&repository, &manifest, &place.target(), u64::MAX).unwrap_err();
    assert!(matches!(refused, Error::NoSpace { needed: u64::MAX, .. }), "{refused}");
    assert!(!place.target().exists());
}

#[test]
fn a_symbolic_link_is_not_omitted_silently() {
    let place = Place::new();
    let taken = place.take();
    std::os::unix::fs::symlink("000012.sst", taken.join("store/000013.sst")).unwrap();
    let about = About { schema: 25, program: "1.0.0".to_owned(), created_at: 1_000_000 };
    let refused = place.repository().store(&taken, None, about, going()).unwrap_err();
    assert!(matches!(refused, Error::NoFile { .. }), "{refused}");
    assert!(place.repository().names().unwrap().is_empty());
}

#[test]
fn what_a_killed_command_left_is_removed_once_no_command_uses_it() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("staging");
    assert!(!Staging::remove_abandoned(&root).unwrap());
    let staging = Staging::create(&root).unwrap();
    fs::write(staging.path().join("link"), "").unwrap();
    assert!(!Staging::remove_abandoned(&root).unwrap());
    let refused = Staging::create_without_waiting(&root).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    assert!(staging.path().join("link").exists());
    drop(staging);
    assert!(!root.exists(), "it is removed with the value");
    // A killed command removes nothing.
    fs::create_dir_all(root.join("content/store")).unwrap();
    fs::write(root.join("weir-staging"), "").unwrap();
    assert!(Staging::remove_abandoned(&root).unwrap());
    assert!(!root.exists());
}

/// The server removes what was left while a command begins or ends.
#[test]
fn the_removal_of_a_directory_does_not_fail_when_another_command_uses_it_again() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("staging");
    let staging = Staging::create(&root).unwrap();
    fs::write(root.join("of another command"), "").unwrap();
    staging.remove().unwrap();
    assert_eq!(below(&root).len(), 1, "it stays");
    // A directory whose marker is gone is being removed by its command.
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(!Staging::remove_abandoned(&empty).unwrap());
    assert!(below(&empty).is_empty(), "no marker was created");
}

#[test]
fn a_command_that_begins_waits_for_the_removal_of_what_was_left() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("staging");
    let before = Staging::create(&root).unwrap();
    let beginning = std::thread::spawn({
        let root = root.clone();
        move || Staging::create(&root)
    });
    before.remove().unwrap();
    let staging = beginning.join().unwrap().unwrap();
    assert!(staging.path().is_dir());
}

#[test]
fn a_directory_of_others_is_never_emptied() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("staging");
    fs::create_dir_all(root.join("content")).unwrap();
    fs::write(root.join("content/letter"), "").unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&root, &link).unwrap();
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let linked = place.path().join("linked");
    std::os::unix::fs::symlink(&empty, &linked).unwrap();
    for path in [&root, &link, &linked] {
        let refused = Staging::create(path).unwrap_err();
        assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
        assert!(!Staging::remove_abandoned(path).unwrap());
    }
    assert!(root.join("content/letter").exists() && empty.exists());
    Staging::create(&empty).unwrap();
}
