//! Access to the web app: opening and keeping a session, and refusals without a session
//! or from another site.

use http::Method;
use serde_json::json;
use weir_model::Timestamp;
use weir_service::Clock;
use weir_testkit::{Answer, Call, TestApp};

const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");
const HOURS: i64 = 60 * 60;

/// A call of a server function by a script of the app's own page.
pub(crate) fn function(app: &TestApp, name: &str, body: &str) -> Call {
    let call = app.anonymous().call(Method::POST, &format!("/_fn/{name}"));
    call.header("content-type", "application/x-www-form-urlencoded")
        .header(OWN_PAGE.0, OWN_PAGE.1)
        .body(body.to_owned())
}

fn sign_in(app: &TestApp) -> Call {
    let body = "email=ada%40mail.example&password=plum-otter-violin-93&next=%2F";
    function(app, "sign_in", body)
}

/// The cookie of the session that an answer opens, as the browser sends it back.
pub(crate) fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").expect("a cookie");
    set.split(';').next().unwrap().to_owned()
}

/// The cookie of a new session of the owner.
pub(crate) async fn session(app: &TestApp) -> String {
    let answer = sign_in(app).send().await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    cookie(&answer)
}

pub(crate) async fn page(app: &TestApp, path: &str, cookie: &str) -> Answer {
    app.anonymous().call(Method::GET, path).header("cookie", cookie).send().await
}

/// Functions that answer without a session, because they open or end one, or are for the
/// visitors of share links.
const OPEN: [&str; 24] = [
    "answer_shared_tile",
    "ask_confirmation",
    "ask_reset",
    "begin_passkey_sign_in",
    "begin_passkey_step",
    "can_reset",
    "check_confirmation",
    "check_reset",
    "check_setup_link",
    "confirm_address",
    "end_sign_in",
    "end_sign_in_recovering",
    "end_sign_in_with_passkey",
    "get_invitation",
    "get_second_step",
    "get_shared_dashboard",
    "get_sign_in_view",
    "reset_password",
    "set_up",
    "sign_in",
    "sign_in_by_link",
    "sign_in_with_passkey",
    "sign_out",
    "sign_up",
];

/// Also for functions that are added later: none answers without a session unless it is
/// listed above.
#[tokio::test(flavor = "multi_thread")]
async fn functions_need_a_session() {
    let app = TestApp::with_owner().await;
    let (home, project) = (app.organization().to_string(), app.project().to_string());
    let words = "after backfill before code config cursor dashboard days destination domain email end \
                 event export file first_name group_type insight interval invite job key kind label last_code \
                 link model name next numbers overlap path people person plan preset q range rows run sample \
                 scope search seen source start state text tile timezone to token typed_name url user \
                 wanted zone";
    let mut asked = 0;
    for (path, _) in leptos::server_fn::axum::server_fn_paths() {
        let Some(name) = path.strip_prefix("/_fn/") else { continue };
        if OPEN.contains(&name) {
            continue;
        }
        for id in [&home, &project] {
            let mut body = form_urlencoded::Serializer::new(String::new());
            body.extend_pairs([("id", id), ("organization", &home), ("project", &project)]);
            body.extend_pairs(words.split_whitespace().map(|word| (word, "1")));
            body.extend_pairs([
                ("plugin_list", "transformations"),
                ("level", "1"),
                ("plugin", "1"),
            ]);
            body.extend_pairs([("limit", "5"), ("offset", "0"), ("theme", "dark")]);
            body.extend_pairs(["enforce", "failed", "hidden"].map(|word| (word, "true")));
            let answer = function(&app, name, &body.finish()).send().await;
            assert!(answer.status >= 400, "{name} {} {:?}", answer.status, answer.body);
            assert_eq!(answer.header("set-cookie"), None, "{name}");
            asked += usize::from(answer.status == 401);
        }
    }
    // Most of them could read their arguments.
    assert!(asked > 100, "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sites_change_nothing() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let own = format!("http://{}", app.address());
    let own = own.as_str();
    let sign_out = |headers: &[(&str, &str)]| {
        let mut call =
            app.anonymous().call(Method::POST, "/_fn/sign_out").header("cookie", &cookie);
        for (name, value) in headers {
            call = call.header(name, value);
        }
        call.send()
    };
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        // The browser's statement about the site decides, whatever the origin.
        &[("sec-fetch-site", "cross-site"), ("origin", own)],
        &[("origin", "null")],
        &[("origin", "http://evil.example")],
        &[],
    ] {
        let answer = sign_out(headers).await;
        assert_eq!(answer.status, 403, "{headers:?}");
        assert_eq!(answer.header("set-cookie"), None, "{headers:?}");
    }
    for method in [Method::GET, Method::HEAD] {
        let call = app.anonymous().call(method, "/_fn/sign_out").header("cookie", &cookie);
        let answer = call.header(OWN_PAGE.0, OWN_PAGE.1).send().await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    }
    assert_eq!(page(&app, "/account", &cookie).await.status, 200, "the session is still there");
    // The app's own page is allowed, and so is an old browser that sends only the origin.
    assert_eq!(sign_out(&[("origin", own)]).await.status, 200);
    assert_eq!(page(&app, "/account", &cookie).await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_whose_form_is_refused_read_what_to_do() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    for path in ["/_fn/sign_out", "/_upload/plugin"] {
        // The request of a browser without Sec-Fetch-Site, from a page without referrers.
        let send = |headers: &[(&str, &str)]| {
            let call = app.anonymous().call(Method::POST, path).header("cookie", &cookie);
            headers.iter().fold(call, |call, (name, value)| call.header(name, value)).send()
        };
        let page = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        for (headers, says) in [
            (&[page, ("origin", "null")][..], "Your browser does not say"),
            (&[page][..], "Your browser does not say"),
            (&[page, ("origin", "http://evil.example")][..], "or from another address"),
            (&[page, ("sec-fetch-site", "cross-site")][..], "or from another address"),
        ] {
            let answer = send(headers).await;
            assert_eq!(answer.status, 403, "{headers:?}");
            assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
            assert_eq!(answer.header("set-cookie"), None, "{headers:?}");
            let text = answer.text();
            assert!(text.contains(says) && text.contains("Nothing was changed"), "{text}");
        }
        // A script gets one line.
        let answer = send(&[("accept", "application/json"), ("origin", "null")]).await;
        assert_eq!(answer.status, 403);
        assert!(answer.text().starts_with("This request came from another site."));
    }
    assert_eq!(page(&app, "/account", &cookie).await.status, 200, "the session is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_expired_opens_nothing() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let cookie = session(&app).await;
    let path = format!("/projects/{}/events?event=a", app.project());
    let live = format!("/_live/{}", app.project());
    let list = || function(&app, "list_organizations", "").header("cookie", &cookie).send();
    // Seconds that pass, and whether the session has ended.
    for (seconds, ended) in [(12 * HOURS, false), (12 * HOURS + 1, true)] {
        clock.advance(seconds);
        let shown = page(&app, &path, &cookie).await;
        let called = list().await;
        let stream = app.anonymous().call(Method::HEAD, &live).header("cookie", &cookie);
        let stream = stream.send().await;
        if !ended {
            assert_eq!((shown.status, called.status, stream.status), (200, 200, 200));
            continue;
        }
        assert_eq!(shown.status, 303);
        let sign_in = format!("/login?next=/projects/{}/events%3Fevent%3Da", app.project());
        assert_eq!(shown.header("location"), Some(sign_in.as_str()));
        assert_eq!(called.status, 401);
        assert_eq!(called.header("location"), None, "a script goes by itself");
        assert_eq!(stream.status, 401);
        page(&app, &live, &cookie).await.assert_error(
            401,
            "authentication_error",
            "not_authenticated",
            "Authentication credentials were not provided.",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_of_others_are_not_there() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let foreign = other["teams"][0]["id"].to_string();

    let missing = page(&app, "/_live/4711", &cookie).await;
    missing.assert_error(404, "invalid_request", "not_found", "Not found.");
    for id in [foreign.as_str(), "0", "junk"] {
        let answer = page(&app, &format!("/_live/{id}"), &cookie).await;
        assert_eq!((answer.status, &answer.body), (404, &missing.body), "{id}");
    }
    // Also the export of a person, and of one that the own project does not have.
    let own = app.project().to_string();
    for id in [foreign.as_str(), "4711", "junk", own.as_str()] {
        let export = format!("/_person/{id}/00000000-0000-4000-8000-000000000000");
        let answer = page(&app, &export, &cookie).await;
        assert_eq!((answer.status, &answer.body), (404, &missing.body), "{id}");
        assert_eq!(page(&app, &export, "session=x").await.status, 303, "{id}");
    }
    let read = |id: &str| {
        function(&app, "get_project", &format!("id={id}")).header("cookie", &cookie).send()
    };
    let missing = read("4711").await;
    let hidden = read(&foreign).await;
    assert_eq!((hidden.status, &hidden.body), (404, &missing.body));
    assert_eq!(missing.status, 404);
    // An object without access is answered like a missing one.
    for id in [foreign.as_str(), "4711"] {
        assert_eq!(app.anonymous().get(&format!("/_live/{id}")).await.status, 401, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_stay_on_this_machine_or_on_tls() {
    let app = TestApp::with_owner().await;
    let port = app.address().port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "[::1]".to_owned()] {
        let answer = sign_in(&app).header("host", &host).send().await;
        assert_eq!(answer.status, 200, "{host} {:?}", answer.body);
        let set = answer.header("set-cookie").unwrap();
        assert!(set.starts_with("session=") && !set.contains("Secure"), "{host} {set}");
        assert!(set.contains("; SameSite=Lax") && set.contains("; HttpOnly"), "{set}");
    }
    for (name, value) in [
        ("host", "weir.example"),
        ("host", "10.0.0.1:8000"),
        // The proxy uses its own name for the server.
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=192.0.2.1;proto=https"),
    ] {
        let answer = sign_in(&app).header(name, value).send().await;
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{name}: {value}");
        let text = answer.text();
        assert!(text.contains("Set public_url"), "{text}");
    }

    let public = "https://weir.example";
    let app = TestApp::start(|config| config.public_url = public.parse().unwrap(), |_| {}).await;
    let app = app.set_up().await;
    for host in ["weir.example", "127.0.0.1:8000"] {
        let answer = sign_in(&app).header("host", host).send().await;
        assert_eq!(answer.status, 200, "{host} {:?}", answer.body);
        let set = answer.header("set-cookie").unwrap();
        assert!(set.starts_with("__Host-session=") && set.contains("; Secure"), "{host} {set}");
        let cookie = cookie(&answer);
        assert_eq!(page(&app, "/account", &cookie).await.status, 200);
        let plain = cookie.replace("__Host-session", "session");
        assert_eq!(page(&app, "/account", &plain).await.status, 303, "only the bound name counts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_up_that_could_keep_no_session_does_nothing() {
    let app = TestApp::empty().await;
    let identity = &app.app().services.identity;
    let token = identity.issue_setup_token().await.unwrap().unwrap().token;
    let body = format!(
        "token={token}&first_name=Ada&email=ada%40mail.example&password=plum-otter-violin-93\
         &organization=Acme+Tea&project=Shop"
    );
    let answer = function(&app, "set_up", &body).header("host", "weir.example").send().await;
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None));
    assert!(!identity.is_set_up().await.unwrap());
    let answer = function(&app, "set_up", &body).send().await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(page(&app, "/account", &cookie(&answer)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_from_unknown_senders_lock_no_owner_out() {
    let app = TestApp::with_owner().await;
    let answer = sign_in(&app).send().await;
    let cookies: Vec<&str> = answer
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap())
        .collect();
    let browser = cookies.iter().find(|cookie| cookie.starts_with("browser=")).unwrap();
    let wrong = "email=ada%40mail.example&password=wrong&next=%2F&back=%2Flogin";
    let form = || function(&app, "sign_in", wrong).header("accept", "text/html");
    let mut shown = Answer::clone(&answer);
    for number in 0..7 {
        let failed = form().send().await;
        let cookie = cookie(&failed);
        shown = page(&app, failed.header("location").unwrap(), &cookie).await;
        let text = String::from_utf8(shown.body.to_vec()).unwrap();
        // Sign-ins of the user are blocked for a while. A code lets the owner in.
        assert_eq!(text.contains("name=\"code\""), number == 6, "{number}");
    }
    assert!(String::from_utf8_lossy(&shown.body).contains("Too many attempts"));
    assert_eq!(sign_in(&app).send().await.status, 429);
    assert_eq!(sign_in(&app).header("cookie", "browser=x").send().await.status, 429);
    assert_eq!(sign_in(&app).header("cookie", browser).send().await.status, 200);
    // It opens no session.
    assert_eq!(page(&app, "/account", browser).await.status, 303);
}
