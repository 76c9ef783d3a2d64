//! A repository whose files are elsewhere: here in another directory.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::*;

/// A storage of others.
#[derive(Debug, Clone)]
struct Elsewhere {
    root: PathBuf,
    /// Whether another command has begun to write.
    is_lost: std::sync::Arc<AtomicBool>,
}

impl Elsewhere {
    fn new(place: &Place) -> Self {
        let root = place.directory.path().join("elsewhere");
        Self { root, is_lost: std::sync::Arc::default() }
    }

    fn content(&self) -> BTreeSet<PathBuf> {
        below(&self.root.join("files")).into_iter().collect()
    }
}

impl Remote for Elsewhere {
    fn place(&self) -> String {
        "s3://backups/weir".to_owned()
    }

    fn list(&self, part: &str) -> Result<BTreeSet<String>> {
        let root = self.root.join(part);
        if !root.exists() {
            return Ok(BTreeSet::new());
        }
        let name = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        Ok(below(&root).into_iter().map(name).collect())
    }

    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let read = fs::read(self.root.join(name)).ok();
        assert!(read.as_ref().is_none_or(|bytes| bytes.len() as u64 <= most));
        Ok(read)
    }

    fn upload(&self, name: &str, from: &Path) -> Result<()> {
        let to = self.root.join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        Ok(())
    }

    fn download(&self, name: &str, _bytes: u64, to: &Path) -> Result<Option<FileFault>> {
        match fs::copy(self.root.join(name), to) {
            Ok(_) => Ok(None),
            Err(_) => Ok(Some(FileFault::Missing)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        fs::remove_file(self.root.join(name)).unwrap();
        Ok(())
    }

    fn confirm(&self) -> Result<()> {
        match self.is_lost.load(Ordering::Acquire) {
            true => Err(Error::Lost { place: self.place() }),
            false => Ok(()),
        }
    }

    fn release(&self) -> Result<()> {
        Ok(())
    }
}

/// An empty local directory.
fn mirror(place: &Place) -> PathBuf {
    let mirror = place.directory.path().join("mirror");
    let _ = fs::remove_dir_all(&mirror);
    fs::create_dir(&mirror).unwrap();
    mirror
}

fn store(place: &Place, elsewhere: &Elsewhere, created_at: i64) -> Result<Stored> {
    let mirror = mirror(place);
    let repository = Repository::create_remote(&mirror, INSTANCE, Box::new(elsewhere.clone()), 0)?;
    let partial = Partial { path: "log/00000000000000000000.log".to_owned(), bytes: 7 };
    let about = About { schema: 25, program: "1.0.0".to_owned(), created_at };
    let stored = repository.store(&place.take(), Some(&partial), about, going())?;
    assert!(below(&mirror.join("files")).is_empty(), "no content stays here");
    repository.close()?;
    Ok(stored)
}

fn open(place: &Place, elsewhere: &Elsewhere) -> Result<Repository> {
    Repository::open_remote(&mirror(place), Box::new(elsewhere.clone()), 0)
}

#[test]
fn a_backup_elsewhere_is_stored_and_restored() {
    let place = Place::new();
    let elsewhere = Elsewhere::new(&place);
    let refused = open(&place, &elsewhere).unwrap_err();
    assert!(refused.to_string().contains("s3://backups/weir"), "{refused}");
    let first = store(&place, &elsewhere, 1_000_000).unwrap();
    assert_eq!((first.files, first.new_files), (4, 4));
    place.write("store/000013.sst", "another table");
    let second = store(&place, &elsewhere, 2_000_000).unwrap();
    assert_eq!((second.files, second.new_files), (5, 1));
    assert_eq!(elsewhere.content().len(), 5);

    let repository = open(&place, &elsewhere).unwrap();
    assert_eq!(repository.names().unwrap(), [first.name.clone(), second.name.clone()]);
    assert_eq!(repository.find(None).unwrap().name, second.name);
    assert_eq!(repository.find_at(1_500_000).unwrap().name, first.name);
    let manifest = repository.manifest(&second.name).unwrap();
    restore(&repository, &manifest, &place.target(), 0).unwrap();
    assert_eq!(place.read("store/000013.sst"), "another table");
    assert_eq!(place.read("log/00000000000000000000.log"), "records\0\0\0");
    drop(repository);
    // Another instance cannot use it.
    let mirror = mirror(&place);
    let other = Repository::create_remote(&mirror, "other", Box::new(elsewhere), 0);
    let refused = other.unwrap_err();
    assert!(matches!(refused, Error::OtherInstance { .. }), "{refused}");
}

#[test]
fn damage_elsewhere_is_found_and_not_restored() {
    let place = Place::new();
    let elsewhere = Elsewhere::new(&place);
    let stored = store(&place, &elsewhere, 1_000_000).unwrap();
    let check = || {
        let repository = open(&place, &elsewhere).unwrap();
        let manifest = repository.manifest(&stored.name).unwrap();
        let restored = restore(&repository, &manifest, &place.target(), 0);
        let found = verify(&repository, &manifest, &mut HashSet::new(), &GOING).unwrap();
        let faults: Vec<FileFault> = found.into_iter().map(|damage| damage.fault).collect();
        (faults, restored.is_ok())
    };
    let content = elsewhere.content().pop_first().unwrap();
    let mut bytes = fs::read(&content).unwrap();
    bytes[0] ^= 1;
    fs::write(&content, bytes).unwrap();
    assert_eq!(check(), (vec![FileFault::Bytes], false));
    fs::remove_file(&content).unwrap();
    assert_eq!(check(), (vec![FileFault::Missing], false));
    assert!(!place.target().exists());
    // The next backup stores it again.
    store(&place, &elsewhere, 2_000_000).unwrap();
    assert_eq!(check(), (vec![], true));
}

#[test]
fn old_backups_elsewhere_are_removed_with_their_content() {
    let place = Place::new();
    let elsewhere = Elsewhere::new(&place);
    let first = store(&place, &elsewhere, 1_000_000).unwrap();
    place.write("store/000012.sst", "a table that is longer");
    let second = store(&place, &elsewhere, 2_000_000).unwrap();
    let before = elsewhere.content().len();
    let storage = Box::new(elsewhere.clone());
    let repository = Repository::create_remote(&mirror(&place), INSTANCE, storage, 0).unwrap();
    let removed = repository.remove_old(NonZeroUsize::MIN, &second.name).unwrap();
    assert_eq!(removed, [first.name]);
    assert_eq!(elsewhere.content().len(), before - 1);
    assert_eq!(elsewhere.list("backups").unwrap().len(), 1);
    drop(repository);
    let repository = open(&place, &elsewhere).unwrap();
    let manifest = repository.manifest(&second.name).unwrap();
    restore(&repository, &manifest, &place.target(), 0).unwrap();
}

/// There may be many backups.
#[test]
fn the_manifests_leave_the_disk_space_that_the_service_needs() {
    let place = Place::new();
    let elsewhere = Elsewhere::new(&place);
    store(&place, &elsewhere, 1_000_000).unwrap();
    let storage = || Box::new(elsewhere.clone());
    let created = Repository::create_remote(&mirror(&place), INSTANCE, storage(), u64::MAX);
    assert!(matches!(created, Err(Error::LowDisk { .. })), "{created:?}");
    let opened = Repository::open_remote(&mirror(&place), storage(), u64::MAX);
    assert!(matches!(opened, Err(Error::LowDisk { .. })), "{opened:?}");
}

/// Another command may remove content that it does not know as used.
#[test]
fn a_backup_that_lost_its_storage_is_none() {
    let place = Place::new();
    let elsewhere = Elsewhere::new(&place);
    let first = store(&place, &elsewhere, 1_000_000).unwrap();
    place.write("store/000013.sst", "another table");
    elsewhere.is_lost.store(true, Ordering::Release);
    let refused = store(&place, &elsewhere, 2_000_000).unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    let names = open(&place, &elsewhere).unwrap().names().unwrap();
    assert_eq!(names, [first.name]);
    // What it has stored is used or removed later.
    elsewhere.is_lost.store(false, Ordering::Release);
    fs::remove_file(place.snapshot().join("store/000013.sst")).unwrap();
    let stored = elsewhere.content().len();
    store(&place, &elsewhere, 3_000_000).unwrap();
    assert_eq!(elsewhere.content().len(), stored - 1);
}
