//! A server that gives the same answer to every request and records the requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The server. It ends when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Starts a server that answers with this status and body.
    pub(crate) async fn start(status: u16, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} Any\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, kept) = (answer.clone(), Arc::clone(&kept));
                tokio::spawn(async move {
                    let Some(head) = read(&mut stream).await else { return };
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(head);
                    // The client may be gone.
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { address, heads, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The head of a request, after reading all of it.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        if let Some(end) = request.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end + 4]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().ok())?
            });
            // If the connection is closed with unread bytes, the answer may get lost.
            if request.len() >= end + 4 + length.unwrap_or(0) {
                return Some(head);
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
