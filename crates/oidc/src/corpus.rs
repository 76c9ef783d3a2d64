//! Replays the corpus of the fuzz target `callbacks` (`fuzz/corpus/callbacks`).

mod checks;

use std::fs;
use std::path::PathBuf;

use proptest::prelude::proptest;

use self::checks::check_callback;

#[test]
fn every_callback_has_a_safe_outcome() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/callbacks");
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        check_callback(text.strip_suffix('\n').unwrap_or(&text));
        files += 1;
    }
    assert!(files > 0);
}

proptest! {
    #[test]
    fn any_query_has_a_safe_outcome(query in "((state|code|iss|error|st%61te|a)=[!-~%+]{0,8}&?){0,8}") {
        check_callback(&query);
    }
}
