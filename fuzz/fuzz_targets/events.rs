//! From the text of a payload to decisions.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_capture::Payload;
use weir_fuzz::decide_all;

fuzz_target!(|text: &str| decide_all(&Payload::from_text(text.to_owned())));
