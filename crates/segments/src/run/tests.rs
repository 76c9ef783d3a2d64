use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::{Error, Part, Result};

fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (n ^ (n >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ (n >> 32)
}

fn key(n: u64) -> Key {
    let uuid = Uuid::from_u64_pair(mix(n), mix(n + 1));
    Key { project: (mix(n) % 3).cast_signed() - 1, uuid }
}

fn entry(n: u64) -> Entry {
    let place = Place { partition: (n % 6) as u16, first: mix(n + 7), index: n as u32 };
    Entry { key: key(n), place }
}

fn sorted(numbers: impl Iterator<Item = u64>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = numbers.map(entry).collect();
    entries.sort_unstable_by_key(|entry| entry.key);
    entries
}

struct File {
    _directory: TempDir,
    path: PathBuf,
    written: RunWritten,
}

impl File {
    fn of(entries: &[Entry], filter: FilterSize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        let mut writer = RunWriter::create(&path, filter).unwrap();
        for entry in entries {
            writer.push(*entry).unwrap();
        }
        Self { _directory: directory, path, written: writer.finish().unwrap() }
    }

    fn try_open(&self) -> Result<Run> {
        Run::open(&self.path, self.written.bytes, &self.written.sums)
    }

    fn open(&self) -> Run {
        self.try_open().unwrap()
    }
}

#[track_caller]
fn assert_has(run: &Run, entries: &[Entry]) {
    assert_eq!(run.len(), entries.len() as u64);
    assert_eq!(run.is_empty(), entries.is_empty());
    assert!(run.entries().map(|entry| entry.unwrap()).eq(entries.iter().copied()));
    let keys: Vec<Key> = entries.iter().map(|entry| entry.key).collect();
    let places: Vec<Option<Place>> = entries.iter().map(|entry| Some(entry.place)).collect();
    assert_eq!(run.find(&keys).unwrap(), places);
    run.verify().unwrap();
}

#[test]
fn keys_sort_as_their_bytes() {
    let mut keys: Vec<Key> = (0..100).map(key).collect();
    for project in [i64::MIN, -1, 0, 1, i64::MAX] {
        for uuid in [Uuid::nil(), Uuid::max(), Uuid::from_u128(1 << 127)] {
            keys.push(Key { project, uuid });
        }
    }
    keys.sort_unstable();
    assert!(keys.is_sorted_by_key(|key| key.to_bytes()));
    for (n, key) in (0..).zip(keys) {
        let entry = Entry { key, ..entry(n) };
        assert_eq!(Entry::from_bytes(&entry.to_bytes()), Some(entry));
    }
}

#[test]
fn keys_are_found_among_many_and_others_are_not() {
    for filter in [FilterSize::Eight, FilterSize::Sixteen] {
        let entries = sorted((0..120_000).map(|n| n * 2));
        let file = File::of(&entries, filter);
        let run = file.open();
        assert_has(&run, &entries);
        let absent: Vec<Key> = (0..120_000).map(|n| key(n * 2 + 1)).collect();
        assert!(run.find(&absent).unwrap().iter().all(Option::is_none));
        // In no order, some of them twice, some absent.
        let numbers: Vec<u64> = (0..5_000).map(|n| mix(n) % 240_000).chain([4, 4, 5]).collect();
        let keys: Vec<Key> = numbers.iter().map(|n| key(*n)).collect();
        for (n, place) in numbers.iter().zip(run.find(&keys).unwrap()) {
            let expected = n.is_multiple_of(2).then(|| entry(*n).place);
            assert_eq!(place, expected);
        }
        assert!(run.find(&[]).unwrap().is_empty());
    }
}

#[test]
fn runs_of_every_length_are_read_as_they_were_written() {
    for count in [0, 1, 2, 430, 431, 432, 862, 863, 5_000] {
        let entries = sorted(0..count);
        let file = File::of(&entries, FilterSize::default());
        assert_eq!(file.written.entries, count);
        let run = file.open();
        assert_has(&run, &entries);
        assert_eq!(run.find(&[key(1_000_000)]).unwrap(), [None]);
    }
}

#[test]
fn a_run_of_several_sections_is_searched_and_merged() {
    let count = (SECTION * BLOCK) as u64 + 1_000;
    let mut file = File::of(&[], FilterSize::default());
    let at =
        |n: u64| Entry { key: Key { project: 1, uuid: Uuid::from_u128(n.into()) }, ..entry(n) };
    let mut writer = RunWriter::create(&file.path, FilterSize::Eight).unwrap();
    for n in 0..count {
        writer.push(at(n)).unwrap();
    }
    file.written = writer.finish().unwrap();
    let run = file.open();
    let near = [0, 430, 431, 862, count - 1_001, count - 1_000, count - 999, count - 1];
    let keys: Vec<Key> = near.iter().map(|n| at(*n).key).collect();
    let places: Vec<_> = near.iter().map(|n| Some(at(*n).place)).collect();
    assert_eq!(run.find(&keys).unwrap(), places);
    assert_eq!(run.find(&[at(count).key, at(count + 500).key]).unwrap(), [None, None]);
    assert_eq!(run.entries().map(|entry| entry.unwrap()).last(), Some(at(count - 1)));
    // What its documentation says.
    let expected = count as f64 * (1.15 + 24.0 / 431.0) + file.written.sums.len() as f64;
    assert!((run.memory() as f64) < expected + 2_000.0, "{}", run.memory());
    let path = file.path.with_file_name("merged");
    let written = merge(&[&run], &path, FilterSize::Eight, |_| true).unwrap();
    assert_eq!(written, file.written);
}

#[test]
fn eight_runs_merge_into_one() {
    let files: Vec<File> = (0..8)
        .map(|part| {
            let numbers = (0..10_000).filter(|n| mix(*n + 3) % 8 == part);
            File::of(&sorted(numbers), FilterSize::Sixteen)
        })
        .chain([File::of(&[], FilterSize::Sixteen)])
        .collect();
    let runs: Vec<Run> = files.iter().map(File::open).collect();
    let runs: Vec<&Run> = runs.iter().collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged");
    let written = merge(&runs, &path, FilterSize::Eight, |_| true).unwrap();
    let merged = Run::open(&path, written.bytes, &written.sums).unwrap();
    let entries = sorted(0..10_000);
    assert_has(&merged, &entries);
    assert_eq!(written, File::of(&entries, FilterSize::Eight).written);
    // A key that two runs have is written once.
    let again = directory.path().join("again");
    let written_again =
        merge(&[runs[3], &merged, runs[3]], &again, FilterSize::Eight, |_| true).unwrap();
    assert_eq!(written_again, written);
    // Only projects that are kept.
    let of_project = |project| move |entry: &Entry| entry.key.project == project;
    let written = merge(&runs, &again, FilterSize::Eight, |project| project == 1).unwrap();
    let left: Vec<Entry> = entries.into_iter().filter(of_project(1)).collect();
    assert!(left.len() > 3_000);
    let of_one = Run::open(&again, written.bytes, &written.sums).unwrap();
    assert_has(&of_one, &left);
    let has = |project| of_one.has_project(project).unwrap();
    assert_eq!([i64::MIN, 0, 1, 2, i64::MAX].map(has), [false, false, true, false, false]);
    assert!(left.iter().all(|entry| merged.has_project(entry.key.project).unwrap()));
    let written = merge(&[], &path, FilterSize::Eight, |_| true).unwrap();
    assert_eq!(written.entries, 0);
}

#[test]
fn entries_must_be_in_order_and_different() {
    let entries = sorted(0..3);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    let mut writer = RunWriter::create(&path, FilterSize::default()).unwrap();
    writer.push(entries[1]).unwrap();
    for wrong in [entries[1], entries[0]] {
        let error = writer.push(wrong).unwrap_err();
        assert!(matches!(error, Error::NotInOrder { .. }), "{error}");
    }
    writer.push(entries[2]).unwrap();
    let written = writer.finish().unwrap();
    assert_has(&Run::open(&path, written.bytes, &written.sums).unwrap(), &entries[1..]);
}

#[test]
fn each_flipped_bit_is_found_before_a_place_is_returned() {
    let entries = sorted(0..1_000);
    let file = File::of(&entries, FilterSize::Sixteen);
    let bytes = fs::read(&file.path).unwrap();
    let run = file.open();
    let keys: Vec<Key> = entries.iter().map(|entry| entry.key).collect();
    let places = run.find(&keys).unwrap();
    for at in (0..bytes.len()).step_by(97).chain(0..HEADER).chain([bytes.len() - 1]) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file.path, &flipped).unwrap();
        let is_damaged = |error: &Error| {
            let Error::Damaged { part: Part::Bytes { first, end }, .. } = error else {
                return false;
            };
            (*first..*end).contains(&(at as u64))
        };
        for opened in [Ok(run.clone()), file.try_open()] {
            match opened {
                Ok(opened) => {
                    assert!(is_damaged(&opened.verify().unwrap_err()), "{at}");
                    match opened.find(&keys) {
                        Ok(found) => assert_eq!(found, places, "{at}"),
                        Err(error) => assert!(is_damaged(&error), "{at}: {error}"),
                    }
                    let read: Result<Vec<Entry>> = opened.entries().collect();
                    match read {
                        Ok(found) => assert_eq!(found, entries, "{at}"),
                        Err(error) => assert!(is_damaged(&error), "{at}: {error}"),
                    }
                }
                Err(error) => assert!(is_damaged(&error), "{at}: {error}"),
            }
        }
    }
}

#[test]
fn a_shorter_or_longer_file_is_found() {
    let file = File::of(&sorted(0..1_000), FilterSize::default());
    let bytes = fs::read(&file.path).unwrap();
    let longer = [&bytes[..], &[0]].concat();
    for other in [&bytes[..0], &bytes[..bytes.len() - 1], &longer] {
        fs::write(&file.path, other).unwrap();
        let error = file.try_open().err().unwrap();
        assert!(matches!(error, Error::Damaged { part: Part::Length { .. }, .. }), "{error}");
    }
}

#[test]
fn what_can_be_read_of_a_damaged_run_is_written_again() {
    let entries = sorted(0..5_000);
    let file = File::of(&entries, FilterSize::Sixteen);
    let sound = fs::read(&file.path).unwrap();
    // The filter follows the header and twelve blocks.
    let mut flipped = sound.clone();
    flipped[13 * crate::checked::CHUNK + 100] ^= 1;
    fs::write(&file.path, &flipped).unwrap();
    assert!(matches!(file.try_open(), Err(Error::Damaged { .. })));
    let path = file.path.with_file_name("salvaged");
    let RunWritten { bytes, sums, .. } = &file.written;
    let salvage = || salvage(&file.path, *bytes, sums, &path, FilterSize::Sixteen);
    let Salvaged { written, lost, keys } = salvage().unwrap();
    assert_eq!((&written, lost), (&file.written, 0));
    assert_eq!(keys, KeyRanges::default());
    assert_eq!(fs::read(&path).unwrap(), sound);
    // The fifth and the last block of entries.
    for block in [5, 12] {
        flipped[block * crate::checked::CHUNK] ^= 1;
    }
    fs::write(&file.path, &flipped).unwrap();
    let Salvaged { written, lost, keys } = salvage().unwrap();
    let last = entries.len() % BLOCK;
    assert_eq!(lost, (BLOCK + last) as u64);
    let left = [&entries[..4 * BLOCK], &entries[5 * BLOCK..entries.len() - last]].concat();
    assert_has(&Run::open(&path, written.bytes, &written.sums).unwrap(), &left);
    for entry in &entries {
        assert_eq!(keys.has(&entry.key), !left.contains(entry), "{entry:?}");
    }
    // Without the index, it is not known where the entries are.
    let end = flipped.len() - 1;
    flipped[end] ^= 1;
    fs::write(&file.path, &flipped).unwrap();
    assert!(matches!(salvage(), Err(Error::Damaged { .. })));
}

#[test]
fn wrong_content_with_valid_checksums_is_damage() {
    let entries = sorted(0..1_000);
    let file = File::of(&entries, FilterSize::Sixteen);
    let sound = fs::read(&file.path).unwrap();
    let rewritten = |content: &[u8]| {
        let path = file.path.with_file_name("rewritten");
        let mut writer = crate::checked::CheckedWriter::create(&path).unwrap();
        writer.push(content).unwrap();
        let (bytes, sums) = writer.finish(&[]).unwrap();
        Run::open(&path, bytes, &sums).unwrap()
    };
    let mut swapped = sound.clone();
    let begin = crate::checked::CHUNK;
    swapped[begin..begin + 2 * ENTRY].rotate_left(ENTRY);
    // The index says that the entries are beyond the end of the file.
    let mut elsewhere = sound.clone();
    let index = u64::from_be_bytes(sound[24..HEADER].try_into().unwrap());
    elsewhere[usize::try_from(index).unwrap()] = 1;
    for (content, lost) in [(swapped, BLOCK), (elsewhere, entries.len())] {
        let run = rewritten(&content);
        let error = run.verify().unwrap_err();
        assert!(matches!(error, Error::Damaged { part: Part::Content(_), .. }), "{error}");
        let path = file.path.with_file_name("salvaged");
        let salvaged = run.salvage(&path, FilterSize::Sixteen).unwrap();
        assert_eq!(salvaged.lost, lost as u64);
        let left = Run::open(&path, salvaged.written.bytes, &salvaged.written.sums).unwrap();
        assert_has(&left, &entries[lost..]);
    }
}

#[test]
fn ranges_of_keys_are_those_of_lost_blocks() {
    let all = KeyRanges::all();
    assert!(all.has(&key(1)) && all.has_project(i64::MIN) && all.has_project(i64::MAX));
    let of = |project: i64, n: u128| {
        let key = Key { project, uuid: Uuid::from_u128(n) };
        Entry { key, place: entry(0).place }
    };
    // Two full blocks of the first project, one of the second and one of the third.
    let block = |project: i64| (0..BLOCK as u128).map(move |n| of(project, n));
    let twice = (0..2 * BLOCK as u128).map(|n| of(1, n));
    let entries: Vec<Entry> = twice.chain(block(2)).chain(block(3)).collect();
    let file = File::of(&entries, FilterSize::Sixteen);
    let run = file.open();
    let mut flipped = fs::read(&file.path).unwrap();
    // The second and the third block.
    for block in [2, 3] {
        flipped[block * crate::checked::CHUNK] ^= 1;
    }
    fs::write(&file.path, &flipped).unwrap();
    let path = file.path.with_file_name("salvaged");
    let Salvaged { lost, keys, .. } = run.salvage(&path, FilterSize::Sixteen).unwrap();
    assert_eq!(lost, 2 * BLOCK as u64);
    let has = |project: i64, n: usize| keys.has(&of(project, n as u128).key);
    assert!(!has(1, BLOCK - 1) && has(1, BLOCK) && has(2, 0) && has(2, BLOCK) && !has(3, 0));
    let projects: Vec<i64> = (0..5).filter(|project| keys.has_project(*project)).collect();
    assert_eq!(projects, [1, 2]);
}

#[test]
fn a_sound_file_of_another_format_is_no_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let write = |content: &[u8]| {
        let mut file = crate::checked::CheckedWriter::create(&path).unwrap();
        file.push(content).unwrap();
        let (bytes, sums) = file.finish(&[]).unwrap();
        Run::open(&path, bytes, &sums).err().unwrap()
    };
    assert!(matches!(write(b""), Error::UnknownFormat { .. }));
    assert!(matches!(write(b"something else that is long enough"), Error::UnknownFormat { .. }));
    assert!(matches!(write(b"WEIRRUN\0\0\0\0\x02"), Error::UnknownFormat { .. }));
    assert!(matches!(write(b"WEIRRUN\0\0\0\0\x01"), Error::Damaged { .. }));
    let header = [&b"WEIRRUN\0\0\0\0\x01\0\0\0\x10"[..], &u64::MAX.to_be_bytes(), &[0; 8]].concat();
    assert!(matches!(write(&header), Error::Damaged { .. }));
}
