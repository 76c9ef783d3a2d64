//! Log lines: standard error and standard output that cannot be written, a filter that
//! changes while the program runs, and the end of a terminal.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use weir_server::config::Settings;
use weir_server::logs;
use weir_testkit::{Caller, until};

use crate::process::{Serving, weir_through};

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader is closed.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// The address of the server from the set-up link, because there is no output to read it
/// from.
async fn address(data: &Path) -> SocketAddr {
    until(async || {
        let link = std::fs::read_to_string(data.join("data/setup-link")).unwrap_or_default();
        link.strip_prefix("http://")?.split('/').next()?.parse().ok()
    })
    .await
}

async fn stops_in_order(mut child: Child) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_cannot_be_written_ends_nothing() {
    for (out, err) in [(full(), full()), (closed(), closed()), (Stdio::null(), full())] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = weir_through(&[], folder.path());
        // No line can be written.
        command.args(["--log", "debug", "serve"]).stdout(out).stderr(err);
        let child = command.spawn().unwrap();
        let caller = Caller::of(address(folder.path()).await);
        for _ in 0..3 {
            assert_eq!(caller.get("/_livez").await.status, 200);
            assert_eq!(caller.get("/_readyz").await.status, 200);
        }
        stops_in_order(child).await;
    }
}

/// Runs twice: the process of the tests starts a child of itself, which panics.
#[test]
fn a_panic_whose_line_cannot_be_written_ends_nothing() {
    const NAME: &str = "log_output::a_panic_whose_line_cannot_be_written_ends_nothing";
    const IS_CHILD: &str = "WEIR_TEST_PANICS";

    if std::env::var_os(IS_CHILD).is_some() {
        logs::start(&Settings::default().over(Settings::default()), None).unwrap();
        for _ in 0..3 {
            assert!(std::thread::spawn(|| panic!("expected")).join().is_err());
        }
        logs::end(Some("expected"));
        return;
    }
    for err in [full(), closed()] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        // Without `--nocapture` the standard error of a test is never written.
        child.args(["--exact", NAME, "--nocapture"]).env(IS_CHILD, "1");
        let output = child.stdout(Stdio::piped()).stderr(err).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{:?}: {out}", output.status);
        assert!(out.contains("1 passed"), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_is_not_read_holds_nothing_up() {
    let (reader, writer) = std::io::pipe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = weir_through(&[], folder.path());
    command.args(["--log", "debug", "serve"]).stdout(Stdio::null()).stderr(writer);
    let child = command.spawn().unwrap();
    let caller = Caller::of(address(folder.path()).await);
    // More lines than the pipe holds.
    for _ in 0..600 {
        assert_eq!(caller.get("/_livez").await.status, 200);
    }
    assert_eq!(caller.get("/_readyz").await.status, 200);
    stops_in_order(child).await;
    drop(reader);
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_applies_the_log_setting_and_keeps_the_filter_if_it_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    let write = |settings: &str| std::fs::write(folder.path().join("weir.toml"), settings).unwrap();
    write("log = 'warn'\n");
    // The tests may run in a terminal. The program must not have it.
    let mut command = weir_through(&["setsid".to_owned()], folder.path());
    command.arg("serve").stderr(File::create(&file).unwrap());
    let serving = Serving::launch(command).await;
    assert_eq!(serving.caller.get("/_preflight").await.status, 200);
    // Asks for a path until the lines have a text.
    let shows = async |path: &str, text: &str| {
        until(async || {
            assert_eq!(serving.caller.get(path).await.status, 200);
            let lines = std::fs::read_to_string(&file).unwrap();
            if lines.contains(text) { Ok(()) } else { Err(lines) }
        })
        .await;
    };
    write("log = 'warn,weir=info'\n");
    serving.signal(Signal::HUP);
    shows("/_livez", "route=\"/_livez\"").await;

    write("log = 'weir=loud'\n");
    serving.signal(Signal::HUP);
    shows("/_livez", "the log filter `weir=loud` is not usable: ").await;
    write("logs = 'warn'\n");
    serving.signal(Signal::HUP);
    shows("/_livez", "line 1, column 1: unknown field `logs`").await;
    write("\nsmtp_url = smtp://user:hushed@mail.example\n");
    serving.signal(Signal::HUP);
    shows("/_livez", "is not usable: line 2, column ").await;
    shows("/_readyz", "route=\"/_readyz\"").await;

    let lines = std::fs::read_to_string(&file).unwrap();
    assert!(!lines.contains("/_preflight") && !lines.contains("hushed"), "{lines}");
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_terminal_sighup_ends_the_process_also_if_its_input_is_redirected() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_weir");
    // The caller of the tests may ignore the signal, as `nohup` does.
    let line = format!(
        "echo $$ >pid; exec env --default-signal=HUP {program} --listen 127.0.0.1:0 --metrics-listen off --data data \
         serve </dev/null"
    );
    // `script` gives the program a terminal, and ends with its status.
    let mut command = tokio::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env_clear().current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    address(folder.path()).await;
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), Signal::HUP).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    // 128 and the number of the signal.
    assert_eq!(ended.unwrap().unwrap().code(), Some(129));
}
