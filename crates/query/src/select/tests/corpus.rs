//! Replays the corpus of the fuzz target `select_query` (`fuzz/corpus/select_query`).

mod checks;

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use self::checks::check_select;

/// The beginning of the names of files that are no query.
const REFUSED: &str = "refused-";

/// The files with their names.
fn corpus() -> Vec<(String, String)> {
    let directory =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/select_query");
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut files: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    assert!(files.len() > 20, "{}", files.len());
    files
}

#[test]
fn every_file_is_a_query_or_refused_as_its_name_says() {
    for (name, text) in corpus() {
        assert_eq!(check_select(&text), !name.starts_with(REFUSED), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_part_of_a_file_with_a_part_of_another_is_a_query_or_a_fault(
        one in prop::sample::select(corpus()),
        other in prop::sample::select(corpus()),
        end in any::<prop::sample::Index>(),
        start in any::<prop::sample::Index>(),
    ) {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let (one, other) = (chars(&one.1), chars(&other.1));
        let (end, start) = (end.index(one.len() + 1), start.index(other.len() + 1));
        let text: String = one[..end].iter().chain(&other[start..]).collect();
        check_select(&text);
    }
}
