//! What is true of every callback. The fuzz target `callbacks` includes this file
//! (`fuzz/`).

use crate::callback::Callback;

/// Checks a query: it is refused, or its values are visible ASCII of bounded length and are
/// read from any other spelling of them alike.
///
/// # Panics
/// When it has another outcome.
pub(super) fn check_callback(query: &str) {
    let Ok(read) = Callback::read(query) else { return };
    let values = [
        ("state", read.state()),
        ("code", read.code()),
        ("iss", read.issuer()),
        ("error", read.error()),
    ];
    let mut spelled = String::new();
    for (name, value) in values {
        let Some(value) = value else { continue };
        assert!((1..=4096).contains(&value.len()), "{name} of {} bytes", value.len());
        assert!(value.bytes().all(|byte| byte.is_ascii_graphic()), "{name}: {value:?}");
        let encoded: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        spelled += &format!("&{name}={encoded}");
    }
    // Three characters for each one may be too long.
    if let Ok(again) = Callback::read(&spelled) {
        let others = [again.state(), again.code(), again.issuer(), again.error()];
        assert_eq!(values.map(|(_, value)| value), others, "{query}");
    }
}
