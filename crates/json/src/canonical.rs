//! The normal form of JSON.

use crate::{Cursor, Fault, Limits, push_string, string};

/// The same text for all forms of a value: no whitespace, names sorted, the last of equal
/// names, escapes only where needed. Numbers keep their digits.
///
/// # Errors
/// If the limits are exceeded. They bound the recursion.
pub fn canonical(json: &str, limits: Limits) -> Result<String, Fault> {
    let mut out = String::with_capacity(json.len());
    push_canonical(&mut out, &mut Cursor::new(json, limits))?;
    Ok(out)
}

/// Recursive, but never deeper than the depth limit.
fn push_canonical(out: &mut String, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    match cursor.peek() {
        Some(b'{') => {
            let start = out.len();
            let mut members = Vec::new();
            cursor.object(|key, cursor| {
                let from = out.len();
                let name = key.text();
                push_string(out, &name);
                out.push(':');
                push_canonical(out, cursor)?;
                members.push((name, from..out.len()));
                Ok(())
            })?;
            // A stable sort, so that the last of equal names stays last.
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            let mut sorted = String::with_capacity(out.len() - start + 2);
            for (index, (name, range)) in members.iter().enumerate() {
                if members.get(index + 1).is_some_and(|(next, _)| next == name) {
                    continue;
                }
                sorted.push(if sorted.is_empty() { '{' } else { ',' });
                sorted.push_str(out.get(range.clone()).unwrap_or_default());
            }
            out.truncate(start);
            out.push_str(if sorted.is_empty() { "{" } else { &sorted });
            out.push('}');
            Ok(())
        }
        Some(b'[') => {
            out.push('[');
            let mut first = true;
            cursor.list(|cursor| {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                push_canonical(out, cursor)
            })?;
            out.push(']');
            Ok(())
        }
        _ => {
            let value = cursor.value()?;
            match string(value) {
                Some(text) => push_string(out, &text),
                None => out.push_str(value),
            }
            Ok(())
        }
    }
}
