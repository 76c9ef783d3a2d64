//! Other people's readers: pyarrow, DuckDB, boto3.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::python_program;

/// Runs a script in the Python environment of the export tests: `given` is what
/// it finds on its input, and what it prints is given back, both as JSON.
///
/// # Panics
/// When it fails, with what it said.
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
    // A script that fails at once does not read it.
    let _ = input.write_all(text.as_bytes()).await;
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{said}", String::from_utf8_lossy(&output.stdout))
    })
}
