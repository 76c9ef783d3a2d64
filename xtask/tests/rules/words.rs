//! Checks that documents, comments and the texts of the program use the standard nouns, so
//! that a search finds them.
//!
//! `docs/GLOSSARY.md` lists the words to use instead. Code, link targets and labels of
//! the app (between single asterisks) are not checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{self, File};
use crate::waiting;

/// Words and phrases in lower case. A phrase also matches across a line break.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("at once", "immediately, at the same time"),
    ("by itself", "automatically, alone"),
    ("by themselves", "automatically, alone"),
    ("front", "dispatcher, before"),
    ("gave back", "returned, released"),
    ("give back", "return, release"),
    ("given back", "returned, released"),
    ("gives back", "returns, releases"),
    ("go on", "continue, resume"),
    ("goes on", "continues, resumes"),
    ("going on", "in progress, current"),
    ("held up", "delayed, blocked"),
    ("hitherto", "until now"),
    ("hold up", "delay, block"),
    ("house", "organization"),
    ("in the place of", "instead of; write that it replaces it"),
    ("left out", "skipped, omitted"),
    ("let go", "release"),
    ("lets go", "releases"),
    ("look at", "check, read"),
    ("looked at", "checked, read"),
    ("looking at", "checking, reading"),
    ("looks at", "checks, reads"),
    ("manner", "policy, way"),
    ("nobody", "no user, no caller, no task"),
    ("pack", "compress"),
    ("packed", "compressed"),
    ("packing", "compressing"),
    ("packs", "compresses"),
    ("somebody", "a user, a member, a caller"),
    ("someone", "a user, a member, a caller"),
    ("stands in", "is in"),
    ("stranger", "unknown sender"),
    ("strangers", "unknown senders"),
    ("stretch", "batch, range"),
    ("stretches", "batches, ranges"),
    ("surroundings", "dependencies"),
    ("take back", "withdraw, undo, roll back, subtract"),
    ("take up", "accept, start, resume"),
    ("taken back", "withdrawn, undone, rolled back, subtracted"),
    ("taken up", "accepted, started, resumed"),
    ("takes back", "withdraws, undoes, rolls back, subtracts"),
    ("takes up", "accepts, starts, resumes"),
    ("that which", "the noun"),
    ("those which", "the noun"),
    ("told", "recorded, notified, reported"),
    ("took back", "withdrew, undid, rolled back, subtracted"),
    ("took up", "accepted, started, resumed"),
    ("unpack", "decompress"),
    ("unpacked", "decompressed"),
    ("unpacking", "decompressing"),
    ("unpacks", "decompresses"),
    ("went on", "continued, resumed"),
    ("whereto", "the target"),
    ("whither", "the target"),
    ("who has it", "the user, the owner"),
    ("whoever", "the person who, the caller, the user"),
    ("whomever", "the person whom"),
    ("work out", "compute"),
    ("worked out", "computed"),
    ("works out", "computes"),
];

/// These files contain the words: the glossary lists them, and tests write the others.
const UNCHECKED: &[&str] = &["docs/GLOSSARY.md", "docs/api-coverage.md", "docs/pages.md"];

/// If fewer documents are found, the search for documents is broken.
const AT_LEAST: usize = 100;

#[test]
fn documents_use_the_words_of_the_glossary() {
    let root = support::root();
    let mut files = Vec::new();
    for entry in fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            files.push(path);
        }
    }
    below(&root.join("docs"), "md", &mut files);
    below(&root.join(".github"), "md", &mut files);
    below(&root.join("fuzz"), "md", &mut files);
    assert!(files.len() >= AT_LEAST, "only {} documents were found", files.len());
    let mut broken = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if !UNCHECKED.contains(&name.as_str()) {
            let text = fs::read_to_string(&file).unwrap();
            broken.extend(found(&text).into_iter().map(|fault| format!("{name}:{fault}")));
        }
    }
    broken.sort();
    assert!(broken.is_empty(), "words that are not in the glossary:\n- {}", broken.join("\n- "));
}

/// Words of the glossary that have another sense too, in which texts use them.
const OTHER_SENSES: &[&str] = &["account", "look", "place", "share", "turn"];

#[test]
fn every_word_that_the_glossary_bans_is_checked() {
    let glossary = fs::read_to_string(support::root().join("docs/GLOSSARY.md")).unwrap();
    let (_, table) = glossary.split_once("| do not write | write |\n|---|---|\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| ")?.split(" | ").next());
    let banned: Vec<_> = rows.flat_map(banned_in).collect();
    assert!(banned.len() > 25, "{banned:?}");
    let unchecked: Vec<_> = banned
        .iter()
        .filter(|word| WORDS.iter().all(|(phrase, _)| phrase != word))
        .filter(|word| !OTHER_SENSES.contains(&word.as_str()))
        .collect();
    assert!(unchecked.is_empty(), "no rule holds {unchecked:?}");
}

/// The words in a cell such as `hold up, take up (an invite, a run)`.
fn banned_in(cell: &str) -> Vec<String> {
    let mut words = String::new();
    for (at, part) in cell.split(['(', ')']).enumerate() {
        if at % 2 == 0 {
            words.push_str(part);
        }
    }
    words.split(',').map(|word| word.trim().to_owned()).collect()
}

#[test]
fn a_word_is_found_in_prose_only() {
    let text =
        "Whoever asks is *told*.\n\n```sh\nanew\n```\nSee `stretch` in [by\nitself](anew.md).\n";
    assert_eq!(
        found(text),
        [
            "1: `whoever`; write: the person who, the caller, the user",
            "6: `by itself`; write: automatically, alone",
        ]
    );
    assert_eq!(found("Households retold *going on*, packedness, {left_out}.\n"), [""; 0]);
}

pub(crate) fn below(directory: &Path, ending: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, ending, files);
        } else if path.extension().is_some_and(|is| is == ending) {
            files.push(path);
        }
    }
}

/// Each listed word in a document, with its line.
fn found(text: &str) -> Vec<String> {
    let prose = prose(text);
    let words: Vec<(usize, String)> = prose
        .lines()
        .enumerate()
        .flat_map(|(at, line)| {
            // A name such as `left_out` is one word.
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let words = words.filter(|word| !word.is_empty());
            words.map(move |word| (at + 1, word.to_lowercase()))
        })
        .collect();
    let mut faults = Vec::new();
    for at in 0..words.len() {
        for (phrase, instead) in WORDS {
            let matches = phrase
                .split(' ')
                .enumerate()
                .all(|(offset, word)| words.get(at + offset).is_some_and(|(_, is)| is == word));
            if matches {
                faults.push(format!("{}: `{phrase}`; write: {instead}", words[at].0));
            }
        }
    }
    faults
}

/// The text with blanks instead of code, link targets and labels of the app. Line breaks
/// stay.
fn prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if !fenced && !fence {
            prose.push_str(&without(line));
        }
        prose.push('\n');
    }
    prose
}

/// One line without the text between marks. `_`, which is a word for [`found`], replaces it,
/// so that a phrase does not match across the gap.
fn without(line: &str) -> String {
    let mut left = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['`', '*', ']']) {
        let (before, from) = rest.split_at(at);
        left.push_str(before);
        let (open, close) = match from.as_bytes() {
            [b'`', ..] => ("`", "`"),
            [b'*', b'*', ..] => {
                left.push(' ');
                rest = &from[2..];
                continue;
            }
            [b'*', ..] => ("*", "*"),
            [b']', b'(', ..] => ("](", ")"),
            _ => {
                left.push(' ');
                rest = &from[1..];
                continue;
            }
        };
        let inner = &from[open.len()..];
        match inner.find(close) {
            Some(end) => {
                left.push_str(" _ ");
                rest = &inner[end + close.len()..];
            }
            None => {
                left.push(' ');
                rest = inner;
            }
        }
    }
    left.push_str(rest);
    left
}

/// The directories with the sources of the product.
const SOURCES: &[&str] = &["app/src", "crates", "server/src"];

/// Benchmarks are not part of the product.
const BENCHMARKS: &str = "crates/bench/";

/// Fewer texts than this mean that reading the sources is broken.
const TEXTS_AT_LEAST: usize = 3000;

#[test]
fn the_texts_of_the_program_use_the_words_of_the_glossary() {
    let root = support::root();
    let mut files = Vec::new();
    for directory in SOURCES {
        below(&root.join(directory), "rs", &mut files);
    }
    let mut texts = 0;
    let mut broken = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if name.starts_with(BENCHMARKS) {
            continue;
        }
        let source = fs::read_to_string(&file).unwrap();
        for (line, text) in literals(waiting::split(&name, &source).0) {
            texts += 1;
            let faults = found(&text);
            broken.extend(
                faults.into_iter().map(|fault| format!("{name}:{line}: {text:?}: {fault}")),
            );
        }
    }
    assert!(texts >= TEXTS_AT_LEAST, "only {texts} texts were found");
    broken.sort();
    assert!(broken.is_empty(), "words that are not in the glossary:\n- {}", broken.join("\n- "));
}

/// Words that do not say what a type is.
const NO_TYPES: &[&str] = &[
    "Answers",
    "Anywhere",
    "As",
    "Became",
    "Beside",
    "Board",
    "Care",
    "Deed",
    "Each",
    "Elsewhere",
    "Given",
    "Here",
    "Kept",
    "Known",
    "Learned",
    "Left",
    "Passing",
    "Post",
    "Reach",
    "Said",
    "Says",
    "Seen",
    "Shelf",
    "Sides",
    "Somewhere",
    "Surroundings",
    "Taken",
    "Teller",
    "Together",
    "Told",
    "Waits",
    "Wanted",
    "Way",
    "WayOut",
    "Ways",
    "What",
    "Within",
];

/// Words that do not say what a variant is. Others of [`NO_TYPES`], such as `Taken` in
/// `Outcome::Taken`, say it beside the name of the enum.
const NO_VARIANTS: &[&str] = &[
    "Anywhere",
    "Board",
    "Care",
    "Deed",
    "Here",
    "Known",
    "Learned",
    "Passing",
    "Somewhere",
    "Surroundings",
    "Teller",
    "Together",
    "Told",
    "Way",
    "WayOut",
    "Ways",
    "What",
];

/// What declares a type, before its name.
const DECLARATIONS: &[&str] = &["enum", "struct", "trait", "type"];

/// Fewer types than this mean that reading the sources is broken.
const TYPES_AT_LEAST: usize = 1000;

/// Fewer variants than this mean that reading the sources is broken.
const VARIANTS_AT_LEAST: usize = 1000;

#[test]
fn types_have_names_that_say_what_they_are() {
    let (mut types, mut all_variants, mut broken) = (0, 0, Vec::new());
    for File { path, text } in support::files(SOURCES) {
        if !path.ends_with(".rs") || path.starts_with(BENCHMARKS) {
            continue;
        }
        let source = waiting::split(&path, &text).0;
        for (line, name) in declared(source) {
            types += 1;
            if NO_TYPES.contains(&name) {
                broken.push(format!("{path}:{line}: {name}"));
            }
        }
        for (line, name) in variants(source) {
            all_variants += 1;
            if NO_VARIANTS.contains(&name) {
                broken.push(format!("{path}:{line}: {name}"));
            }
        }
    }
    assert!(all_variants >= VARIANTS_AT_LEAST, "only {all_variants} variants were found");
    assert!(types >= TYPES_AT_LEAST, "only {types} types were found");
    assert!(broken.is_empty(), "types whose names say nothing:\n- {}", broken.join("\n- "));
}

#[test]
fn a_declared_type_is_found() {
    let source =
        "// struct No;\npub(crate) struct Kept<T>(T);\n    type With = ();\nfn enumerate() {}\n";
    assert_eq!(declared(source), [(2, "Kept"), (3, "With")]);
}

/// The types that a source declares, each with its line.
fn declared(source: &str) -> Vec<(usize, &str)> {
    let mut types = Vec::new();
    for (at, line) in source.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let pairs = words.windows(2).filter(|pair| DECLARATIONS.contains(&pair[0]));
        types.extend(pairs.map(|pair| (at + 1, pair[1])));
    }
    types
}

#[test]
fn a_variant_is_found() {
    let source = "\
        pub enum Progress {\n    /// Positions.\n    Known(u64),\n    InUse {\n        At: u64,\n    \
        },\n}\nstruct Told {\n    Care: u64,\n}\nmod inner {\n    enum Way {\n        Told,\n        \
        #[default]\n        Other = 2,\n    }\n}\nenum One {}\n    Late,\n";
    assert_eq!(variants(source), [(3, "Known"), (4, "InUse"), (13, "Told"), (15, "Other")]);
}

/// The variants of the enums in a source, each with its line. It has the layout of rustfmt:
/// a variant begins a line, one step to the right of its enum.
fn variants(source: &str) -> Vec<(usize, &str)> {
    let mut variants = Vec::new();
    let mut step = None;
    for (at, line) in source.lines().enumerate() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        match step {
            None if text.ends_with('{') && !text.starts_with("//") => {
                let is_enum = text.split_whitespace().take(3).any(|word| word == "enum");
                step = is_enum.then_some(depth + 4);
            }
            Some(inner) if depth + 4 == inner && text.starts_with('}') => step = None,
            Some(inner) if depth == inner && text.starts_with(|c: char| c.is_ascii_uppercase()) => {
                let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
                variants.push((at + 1, &text[..end]));
            }
            _ => {}
        }
    }
    variants
}

/// The directories with Rust sources, also of tests and benchmarks.
const RUST: &[&str] = &["app/src", "crates", "fuzz", "server", "xtask"];

/// Fewer lines of comments than this mean that reading the sources is broken.
const COMMENTS_AT_LEAST: usize = 10_000;

#[test]
fn comments_use_the_words_of_the_glossary() {
    let (mut lines, mut broken) = (0, Vec::new());
    for File { path, text } in support::files(RUST) {
        if !path.ends_with(".rs") {
            continue;
        }
        let comments = comments(&text);
        lines += comments.lines().filter(|line| *line != CODE).count();
        broken.extend(found(&comments).into_iter().map(|fault| format!("{path}:{fault}")));
    }
    assert!(lines >= COMMENTS_AT_LEAST, "only {lines} lines of comments were found");
    broken.sort();
    assert!(broken.is_empty(), "words that are not in the glossary:\n- {}", broken.join("\n- "));
}

/// A line of code among [`comments`]: one word, so that a phrase does not match across it.
const CODE: &str = "_";

/// The comments of a source that have lines of their own, with [`CODE`] for all other lines.
fn comments(source: &str) -> String {
    let mut comments = String::with_capacity(source.len());
    for line in source.lines() {
        let comment = line.trim_start().strip_prefix("//");
        comments.push_str(comment.map_or(CODE, |text| text.trim_start_matches(['/', '!'])));
        comments.push('\n');
    }
    comments
}

#[test]
fn a_word_in_a_comment_is_found() {
    let source = "//! By\n//! itself.\nlet by = 1;\n    // Told, see `stretch`.\nlet a = \"anew\";\n\
                  /// By\nfn itself() {}\n// itself, by `a` itself\n";
    assert_eq!(
        found(&comments(source)),
        [
            "1: `by itself`; write: automatically, alone",
            "4: `told`; write: recorded, notified, reported",
        ]
    );
}

/// Files whose comments and texts operators read. `--help` prints the comments of the
/// arguments.
const FOR_OPERATORS: &[&str] = &[
    "crates/import/src/arguments.rs",
    "docs/monitoring/alerts.yml",
    "packaging",
    "packaging/weir.service",
    "server/src/cli.rs",
];

#[test]
fn texts_for_operators_use_the_words_of_the_glossary() {
    let mut broken = Vec::new();
    for File { path, text } in support::files(FOR_OPERATORS) {
        broken.extend(found(&text).into_iter().map(|fault| format!("{path}:{fault}")));
    }
    assert!(broken.is_empty(), "words that are not in the glossary:\n- {}", broken.join("\n- "));
}

/// Fewer descriptions than this mean that reading the document of the API is broken.
const DESCRIPTIONS_AT_LEAST: usize = 1000;

#[test]
fn the_document_of_the_api_uses_the_words_of_the_glossary() {
    let document = fs::read(support::root().join("docs/openapi.json")).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let mut texts = Vec::new();
    descriptions(&document, &mut texts);
    let count = texts.len();
    assert!(count >= DESCRIPTIONS_AT_LEAST, "only {count} descriptions were found");
    // Many descriptions are repeated.
    let broken: BTreeSet<_> = texts
        .into_iter()
        .flat_map(|text| found(text).into_iter().map(move |fault| format!("{text:?}: {fault}")))
        .collect();
    let broken: Vec<_> = broken.into_iter().collect();
    assert!(broken.is_empty(), "words that are not in the glossary:\n- {}", broken.join("\n- "));
}

#[test]
fn descriptions_are_found_in_the_document_of_the_api() {
    let document = serde_json::json!({
        "info": { "title": "T", "description": "D" },
        "tags": [{ "name": "N", "description": { "description": "E", "type": "string" } }],
    });
    let mut texts = Vec::new();
    descriptions(&document, &mut texts);
    texts.sort_unstable();
    assert_eq!(texts, ["D", "E", "T"]);
}

/// Texts for readers in a document of the API.
fn descriptions<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) => {
                        if matches!(name.as_str(), "description" | "summary" | "title") {
                            texts.push(text);
                        }
                    }
                    value => descriptions(value, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| descriptions(value, texts)),
        _ => {}
    }
}

#[test]
fn texts_are_found_in_sources() {
    let source =
        "// \"no\"\nlet a = '\"'; f(\"one \\\" and\n two\", r#\"three \" four\"#, \"name\");";
    let texts = [(2, "one \\\" and\n two".to_owned()), (3, "three \" four".to_owned())];
    assert_eq!(literals(source), texts);
    let source = "<dt>\"Front\"</dt> f(\"GET\", \"X-Id\", \"A\", \"LeftOut\")";
    assert_eq!(literals(source), [(1, "Front".to_owned())]);
}

/// Texts of more than one word and labels in a source, with their lines.
pub(crate) fn literals(source: &str) -> Vec<(usize, String)> {
    let mut texts = Vec::new();
    let mut at = 0;
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let (skip, text) = match rest.as_bytes() {
            [b'/', b'/', ..] => (rest.find('\n').unwrap_or(rest.len()), None),
            [b'\'', b'\\', ..] => (rest[2..].find('\'').map_or(rest.len(), |end| end + 3), None),
            [b'\'', _, b'\'', ..] => (3, None),
            [b'r', b'#' | b'"', ..] => raw(rest),
            [b'"', ..] => quoted(rest),
            _ => (rest.chars().next().map_or(1, char::len_utf8), None),
        };
        if let Some(text) = text.filter(|text| text.contains(char::is_whitespace) || is_label(text))
        {
            texts.push((source[..at].matches('\n').count() + 1, text.to_owned()));
        }
        at += skip;
    }
    texts
}

/// Whether a text is one word that begins with a capital letter, such as a label of the app.
fn is_label(text: &str) -> bool {
    let rest = text.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// How much of a source a quoted text takes, and the text.
fn quoted(rest: &str) -> (usize, Option<&str>) {
    let mut escaped = true;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return (at + 1, Some(&rest[1..at])),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    (rest.len(), None)
}

/// The same for a raw text; a name such as `r#type` is none.
fn raw(rest: &str) -> (usize, Option<&str>) {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let Some(text) = rest[1 + hashes..].strip_prefix('"') else { return (1, None) };
    let close = format!("\"{}", "#".repeat(hashes));
    let end = text.find(&close).unwrap_or(text.len());
    (2 + hashes + end + close.len(), Some(&text[..end]))
}
