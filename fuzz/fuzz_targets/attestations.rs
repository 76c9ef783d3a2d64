//! What authenticators write about passkeys, as CBOR.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_fuzz::check_attestation(bytes));
