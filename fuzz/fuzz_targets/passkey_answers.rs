//! Answers of browsers about passkeys, as JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| weir_fuzz::check_passkey_answer(text));
