//! Style sheets use the sizes and weights of texts that `style/tokens.css` defines.

use crate::support::{File, files};

/// What takes its size or weight from the element around it.
const INHERITED: &str = "inherit";

#[test]
fn texts_have_the_sizes_and_weights_of_the_scale() {
    let sheets = files(&["style"]);
    assert!(sheets.len() > 10, "the style sheets are found");
    let broken: Vec<String> = sheets
        .iter()
        .flat_map(|File { path, text }| {
            outside(text).into_iter().map(move |(number, line)| format!("{path}:{number}: {line}"))
        })
        .collect();
    assert!(broken.is_empty(), "sizes and weights are tokens:\n{}", broken.join("\n"));
}

/// The lines with another size or weight, with their numbers.
fn outside(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| is_outside(line)).collect()
}

fn is_outside(line: &str) -> bool {
    [("font-size:", "var(--step-"), ("font-weight:", "var(--weight-")].iter().any(
        |(property, token)| {
            let value = line.strip_prefix(property).map(str::trim_start);
            value.is_some_and(|value| !value.starts_with(token) && !value.starts_with(INHERITED))
        },
    )
}

#[test]
fn other_sizes_and_weights_are_found() {
    let sheet = "a {\n  font-size: var(--step-2);\n  font-weight: 600;\n  font-size: 0.9em;\n\
                 font-weight: inherit;\n}\n";
    assert_eq!(outside(sheet), [(3, "font-weight: 600;"), (4, "font-size: 0.9em;")]);
}
