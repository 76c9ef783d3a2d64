//! Hosts and addresses of the web, as members write them.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_address(text));
