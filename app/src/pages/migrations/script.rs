//! Scripts that import a file of events and resume where they were stopped.
//!
//! Text of users is in a script only in single quotes.

/// Placeholder for the name of the file.
const FILE: &str = "events.jsonl";

/// Quotes a text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The `weir import` command. It stores its progress next to the file.
pub(super) fn command(host: &str, key: &str, file: &str) -> String {
    let file = if file.is_empty() { FILE } else { file };
    format!("weir import --project-key {} --to {} -- {}", quoted(key), quoted(host), quoted(file))
}

/// The same with only bash and curl. It sends one request after the other, which keeps
/// the order of the events, and stores the number of sent lines in a file.
pub(super) fn loop_of_curl(host: &str, key: &str, file: &str) -> String {
    let file = if file.is_empty() { FILE } else { file };
    let (host, key, file) = (quoted(host), quoted(key), quoted(file));
    format!(
        r#"#!/usr/bin/env bash
# One event as JSON on each line. Run it again to resume where it was stopped.
set -euo pipefail
host={host}
key={key}
file={file}
size=500

case "$file" in /*) ;; *) file="./$file" ;; esac
cursor="$file.cursor"
sent=0
if [ -s "$cursor" ]; then sent=$(head -n 1 < "$cursor"); fi
lines=$(awk 'END {{ print NR }}' < "$file")
while [ "$sent" -lt "$lines" ]; do
  last=$((sent + size))
  {{
    printf '{{"api_key":"%s","historical_migration":true,"batch":[' "$key"
    sed -n "$((sent + 1)),${{last}}p;${{last}}q" < "$file" | paste -s -d , -
    printf ']}}'
  }} | curl -sS --fail --retry 8 --retry-connrefused -o /dev/null \
    -H 'Content-Type: application/json' --data-binary @- "$host/batch/"
  sent=$((last < lines ? last : lines))
  printf '%s\n' "$sent" > "$cursor.new"
  mv -- "$cursor.new" "$cursor"
  printf '%s of %s lines sent\n' "$sent" "$lines"
done
"#
    )
}

#[cfg(test)]
mod tests {
    use super::{command, loop_of_curl, quoted};

    #[test]
    fn input_stays_one_word_of_the_script() {
        for (text, expected) in [
            ("a b", "'a b'"),
            ("$(touch x)", "'$(touch x)'"),
            ("it's; rm -rf ~", r"'it'\''s; rm -rf ~'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(text), expected);
        }
        let hostile = "x'; touch owned; '";
        for script in
            [command("http://h", "phc_k", hostile), loop_of_curl("http://h", "phc_k", hostile)]
        {
            assert!(script.contains(r"'x'\''; touch owned; '\'''"), "{script}");
            assert!(!script.contains(hostile), "{script}");
        }
        assert!(command("http://h", "phc_k", "-x").ends_with("-- '-x'"));
        assert!(command("http://h", "phc_k", "").ends_with("-- 'events.jsonl'"));
    }
}
