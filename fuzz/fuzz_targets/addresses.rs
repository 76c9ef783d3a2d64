//! Hosts and URLs, as members enter them.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_address(text));
