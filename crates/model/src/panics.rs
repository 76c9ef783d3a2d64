//! The message of a caught panic.
//!
//! What belongs here: extracting the message for a log line. What does not: catching
//! panics.

use std::any::Any;

/// The message of a panic; empty if its payload is not a text.
pub fn message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn both_kinds_of_panic_text_are_read() {
        assert_eq!(message(&"fixed"), "fixed");
        assert_eq!(message(&"made".to_owned()), "made");
        assert_eq!(message(&7), "");
    }
}
