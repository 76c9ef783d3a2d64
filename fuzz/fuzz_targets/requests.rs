//! Capture, from the bytes of a request to decisions.

#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| weir_fuzz::check_request(file));
