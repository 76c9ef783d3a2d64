//! Callbacks of a sign-in through a provider, as queries of requests.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_callback(text));
