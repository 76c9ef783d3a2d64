//! The live stream: who may open it, how many, and for how long.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weir_model::organizations::Level;
use weir_server::limits::Limits;
use weir_testkit::{TestApp, until};

use crate::organization_pages::newcomer;
use crate::stored::send;
use crate::web::{function, session};

/// An open live stream, as a browser has it.
pub(crate) struct LiveStream {
    stream: TcpStream,
    read: String,
}

impl LiveStream {
    pub(crate) async fn open(app: &TestApp, cookie: &str) -> Self {
        Self::with_query(app, cookie, "").await
    }

    async fn with_query(app: &TestApp, cookie: &str, query: &str) -> Self {
        let mut stream = TcpStream::connect(app.address()).await.unwrap();
        let head = format!(
            "GET /_live/{}?{query} HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n",
            app.project(),
            app.address()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self { stream, read: String::new() }
    }

    /// Reads until after this text.
    pub(crate) async fn until(&mut self, text: &str) {
        let reading = async {
            loop {
                if let Some(at) = self.read.find(text) {
                    self.read.drain(..at + text.len());
                    return;
                }
                let mut bytes = [0; 4_096];
                let read = self.stream.read(&mut bytes).await.unwrap();
                assert!(read > 0, "the stream ended without `{text}`: {}", self.read);
                self.read.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reading).await.expect(text);
    }

    /// Whether the stream was opened.
    async fn opens(mut self) -> bool {
        self.until("HTTP/1.1 ").await;
        self.read.starts_with("200")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_have_the_chosen_properties() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let mut stream = LiveStream::with_query(&app, &cookie, "properties=plan&properties=none").await;
    stream.until("hello").await;
    let event = json!({"event": "a", "distinct_id": "ada", "properties": {"plan": "pro"}});
    send(&app, json!([event])).await;
    stream.until(r#""properties":["pro",null]}"#).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_does_not_take_all_streams() {
    let change = |limits: &mut Limits| {
        limits.streams = 4;
        limits.streams_per_person = 2;
    };
    let app = TestApp::start(|_| {}, change).await.set_up().await;
    let cookie = session(&app).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = LiveStream::open(&app, &cookie).await;
        stream.until("hello").await;
        open.push(stream);
    }
    // Also with another session of the same user.
    for cookie in [&cookie, &session(&app).await] {
        LiveStream::open(&app, cookie).await.until("HTTP/1.1 429").await;
    }
    let grace = newcomer(&app, "grace@mail.example", Level::Member).await;
    LiveStream::open(&app, &grace).await.until("hello").await;
    drop(open);
    until(async || LiveStream::open(&app, &cookie).await.opens().await).await;
}

/// The ways in which a user loses access to a stream.
#[derive(Debug, Clone, Copy)]
enum End {
    SignOut,
    Removal,
    SecondFactor,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_what_its_reader_may_see() {
    let default = Limits::default().stream_check;
    assert!(default < Duration::from_secs(1), "a user who is deactivated is out within a second");
    let quick = |limits: &mut Limits| limits.stream_check = Duration::from_millis(50);
    let app = TestApp::start(|_| {}, quick).await.set_up().await;
    let owner = app.owner().key(&["*"]).await;
    let home = format!("/api/organizations/{}/", app.organization());
    for end in [End::SignOut, End::Removal, End::SecondFactor] {
        let email = format!("{end:?}@mail.example").to_lowercase();
        let cookie = newcomer(&app, &email, Level::Member).await;
        let mut stream = LiveStream::open(&app, &cookie).await;
        stream.until("hello").await;
        // A constant flow of rows does not keep it from ending.
        let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"});
        assert_eq!(app.anonymous().post("/e/", &event).await.status, 200);
        stream.until("event: row").await;
        match end {
            End::SignOut => {
                let sign_out = function(&app, "sign_out", "").header("cookie", &cookie);
                assert_eq!(sign_out.send().await.status, 200);
            }
            End::Removal => {
                let members = owner.get(&format!("{home}members/")).await.json();
                let members = members["results"].as_array().unwrap().clone();
                let is_meant = |member: &&Value| member["user"]["email"] == email.as_str();
                let member = members.iter().find(is_meant).unwrap();
                let path = format!("{home}members/{}/", member["user"]["uuid"].as_str().unwrap());
                assert_eq!(owner.delete(&path).await.status, 204);
            }
            End::SecondFactor => {
                let body = json!({"enforce_2fa": true});
                assert_eq!(owner.patch(&home, &body).await.status, 200);
            }
        }
        stream.until("event: again").await;
        let again = app.anonymous().call(Method::GET, &format!("/_live/{}", app.project()));
        let again = again.header("cookie", &cookie).send().await.status;
        assert!([401, 403, 404].contains(&again), "{end:?} {again}");
    }
}
