//! Replays the corpus of the fuzz target `addresses` (`fuzz/corpus/addresses`).

mod checks;

use std::fs;
use std::path::PathBuf;

use proptest::prelude::{any, proptest};

use self::checks::{check_address, check_inner};

#[test]
fn every_address_has_a_safe_outcome() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/addresses");
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        check_address(text.strip_suffix('\n').unwrap_or(&text));
        files += 1;
    }
    assert!(files > 0);
}

proptest! {
    #[test]
    fn any_text_has_a_safe_outcome(text in any::<String>()) {
        check_address(&text);
    }

    #[test]
    fn every_spelling_of_an_address_is_judged_alike(bits in any::<u32>(), six in any::<u128>()) {
        check_inner(std::net::Ipv4Addr::from_bits(bits).into());
        check_inner(std::net::Ipv6Addr::from_bits(six).into());
    }
}
