//! Issuers that take their time.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use weir_egress::FaultClass;
use weir_oidc::{Answer, Refusal, SignOn};

use crate::issuer::{EGRESS, REDIRECT_URI, after, provider};

#[tokio::test]
async fn an_issuer_that_does_not_finish_its_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
            stream.write_all(head.as_bytes()).await.unwrap();
            kept.push(stream);
        }
    });
    let sign_on = SignOn::new(EGRESS.clone());
    let begun = Instant::now();
    let outcome = sign_on.begin(&provider(&url), REDIRECT_URI, after(TimeDelta::zero())).await;
    let expected = Refusal::Unreachable { answer: Answer::Discovery, fault: FaultClass::TimedOut };
    assert_eq!(outcome.err(), Some(expected));
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    serving.abort();
}
