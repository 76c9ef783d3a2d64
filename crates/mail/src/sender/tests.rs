//! Delivery to mail servers that meet the settings, and to some that do not.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;
use weir_model::{MailId, Timestamp};

use super::{Failure, MailSender};
use crate::{Message, Part, Site, SmtpUrl};

// For the name localhost, created for these tests, valid for a hundred years.
const CERTIFICATE: &[u8] = include_bytes!("localhost.crt.der");
const KEY: &[u8] = include_bytes!("localhost.key.der");

/// How the server protects its sessions.
#[derive(Clone, Copy, PartialEq)]
enum Speaks {
    Plain,
    Tls,
    StartTls,
}

fn acceptor() -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let certificate = CertificateDer::from(CERTIFICATE);
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()))
}

/// A server for one connection. Returns all lines that it received when the connection
/// ends.
async fn server(speaks: Speaks) -> (u16, JoinHandle<Vec<String>>) {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tcp.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (stream, _) = tcp.accept().await.unwrap();
        let mut received = Vec::new();
        match speaks {
            Speaks::Plain => {
                talk(stream, "220 plain\r\n", false, &mut received).await;
            }
            Speaks::Tls => {
                // A client may refuse the certificate.
                if let Ok(stream) = acceptor().accept(stream).await {
                    talk(stream, "220 tls\r\n", false, &mut received).await;
                }
            }
            Speaks::StartTls => {
                if let Some(stream) = talk(stream, "220 soon\r\n", true, &mut received).await
                    && let Ok(stream) = acceptor().accept(stream).await
                {
                    received.push("(TLS)".to_owned());
                    talk(stream, "", false, &mut received).await;
                }
            }
        }
        received
    });
    (port, task)
}

/// Serves the client until it disconnects or asks for TLS. In that case the stream is
/// returned.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    greeting: &str,
    offers_tls: bool,
    received: &mut Vec<String>,
) -> Option<S> {
    let mut stream = BufReader::new(stream);
    stream.write_all(greeting.as_bytes()).await.ok()?;
    let mut in_data = false;
    let mut line = String::new();
    while stream.read_line(&mut line).await.ok()? > 0 {
        let text = std::mem::take(&mut line).trim_end().to_owned();
        let answer = match text.split(' ').next().unwrap_or_default() {
            "." => {
                in_data = false;
                "250 kept\r\n"
            }
            _ if in_data => continue,
            "EHLO" if offers_tls => "250-here\r\n250-STARTTLS\r\n250 8BITMIME\r\n",
            "EHLO" => "250-here\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME\r\n",
            "AUTH" => "235 in\r\n",
            "STARTTLS" => "220 go\r\n",
            "DATA" => {
                in_data = true;
                "354 go\r\n"
            }
            _ => "250 good\r\n",
        };
        let changes = text == "STARTTLS";
        received.push(text);
        stream.write_all(answer.as_bytes()).await.ok()?;
        if changes {
            return Some(stream.into_inner());
        }
    }
    None
}

fn sender(url: &str, trusts: bool) -> MailSender {
    let mut roots = RootCertStore::empty();
    if trusts {
        roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
    }
    let url: SmtpUrl = url.parse().unwrap();
    let site = Site { origin: "https://weir.example".to_owned() };
    MailSender::trusting(url.0.unwrap(), &site, roots).unwrap()
}

async fn deliver(url: &str, trusts: bool) -> Result<(), Failure> {
    let message = Message {
        to: "grace@mail.example".to_owned(),
        reply_to: None,
        subject: "Hello".to_owned(),
        parts: vec![Part::Text("Hello.".to_owned())],
    };
    let id = MailId(Uuid::nil());
    sender(url, trusts).deliver(id, &message, Timestamp::EPOCH).await
}

#[tokio::test]
async fn tls_from_the_start() {
    let (port, server) = server(Speaks::Tls).await;
    deliver(&format!("smtps://u:p@localhost:{port}"), true).await.unwrap();
    let received = server.await.unwrap();
    assert!(received.contains(&"AUTH PLAIN AHUAcA==".to_owned()), "{received:?}");
    assert!(received.contains(&"RCPT TO:<grace@mail.example>".to_owned()), "{received:?}");
}

#[tokio::test]
async fn tls_where_it_is_offered() {
    let (port, server) = server(Speaks::StartTls).await;
    deliver(&format!("smtp://u:p@localhost:{port}?tls=required"), true).await.unwrap();
    let received = server.await.unwrap();
    let at = |text: &str| received.iter().position(|line| line.starts_with(text)).unwrap();
    assert!(at("STARTTLS") < at("(TLS)") && at("(TLS)") < at("AUTH"), "{received:?}");
    assert!(at("AUTH") < at("MAIL"), "{received:?}");
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused() {
    for speaks in [Speaks::Tls, Speaks::StartTls] {
        let scheme = if speaks == Speaks::Tls { "smtps" } else { "smtp" };
        let (port, server) = server(speaks).await;
        let failure =
            deliver(&format!("{scheme}://u:p@localhost:{port}"), false).await.unwrap_err();
        assert!(matches!(failure, Failure::Unreachable(_)), "{failure}");
        let received = server.await.unwrap();
        assert!(!received.iter().any(|line| line.starts_with("AUTH")), "{received:?}");
    }
}

#[tokio::test]
async fn without_tls_only_where_that_is_allowed() {
    let (port, server_that_gets_it) = server(Speaks::Plain).await;
    deliver(&format!("smtp://localhost:{port}"), false).await.unwrap();
    assert!(server_that_gets_it.await.unwrap().contains(&"DATA".to_owned()));
    let (port, server) = server(Speaks::Plain).await;
    let url = format!("smtp://u:p@localhost:{port}?tls=required");
    let failure = deliver(&url, true).await.unwrap_err();
    assert!(failure.to_string().contains("STARTTLS"), "{failure}");
    assert!(!server.await.unwrap().iter().any(|line| line.starts_with("AUTH")));
}

#[tokio::test]
async fn unknown_recipient() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let failure = deliver(&format!("smtp://localhost:{port}"), false).await.unwrap_err();
    assert!(matches!(failure, Failure::Unreachable(_)), "{failure}");
}

#[tokio::test]
async fn a_server_that_talks_without_end_is_left() {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tcp.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _): (TcpStream, _) = tcp.accept().await.unwrap();
        while stream.write_all(b"220-on and on\r\n").await.is_ok() {}
    });
    let failure = deliver(&format!("smtp://localhost:{port}"), false).await.unwrap_err();
    assert!(matches!(failure, Failure::Unreachable(_)), "{failure}");
    task.await.unwrap();
}
