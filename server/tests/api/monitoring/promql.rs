//! The names and labels that an expression of Prometheus reads.
//!
//! A scan, not a parser: every word that is not in `WORDS` is the name of a metric. So a
//! misspelt function is reported as a metric that is not exported.

/// Bytes of the longest expression that is read.
const LONGEST: usize = 2_000;

/// Functions and operators that the files use.
const WORDS: &[&str] = &[
    "absent",
    "and",
    "changes",
    "deriv",
    "histogram_quantile",
    "increase",
    "or",
    "predict_linear",
    "rate",
    "sum",
    "time",
];

/// Words before a list of labels in parentheses.
const GROUPING: &[&str] = &["by", "without"];

/// Characters between words.
const BETWEEN: &str = " ,+-*/<>=!";

/// What an expression reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) selectors: Vec<Selector>,
    /// Labels by which results are grouped.
    pub(super) groups: Vec<String>,
}

/// A metric with the conditions on its labels.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) name: String,
    pub(super) conditions: Vec<Condition>,
}

/// A condition such as `status=~"5.."`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) label: String,
    pub(super) value: String,
}

/// Reads an expression.
pub(super) fn reads(text: &str) -> Result<Reads, String> {
    if text.len() > LONGEST {
        return Err("the expression is too long".to_owned());
    }
    let mut reads = Reads::default();
    // Parentheses that are open.
    let mut open = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (word, after) = word(rest);
        rest = if first.is_ascii_digit() {
            after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        } else if GROUPING.contains(&word) {
            let (labels, after) = inside(after.trim_start(), '(', ')')?;
            reads.groups.extend(labels.split(',').map(|label| label.trim().to_owned()));
            after
        } else if WORDS.contains(&word) {
            after
        } else if !word.is_empty() {
            let (selector, after) = selector(rest)?;
            reads.selectors.push(selector);
            after
        } else if first == '[' {
            inside(rest, '[', ']')?.1
        } else if first == '(' {
            open += 1;
            &rest[1..]
        } else if first == ')' {
            open = open.checked_sub(1).ok_or_else(|| format!("`(` is missing: {text}"))?;
            &rest[1..]
        } else if BETWEEN.contains(first) {
            &rest[first.len_utf8()..]
        } else {
            return Err(format!("unexpected text: {rest}"));
        };
    }
    if open > 0 {
        return Err(format!("`)` is missing: {text}"));
    }
    Ok(reads)
}

/// The metric at the start of a text, and the text after it. The lines of the metrics page
/// begin with one too.
pub(super) fn selector(text: &str) -> Result<(Selector, &str), String> {
    let (name, after) = word(text);
    let mut selector = Selector { name: name.to_owned(), conditions: Vec::new() };
    let Some(mut rest) = after.strip_prefix('{') else { return Ok((selector, after)) };
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((selector, after));
        }
        let (label, after) = word(rest);
        let quoted = after.trim_start_matches(['=', '~', '!']).strip_prefix('"');
        let value = quoted.and_then(|quoted| quoted.split_once('"'));
        let (false, Some((value, after))) = (label.is_empty(), value) else {
            return Err(format!("not a condition on a label: {rest}"));
        };
        selector.conditions.push(Condition { label: label.to_owned(), value: value.to_owned() });
        rest = after;
    }
}

/// The name at the start of a text, which may be empty, and the text after it.
fn word(text: &str) -> (&str, &str) {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split_at(text.find(|c: char| !is_of_name(c)).unwrap_or(text.len()))
}

/// The text between two marks at the start of a text, and the text after them.
fn inside(text: &str, open: char, close: char) -> Result<(&str, &str), String> {
    let inner = text.strip_prefix(open).and_then(|inner| inner.split_once(close));
    inner.ok_or_else(|| format!("`{open}` and `{close}` are missing: {text}"))
}

#[test]
fn names_and_labels_of_expressions_are_found() {
    let text =
        "sum by (job, le) (rate(a_total{x=\"1\",y=~\"2|3\"}[5m])) / b - 1.5 > 0 or absent(c)";
    let condition =
        |label: &str, value: &str| Condition { label: label.to_owned(), value: value.to_owned() };
    let plain = |name: &str| Selector { name: name.to_owned(), conditions: Vec::new() };
    let first = Selector {
        conditions: vec![condition("x", "1"), condition("y", "2|3")],
        ..plain("a_total")
    };
    let selectors = vec![first, plain("b"), plain("c")];
    let groups = vec!["job".to_owned(), "le".to_owned()];
    assert_eq!(reads(text), Ok(Reads { selectors, groups }));
}

#[test]
fn expressions_that_cannot_be_read_are_refused() {
    for text in [
        "a{",
        "a}",
        "a{x}",
        "a{x=1}",
        "a{=\"1\"}",
        "sum by job (a)",
        "rate(a[5m)",
        "rate(a5m])",
        "rate(a[5m]",
        "rate a[5m])",
        "(a) / b)",
        "a)(",
        "a # b",
    ] {
        assert!(reads(text).is_err(), "{text}");
    }
    assert!(reads(&"a ".repeat(LONGEST)).is_err());
}
