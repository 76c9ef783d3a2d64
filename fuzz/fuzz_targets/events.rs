//! Capture, from the JSON text of a payload to decisions.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_text(text));
