//! The program itself: command line, data directory, signals.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use weir_service::Clock;
use weir_testkit::{Answer, Caller, DnsAnswer, DnsServer, MailSink, until};

use crate::accounts::second_factor::code;

pub(crate) struct Output {
    pub(crate) ok: bool,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn weir(data: &Path) -> Command {
    weir_through(&[], data)
}

/// The program, started by another program such as `nsenter` with its arguments.
pub(crate) fn weir_through(launcher: &[String], data: &Path) -> Command {
    weir_showing(launcher, data, "off")
}

/// The same with a metrics address.
pub(crate) fn weir_showing(launcher: &[String], data: &Path, metrics: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_weir");
    let mut command = match launcher {
        [] => Command::new(program),
        [first, arguments @ ..] => {
            let mut command = Command::new(first);
            command.args(arguments).arg(program);
            command
        }
    };
    // The environment of the machine must not change the tests.
    command.env_clear().current_dir(data);
    command.args(["--listen", "127.0.0.1:0", "--metrics-listen", metrics, "--data"]);
    command.arg(data.join("data")).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) async fn run(mut command: Command, input: &str) -> Output {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    Output {
        ok: output.status.success(),
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) async fn set_up(data: &Path, password: &str) -> Output {
    set_up_with(weir(data), password).await
}

pub(crate) async fn set_up_with(mut command: Command, password: &str) -> Output {
    command.args(["setup", "--email", "ada@mail.example", "--name", "Ada"]);
    command.args(["--organization", "Acme", "--project", "Shop", "--password-stdin", "--json"]);
    run(command, &format!("{password}\n")).await
}

/// A running `weir serve`.
pub(crate) struct Serving {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
    pub(crate) caller: Caller,
}

impl Serving {
    pub(crate) async fn start(data: &Path) -> Self {
        Self::start_with(weir(data)).await
    }

    pub(crate) async fn start_with(mut command: Command) -> Self {
        command.arg("serve").stderr(Stdio::null());
        Self::launch(command).await
    }

    /// Starts any program that prints its address as `weir serve` does.
    pub(crate) async fn launch(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address: SocketAddr = loop {
            let line = lines.next_line().await.unwrap().expect("the address");
            if let Some((_, url)) = line.split_once("Listening on ") {
                break url.split_once("://").unwrap().1.parse().unwrap();
            }
        };
        Self { child, lines, address, caller: Caller::of(address) }
    }

    /// The next line that it prints.
    pub(crate) async fn line(&mut self) -> String {
        let next = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line()).await;
        next.unwrap().unwrap().unwrap_or_default()
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    pub(crate) async fn ended(mut self) -> Option<i32> {
        let ended = tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await;
        ended.unwrap().unwrap().code()
    }
}

pub(crate) async fn events(caller: &Caller, made: &Value, count: usize) -> Vec<String> {
    let caller = caller.with_key(made["personal_api_key"].as_str().unwrap());
    let path = format!("/api/projects/{}/events/", made["project_id"]);
    until(async || {
        let list = caller.get(&path).await.json();
        // The answer is an error while the database of the server is away.
        let Some(found) = list["results"].as_array() else { return Err(vec![list.to_string()]) };
        let names: Vec<_> =
            found.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
        if names.len() >= count { Ok(names) } else { Err(names) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn set_up_serve_stop_and_be_killed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();

    let weak = set_up(data, "password").await;
    assert!(!weak.ok && weak.err.contains("password:"), "{}", weak.err);
    let made = set_up(data, "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    assert!(made["project_id"].is_i64());
    let again = set_up(data, "plum-otter-violin-93").await;
    assert!(!again.ok && again.err.contains("has a user already"), "{}", again.err);

    let mode = std::fs::metadata(data.join("data")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o700);

    let serving = Serving::start(data).await;
    let me = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    assert_eq!(me.get("/api/users/@me/").await.json()["uuid"], made["user_uuid"]);
    let event =
        |name: &str| json!({"api_key": made["project_api_key"], "event": name, "distinct_id": "u"});
    assert_eq!(serving.caller.post("/capture/", &event("first")).await.status, 200);

    // A second program on the same directory reports that and changes nothing.
    let second = set_up(data, "plum-otter-violin-93").await;
    assert!(!second.ok && second.err.contains("in use by another process"), "{}", second.err);

    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    let serving = Serving::start(data).await;
    assert_eq!(events(&serving.caller, &made, 1).await, ["first"]);
    assert_eq!(serving.caller.post("/capture/", &event("second")).await.status, 200);
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().await, None);

    let serving = Serving::start(data).await;
    let mut found = events(&serving.caller, &made, 2).await;
    found.sort();
    assert_eq!(found, ["first", "second"]);
    serving.signal(Signal::INT);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_finished_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made = set_up(data, "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let serving = Serving::start(data).await;
    let body = json!({"api_key": made["project_api_key"], "event": "late", "distinct_id": "u"});
    let body = body.to_string();
    let (first, rest) = body.split_at(20);
    let mut stream = TcpStream::connect(serving.address).await.unwrap();
    let length = body.len();
    let head = format!("POST /e/ HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{first}");
    stream.write_all(head.as_bytes()).await.unwrap();
    // The answer to another request shows that this one is being processed.
    assert_eq!(serving.caller.get("/_livez").await.status, 200);
    serving.signal(Signal::TERM);
    until(async || TcpStream::connect(serving.address).await.is_err()).await;
    stream.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(serving.ended().await, Some(0));
    let serving = Serving::start(data).await;
    assert_eq!(events(&serving.caller, &made, 1).await, ["late"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_instance_shows_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut serving = Serving::start(data).await;
    let line = serving.line().await;
    let link = line.strip_prefix("Set up Weir at ").unwrap();
    assert!(link.starts_with("http://127.0.0.1:") && link.contains("/setup?token="), "{link}");
    let file = data.join("data/setup-link");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), link);
    let mode = std::fs::metadata(&file).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    let mut command = weir(data);
    command.arg("setup-link");
    assert_eq!(run(command, "").await.out.trim(), link);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    let mut command = weir(data);
    command.arg("setup-link");
    let fresh = run(command, "").await;
    assert!(fresh.ok && fresh.out.trim() != link, "{}", fresh.err);
    let token = |link: &str| link.trim().split_once("?token=").unwrap().1.to_owned();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), fresh.out);

    // The next server uses the same link, and so does the one after that.
    for _ in 0..2 {
        let mut serving = Serving::start(data).await;
        let line = serving.line().await;
        assert_eq!(token(&line), token(&fresh.out));
        assert_eq!(token(&std::fs::read_to_string(&file).unwrap()), token(&fresh.out));
        let page = serving.caller.get(&format!("/setup?token={}", token(&line))).await;
        assert_eq!(page.status, 200);
        serving.signal(Signal::TERM);
        assert_eq!(serving.ended().await, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_set_up_offers_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made = set_up(data, "plum-otter-violin-93").await;
    assert!(made.ok, "{}", made.err);
    let link = || async {
        let mut command = weir(data);
        command.arg("setup-link");
        run(command, "").await
    };
    let refused = link().await;
    assert!(!refused.ok && refused.err.contains("has a user already"), "{}", refused.err);
    let serving = Serving::start(data).await;
    let refused = link().await;
    assert!(!refused.ok && refused.out.is_empty());
    assert!(refused.err.contains("is set up already"), "{}", refused.err);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_releases_no_domain_that_is_not_verified() {
    let directory = tempfile::tempdir().unwrap();
    let made = set_up(directory.path(), "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let serving = Serving::start(directory.path()).await;
    let caller = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let path = "/api/organizations/@current/domains/";
    let answer = caller.post(path, &json!({"domain": "acme.example"})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
    let release = async |name: &str| {
        let mut command = weir(directory.path());
        command.args(["domain", "release", name]);
        run(command, "").await
    };
    for name in ["acme.example", "other.example"] {
        let refused = release(name).await;
        assert!(!refused.ok && refused.out.is_empty());
        assert!(refused.err.contains("no organization has verified"), "{}", refused.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_releases_a_verified_domain_when_that_is_confirmed() {
    let directory = tempfile::tempdir().unwrap();
    let made = set_up(directory.path(), "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let dns = DnsServer::start().await;
    let serve = async || {
        let mut command = weir(directory.path());
        command.args(["--dns-servers", &dns.address().to_string()]);
        let serving = Serving::start_with(command).await;
        let caller = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
        (serving, caller)
    };
    let release = async |arguments: &[&str]| {
        let mut command = weir(directory.path());
        command.args(["domain", "release"]).args(arguments);
        run(command, "").await
    };
    let path = "/api/organizations/@current/domains/";
    let (serving, caller) = serve().await;
    let claim = caller.post(path, &json!({"domain": "acme.example"})).await.json();
    let one = format!("{path}{}/", claim["id"].as_str().unwrap());
    let challenge = claim["verification_challenge"].as_str().unwrap();
    dns.set("_posthog-challenge.acme.example", DnsAnswer::txt(challenge));
    let verified = caller.post(&format!("{one}verify/"), &json!({})).await;
    assert_eq!(verified.json()["is_verified"], true, "{:?}", verified.body);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    let refused = release(&["acme.example"]).await;
    assert!(!refused.ok && refused.err.contains("add --verified-too"), "{}", refused.err);
    let released = release(&["acme.example", "--verified-too"]).await;
    assert!(released.ok && released.out.contains("Released acme.example"), "{}", released.err);
    let again = release(&["acme.example", "--verified-too"]).await;
    assert!(!again.ok && again.err.contains("no organization has verified"), "{}", again.err);

    let (serving, caller) = serve().await;
    assert_eq!(caller.get(&one).await.status, 404);
    let claim = caller.post(path, &json!({"domain": "acme.example"})).await;
    assert_eq!((claim.status, &claim.json()["is_verified"]), (201, &json!(false)));
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_takes_a_second_factor_away() {
    let directory = tempfile::tempdir().unwrap();
    let password = "plum-otter-violin-93";
    assert!(set_up(directory.path(), password).await.ok);
    let sink = MailSink::start().await;
    let mailing = || {
        let mut command = weir(directory.path());
        command.args(["--smtp-url", &sink.url(), "--public-url", "https://weir.example"]);
        command
    };
    let disable = async |email: &str| {
        let mut command = mailing();
        command.args(["user", "disable-2fa", "--email", email]);
        run(command, "").await
    };
    let refused = disable("ada@mail.example").await;
    assert!(!refused.ok && refused.err.contains("has no second factor"), "{}", refused.err);
    let unknown = disable("eve@mail.example").await;
    assert!(!unknown.ok && unknown.err.contains("no user has the address"), "{}", unknown.err);

    let serving = Serving::start(directory.path()).await;
    let login = json!({"email": "ada@mail.example", "password": password});
    let cookie = |answer: &Answer| {
        let set = answer.header("set-cookie").unwrap();
        set.split(';').next().unwrap().to_owned()
    };
    let act = async |name: &str, body: String, cookie: &str| {
        let call = serving.caller.call(Method::POST, &format!("/_fn/{name}"));
        call.header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .header("cookie", cookie)
            .body(body)
            .send()
            .await
    };
    let session = cookie(&serving.caller.post("/api/login/", &login).await);
    assert_eq!(act("begin_second_factor", String::new(), &session).await.status, 200);
    let waiting = act("get_enrolment", String::new(), &session).await.json();
    let code = code(waiting["secret"].as_str().unwrap(), Clock::default().now());
    let on = act("confirm_second_factor", format!("code={code}"), &session).await;
    assert_eq!(on.status, 200, "{:?}", on.body);
    assert_eq!(serving.caller.post("/api/login/", &login).await.status, 401);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    let disabled = disable("ada@mail.example").await;
    assert!(disabled.ok && disabled.out.contains("the password alone"), "{}", disabled.err);
    let serving = Serving::start_with(mailing()).await;
    let mails = sink.wait_for(1).await;
    assert_eq!(mails[0].to, ["ada@mail.example"]);
    assert!(mails[0].text.contains("the operator"), "{}", mails[0].text);
    assert_eq!(serving.caller.post("/api/login/", &login).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_signs_in_a_user_with_a_link() {
    let directory = tempfile::tempdir().unwrap();
    assert!(set_up(directory.path(), "plum-otter-violin-93").await.ok);
    let link = async |email: &str| {
        let mut command = weir(directory.path());
        command.args(["--public-url", "http://localhost:8000"]);
        command.args(["user", "sign-in-link", "--email", email]);
        run(command, "").await
    };
    let unknown = link("eve@mail.example").await;
    assert!(!unknown.ok && unknown.err.contains("no user has the address"), "{}", unknown.err);
    let made = link("ada@mail.example").await;
    let path = made.out.trim().strip_prefix("http://localhost:8000/login/link/");
    let (id, token) = path.and_then(|path| path.split_once("?token=")).expect("a link");

    let serving = Serving::start(directory.path()).await;
    let open = async || {
        let call = serving.caller.call(Method::POST, "/_fn/sign_in_by_link");
        call.header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .body(format!("id={id}&token={token}"))
            .send()
            .await
    };
    let opened = open().await;
    assert_eq!(opened.status, 200, "{:?}", opened.body);
    assert!(opened.header("set-cookie").is_some_and(|cookie| cookie.starts_with("session=")));
    assert_eq!(open().await.status, 400, "it works once");
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_activates_a_user() {
    let directory = tempfile::tempdir().unwrap();
    assert!(set_up(directory.path(), "plum-otter-violin-93").await.ok);
    let activate = async |email: &str| {
        let mut command = weir(directory.path());
        command.args(["user", "activate", "--email", email]);
        run(command, "").await
    };
    let unknown = activate("eve@mail.example").await;
    assert!(!unknown.ok && unknown.err.contains("no user has the address"), "{}", unknown.err);
    let active = activate("ada@mail.example").await;
    assert!(!active.ok && active.err.contains("is active"), "{}", active.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_says_what_an_organization_may_do_with_plugins() {
    let directory = tempfile::tempdir().unwrap();
    let made = set_up(directory.path(), "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let organization = made["organization_id"].as_str().unwrap();
    let allow = async |organization: &str, access: &str| {
        let mut command = weir(directory.path());
        command.args(["organization", "plugins-access", organization, access]);
        run(command, "").await
    };
    let allowed = allow(organization, "config").await;
    let expected = format!("The plugins access level of {organization} is 3\n");
    assert!(allowed.ok && allowed.out == expected, "{}{}", allowed.out, allowed.err);
    let unknown = allow("01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de", "root").await;
    assert!(!unknown.ok && unknown.err.contains("there is no organization"), "{}", unknown.err);
    assert!(!allow(organization, "9").await.ok);

    let serving = Serving::start(directory.path()).await;
    let caller = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let shown = caller.get("/api/organizations/@current/").await.json();
    assert_eq!(shown["plugins_access_level"], 3);
    let answer = caller.post("/api/organizations/@current/pipeline_import_apps/", &json!({})).await;
    assert_eq!(answer.status, 403, "{:?}", answer.body);
    let log = caller.get("/api/organizations/@current/activity_log/").await.json();
    let newest = &log["results"][0];
    assert_eq!((&newest["is_system"], &newest["activity"]), (&json!(true), &json!("updated")));
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_come_from_flags_environment_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    std::fs::write(
        data.join("weir.toml"),
        "log = 'error'\nrate_per_hour = 7\nrate_per_minute = 3\n",
    )
    .unwrap();
    let mut command = weir(data);
    command.args(["config", "--rate-per-hour", "9"]).env("WEIR_LOG_FORMAT", "json");
    command.env("WEIR_BROWSER_LIBRARY", "node_modules/posthog-js/dist");
    let shown = run(command, "").await;
    assert!(shown.ok, "{}", shown.err);
    for line in [
        "log = \"error\"",
        "rate_per_hour = 9",
        "rate_per_minute = 3",
        "log_format = \"json\"",
        "metrics_listen = \"off\"",
        "browser_library = \"node_modules/posthog-js/dist\"",
    ] {
        assert!(shown.out.lines().any(|shown| shown == line), "{line} in {}", shown.out);
    }
    std::fs::write(data.join("weir.toml"), "ratelimit = 7\n").unwrap();
    let mut command = weir(data);
    command.arg("config");
    let refused = run(command, "").await;
    assert!(!refused.ok && refused.err.contains("ratelimit"), "{}", refused.err);
}
