//! Settings of destinations of every type.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_settings(text));
