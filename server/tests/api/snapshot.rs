//! Generated files in the repository, so that a change is visible in a review.

use std::path::Path;

/// Fails when a file of the repository differs from this text, and prints how to generate
/// it again.
#[track_caller]
pub(crate) fn assert_same(path: &str, text: &str, test: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("WEIR_WRITE").is_some() {
        std::fs::write(&file, text).unwrap();
        return;
    }
    let present = std::fs::read_to_string(&file).unwrap_or_default();
    if present != text {
        let differs = present.lines().zip(text.lines()).position(|(a, b)| a != b);
        let line = differs.map_or_else(|| "the end".to_owned(), |at| format!("line {}", at + 1));
        let lines =
            |of: &str| of.lines().skip(differs.unwrap_or(0)).take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(
            lines(&present),
            lines(text),
            "{path} is not current from {line} on; write it again and check the difference:\n    \
             WEIR_WRITE=1 cargo test -p weir-server --test api {test}",
        );
        assert!(present == text, "{path} is not current: it has other lines at its end");
    }
}
