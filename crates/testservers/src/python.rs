//! Independent readers of exported files: pyarrow, DuckDB, boto3.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::python_program;

/// Runs a script in the Python environment of the export tests. `given` is its standard
/// input as JSON. Its output is read as JSON and returned.
///
/// # Panics
/// When the script fails, with its error output.
#[expect(clippy::panic, reason = "test support fails by panicking")]
pub async fn python(script: &str, given: &Value) -> Value {
    let program = python_program("python");
    assert!(program.exists(), "{} is missing: run scripts/setup test", program.display());
    let mut child = Command::new(program)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = given.to_string();
    // A script that fails early does not read its input.
    let _ = input.write_all(text.as_bytes()).await;
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{said}", String::from_utf8_lossy(&output.stdout))
    })
}
