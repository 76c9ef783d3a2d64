//! Damaged content, and content that was read wrongly once.

use super::*;

/// Changes a bit of all stored content.
fn flip(place: &Place) {
    for path in below(&place.root().join("files")) {
        let mut bytes = fs::read(&path).unwrap();
        bytes[0] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_backup_replaces_damaged_content_of_what_it_reads() {
    let place = Place::new();
    let first = place.store(1_000_000);
    flip(&place);
    // The same bytes with another time are read again.
    for path in below(&place.snapshot()) {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    let second = place.store(2_000_000);
    assert_eq!((second.files, second.new_files), (4, 0));
    place.restore(&second.name).unwrap();
    fs::remove_dir_all(place.target()).unwrap();
    place.restore(&first.name).unwrap();
}

#[test]
fn damaged_content_that_was_set_aside_is_stored_again() {
    let place = Place::new();
    let first = place.store(1_000_000);
    flip(&place);
    let repository = place.repository();
    let manifest = repository.manifest(&first.name).unwrap();
    let damaged = verify(&repository, &manifest, &mut HashSet::new(), &GOING).unwrap();
    assert_eq!(damaged.len(), 4, "{damaged:?}");
    assert!(damaged.iter().all(|damage| repository.set_aside(damage).unwrap()));
    // What is not there any more cannot be moved, which is no error.
    assert!(!damaged.iter().any(|damage| repository.set_aside(damage).unwrap()));
    drop(repository);
    assert_eq!(below(&place.root().join("damaged")).len(), 4);
    let second = place.store(2_000_000);
    assert_eq!((second.files, second.new_files), (4, 4));
    place.restore(&second.name).unwrap();
    fs::remove_dir_all(place.target()).unwrap();
    place.restore(&first.name).unwrap();
}

/// The damage of all content that a check finds.
fn damages(repository: &Repository, name: &str) -> Vec<Damage> {
    let manifest = repository.manifest(name).unwrap();
    verify(repository, &manifest, &mut HashSet::new(), &GOING).unwrap()
}

#[test]
fn only_content_that_is_wrong_twice_is_set_aside() {
    let place = Place::new();
    let stored = place.store(1_000_000);
    flip(&place);
    let repository = place.repository();
    let damaged = damages(&repository, &stored.name);
    // A device that could not read it may read it later.
    for damage in &damaged {
        let fault = FileFault::Unreadable("Input/output error".to_owned());
        assert!(!repository.set_aside(&Damage { fault, ..damage.clone() }).unwrap());
    }
    // The second read is right.
    flip(&place);
    for damage in &damaged {
        assert!(!repository.set_aside(damage).unwrap());
    }
    assert!(!place.root().join("damaged").exists());
    flip(&place);
    for damage in &damaged {
        assert!(repository.set_aside(damage).unwrap());
    }
    assert_eq!(below(&place.root().join("damaged")).len(), 4);
}

#[test]
fn content_that_was_set_aside_and_is_right_is_moved_back() {
    let place = Place::new();
    let first = place.store(1_000_000);
    let damaged = place.root().join("damaged");
    let set_aside = || {
        fs::create_dir_all(&damaged).unwrap();
        for content in below(&place.root().join("files")) {
            fs::rename(&content, damaged.join(content.file_name().unwrap())).unwrap();
        }
        // This one is wrong.
        fs::write(damaged.join("0".repeat(64)), "wrong").unwrap();
    };
    set_aside();
    let repository = place.repository();
    assert_eq!(damages(&repository, &first.name).len(), 4);
    repository.put_back().unwrap();
    assert!(damages(&repository, &first.name).is_empty());
    assert_eq!(below(&damaged).len(), 1);
    drop(repository);
    // A backup does the same.
    set_aside();
    assert_eq!(place.store(2_000_000).new_files, 0);
    assert_eq!(below(&damaged).len(), 1);
    place.restore(&first.name).unwrap();
}
