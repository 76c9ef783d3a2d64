//! Archives with the files of plugins.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_fuzz::check_archive(bytes));
