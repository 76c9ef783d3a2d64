//! JSON in which every name occurs once in its object: warehouses refuse other JSON.
//!
//! What belongs here: removing repeated names. What does not: other values that
//! warehouses refuse (`shape`).

use std::borrow::Cow;
use std::ops::Range;

use weir_json::{Edits, Token, Tokens, string};

/// A member of an object.
struct Member<'a> {
    name: Cow<'a, str>,
    start: usize,
    /// The begin of the next member. For the last member, its own begin.
    next: usize,
}

/// JSON without the members whose name occurs again later in the same object. The last
/// one counts, as for most readers. `None` if there are no such members.
pub(super) fn without_repeats(json: &str) -> Option<String> {
    let mut cuts = repeats(json);
    cuts.sort_unstable_by_key(|cut| cut.start);
    let mut edits = Edits::of(json);
    for cut in cuts {
        // A removed member may be within another one, which is passed over.
        edits.replace(cut, "");
    }
    edits.finish()
}

/// The ranges of the repeated members, each with the comma after it.
fn repeats(json: &str) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut members: Vec<Member<'_>> = Vec::new();
    // For each open bracket: the index of its first member, or `None` for an array.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut is_name = false;
    for (token, at) in Tokens::of(json.as_bytes()) {
        match token {
            Token::String => {
                if is_name && let Some(&Some(from)) = open.last() {
                    if let Some(before) = members.get_mut(from..).and_then(<[_]>::last_mut) {
                        before.next = at.start;
                    }
                    let start = at.start;
                    let text = json.get(at).unwrap_or_default();
                    let name = string(text).unwrap_or(Cow::Borrowed(text));
                    members.push(Member { name, start, next: start });
                }
                is_name = false;
            }
            Token::Mark(b'{') => {
                open.push(Some(members.len()));
                is_name = true;
            }
            Token::Mark(b'[') => {
                open.push(None);
                is_name = false;
            }
            Token::Mark(b',') => is_name = matches!(open.last(), Some(Some(_))),
            Token::Mark(b'}' | b']') => {
                if let Some(Some(from)) = open.pop() {
                    let own = members.get_mut(from..).unwrap_or_default();
                    cuts.extend(repeated(own));
                    members.truncate(from);
                }
                is_name = false;
            }
            Token::Mark(_) | Token::Number | Token::Word => {}
        }
    }
    cuts
}

/// The repeated members of an object.
fn repeated(own: &mut [Member<'_>]) -> impl Iterator<Item = Range<usize>> {
    own.sort_unstable_by(|a, b| (&a.name, a.start).cmp(&(&b.name, b.start)));
    own.windows(2).filter_map(|pair| match pair {
        [member, again] if member.name == again.name => Some(member.start..member.next),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::without_repeats;

    #[test]
    fn the_last_of_a_name_stays() {
        for (json, expected) in [
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{ "a" : 1 , "b":[2,"a"], "a":3}"#, r#"{ "b":[2,"a"], "a":3}"#),
            (r#"{"a":1,"a":2,"b":3,"a":4}"#, r#"{"b":3,"a":4}"#),
            (r#"{"a":{"x":1,"x":2},"a":{"y":"},\"a\":"}}"#, r#"{"a":{"y":"},\"a\":"}}"#),
            (r#"[{"o":{"x":[{}],"x":{}}},{"x":1}]"#, r#"[{"o":{"x":{}}},{"x":1}]"#),
            (r#"{"a\n":1,"\u0061\n":2}"#, r#"{"\u0061\n":2}"#),
            (r#"{"":1,"":2}"#, r#"{"":2}"#),
        ] {
            assert_eq!(without_repeats(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn names_of_other_objects_and_values_are_no_repeats() {
        for json in [
            "{}",
            "[]",
            r#""a""#,
            r#"{"a":"a","b":["a","a",{"a":1}],"A":{"a":{"a":null}}}"#,
            r#"{"\\":1,"\\\\":2,"\"":3}"#,
            r#"[["a","b"],["a","b"]]"#,
            // Not valid JSON.
            r#"{"a":1,"a"#,
            r#"}]{"\"#,
        ] {
            assert_eq!(without_repeats(json), None, "{json}");
        }
    }
}
