//! Scripts that bring a file of events in, and go on where they were stopped.
//!
//! What people typed stands in them between single quotes only.

/// The file that stands in a script until one is named.
const FILE: &str = "events.jsonl";

/// A text as one word of a shell, whatever is in it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The command of Weir itself. It notes how far it has come beside the file.
pub(super) fn command(host: &str, key: &str, file: &str) -> String {
    let file = if file.is_empty() { FILE } else { file };
    format!("weir import --project-key {} --to {} -- {}", quoted(key), quoted(host), quoted(file))
}

/// The same with nothing but bash and curl: one request after the other, so that
/// the order of the events stays, and the number of lines that are sent in a file.
pub(super) fn loop_of_curl(host: &str, key: &str, file: &str) -> String {
    let file = if file.is_empty() { FILE } else { file };
    let (host, key, file) = (quoted(host), quoted(key), quoted(file));
    format!(
        r#"#!/usr/bin/env bash
# One event as JSON on each line. Run it again to go on where it was stopped.
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
    fn what_people_typed_stays_one_word() {
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
