//! Key prefixes of exported files.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_prefix(text));
