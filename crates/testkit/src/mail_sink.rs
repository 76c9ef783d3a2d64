//! A mail server that keeps the mails it receives, for tests: plain SMTP on a free port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A mail as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Sender of the envelope.
    pub from: String,
    /// Receivers of the envelope.
    pub to: Vec<String>,
    /// Headers and body, with quoted-printable decoded.
    pub text: String,
    /// Headers and body as they were sent.
    pub raw: String,
}

impl Received {
    /// The value of a header that is on one line.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (headers, _) = self.text.split_once("\n\n")?;
        headers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The PNG images that are parts of the mail.
    pub fn images(&self) -> Vec<Vec<u8>> {
        let parts = self.raw.split("Content-Type: image/png\n").skip(1);
        let decoded = |part: &str| {
            let (_, body) = part.split_once("\n\n").expect("a part has a body");
            let lines = body.lines().take_while(|line| !line.starts_with("--"));
            BASE64_STANDARD.decode(lines.collect::<String>()).expect("a part is base64")
        };
        parts.map(decoded).collect()
    }
}

/// The mail server. Ends when dropped.
pub struct MailSink {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    received: Mutex<Vec<Received>>,
    arrived: Notify,
    refusals: AtomicUsize,
    refused: AtomicUsize,
    permanently: std::sync::atomic::AtomicBool,
}

impl MailSink {
    /// Starts the server on a free port.
    pub async fn start() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                let shared = Arc::clone(&serving);
                tokio::spawn(async move {
                    // A client may close the connection at any time.
                    let _ = talk(stream, &shared).await;
                });
            }
        });
        Self { address, shared, task }
    }

    /// The value of the setting that names this server.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Refuses the next mails with a temporary error.
    pub fn refuse(&self, mails: usize) {
        self.shared.permanently.store(false, Ordering::SeqCst);
        self.shared.refusals.store(mails, Ordering::SeqCst);
    }

    /// Refuses the next mails with a permanent error.
    pub fn refuse_for_good(&self, mails: usize) {
        self.shared.permanently.store(true, Ordering::SeqCst);
        self.shared.refusals.store(mails, Ordering::SeqCst);
    }

    /// Waits until this many mails were refused.
    pub async fn refused(&self, mails: usize) {
        self.until(|shared| shared.refused.load(Ordering::SeqCst) >= mails).await;
    }

    /// The mails that arrived so far.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until this many mails arrived, and returns all mails so far.
    pub async fn wait_for(&self, mails: usize) -> Vec<Received> {
        let count =
            |shared: &Shared| shared.received.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.until(|shared| count(shared) >= mails).await;
        self.received()
    }

    async fn until(&self, done: impl Fn(&Shared) -> bool) {
        let waiting = async {
            loop {
                let arrived = self.shared.arrived.notified();
                if done(&self.shared) {
                    return;
                }
                arrived.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the mails come");
    }
}

impl Drop for MailSink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn talk(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut lines = BufReader::new(reading).lines();
    writing.write_all(b"220 sink\r\n").await?;
    let (mut from, mut to) = (String::new(), Vec::new());
    while let Some(line) = lines.next_line().await? {
        let word = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match word.as_str() {
            "EHLO" | "HELO" => "250-sink\r\n250 8BITMIME\r\n",
            "MAIL" => {
                from = within(&line);
                to.clear();
                "250 good\r\n"
            }
            "RCPT" => {
                to.push(within(&line));
                if take_refusal(shared) { refusal(shared) } else { "250 good\r\n" }
            }
            "DATA" => {
                writing.write_all(b"354 go on\r\n").await?;
                let mut text = String::new();
                while let Some(line) = lines.next_line().await? {
                    if line == "." {
                        break;
                    }
                    text.push_str(line.strip_prefix('.').unwrap_or(&line));
                    text.push('\n');
                }
                let (from, to) = (from.clone(), to.clone());
                let mail = Received { from, to, text: decoded(&text), raw: text };
                shared.received.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
                shared.arrived.notify_waiters();
                "250 kept\r\n"
            }
            "QUIT" => {
                writing.write_all(b"221 bye\r\n").await?;
                return Ok(());
            }
            _ => "250 good\r\n",
        };
        writing.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

fn take_refusal(shared: &Shared) -> bool {
    let less = |left: usize| left.checked_sub(1);
    let taken = shared.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
    if taken {
        shared.refused.fetch_add(1, Ordering::SeqCst);
        shared.arrived.notify_waiters();
    }
    taken
}

fn refusal(shared: &Shared) -> &'static str {
    if shared.permanently.load(Ordering::SeqCst) {
        "550 nobody of this name\r\n"
    } else {
        "451 not now\r\n"
    }
}

/// The text between `<` and `>`.
fn within(line: &str) -> String {
    let rest = line.split_once('<').map_or("", |(_, rest)| rest);
    rest.split('>').next().unwrap_or_default().to_owned()
}

/// Decodes quoted-printable.
fn decoded(text: &str) -> String {
    let joined = text.replace("=\n", "");
    let mut out = Vec::new();
    let mut rest = joined.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(value) if *byte == b'=' => {
                out.push(value);
                rest = &after[2..];
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
