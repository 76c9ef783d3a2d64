//! Responses of identity providers, as XML.

#![no_main]

libfuzzer_sys::fuzz_target!(|document: &[u8]| weir_fuzz::check_response(document));
