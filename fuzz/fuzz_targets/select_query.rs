//! Questions in SQL.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_select(text));
