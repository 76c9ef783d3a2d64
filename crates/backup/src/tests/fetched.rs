//! Files of a snapshot that are elsewhere.

use std::collections::VecDeque;

use super::*;

/// A file that is elsewhere, and what fetching it gives.
type Distant = (&'static str, &'static str, Fetched);

/// A source with these files. It notes which were fetched.
struct Source {
    rest: VecDeque<Distant>,
    current: Option<Distant>,
    fetched: Vec<&'static str>,
}

impl Source {
    fn new(files: &[Distant]) -> Self {
        Self { rest: files.iter().copied().collect(), current: None, fetched: Vec::new() }
    }
}

impl Fetch for Source {
    fn next(&mut self) -> Result<Option<Needed>> {
        self.current = self.rest.pop_front();
        let needed = |(path, content, _): Distant| Needed {
            path: path.to_owned(),
            bytes: content.len() as u64,
        };
        Ok(self.current.map(needed))
    }

    fn fetch(&mut self, at: &Path) -> Result<Fetched> {
        let (path, content, fetched) = self.current.unwrap();
        self.fetched.push(path);
        if fetched != Fetched::Absent {
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, content).unwrap();
        }
        Ok(fetched)
    }
}

/// Stores a backup with the files of a source. Returns it, and which files were fetched.
fn store(place: &Place, created_at: i64, files: &[Distant]) -> (Stored, Vec<&'static str>) {
    let about = About { schema: 25, program: "1.0.0".to_owned(), created_at };
    let (taken, mut source) = (place.take(), Source::new(files));
    let stored = place.repository();
    let stored = stored.store_fetching(&taken, None, about, going(), Some(&mut source)).unwrap();
    assert!(below(&taken).is_empty(), "each file was removed after it was stored");
    (stored, source.fetched)
}

#[test]
fn a_file_that_the_newest_backup_has_is_not_fetched_again() {
    let place = Place::new();
    let one = ("segments/7/0/3-4-b.parquet", "more events", Fetched::Sound);
    let other = ("segments/8/1/1-2-c.parquet", "others", Fetched::Sound);
    let (first, fetched) = store(&place, 1_000_000, &[one]);
    assert_eq!((first.files, first.unsound, fetched.as_slice()), (5, 0, &[one.0][..]));
    let (second, fetched) = store(&place, 2_000_000, &[one, other]);
    assert_eq!(fetched, [other.0]);
    assert_eq!((second.files, second.new_files), (6, 1));
    // A copy that the snapshot has is not read either.
    place.write("segments/7/0/3-4-b.parquet", "other bytes");
    let (third, fetched) = store(&place, 3_000_000, &[one, other]);
    assert!(fetched.is_empty());
    assert_eq!((third.files, third.new_files), (6, 0));
    place.restore(&third.name).unwrap();
    assert_eq!(place.read(one.0), "more events");
    assert_eq!(place.read(other.0), "others");
    fs::remove_dir_all(place.target()).unwrap();
    place.restore(&first.name).unwrap();
    assert!(!place.target().join(other.0).exists());
}

#[test]
fn what_is_damaged_or_absent_is_asked_for_again() {
    let place = Place::new();
    let damaged = ("segments/7/0/3-4-b.parquet", "damaged", Fetched::Damaged);
    let absent = ("segments/7/0/5-6-c.parquet", "absent!", Fetched::Absent);
    let (first, _) = store(&place, 1_000_000, &[damaged, absent]);
    assert_eq!((first.files, first.unsound), (5, 2), "what there is of a damaged file is stored");
    let sound = (damaged.0, "perfect", Fetched::Sound);
    let found = (absent.0, "present", Fetched::Sound);
    let (second, fetched) = store(&place, 2_000_000, &[sound, found]);
    assert_eq!(fetched, [sound.0, found.0]);
    assert_eq!((second.files, second.unsound), (6, 0));
    place.restore(&second.name).unwrap();
    assert_eq!(place.read(sound.0), "perfect");
    assert_eq!(place.read(found.0), "present");
}

#[test]
fn a_file_is_only_fetched_while_the_disk_has_space_for_it() {
    let place = Place::new();
    let files = [("segments/7/0/3-4-b.parquet", "events", Fetched::Sound)];
    let about = About { schema: 25, program: "1.0.0".to_owned(), created_at: 1_000_000 };
    let mut source = Source::new(&files);
    let limits = Limits { least_free: u64::MAX, ..going() };
    let (taken, repository) = (place.take(), place.repository());
    let refused = repository.store_fetching(&taken, None, about, limits, Some(&mut source));
    assert!(matches!(refused.unwrap_err(), Error::LowDisk { .. }));
    assert!(source.fetched.is_empty());
}
