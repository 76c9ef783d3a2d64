//! Browser tests do not depend on each other. A test that needs what an earlier one has
//! made fails alone, and fails with the earlier one.

use crate::support::{File, files};

/// The mode of a file whose tests are skipped after a failure, because they need it.
const SERIAL: &str = "mode: \"serial\"";

#[test]
fn browser_tests_share_no_variables() {
    let specs = || files(&["end2end/tests"]).into_iter().filter(|file| is_spec(&file.path));
    assert!(specs().count() > 20, "the browser tests are found");
    let shared: Vec<String> = specs()
        .flat_map(|File { path, text }| {
            shared(&text).into_iter().map(move |(number, line)| format!("{path}:{number}: {line}"))
        })
        .collect();
    assert!(shared.is_empty(), "each test prepares what it needs:\n{}", shared.join("\n"));
}

fn is_spec(path: &str) -> bool {
    path.ends_with(".spec.ts")
}

/// The lines through which a test can need another one, with their numbers.
fn shared(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    lines
        .filter(|(_, line)| {
            ["let ", "var "].iter().any(|word| line.starts_with(word)) || line.contains(SERIAL)
        })
        .map(|(number, line)| (number, line.to_owned()))
        .collect()
}

#[test]
fn shared_variables_are_recognised() {
    let spec = "const a = 1;\nlet key = \"\";\ntest(\"a\", () => {\n  let own = 1;\n});\n";
    assert_eq!(shared(spec), [(2, "let key = \"\";".to_owned())]);
    let serial = "test.describe.configure({ mode: \"serial\" });";
    assert_eq!(shared(serial), [(1, serial.to_owned())]);
    assert!(
        is_spec("end2end/tests/a.hydrate.spec.ts") && !is_spec("end2end/tests/pages.screens.ts")
    );
}
